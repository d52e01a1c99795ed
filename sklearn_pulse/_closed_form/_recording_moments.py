"""Moments of features over recordings, and of adjacent windows in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._folds import N_FOLDS, Fold, Matrix, added

# Number of a recording, and weight and sum of each phase, of shape (lag, 1) and (lag, r).
Recording = tuple[int, Matrix, Matrix]


class Moments(NamedTuple):
    """Second moments of centred features over recordings.

    Parameters
    ----------
    variance : ndarray of shape (r, r)
        Mean of ``f f'`` over the windows.
    adjacent : ndarray of shape (r, r)
        Symmetric part of the mean of ``f_t f_{t+lag}'`` over pairs of windows.
    constant : ndarray of shape (r, r)
        Mean of ``f_i f_j'`` over windows i and the other windows j of their recording that are a
        multiple of `lag` windows away. Windows without such others do not count.
    folds : list of Fold
        The pairs of windows in two parts, each window predicting the other.
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
    ends : ndarray of bool of shape (n,)
        Whether a window is paired with the window `lag` places before it.
    fold : ndarray of int of shape (n,)
        Fold of the pair that a window ends.
    phase : ndarray of int of shape (n,)
        Number of the window in its recording, modulo `lag`.
    weight : ndarray of float of shape (n,)
        Weight of the window in the constant part: 1 / (number of others of its phase).
    lag : int
        Distance of the windows of a pair.
    """

    recording: NDArray[np.intp]
    ends: NDArray[np.bool_]
    fold: NDArray[np.intp]
    phase: NDArray[np.intp]
    weight: Matrix
    lag: int

    def part(self, piece: slice) -> PairedWindows:
        """Return some of the windows."""
        *arrays, lag = self
        return PairedWindows._make([*(values[piece] for values in arrays), lag])


def paired_windows(
    recording: NDArray[np.intp], follows: NDArray[np.bool_], lag: int = 1
) -> PairedWindows:
    """Pair windows, which are ordered by recording and time, and assign folds and weights.

    Parameters
    ----------
    recording : ndarray of int of shape (n,)
        Recording of each window, numbered from 0 in this order.
    follows : ndarray of bool of shape (n,)
        Whether a window is adjacent to the window before it.
    lag : int, default=1
        Distance of the windows of a pair, between which all windows are adjacent.

    Returns
    -------
    PairedWindows
        The windows.

    Examples
    --------
    >>> follows = np.array([False, True, True, False, True, True, True])
    >>> paired_windows(np.zeros(7, int), follows, lag=2).ends
    array([False, False,  True, False, False,  True,  True])
    """
    sizes = np.bincount(recording)
    phase = (np.arange(len(recording)) - (np.cumsum(sizes) - sizes)[recording]) % lag
    others = np.bincount(recording * lag + phase)[recording * lag + phase] - 1
    weight = np.divide(1.0, others, out=np.zeros(len(others)), where=others > 0)
    ends = pair_ends(follows, lag)
    return PairedWindows(recording, ends, fold_of_pairs(recording, ends), phase, weight, lag)


def pair_ends(follows: NDArray[np.bool_], lag: int) -> NDArray[np.bool_]:
    """Find the windows that follow `lag` windows without a break.

    Parameters
    ----------
    follows : ndarray of bool of shape (n,)
        Whether a window is adjacent to the window before it.
    lag : int
        Number of windows.

    Returns
    -------
    ndarray of bool of shape (n,)
        Whether a window ends such a sequence.
    """
    number = np.arange(len(follows))
    begins = np.maximum.accumulate(np.where(follows, 0, number))
    return number - begins >= lag


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
    ends : list of tuple of int and two ndarrays, of shape (lag, 1) and (lag, r)
        Number of the first and the last recording, which other pieces may share, and weight and
        sum of each phase.
    """

    variance: Matrix
    cross: list[Matrix]
    source: list[Matrix]
    constant: Matrix
    ends: list[Recording]


