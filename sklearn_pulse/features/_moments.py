"""Moments of features over two views, and the maps that follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any, NamedTuple

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


def half_moments(pieces: Iterable[HalfSums], n: int, rho: float) -> HalfMoments:
    """Compute what the halves of windows predict.

    Parameters
    ----------
    pieces : iterable of HalfSums
        Sums over the pieces of all windows, in order.
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
    >>> moments = half_moments([sums], len(f), rho=0.0)
    >>> moments.variance.item(), moments.shared.item()
    (2.0, 2.0)
    """
    target, halves = reduce(_added, pieces)
    predictors = [
        [sums._replace(target=own) for sums, own in zip(folds, target, strict=True)]
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


def _added(one: Any, other: Any) -> Any:
    """Add arrays, or nested lists and tuples of arrays, place by place."""
    if not isinstance(one, list | tuple):
        return one + other
    parts = [_added(*pair) for pair in zip(one, other, strict=True)]
    return type(one)(*parts) if hasattr(one, "_fields") else type(one)(parts)


class PairedWindows(NamedTuple):
    """Consecutive windows, ordered by recording and time, and which of them are paired.

    Parameters
    ----------
    recording : ndarray of int of shape (n,)
        Recording of each window, in ascending order without gaps.
    follows : ndarray of bool of shape (n,)
        Whether a window is adjacent to the window before it.
    fold : ndarray of int of shape (n,)
        Fold of the pair that a window ends.
    weight : ndarray of float of shape (n,)
        Weight of the window's recording in the constant part.
    """

    recording: NDArray[np.intp]
    follows: NDArray[np.bool_]
    fold: NDArray[np.intp]
    weight: Matrix

    def part(self, piece: slice) -> PairedWindows:
        """Return some of the windows."""
        return PairedWindows(
            self.recording[piece], self.follows[piece], self.fold[piece], self.weight[piece]
        )


def paired_windows(recording: NDArray[np.intp], follows: NDArray[np.bool_]) -> PairedWindows:
    """Assign folds and weights to windows, which are ordered by recording and time.

    Parameters
    ----------
    recording : ndarray of int of shape (n,)
        Recording of each window, numbered from 0 in this order.
    follows : ndarray of bool of shape (n,)
        Whether a window is adjacent to the window before it.

    Returns
    -------
    PairedWindows
        The windows.
    """
    sizes = np.bincount(recording)
    # A recording of one window has no pair.
    weights = np.divide(1.0, sizes - 1, out=np.zeros(len(sizes)), where=sizes > 1)
    return PairedWindows(recording, follows, fold_of_pairs(recording, follows), weights[recording])


class RecordingSums(NamedTuple):
    """Sums over the windows of a piece.

    Parameters
    ----------
    variance : ndarray of shape (r, r)
        Sum of ``f f'``.
    cross, source : list of ndarray of shape (r, r)
        In each fold, the sum of ``g h'`` over pairs, and that of ``g g' + h h'``.
    constant : ndarray of shape (r, r)
        Weighted sum of ``f_i f_j'`` over pairs of windows of a recording that lies within the
        piece, without the sums that `ends` holds.
    ends : list of tuple of int, float and ndarray of shape (1, r)
        Number, weight and sum of the first and the last recording, which other pieces may share.
    """

    variance: Matrix
    cross: list[Matrix]
    source: list[Matrix]
    constant: Matrix
    ends: list[tuple[int, float, Matrix]]


def recording_sums(
    chunks: Iterable[Matrix], windows: PairedWindows, before: Matrix | None = None
) -> RecordingSums:
    """Sum over the windows of a piece, keeping one row and one sum of a recording.

    Parameters
    ----------
    chunks : iterable of ndarray of shape (n_chunk, r)
        Features of the windows in order.
    windows : PairedWindows
        The windows.
    before : ndarray of shape (1, r) or None, default=None
        Features of the window before the piece; None if the first window follows none.

    Returns
    -------
    RecordingSums
        The sums.
    """
    cross: list[Matrix] = [np.zeros(())] * N_FOLDS
    source = list(cross)
    variance = constant = np.zeros(())
    ends: list[tuple[int, float, Matrix]] = []
    last, first = before, 0
    for f in chunks:
        own = windows.part(slice(first, first + len(f)))
        first += len(f)
        variance = variance + f.T @ f
        earlier = np.vstack([f[:1] if last is None else last, f[:-1]])
        for number in range(N_FOLDS):
            linked = own.follows & (own.fold == number)
            g, h = earlier[linked], f[linked]
            cross[number] = cross[number] + g.T @ h
            source[number] = source[number] + g.T @ g + h.T @ h
        constant = constant - (f * own.weight[:, None]).T @ f
        complete = _complete(_sums_of_recordings(f, own), ends)
        if complete:
            sums, weights = map(np.vstack, zip(*complete, strict=True))
            constant = constant + (sums * weights).T @ sums
        last = f[-1:]
    return RecordingSums(variance, cross, source, constant, ends)


def _sums_of_recordings(f: Matrix, windows: PairedWindows) -> Iterator[tuple[int, float, Matrix]]:
    """Yield number, weight and sum of each recording of a chunk."""
    numbers, first = np.unique(windows.recording, return_index=True)
    sums = np.zeros((len(numbers), f.shape[1]))
    np.add.at(sums, windows.recording - numbers[0], f)
    for row, (number, at) in enumerate(zip(numbers.tolist(), first.tolist(), strict=True)):
        yield number, float(windows.weight[at]), sums[row : row + 1]


def _complete(
    parts: Iterable[tuple[int, float, Matrix]], ends: list[tuple[int, float, Matrix]]
) -> list[tuple[Matrix, float]]:
    """Add up sums of recordings, keep the first and last in `ends`, and return the others."""
    complete = []
    for number, weight, total in parts:
        if ends and ends[-1][0] == number:
            ends[-1] = number, weight, ends[-1][2] + total
            continue
        if len(ends) == 2:
            complete.append((ends[-1][2], ends[-1][1]))
            ends.pop()
        ends.append((number, weight, total))
    return complete


def recording_moments(pieces: Iterable[RecordingSums], windows: PairedWindows) -> Moments:
    """Add up the sums over pieces.

    Parameters
    ----------
    pieces : iterable of RecordingSums
        Sums over the pieces of all windows, in order.
    windows : PairedWindows
        All windows.

    Returns
    -------
    Moments
        The four moments.

    Examples
    --------
    >>> f = np.array([[1.0], [2.0], [3.0]])
    >>> windows = paired_windows(np.zeros(3, int), np.array([False, True, True]))
    >>> moments = recording_moments([recording_sums([f[:2], f[2:]], windows)], windows)
    >>> [round(m.item(), 3) for m in moments[:3]]
    [4.667, 4.0, 3.667]
    """
    sums: tuple[Any, ...] = ()
    unfinished: tuple[int, float, Matrix] | None = None
    constant = np.zeros(())
    for *own, ends in pieces:
        sums = tuple(own) if not sums else _added(sums, tuple(own))
        for number, weight, total in ends:
            if unfinished is not None and unfinished[0] == number:
                unfinished = number, weight, unfinished[2] + total
                continue
            constant = constant + _square(unfinished)
            unfinished = number, weight, total
    variance, cross, source, within = sums
    constant = constant + _square(unfinished) + within
    n, n_pairs = len(windows.recording), int(windows.follows.sum())
    folds = [Fold(s, c + c.T, s) for s, c in zip(source, cross, strict=True)]
    adjacent = sum(both.cross for both in folds) / (2 * max(n_pairs, 1))
    return Moments(variance / n, np.asarray(adjacent), constant / n, folds)


def _square(recording: tuple[int, float, Matrix] | None) -> Matrix:
    """Return the part of a whole recording in the constant moment, before its own windows."""
    if recording is None:
        return np.zeros(())
    _, weight, total = recording
    return weight * (total.T @ total)


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
