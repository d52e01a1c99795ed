"""Moments of features over recordings and people, and of adjacent windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._folds import N_FOLDS, Fold, added
from ._neighbours import adjacent
from ._types import Matrix

_JITTER = 0.1  # of times, in usual times from one window to the next

# Number of a recording or person, and weight and sum of each of its phases, of shape (n_phases, 1)
# and (n_phases, r).
Group = tuple[int, Matrix, Matrix]


class Moments(NamedTuple):
    """Second moments of centred features over recordings.

    Parameters
    ----------
    variance : ndarray of shape (r, r)
        Mean of ``f f'`` over the windows.
    adjacent : ndarray of shape (r, r)
        Symmetric part of the mean of ``f g'`` over pairs of windows.
    constant : ndarray of shape (r, r)
        Mean of ``f_i f_j'`` over windows i and the windows j of other recordings of their person.
        Where a person has one recording, j are the other windows of this recording that have the
        phase of i. Windows without such others do not count.
    folds : list of Fold
        The pairs of windows in two parts, each window predicting the other.
    """

    variance: Matrix
    adjacent: Matrix
    constant: Matrix
    folds: list[Fold]

    def part(self, own: slice) -> Moments:
        """Return the moments of some features."""
        variance, adjacent, constant = (m[own, own] for m in self[:3])
        return Moments(variance, adjacent, constant, [fold.part(own, own) for fold in self.folds])


class PairedWindows(NamedTuple):
    """Consecutive windows, ordered by person, recording and time, and which of them are paired.

    Parameters
    ----------
    recording : ndarray of int of shape (n,)
        Recording of each window, in ascending order without gaps.
    back : ndarray of int of shape (n,)
        How many places before a window its partner is; 0 if it has none.
    fold : ndarray of int of shape (n,)
        Fold of the pair that a window ends.
    phase : ndarray of int of shape (n,)
        Windows of one phase share no step.
    weight : ndarray of float of shape (n,)
        Weight of the window in the constant part of a person with one recording: 1 / (number of
        others of its phase). 0 where the person has several.
    person : ndarray of int of shape (n,)
        Person of each window, in ascending order without gaps.
    weight_of_person : ndarray of float of shape (n,)
        Weight in the constant part of the person of the window, who has several recordings: number
        of windows / number of ordered pairs of them that two recordings share. 0 where the person
        has one.
    n_phases : int
        Number of phases.
    several : bool
        Whether any person has several recordings.
    """

    recording: NDArray[np.intp]
    back: NDArray[np.intp]
    fold: NDArray[np.intp]
    phase: NDArray[np.intp]
    weight: NDArray[np.float64]
    person: NDArray[np.intp]
    weight_of_person: NDArray[np.float64]
    n_phases: int
    several: bool

    def part(self, piece: slice) -> PairedWindows:
        """Return some of the windows."""
        *arrays, n_phases, several = self
        return PairedWindows._make([*(values[piece] for values in arrays), n_phases, several])

    @property
    def n_counted(self) -> int:
        """Number of windows that count in the constant part."""
        return int(np.count_nonzero(self.weight + self.weight_of_person))


def paired_windows(
    recording: NDArray[np.intp],
    gap: NDArray[np.float64],
    span: float | NDArray[np.float64] = 0.0,
    person: NDArray[np.intp] | None = None,
) -> PairedWindows:
    """Pair windows, which are ordered by recording and time, and assign folds and weights.

    Parameters
    ----------
    recording : ndarray of int of shape (n,)
        Recording of each window, numbered from 0 in this order.
    gap : ndarray of float of shape (n,)
        Time since the window before, in units of the usual time; infinite for the first window of a
        recording.
    span : float or ndarray of float of shape (n,), default=0.0
        Time between windows of each window's recording that share no step; 0 if adjacent windows
        share none.
    person : ndarray of int of shape (n,) or None, default=None
        Person of each window, numbered from 0 in this order. None makes each recording a person.

    Returns
    -------
    PairedWindows
        The windows.

    Examples
    --------
    >>> gap = np.array([np.inf, 1, 1, 3, 1, 1, 2])
    >>> paired_windows(np.zeros(7, int), gap).back
    array([0, 1, 1, 0, 1, 1, 0])
    >>> paired_windows(np.zeros(7, int), gap, span=2).back
    array([0, 0, 2, 1, 0, 2, 1])
    """
    span, unit = np.broadcast_to(span, gap.shape), _unit(gap)
    person = recording if person is None else person
    back = rows_to_partner(gap, span)
    own_phases = np.maximum(np.ceil(span / unit - _JITTER), 1.0).astype(np.intp)
    n_phases = int(own_phases.max())
    phase = np.floor(_times(gap / unit, n_phases) + 0.5).astype(np.intp) % own_phases
    number = recording * n_phases + phase
    others = np.bincount(number)[number] - 1
    of_person = _weights_of_people(recording, person)
    counts = (others > 0) & (of_person == 0)
    weight = np.divide(1.0, others, out=np.zeros(len(others)), where=counts)
    fold = fold_of_pairs(recording, back > 0, person)
    several = bool(of_person.any())
    return PairedWindows(recording, back, fold, phase, weight, person, of_person, n_phases, several)


def _weights_of_people(
    recording: NDArray[np.intp], person: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the weight of each window's person, 0 if the person has one recording."""
    size = np.bincount(recording)
    of_person = np.zeros(len(size), dtype=np.intp)
    of_person[recording] = person
    windows = np.bincount(person)
    pairs = windows**2 - np.bincount(of_person, weights=size**2)
    weight = np.divide(windows, pairs, out=np.zeros(len(windows)), where=pairs > 0)
    return weight[person]


