"""Linear probes of wide embeddings: the fixed probe, and C chosen by cross-validation.

A probe is that of :func:`sklearn_pulse.evaluation.make_linear_probe`. Where an embedding is wider
than the number of training windows, its standardised rows are first written in an orthonormal basis
of the space of the training rows. This keeps every inner product, and hence the solution, and
shortens 50,000 columns to as many as there are training windows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from ..evaluation import make_linear_probe

FIXED_C = 1.0
CS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
_N_FOLDS = 5  # on which C is chosen
N_SEARCHED = 2000  # windows on which C is chosen
SEARCH_ITER = 300  # iterations of the solver per fit of the search
_N_COLUMNS = 2048  # columns that are standardised at a time
_JITTER = 1e-10  # share of the mean squared length that keeps rows linearly independent


@dataclass(frozen=True)
class LabeledRows:
    """Embeddings in which some rows are labelled and others are scored.

    Parameters
    ----------
    Z : ndarray of shape (n_windows, n_features)
        Embeddings, possibly a memory map.
    y : ndarray of shape (n_windows,)
        Labels.
    groups : ndarray of shape (n_windows,)
        Person of each window.
    """

    Z: NDArray[Any]
    y: NDArray[Any]
    groups: NDArray[Any]

    def standardised(
        self, train: NDArray[np.intp], scored: NDArray[np.intp]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the rows, standardised by the training rows, in as few columns as rows.

        Parameters
        ----------
        train : ndarray of int
            Training rows.
        scored : ndarray of int
            Scored rows.

        Returns
        -------
        train : ndarray of float32, of shape (n_train, min(n_features, n_train))
            Coordinates of the training rows.
        scored : ndarray of float32, of shape (n_scored, min(n_features, n_train))
            Coordinates of the scored rows. What is orthogonal to all training rows, to which a
            probe gives no weight, is left out.
        """
        if self.Z.shape[1] <= len(train):
            scaler = StandardScaler().set_output(transform="default")
            coordinates = scaler.fit_transform(self.Z[train]), scaler.transform(self.Z[scored])
        else:
            coordinates = _in_span(*self._products(train, scored))
        return coordinates[0].astype(np.float32), coordinates[1].astype(np.float32)

    def _products(
        self, train: NDArray[np.intp], scored: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return inner products of standardised rows: train by train, and scored by train."""
        products = np.zeros((len(train), len(train)))
        cross = np.zeros((len(scored), len(train)))
        for first in range(0, self.Z.shape[1], _N_COLUMNS):
            columns = slice(first, first + _N_COLUMNS)
            scaler = StandardScaler().set_output(transform="default")
            X = scaler.fit_transform(self.Z[train, columns].astype(np.float64))
            products += X @ X.T
            cross += scaler.transform(self.Z[scored, columns].astype(np.float64)) @ X.T
        return products, cross

    def choose_C(self, rows: NDArray[np.intp], seed: int) -> tuple[float, int]:
        """Choose C by the accuracy of a cross-validation over labelled rows, as a user would.

        Whole groups are held out if every class occurs in at least two groups; otherwise windows
        are held out, stratified by class. If no class has two windows, C stays that of the
        fixed probe. Of more than `N_SEARCHED` windows, about as many are used, as whole groups.

        Parameters
        ----------
        rows : ndarray of int
            Labelled rows.
        seed : int
            Seed of the folds, and of the groups that are used.

        Returns
        -------
        C : float
            The smallest of the best values of `CS`.
        n_capped : int
            Number of fits that stopped at `SEARCH_ITER` iterations.
        """
        rows = rows[_some_groups(self.groups[rows], seed)]
        accuracy, n_capped = [], 0
        X, _ = self.standardised(rows, rows[:1])
        y = self.y[rows]
        for train, held_out in _folds(y, self.groups[rows], seed):
            probe = _probe(FIXED_C).set_params(warm_start=True, max_iter=SEARCH_ITER)
            of_fold = []
            for C in CS:  # each fit starts from the weights of the stronger penalty
                n_capped += _fit(probe.set_params(C=C), X[train], y[train])
                of_fold.append(probe.score(X[held_out], y[held_out]))
            accuracy.append(of_fold)
        best = int(np.mean(accuracy, axis=0).argmax()) if accuracy else CS.index(FIXED_C)
        return CS[best], n_capped

    def fit(self, train: NDArray[np.intp], C: float, X: NDArray[Any]) -> LogisticRegression:
        """Return the probe, fitted on the coordinates `X` of the training rows."""
        probe = _probe(C)
        _fit(probe, X, self.y[train])
        return probe


def _probe(C: float) -> LogisticRegression:
    """Return the unfitted classifier of the linear probe, without its scaler."""
    return make_linear_probe(C).named_steps["probe"]


def _fit(probe: LogisticRegression, X: NDArray[Any], y: NDArray[Any]) -> bool:
    """Fit a probe, and return whether it stopped at its last iteration."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        probe.fit(X, y)
    return bool(probe.n_iter_.max() >= probe.max_iter)


def _in_span(
    products: NDArray[np.float64], cross: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return coordinates in an orthonormal basis of the span of the training rows."""
    products.flat[:: len(products) + 1] += _JITTER * max(np.trace(products) / len(products), 1.0)
    lower = cholesky(products, lower=True, overwrite_a=True, check_finite=False)
    return lower, solve_triangular(lower, cross.T, lower=True, check_finite=False).T


def _some_groups(groups: NDArray[Any], seed: int) -> NDArray[np.intp]:
    """Return the positions of random groups, as many as it takes to hold `N_SEARCHED` windows."""
    if len(groups) <= N_SEARCHED:
        return np.arange(len(groups))
    _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.random.RandomState(seed).permutation(len(sizes))
    before = np.cumsum(sizes[order]) - sizes[order]
    return np.flatnonzero(np.isin(codes, order[before < N_SEARCHED]))


def _folds(
    y: NDArray[Any], groups: NDArray[Any], seed: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield training and held-out rows; folds that train on a single class are left out."""
    labels, n_windows = np.unique(y, return_counts=True)
    n_groups = min(len(np.unique(groups[y == label])) for label in labels)
    options = {"shuffle": True, "random_state": seed}
    if n_groups > 1:
        folds = StratifiedGroupKFold(min(_N_FOLDS, n_groups), **options).split(y, y, groups)
    elif n_windows.max() > 1:
        folds = StratifiedKFold(min(_N_FOLDS, n_windows.max()), **options).split(y, y)
    else:
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        for train, held_out in folds:
            if len(np.unique(y[train])) > 1 and len(held_out):
                yield train, held_out
