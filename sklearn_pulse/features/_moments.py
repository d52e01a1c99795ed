"""Moments of features over two views, and the maps that follow from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, solve

Matrix = NDArray[np.float64]
N_FOLDS = 2  # parts of the pairs; each is predicted from the other part


class Fold(NamedTuple):
    """Sums over the pairs of views of a part of the windows.

    Parameters
    ----------
    source : ndarray of shape (r_source, r_source)
        Sum of ``g g'`` over the views g that predict.
    cross : ndarray of shape (r_source, r)
        Sum of ``g f'`` over pairs.
    target : ndarray of shape (r, r)
        Sum of ``f f'`` over the views f that are predicted.
    """

    source: Matrix
    cross: Matrix
    target: Matrix


class Moments(NamedTuple):
    """Second moments of centred features over recordings.

    Parameters
    ----------
    variance : ndarray of shape (r, r)
        Mean of ``f f'`` over the windows.
    adjacent : ndarray of shape (r, r)
        Symmetric part of the mean of ``f_t f_{t+1}'`` over adjacent windows.
    constant : ndarray of shape (r, r)
        Mean of ``f_i f_j'`` over windows i and all other windows j of their recording.
    folds : list of Fold
        The pairs of adjacent windows in two parts, each window predicting its neighbour.
    """

    variance: Matrix
    adjacent: Matrix
    constant: Matrix
    folds: list[Fold]


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


def half_moments(views: Iterable[tuple[Matrix, ...]], n: int, rho: float) -> HalfMoments:
    """Compute what the halves of windows predict, in one pass.

    Parameters
    ----------
    views : iterable of tuple of ndarray, of shape (n_chunk, r) and (n_chunk, r_half)
        Features of the windows, and of each half; or of the windows alone.
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
    >>> moments = half_moments([(f, f, f)], len(f), rho=0.0)
    >>> moments.variance.item(), moments.shared.item()
    (2.0, 2.0)
    """
    sums: dict[tuple[int, int], Fold] = {}
    target: list[Matrix] = [np.zeros(())] * N_FOLDS
    first = 0
    for f, *halves in views:
        fold = (np.arange(first, first + len(f)) >= n / 2).astype(np.intp)
        first += len(f)
        for number in range(N_FOLDS):
            own = f[fold == number]
            target[number] = target[number] + own.T @ own
            for half, psi in enumerate(halves):
                g = psi[fold == number]
                before = sums.get((half, number), Fold(np.zeros(()), np.zeros(()), np.zeros(())))
                sums[half, number] = Fold(
                    before.source + g.T @ g, before.cross + g.T @ own, np.zeros(())
                )
    n_halves = len(sums) // N_FOLDS
    predictors = [
        [sums[half, number]._replace(target=target[number]) for number in range(N_FOLDS)]
        for half in range(n_halves)
    ]
    variance = np.asarray(sum(target)) / n
    predicted = []
    for folds in predictors:
        source = np.asarray(sum(fold.source for fold in folds))
        cross = np.asarray(sum(fold.cross for fold in folds))
        predicted.append(cross.T @ ridge_inverse(source, rho, cross) / n)
    shared = np.mean(predicted, axis=0) if predicted else variance
    return HalfMoments(variance, shared, predictors)


def recording_moments(
    chunks: Iterable[Matrix], recording: NDArray[np.intp], follows: NDArray[np.bool_]
) -> Moments:
    """Compute the moments in one pass that keeps one row and one sum of a recording.

    Parameters
    ----------
    chunks : iterable of ndarray of shape (n_chunk, r)
        Features of the windows, ordered by recording and time.
    recording : ndarray of int of shape (n,)
        Recording of each window, numbered from 0 in this order.
    follows : ndarray of bool of shape (n,)
        Whether a window is adjacent to the window before it.

    Returns
    -------
    Moments
        The four moments.

    Examples
    --------
    >>> f = np.array([[1.0], [2.0], [3.0]])
    >>> moments = recording_moments([f[:2], f[2:]], np.zeros(3, int), np.array([False, True, True]))
    >>> [round(m.item(), 3) for m in moments[:3]]
    [4.667, 4.0, 3.667]
    """
    sizes = np.bincount(recording)
    # A recording of one window has no pair.
    weights = np.divide(1.0, sizes - 1, out=np.zeros(len(sizes)), where=sizes > 1)
    fold = fold_of_pairs(recording, follows)
    cross: list[Matrix] = [np.zeros(()) for _ in range(N_FOLDS)]
    source = list(cross)
    variance = constant = np.zeros(())
    first, total = 0, 0.0
    last: Matrix | None = None
    for f in chunks:
        own = recording[first : first + len(f)]
        variance = variance + f.T @ f
        before = np.vstack([f[:1] if last is None else last, f[:-1]])
        for number in range(N_FOLDS):
            linked = follows[first : first + len(f)] & (fold[first : first + len(f)] == number)
            g, h = before[linked], f[linked]
            cross[number] = cross[number] + g.T @ h
            source[number] = source[number] + g.T @ g + h.T @ h
        constant = constant - (f * weights[own, None]).T @ f
        # Sums of the recordings of this chunk; those that end here are complete.
        sums = np.zeros((own[-1] - own[0] + 1, f.shape[1]))
        np.add.at(sums, own - own[0], f)
        if last is not None and own[0] == recording[first - 1]:
            sums[0] += total
        first += len(f)
        last, total = f[-1:], sums[-1]
        n_complete = len(sums) - (first < len(recording) and recording[first] == own[-1])
        complete = sums[:n_complete]
        constant = constant + (complete * weights[own[0] :][:n_complete, None]).T @ complete
    folds = [Fold(s, c + c.T, s) for s, c in zip(source, cross, strict=True)]
    adjacent = sum(both.cross for both in folds) / (2 * max(int(follows.sum()), 1))
    return Moments(variance / first, np.asarray(adjacent), constant / first, folds)


def fold_of_pairs(recording: NDArray[np.intp], follows: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Divide pairs of adjacent windows into two parts that share no recording if there are several.

    Parameters
    ----------
    recording : ndarray of int of shape (n,)
        Recording of each window, in ascending order.
    follows : ndarray of bool of shape (n,)
        Whether a window is adjacent to the window before it.

    Returns
    -------
    ndarray of int of shape (n,)
        Part of the pair that each window ends. A single recording is cut in the middle.

    Examples
    --------
    >>> fold_of_pairs(np.array([0, 0, 1, 1, 2, 2]), np.array([False, True] * 3))
    array([0, 0, 1, 1, 0, 0])
    """
    paired = np.unique(recording[follows])
    if len(paired) > 1:
        return np.searchsorted(paired, recording) % N_FOLDS
    done = np.cumsum(follows)
    return (done > done[-1] / 2).astype(np.intp)