def rows_to_partner(gap: NDArray[np.float64], span: NDArray[np.float64]) -> NDArray[np.intp]:
    """Find the nearest window before each window with which it shares no step.

    Parameters
    ----------
    gap : ndarray of float of shape (n,)
        Time since the window before.
    span : ndarray of float of shape (n,)
        Time between windows of its recording that share no step; 0 if adjacent windows share none.

    Returns
    -------
    ndarray of int of shape (n,)
        How many places before a window it is; 0 if no such window is at most one usual time
        farther away than `span`.
    """
    times = _times(gap, float(span.max()))
    partner = np.searchsorted(times, times - span + _JITTER, side="right") - 1
    is_near = (partner >= 0) & (times - times[partner] <= span + 1 + _JITTER)
    back = np.where(is_near, np.arange(len(gap)) - partner, 0)
    return np.where(span > 0, back, adjacent(gap))


def _times(gap: NDArray[np.float64], span: float) -> NDArray[np.float64]:
    """Return the time of each window, where recordings and long gaps are out of reach."""
    return np.cumsum(np.minimum(gap, np.ceil(span) + 2))


def _unit(gap: NDArray[np.float64]) -> float:
    """Return the least time from one window to the next, if less than the usual one is common."""
    inside = gap[np.isfinite(gap)]
    least = float(np.quantile(inside, 0.1)) if len(inside) else 1.0
    return least if least < 1 - 2 * _JITTER else 1.0


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
    ends : list of list of tuple of int and two ndarrays, of shape (n_phases, 1) and (n_phases, r)
        For each way of `_ways`, number of the first and the last group, which other pieces may
        share, and weight and sum of each phase.
    """

    variance: Matrix
    cross: list[Matrix]
    source: list[Matrix]
    constant: Matrix
    ends: list[list[Group]]


class _Way(NamedTuple):
    """Way to group windows, the pairs within whose groups count in the constant part.

    Parameters
    ----------
    sign : float
        1 if the pairs count, -1 if they are to be taken away.
    number, phase : ndarray of int of shape (n,)
        Group of each window, in ascending order, and its phase there.
    weight : ndarray of float of shape (n,)
        Weight of the pairs of its group and phase.
    n_phases : int
        Number of phases.
    """

    sign: float
    number: NDArray[np.intp]
    phase: NDArray[np.intp]
    weight: NDArray[np.float64]
    n_phases: int


def _ways(windows: PairedWindows) -> list[_Way]:
    """Return the ways: by recording and phase, and by person without pairs of one recording."""
    ways = [_Way(1.0, windows.recording, windows.phase, windows.weight, windows.n_phases)]
    if windows.several:
        alike = np.zeros_like(windows.phase), windows.weight_of_person, 1
        ways += [_Way(1.0, windows.person, *alike), _Way(-1.0, windows.recording, *alike)]
    return ways


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
        Features of the windows before the piece, back to the first partner; None if no pair needs
        them.

    Returns
    -------
    RecordingSums
        The sums.
    """
    cross: list[Matrix] = [np.zeros(())] * N_FOLDS
    source = list(cross)
    variance = constant = np.zeros(())
    ends: list[list[Group]] = [[] for _ in _ways(windows)]
    last, first, reach = before, 0, int(windows.back.max(initial=0))
    for f in chunks:
        own = windows.part(slice(first, first + len(f)))
        first += len(f)
        variance = variance + f.T @ f
        rows = np.vstack([_filled(last, reach, f.shape[1]), f])
        last = rows[len(f) :]
        for number in range(N_FOLDS):
            linked = np.flatnonzero((own.back > 0) & (own.fold == number))
            g, h = rows[reach + linked - own.back[linked]], f[linked]
            cross[number] = cross[number] + g.T @ h
            source[number] = source[number] + g.T @ g + h.T @ h
        constant = constant - (f * own.weight[:, None]).T @ f
        for way, of_way in zip(_ways(own), ends, strict=True):
            complete = _complete(_sums_of_groups(f, way), of_way)
            if complete:
                sums, weights = map(np.vstack, zip(*complete, strict=True))
                constant = constant + way.sign * ((sums * weights).T @ sums)
    return RecordingSums(variance, cross, source, constant, ends)


