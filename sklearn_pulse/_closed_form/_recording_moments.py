"""Moments of features over recordings, and of adjacent windows in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._folds import N_FOLDS, Fold, Matrix, added


class Moments(NamedTuple):
    """Second moments of centred features over recordings.

    Parameters
    ----------
    variance : ndarray of shape (r, r)
        Mean of ``f f'`` over the windows.
    adjacent : ndarray of shape (r, r)
        Symmetric part of the mean of ``f_t f_{t+1}'`` over adjacent windows.
    constant : ndarray of shape (r, r)
        Mean of ``f_i f_j'`` over windows i and all other windows j of their recording. Windows
        that are alone in their recording do not count.
    folds : list of Fold
        The pairs of adjacent windows in two parts, each window predicting its neighbour.
    """

    variance: Matrix
    adjacent: Matrix
    constant: Matrix
    folds: list[Fold]


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
        sums = tuple(own) if not sums else added(sums, tuple(own))
        for number, weight, total in ends:
            if unfinished is not None and unfinished[0] == number:
                unfinished = number, weight, unfinished[2] + total
                continue
            constant = constant + _square(unfinished)
            unfinished = number, weight, total
    variance, cross, source, within = sums
    constant = constant + _square(unfinished) + within
    n, n_pairs = len(windows.recording), int(windows.follows.sum())
    n_with_others = np.count_nonzero(windows.weight)
    folds = [Fold(s, c + c.T, s) for s, c in zip(source, cross, strict=True)]
    adjacent = sum(both.cross for both in folds) / (2 * max(n_pairs, 1))
    return Moments(variance / n, np.asarray(adjacent), constant / max(n_with_others, 1), folds)


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
    """Return kappa, the share of what adjacent windows have in common that varies.

    The rest is common to all windows of a recording.
    """
    common = np.trace(moments.adjacent)
    return float(1.0 - np.trace(moments.constant) / common) if common > 0 else 0.0
