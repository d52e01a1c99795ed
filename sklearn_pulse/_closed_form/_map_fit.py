"""Fit of the map from stacked features to what predicts another view."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, eigh

from .._blas import unshared_products
from ._nearest import local_means, moment_of_nearest, nearness
from ._predictive_map import Target, predictive_map, share_explained, weight_of_small
from ._preparation import Places, Prepared
from ._recording_moments import share_of_change
from ._sample import sample_of_people
from ._signs import oriented
from ._stack import FeatureStack
from ._types import Matrix

_N_REPORTED = 20  # leading directions whose predictability is reported
# Largest share of the constant part that is removed of itself. No kappa tells that the rest is not
# the class: a recording of one class may visit states that all classes have.
_MOST_REMOVED = 0.5


class MapSettings(NamedTuple):
    """Settings of the map; see :class:`~sklearn_pulse.CrossPredictionTransformer`.

    Parameters
    ----------
    alpha : "auto" or float
        Share of the recordings' constant part to remove.
    rho : float
        Ridge, as a share of the total variance.
    whitening : float
        How far what the other view shares is whitened.
    nearest : float
        Weight of what the nearest windows of other recordings share.
    unpredicted : float
        Weight of what the other view need not predict.
    embedding_dim : int
        Width of the embedding.
    seed : int
        Seed of the rotation, and of the sample in which the nearest windows are searched.
    """

    alpha: str | float
    rho: float
    whitening: float
    nearest: float
    unpredicted: float
    embedding_dim: int
    seed: int


class ClosedForm(NamedTuple):
    """Map from principal components to an embedding, and what was found with it.

    Parameters
    ----------
    map : ndarray of float32, of shape (n_components, embedding_dim)
        Map from principal components to the embedding.
    alpha : float
        Share of the recordings' constant part that was removed.
    kappa : float
        Share of what the views have in common that is not constant; NaN where no constant part is
        known.
    small_directions : float
        Weight of directions that hardly vary, each alone, and are many.
    predictability : dict
        R2 of each block and of the leading directions, predicted from the other view.
    """

    map: NDArray[np.float32]
    alpha: float
    kappa: float
    small_directions: float
    predictability: dict[str, Any]


def fit_map(prepared: Prepared, settings: MapSettings) -> ClosedForm:
    """Fit the map to what was prepared.

    Parameters
    ----------
    prepared : Prepared
        What was computed of the windows.
    settings : MapSettings
        Settings of the map.

    Returns
    -------
    ClosedForm
        The map, and what was found with it.
    """
    stack, targets, constant = prepared.stack, prepared.targets, prepared.constant
    alpha, kappa = 0.0, kappa_of(prepared)
    if constant is not None:
        automatic = isinstance(settings.alpha, str)
        alpha = _automatic(kappa) if automatic else float(settings.alpha)
        targets = [
            of_part.without(constant[part.own, part.own], alpha)
            for of_part, part in zip(targets, stack.parts, strict=True)
        ]
    if settings.nearest > 0:
        targets = _with_nearest(stack, targets, prepared.places, settings)
    maps = _maps(stack, targets, settings, sum(len(target.variance) for target in targets))
    n_directions = sum(of_part.shape[1] for of_part in maps)
    if n_directions > settings.embedding_dim:
        directions = _axes(stack, targets, maps, settings.embedding_dim)
        leading = directions[:, :_N_REPORTED]
    else:
        directions = _longest_first(block_diag(*maps)) if len(maps) > 1 else maps[0]
        leading = _axes(stack, targets, maps, _N_REPORTED)
    rotation = _rotation(directions.shape[1], settings.embedding_dim, settings.seed)
    rotated = np.sqrt(settings.embedding_dim) * directions @ rotation
    predictability = {
        "blocks": prepared.of_blocks,
        "directions": share_explained(leading, prepared.explained, prepared.total),
    }
    small = max(
        weight_of_small(target, settings.whitening, settings.unpredicted) for target in targets
    )
    return ClosedForm(rotated.astype(np.float32), alpha, kappa, small, predictability)


def kappa_of(prepared: Prepared) -> float:
    """Return the share of what views have in common that changes; NaN if nothing tells it."""
    if prepared.constant is None:
        return np.nan
    shared = np.concatenate([np.diag(of_part.shared) for of_part in prepared.targets])
    return share_of_change(float(shared.sum()), float(np.trace(prepared.constant)))


def _automatic(kappa: float) -> float:
    """Return the share of the constant part to remove.

    If the views share nothing beyond the constant part (`kappa` is 0), the constant part is all
    that can be kept.
    """
    return min(_MOST_REMOVED, max(kappa, 0.0) ** 0.5)


def _with_nearest(
    stack: FeatureStack, targets: list[Target], places: Places, settings: MapSettings
) -> list[Target]:
    """Add what the nearest windows of other people share to what the map is fitted to.

    Which are the nearest, the map without them tells, however narrow the embedding is.
    """
    drawn = sample_of_people(places.person, settings.seed)
    rows = np.vstack([f for (f,) in places.features.of(places.rows[drawn])])
    maps = _maps(stack, targets, settings, rows.shape[1])
    parts = [rows[:, part.own] for part in stack.parts]
    embedding = np.hstack([own @ to for own, to in zip(parts, maps, strict=True)])
    states = local_means(embedding, places.chain[drawn])
    weights = nearness(states, places.person[drawn])
    if not weights.nnz:  # there is no one else
        return targets
    return [
        target.beside(moment_of_nearest(own, weights), settings.nearest)
        for target, own in zip(targets, parts, strict=True)
    ]


def _maps(
    stack: FeatureStack, targets: list[Target], settings: MapSettings, width: int
) -> list[Matrix]:
    """Return the map of each part of the components, with its share of the embedding."""
    signs = stack.reference()
    of_map = settings.rho, settings.whitening, settings.unpredicted, width
    # A part that does not vary leaves its share to the others.
    shares = [
        part.share * target.variance.any()
        for part, target in zip(stack.parts, targets, strict=True)
    ]
    return [
        np.sqrt(share / (sum(shares) or 1.0)) * predictive_map(target, *of_map, signs[part.own])
        for part, target, share in zip(stack.parts, targets, shares, strict=True)
    ]


def _longest_first(directions: Matrix) -> Matrix:
    """Return the directions of all parts, the longest first."""
    return directions[:, np.argsort(-np.linalg.norm(directions, axis=0), kind="stable")]


def _axes(stack: FeatureStack, targets: list[Target], maps: list[Matrix], number: int) -> Matrix:
    """Return the axes of the embedding that have most of its variance, the largest first.

    The length of a direction does not tell how much of the embedding it holds: what hardly varies
    may have a long one. Parts have moments of their own, and so their own axes.
    """
    signs = stack.reference()
    found = [
        _axes_of_part(of_part, target.variance, signs[part.own], number)
        for part, target, of_part in zip(stack.parts, targets, maps, strict=True)
    ]
    axes = block_diag(*(axes for axes, _ in found))
    order = np.argsort(-np.concatenate([values for _, values in found]), kind="stable")
    return np.asarray(axes[:, order[:number]])


def _axes_of_part(
    map_: Matrix, variance: Matrix, signs: Matrix, number: int
) -> tuple[Matrix, Matrix]:
    """Return the axes of the embedding of one part, and the variance of each."""
    width = map_.shape[1]
    largest = max(0, width - number), width - 1
    with unshared_products(variance.size):
        values, vectors = eigh(map_.T @ variance @ map_, subset_by_index=largest)
        return oriented(map_ @ vectors[:, ::-1], signs), values[::-1]


def _rotation(n_directions: int, width: int, seed: int) -> NDArray[np.float64]:
    """Draw orthonormal rows, shape (n_directions, width)."""
    draws = np.random.RandomState(seed).normal(size=(width, n_directions))
    return np.asarray(np.linalg.qr(draws)[0].T)