def recording_sums(
    chunks: Iterable[Matrix], windows: PairedWindows, before: Matrix | None = None
) -> RecordingSums:
    """Sum over the windows of a piece, keeping a few rows and one sum of a recording.

    Parameters
    ----------
    chunks : iterable of ndarray of shape (n_chunk, r)
        Features of the windows in order.
    windows : PairedWindows
        The windows.
    before : ndarray of shape (n_before, r) or None, default=None
        Features of the windows before the piece, at most `lag`; None if no pair needs them.

    Returns
    -------
    RecordingSums
        The sums.
    """
    cross: list[Matrix] = [np.zeros(())] * N_FOLDS
    source = list(cross)
    variance = constant = np.zeros(())
    ends: list[Recording] = []
    last, first = before, 0
    for f in chunks:
        own = windows.part(slice(first, first + len(f)))
        first += len(f)
        variance = variance + f.T @ f
        rows = np.vstack([_filled(last, windows.lag, f.shape[1]), f])
        earlier, last = rows[: len(f)], rows[len(f) :]
        for number in range(N_FOLDS):
            linked = own.ends & (own.fold == number)
            g, h = earlier[linked], f[linked]
            cross[number] = cross[number] + g.T @ h
            source[number] = source[number] + g.T @ g + h.T @ h
        constant = constant - (f * own.weight[:, None]).T @ f
        complete = _complete(_sums_of_recordings(f, own), ends)
        if complete:
            sums, weights = map(np.vstack, zip(*complete, strict=True))
            constant = constant + (sums * weights).T @ sums
    return RecordingSums(variance, cross, source, constant, ends)


def _filled(rows: Matrix | None, n: int, width: int) -> Matrix:
    """Return n rows, the first of them zero if there are fewer: no pair needs these."""
    rows = np.zeros((0, width)) if rows is None else rows
    return np.pad(rows, ((n - len(rows), 0), (0, 0)))


def _sums_of_recordings(f: Matrix, windows: PairedWindows) -> Iterator[Recording]:
    """Yield each recording of a chunk."""
    numbers, place = np.unique(windows.recording, return_inverse=True)
    sums = np.zeros((len(numbers), windows.lag, f.shape[1]))
    weights = np.zeros((len(numbers), windows.lag, 1))
    np.add.at(sums, (place, windows.phase), f)
    weights[place, windows.phase, 0] = windows.weight
    yield from zip(numbers.tolist(), weights, sums, strict=True)


def _joined(one: Recording, other: Recording) -> Recording:
    """Add two parts of a recording; a phase without a window in a part has no weight there."""
    return one[0], np.maximum(one[1], other[1]), one[2] + other[2]


def _complete(parts: Iterable[Recording], ends: list[Recording]) -> list[tuple[Matrix, Matrix]]:
    """Add up sums of recordings, keep the first and last in `ends`, and return the others."""
    complete = []
    for part in parts:
        if ends and ends[-1][0] == part[0]:
            ends[-1] = _joined(ends[-1], part)
            continue
        if len(ends) == 2:
            complete.append((ends[-1][2], ends[-1][1]))
            ends.pop()
        ends.append(part)
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
    unfinished: Recording | None = None
    constant = np.zeros(())
    for *own, ends in pieces:
        sums = tuple(own) if not sums else added(sums, tuple(own))
        for part in ends:
            if unfinished is not None and unfinished[0] == part[0]:
                unfinished = _joined(unfinished, part)
                continue
            constant = constant + _square(unfinished)
            unfinished = part
    variance, cross, source, within = sums
    constant = constant + _square(unfinished) + within
    n, n_pairs = len(windows.recording), int(windows.ends.sum())
    n_with_others = np.count_nonzero(windows.weight)
    folds = [Fold(s, c + c.T, s) for s, c in zip(source, cross, strict=True)]
    adjacent = sum(both.cross for both in folds) / (2 * max(n_pairs, 1))
    return Moments(variance / n, np.asarray(adjacent), constant / max(n_with_others, 1), folds)


def _square(recording: Recording | None) -> Matrix:
    """Return the part of a whole recording in the constant moment, before its own windows."""
    if recording is None:
        return np.zeros(())
    _, weights, sums = recording
    return (sums * weights).T @ sums


def fold_of_pairs(recording: NDArray[np.intp], ends: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Divide pairs of windows into two parts that share no recording if there are several.

    Parameters
    ----------
    recording : ndarray of int of shape (n,)
        Recording of each window, in ascending order.
    ends : ndarray of bool of shape (n,)
        Whether a window is the later one of a pair.

    Returns
    -------
    ndarray of int of shape (n,)
        Part of the pair that each window ends. A single recording is cut in the middle.

    Examples
    --------
    >>> fold_of_pairs(np.array([0, 0, 1, 1, 2, 2]), np.array([False, True] * 3))
    array([0, 0, 1, 1, 0, 0])
    """
    paired = np.unique(recording[ends])
    if len(paired) > 1:
        return np.searchsorted(paired, recording) % N_FOLDS
    done = np.cumsum(ends)
    return (done > done[-1] / 2).astype(np.intp)


def share_of_change(moments: Moments) -> float:
    """Return kappa, the share of what the windows of a pair have in common that varies.

    The rest is common to all windows of a recording.
    """
    common = np.trace(moments.adjacent)
    return float(1.0 - np.trace(moments.constant) / common) if common > 0 else 0.0
