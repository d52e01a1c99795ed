"""Order of windows in their recordings, and neighbours in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._data._windows import CheckedWindows
from .._groups import missing_mask

_PAIRS = 256  # pairs of windows that are compared at a time


def check_start(start: ArrayLike | None, windows: CheckedWindows) -> NDArray[Any]:
    """Return the time of each window: from `start`, lazy windows, or the order of the rows.

    Parameters
    ----------
    start : array-like or None
        Numbers or times, one per window; of shape (n_samples, n_windows) for bags, where a window
        without an observed step may lack a time. Times with a zone are compared in UTC, so that a
        change of clocks opens no gap. Of periods, the start.
    windows : CheckedWindows
        The windows.

    Returns
    -------
    ndarray of shape (n_windows,)
        The times.

    Raises
    ------
    ValueError
        If `start` has another shape, holds no numbers or times, or an unknown or infinite one.
    """
    if start is None:
        return windows.start
    if str(getattr(start, "dtype", "")).startswith("period"):
        periods: Any = getattr(start, "dt", start)  # of a Series
        start = periods.to_timestamp()
    if getattr(getattr(start, "dtype", None), "tz", None) is not None:
        start = np.asarray(start, dtype="datetime64[ns]")
    shape = (windows.n_samples, windows.n_windows)[: 1 + windows.is_bag]
    must = f"start must hold one number or time per window, shape {shape}, got"
    remedy = "pass numbers, or datetime64 (of pandas.to_datetime(start, utc=True))."
    try:
        times = np.asarray(start)
    except ValueError as error:
        raise ValueError(f"{must} lists of different lengths: {remedy}") from error
    if times.shape != shape or times.dtype.kind not in "iufmM":
        raise ValueError(f"{must} shape {times.shape} and dtype {times.dtype}: {remedy}")
    unknown = missing_mask(start)
    if times.dtype.kind == "f":
        unknown |= np.isinf(times)
    if unknown.any() and windows.is_bag:  # fewer windows than in another bag have fewer times
        unknown &= windows.observed_windows().reshape(shape)
    if unknown.any():
        raise ValueError(
            f"start is unknown or infinite for {int(unknown.sum())} windows: pass the time of every"
            " window, or leave these windows out."
        )
    # Differences of small integers and floats overflow.
    return times.astype(np.float64 if times.dtype.kind == "f" else np.int64).ravel()


def first_repeat(
    recording: NDArray[Any], start: NDArray[Any], take: Callable[[NDArray[np.intp]], Any]
) -> tuple[int, int] | None:
    """Find two different windows of a recording that have the same start.

    Parameters
    ----------
    recording : ndarray of int of shape (n_windows,)
        Recording of each window.
    start : ndarray of shape (n_windows,)
        Start of each window, a number.
    take : callable
        Function that returns the values of the windows with given numbers. Copies of a window may
        have the same start.

    Returns
    -------
    tuple of two ints, or None
        Numbers of the two windows; None if there are no such windows.
    """
    order = np.lexsort((start, recording))
    same = (np.diff(recording[order]) == 0) & (np.diff(start[order]) == 0)
    pairs = np.stack([order[:-1][same], order[1:][same]])  # (2, n_pairs)
    for first in range(0, pairs.shape[1], _PAIRS):
        former, latter = pairs[:, first : first + _PAIRS]
        x, y = np.asarray(take(former)), np.asarray(take(latter))
        differs = ((x != y) & ~((x != x) & (y != y))).reshape(len(x), -1).any(1)
        if differs.any():
            return int(former[differs.argmax()]), int(latter[differs.argmax()])
    return None


def text_of_repeats(windows: CheckedWindows, start: NDArray[Any], usable: NDArray[np.intp]) -> str:
    """Return a warning if windows of a recording differ, but start at the same time, else ""."""
    repeat = first_repeat(
        windows.recording[usable], start[usable], lambda index: windows.take(usable[index]).x
    )
    if repeat is None:
        return ""
    first, second = usable[list(repeat)].tolist()
    found = f"groups (first in the windows {first} and {second})"
    remedy = "the recording of each window as recording, and its own time there as start"
    if windows.names_recordings:
        found = found.replace("groups", "recordings")
        remedy = "the time of each window in its recording as start, or leave start out"
    if windows.is_bag:
        (bag, first), second = divmod(first, windows.n_windows), second % windows.n_windows
        found = f"bags (first in the windows {first} and {second} of bag {bag})"
    return f"start repeats within {found}, so that neighbours are not known: pass {remedy}."


class Ordered(NamedTuple):
    """Windows, ordered by person, recording and time.

    Parameters
    ----------
    rows : ndarray of int of shape (n,)
        Numbers of the windows.
    recording : ndarray of int of shape (n,)
        Their recordings, numbered from 0.
    gap : ndarray of float of shape (n,)
        Time since the window before, in units of the time that is usual in the recording. 0 for a
        copy of the window before, infinite for the first window of a recording.
    person : ndarray of int of shape (n,)
        Their people, numbered from 0; each recording is a person where people are not known.

    Examples
    --------
    >>> gap = np.array([np.inf, 1, 1, np.inf, 1])
    >>> recording = np.array([0, 0, 0, 1, 1])
    >>> windows = Ordered(np.arange(5), recording, gap, person=recording)
    >>> windows.some(np.array([0, 2, 4])).gap
    array([inf,  2., inf])
    """

    rows: NDArray[np.intp]
    recording: NDArray[np.intp]
    gap: NDArray[np.float64]
    person: NDArray[np.intp]

    def some(self, kept: NDArray[Any]) -> Ordered:
        """Return windows at some places, in ascending order, or of a mask."""
        times = np.cumsum(np.where(np.isinf(self.gap), 0.0, self.gap))[kept]
        recording, person = (
            np.unique(numbers[kept], return_inverse=True)[1]
            for numbers in (self.recording, self.person)
        )
        gap = np.full(len(times), np.inf)
        same = np.diff(recording) == 0
        gap[1:][same] = np.diff(times)[same]
        return Ordered(self.rows[kept], recording, gap, person)


def in_order(
    windows: CheckedWindows,
    times: NDArray[Any],
    usable: NDArray[np.intp],
    person: NDArray[np.intp] | None = None,
) -> Ordered:
    """Order windows by person, recording and time, and measure the time between them.

    Parameters
    ----------
    windows : CheckedWindows
        The windows.
    times : ndarray of shape (n_windows,)
        Time of each window.
    usable : ndarray of int of shape (n,)
        Numbers of the windows to order.
    person : ndarray of int of shape (n_windows,) or None, default=None
        Person of each window, where a person has several recordings. None makes each recording a
        person.

    Returns
    -------
    Ordered
        The windows.
    """
    recording, times = windows.recording[usable], times[usable]
    person = recording if person is None else person[usable]
    order = np.lexsort((times, recording, person))
    recording = np.cumsum(np.diff(recording[order], prepend=recording[order[:1]]) != 0)
    same = np.diff(recording) == 0
    steps = np.diff(times[order])
    later = same & (steps > 0)  # windows with the same start are copies, not neighbours
    gap = np.full(len(order), np.inf)
    gap[1:][same] = 0.0
    if later.any():
        gap[1:][later] = (steps / _usual(steps, later, recording[1:]))[later]
    return Ordered(usable[order], recording, gap, np.unique(person[order], return_inverse=True)[1])


def adjacent(gap: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Find the windows that follow the window before at about the usual time.

    `gap`, which is that of `Ordered`, is positive and at most one and a half usual times there.
    """
    return (gap > 0) & (gap <= 1.5)


def _usual(
    steps: NDArray[Any], same: NDArray[np.bool_], recording: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the median step of each step's recording, since recorders differ in their rate.

    A recording with a single step takes the median of all.
    """
    inside, numbers = steps[same], recording[same]
    counts = np.bincount(numbers, minlength=recording[-1] + 1)
    ordered = inside[np.lexsort((inside, numbers))].astype(np.float64)
    first = np.cumsum(counts) - counts
    several = np.flatnonzero(counts > 1)
    usual = np.full(len(counts), np.median(inside))
    middle = [first[several] + (counts[several] - odd) // 2 for odd in (1, 0)]
    usual[several] = (ordered[middle[0]] + ordered[middle[1]]) / 2
    return usual[recording]
