"""Maps from features to what predicts another view, and how much of it they predict."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.linalg.lapack import dpocon

from .._blas import unshared_products
from ._folds import Fold
from ._signs import oriented
from ._types import Matrix

_ROUNDING = 1e-12  # a smaller share of the second moments is what rounding leaves of zero
_MOST_SMALL = 0.05  # largest share of what predicts that small directions have


def held_out_prediction(
    predictors: list[list[Fold]], rho: float, n_components: int
) -> tuple[Matrix, Matrix]:
    """Predict each fold by a ridge regression on the other fold.

    Parameters
    ----------
    predictors : list of list of Fold
        For each view that predicts, sums over the pairs of views in two parts.
    rho : float
        Ridge, as a share of the total variance.
    n_components : int
        Number r of features that are predicted.

    Returns
    -------
    explained : ndarray of shape (r, r)
        Second moments of what is predicted, minus those of the errors.
    total : ndarray of shape (r, r)
        Second moments of what is predicted. The share of the variance of a direction d that is
        predicted (R2) is ``d' explained d / d' total d``.
    """
    explained = total = np.zeros((n_components, n_components))
    for folds in predictors:
        for held_out, known in (folds, folds[::-1]):
            if not (held_out.source.any() and known.source.any()):
                continue
            weights = ridge_inverse(known.source, rho, known.cross)
            with unshared_products(weights.size):
                predicted = weights.T @ held_out.cross
                explained = explained + predicted + predicted.T
                explained = explained - weights.T @ held_out.source @ weights
            total = total + held_out.target
    return explained, total


def share_explained(directions: Matrix, explained: Matrix, total: Matrix) -> Matrix:
    """Return the share of the variance of directions (r, k) that is predicted (R2).

    The second moments are those of :func:`held_out_prediction`. NaN stands where nothing varies.
    """
    above, below = (np.sum(directions * (m @ directions), axis=0) for m in (explained, total))
    return np.divide(above, below, out=np.full_like(below, np.nan), where=below > 0)


def joint_share_explained(directions: Matrix, explained: Matrix, total: Matrix) -> float:
    """Return the share of the variance of all directions together that is predicted (R2).

    The arguments are those of :func:`share_explained`. The share is NaN where nothing varies.
    """
    with unshared_products(directions.size):
        gram = directions @ directions.T  # sum of d' m d = sum of m * gram, a quarter of the work
    above, below = (float(np.sum(m * gram)) for m in (explained, total))
    return above / below if below > 0 else np.nan


def share_missed(folds: list[Fold], rho: float) -> float:
    """Return the share of what pairs of held-out windows have in common that a ridge misses.

    A ridge regression on the windows of the other fold gives back their large directions. What it
    leaves of the held-out windows lies in directions that hardly vary, each alone, and are many.

    Parameters
    ----------
    folds : list of Fold
        Sums over the pairs of windows in two parts, each window predicting the other.
    rho : float
        Ridge, as a share of the total variance.

    Returns
    -------
    float
        The share; 0 if the pairs have nothing in common.
    """
    missed = common = 0.0
    for held_out, known in (folds, folds[::-1]):
        rest = ridge_inverse(known.source, rho, held_out.cross)
        missed += rho * np.trace(known.source) * np.trace(rest)
        common += np.trace(held_out.cross)
    return max(float(missed / common), 0.0) if common > 0 else 0.0


def ridge_inverse(variance: Matrix, rho: float, right: Matrix) -> Matrix:
    """Return ``(V + rho tr(V) I)^-1 A``; zeros where nothing varies.

    ValueError if rounding decides the solution.
    """
    total = np.trace(variance)
    if total <= 0:
        return np.zeros_like(right)
    regular = variance + rho * total * np.eye(len(variance))
    with unshared_products(regular.size):
        try:
            factor = cho_factor(regular)
            # Of a matrix with a smaller condition the solution holds no digit.
            known = dpocon(factor[0], np.linalg.norm(regular, 1))[0] >= np.finfo(np.float64).eps
        except LinAlgError:
            known = False
        if not known:
            raise ValueError(
                f"rho={rho!r} is too small for the regressions of these features: pass a larger"
                " rho, for example 1e-9."
            )
        return np.asarray(cho_solve(factor, right))


class Target(NamedTuple):
    """What a map is fitted to: second moments of the features of a part.

    Parameters
    ----------
    variance : ndarray of shape (r, r)
        Mean of ``f f'``.
    shared : ndarray of shape (r, r)
        Covariance S with the other view.
    kept : ndarray of shape (r, r)
        Variance without what is removed of a recording's constant part.
    missed : float, default=0.0
        What :func:`share_missed` returns for the features.
    """

    variance: Matrix
    shared: Matrix
    kept: Matrix
    missed: float = 0.0

    def without(self, constant: Matrix, alpha: float) -> Target:
        """Remove a share `alpha` of the constant part of the recordings."""
        removed = alpha * constant
        shared = (1 - alpha) * (self.shared + constant) / 2
        shared += alpha * self.shared - removed
        return self._replace(shared=shared, kept=self.variance - removed)

    def beside(self, nearest: Matrix, weight: float) -> Target:
        """Give what the nearest windows share a weight from 0 to 1, and `shared` the rest."""
        return self._replace(shared=(1 - weight) * self.shared + weight * nearest)


def predictive_map(
    target: Target,
    rho: float,
    whitening: float,
    unpredicted: float,
    n_directions: int,
    reference: Matrix,
) -> Matrix:
    """Map features to what predicts the other view.

    Parameters
    ----------
    target : Target
        Second moments of the features.
    rho : float
        Ridge, as a share of the total variance.
    whitening : float
        How far `shared` is whitened on the side of the other view, from 0 to 1.
    unpredicted : float
        Weight u of what the other view need not predict, from 0 to 1.
    n_directions : int
        Largest number of directions.
    reference : ndarray of shape (r,)
        Vector with which no direction has a negative product.

    Returns
    -------
    ndarray of shape (r, n_directions)
        R with ``R R' = (1 - u - t) M M' + u N N' + t D D'``, leading directions first, where M and
        N are the regressions of `shared`, whitened, and of `kept` on the features, and D is what
        the regression of the features on themselves leaves of them, each scaled to total variance
        1. The weight t is that of :func:`weight_of_small`. If some of the three are zero, the
        others have the whole weight.
    """
    with unshared_products(target.variance.size):
        gram = _gram_of_map(target, rho, whitening, unpredicted)
        values, vectors = eigh(gram)
    order = np.argsort(-values, kind="stable")[:n_directions]
    return oriented(vectors[:, order], reference) * np.sqrt(np.maximum(values[order], 0.0))


def weight_of_small(target: Target, whitening: float, unpredicted: float) -> float:
    """Return the weight t of small directions, to which whitening gives weight by itself."""
    return (1.0 - unpredicted) * min(target.missed, _MOST_SMALL) if whitening == 0 else 0.0


def _gram_of_map(target: Target, rho: float, whitening: float, unpredicted: float) -> Matrix:
    """Return ``R R'`` of :func:`predictive_map`."""
    variance, shared, kept, _ = target
    if whitening > 0:
        shared = shared @ _whitener(variance, rho, whitening)
    small = weight_of_small(target, whitening, unpredicted)
    weighted = [(1.0 - unpredicted - small, shared), (unpredicted, kept)]
    if small:
        weighted.append((small, rho * np.trace(variance) * np.eye(len(variance))))
    least = _ROUNDING * np.linalg.norm(variance)
    weighted = [(weight, moment) for weight, moment in weighted if np.linalg.norm(moment) > least]
    whole = sum(weight for weight, _ in weighted)
    gram = np.zeros_like(variance)
    for weight, moment in weighted:
        regression = ridge_inverse(variance, rho, moment)
        total = np.sum(regression * (variance @ regression))
        gram += (weight / whole if whole else 1.0) / total * regression @ regression.T
    return gram


def _whitener(variance: Matrix, rho: float, whitening: float) -> Matrix:
    """Return ``(V + rho tr(V) I)^(-whitening / 2)``, for features of total variance 1."""
    total = np.trace(variance)
    if total <= 0:
        return np.eye(len(variance))
    values, vectors = eigh(variance / total)
    powers = (np.maximum(values, 0.0) + rho) ** (-whitening / 2)
    return np.asarray((vectors * powers) @ vectors.T)
