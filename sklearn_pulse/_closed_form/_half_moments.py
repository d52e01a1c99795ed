"""Moments of features of windows and of their halves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._folds import N_FOLDS, Fold
from ._predictive_map import ridge_inverse
from ._types import Matrix


class HalfMoments(NamedTuple):
    """Second moments of centred features of windows and of their halves.

    Parameters
    ----------
    variance : ndarray of shape (r, r)
        Mean of ``f f'`` over the windows.
    shared : ndarray of shape (r, r)
        Covariance that the halves predict, the mean over both; `variance` without halves.
    predictors : list of list of Fold
        For each half, the windows in two parts.
    """

    variance: Matrix
    shared: Matrix
    predictors: list[list[Fold]]


class HalfSums(NamedTuple):
    """Sums over the windows of a piece and their halves.

    Parameters
    ----------
    target : list of ndarray of shape (r, r)
        Sum of ``f f'`` in each fold.
    halves : list of list of Fold
        For each half, the sums in each fold; the targets are left out.
    """

    target: list[Matrix]
    halves: list[list[Fold]]

    def part(self, own: slice, of_halves: Sequence[slice]) -> HalfSums:
        """Return the sums over some features of the windows and of each half."""
        return HalfSums(
            [target[own, own] for target in self.target],
            [
                [fold.part(half, own) for fold in folds]
                for half, folds in zip(of_halves, self.halves, strict=True)
            ],
        )


def half_sums(views: Iterable[tuple[Matrix, ...]], fold: NDArray[np.intp]) -> HalfSums:
    """Sum over the windows of a piece.

    Parameters
    ----------
    views : iterable of tuple of ndarray, of shape (n_chunk, r) and (n_chunk, r_half)
        Features of the windows, and of each half; or of the windows alone.
    fold : ndarray of int of shape (n_piece,)
        Fold of each window.

    Returns
    -------
    HalfSums
        The sums.
    """
    zero = np.zeros(())
    target = [zero] * N_FOLDS
    sums: list[list[Fold]] = []
    first = 0
    for f, *halves in views:
        own_fold = fold[first : first + len(f)]
        first += len(f)
        sums = sums or [[Fold(zero, zero, zero)] * N_FOLDS for _ in halves]
        for number in range(N_FOLDS):
            own = f[own_fold == number]
            target[number] = target[number] + own.T @ own
            for of_half, psi in zip(sums, halves, strict=True):
                g, before = psi[own_fold == number], of_half[number]
                of_half[number] = Fold(before.source + g.T @ g, before.cross + g.T @ own, zero)
    return HalfSums(target, sums)


def half_moments(sums: HalfSums, n: int, rho: float) -> HalfMoments:
    """Compute what the halves of windows predict.

    Parameters
    ----------
    sums : HalfSums
        Sums over all windows.
    n : int
        Number of all windows.
    rho : float
        Ridge, as a share of the total variance.

    Returns
    -------
    HalfMoments
        The moments.

    Examples
    --------
    >>> f = np.array([[2.0], [0.0], [-2.0], [0.0]])
    >>> sums = half_sums([(f, f, f)], fold=np.array([0, 0, 1, 1]))
    >>> moments = half_moments(sums, len(f), rho=0.0)
    >>> moments.variance.item(), round(moments.shared.item(), 6)
    (2.0, 2.0)
    """
    target, halves = sums
    predictors = [
        [fold._replace(target=own) for fold, own in zip(folds, target, strict=True)]
        for folds in halves
    ]
    variance = np.asarray(sum(target)) / n
    predicted = []
    for folds in predictors:
        source = np.asarray(sum(fold.source for fold in folds))
        cross = np.asarray(sum(fold.cross for fold in folds))
        predicted.append(cross.T @ ridge_inverse(source, rho, cross) / n)
    shared = np.mean(predicted, axis=0) if predicted else variance
    return HalfMoments(variance, shared, predictors)