def share_of_change(moments: Moments) -> float:
    """Return kappa: the share of what adjacent windows share that others of the recording lack."""
    common = np.trace(moments.adjacent)
    return float(1.0 - np.trace(moments.constant) / common) if common > 0 else 0.0


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
            predicted = weights.T @ held_out.cross
            explained = explained + predicted + predicted.T
            explained = explained - weights.T @ held_out.source @ weights
            total = total + held_out.target
    return explained, total


def share_explained(
    directions: Matrix, explained: Matrix, total: Matrix, whole: bool = False
) -> Matrix:
    """Return the share of the variance of directions that is predicted (R2).

    Parameters
    ----------
    directions : ndarray of shape (r, k)
        The directions.
    explained, total : ndarray of shape (r, r)
        Second moments, as :func:`held_out_prediction` returns them.
    whole : bool, default=False
        Whether the directions count as one block.

    Returns
    -------
    ndarray of shape (k,) or ()
        The share of each direction, or of the block; NaN where nothing varies.
    """
    parts = [np.sum(directions * (m @ directions), axis=0) for m in (explained, total)]
    above, below = (np.sum(part) if whole else part for part in parts)
    return np.divide(above, below, out=np.full_like(below, np.nan), where=below > 0)


def ridge_inverse(variance: Matrix, rho: float, right: Matrix) -> Matrix:
    """Return ``(V + rho tr(V) I)^-1 A``; zeros where nothing varies."""
    total = np.trace(variance)
    if total <= 0:
        return np.zeros_like(right)
    return solve(variance + rho * total * np.eye(len(variance)), right, assume_a="pos")


def predictive_map(
    variance: Matrix, shared: Matrix, kept: Matrix, rho: float, n_directions: int
) -> Matrix:
    """Map features to what predicts the other view, without whitening.

    Parameters
    ----------
    variance : ndarray of shape (r, r)
        Mean of ``f f'``.
    shared : ndarray of shape (r, r)
        Covariance S with the other view.
    kept : ndarray of shape (r, r)
        Variance without what is removed of a recording's constant part.
    rho : float
        Ridge, as a share of the total variance.
    n_directions : int
        Largest number of directions.

    Returns
    -------
    ndarray of shape (r, n_directions)
        R with ``R R' = 0.9 M M' + 0.1 N N'``, leading directions first, where M and N are the
        regressions of `shared` and `kept` on the features, each scaled to total variance 1.
    """
    gram = np.zeros_like(variance)
    for share, target in ((0.9, shared), (0.1, kept)):
        regression = ridge_inverse(variance, rho, target)
        total = np.sum(regression * (variance @ regression))
        if total > 0:
            gram += share / total * regression @ regression.T
    values, vectors = eigh(gram)
    order = np.argsort(-values, kind="stable")[:n_directions]
    return vectors[:, order] * np.sqrt(np.maximum(values[order], 0.0))