def _filled(rows: Matrix | None, n: int, width: int) -> Matrix:
    """Return n rows, the first of them zero if there are fewer: no pair needs these."""
    rows = np.zeros((0, width)) if rows is None else rows
    return np.pad(rows, ((n - len(rows), 0), (0, 0)))


def _sums_of_groups(f: Matrix, way: _Way) -> Iterator[Group]:
    """Yield each group of a chunk."""
    first = np.flatnonzero(np.diff(way.number, prepend=-1))
    for own in map(slice, first, [*first[1:], len(f)]):
        sums = np.zeros((way.n_phases, f.shape[1]))
        weights = np.zeros((way.n_phases, 1))
        np.add.at(sums, way.phase[own], f[own])
        weights[way.phase[own], 0] = way.weight[own]
        yield int(way.number[own.start]), weights, sums


def _joined(one: Group, other: Group) -> Group:
    """Add two parts of a group; a phase without a window in a part has no weight there."""
    return one[0], np.maximum(one[1], other[1]), one[2] + other[2]


def _complete(parts: Iterable[Group], ends: list[Group]) -> list[tuple[Matrix, Matrix]]:
    """Add up sums of groups, keep the first and last in `ends`, and return the others.

    Of these, the phases without a weight are left out: most recordings may have a few phases, and
    another one dozens.
    """
    complete = []
    for part in parts:
        if ends and ends[-1][0] == part[0]:
            ends[-1] = _joined(ends[-1], part)
            continue
        if len(ends) == 2:
            _, weights, sums = ends.pop()
            counted = weights[:, 0] > 0
            complete.append((sums[counted], weights[counted]))
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
    >>> windows = paired_windows(np.zeros(3, int), np.array([np.inf, 1, 1]))
    >>> moments = recording_moments([recording_sums([f[:2], f[2:]], windows)], windows)
    >>> [round(m.item(), 3) for m in moments[:3]]
    [4.667, 4.0, 3.667]
    """
    sums: tuple[Any, ...] = ()
    signs = [way.sign for way in _ways(windows)]
    unfinished: list[Group | None] = [None] * len(signs)
    constant = np.zeros(())
    for *own, ends in pieces:
        sums = tuple(own) if not sums else added(sums, tuple(own))
        for number, (sign, of_way) in enumerate(zip(signs, ends, strict=True)):
            for part in of_way:
                before = unfinished[number]
                if before is not None and before[0] == part[0]:
                    unfinished[number] = _joined(before, part)
                    continue
                constant = constant + sign * _square(before)
                unfinished[number] = part
    variance, cross, source, within = sums
    for sign, last in zip(signs, unfinished, strict=True):
        constant = constant + sign * _square(last)
    constant = constant + within
    n, n_pairs = len(windows.recording), int(np.count_nonzero(windows.back))
    folds = [Fold(s, c + c.T, s) for s, c in zip(source, cross, strict=True)]
    adjacent = sum(both.cross for both in folds) / (2 * max(n_pairs, 1))
    return Moments(variance / n, np.asarray(adjacent), constant / max(windows.n_counted, 1), folds)


def _square(group: Group | None) -> Matrix:
    """Return the part of a whole group in the constant moment."""
    if group is None:
        return np.zeros(())
    _, weights, sums = group
    return (sums * weights).T @ sums


def fold_of_pairs(
    recording: NDArray[np.intp],
    ends: NDArray[np.bool_],
    person: NDArray[np.intp] | None = None,
) -> NDArray[np.intp]:
    """Divide pairs of windows into two parts that share no person, or no recording of one person.

    Parameters
    ----------
    recording : ndarray of int of shape (n,)
        Recording of each window, in ascending order.
    ends : ndarray of bool of shape (n,)
        Whether a window is the later one of a pair.
    person : ndarray of int of shape (n,) or None, default=None
        Person of each window, in ascending order. None makes each recording a person.

    Returns
    -------
    ndarray of int of shape (n,)
        Part of the pair that each window ends. A single recording is cut in the middle.

    Examples
    --------
    >>> fold_of_pairs(np.array([0, 0, 1, 1, 2, 2]), np.array([False, True] * 3))
    array([0, 0, 1, 1, 0, 0])
    """
    for of in (recording if person is None else person, recording):
        paired = np.unique(of[ends])
        if len(paired) > 1:
            return np.searchsorted(paired, of) % N_FOLDS
    done = np.cumsum(ends)
    return (done > done[-1] / 2).astype(np.intp)


def share_of_change(common: float, constant: float) -> float:
    """Return kappa, the share of the variance that views have in common that varies.

    The rest is common to all windows of a recording.
    """
    return 1.0 - constant / common if common > 0 else 0.0
