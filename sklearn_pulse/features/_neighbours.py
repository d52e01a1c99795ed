"""Order of windows in their recordings, and neighbours in time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._data._validation import CheckedWindows
from .._groups import missing_mask


def check_start(start: ArrayLike | None, windows: CheckedWindows) -> NDArray[Any]:
    """Return the time of each window: from `start`, lazy windows, or the order of the rows.

    Parameters
    ----------
    start : array-like or None
        Numbers or times, one per window; of shape (n_samples, n_windows) for bags.
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
    times = np.asarray(start)
    shape = (windows.n_samples, windows.n_windows)[: 1 + windows.is_bag]
    if times.shape != shape or times.dtype.kind not in "iufmM":
        raise ValueError(
            f"start must hold one number or time per window, shape {shape}, got shape"
            f" {times.shape} and dtype {times.dtype}: pass numbers, or datetime64 without a time"
            " zone."
        )
    unknown = missing_mask(start)
    if times.dtype.kind == "f":
        unknown |= np.isinf(times)
    if unknown.any():
        raise ValueError(
            f"start is unknown or infinite for {int(unknown.sum())} windows: pass the time of every"
            " window, or leave these windows out."
        )
    if times.dtype.kind in "mM":
        times = times.astype(np.int64)
    return times.ravel()


def in_order(
    windows: CheckedWindows, times: NDArray[Any], usable: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
    """Order windows by recording and time, and find those that are adjacent.

    Parameters
    ----------
    windows : CheckedWindows
        The windows.
    times : ndarray of shape (n_windows,)
        Time of each window.
    usable : ndarray of int of shape (n,)
        Numbers of the windows to order.

    Returns
    -------
    index : ndarray of int of shape (n,)
        Numbers of the windows in order.
    recording : ndarray of int of shape (n,)
        Their recordings, numbered from 0.
    follows : ndarray of bool of shape (n,)
        Whether a window is adjacent to the window before it: in the same recording, later, and at
        most one and a half times the usual distance away.
    """
    recording, times = windows.recording[usable], times[usable]
    order = np.lexsort((times, recording))
    recording = np.unique(recording[order], return_inverse=True)[1]
    same = np.diff(recording) == 0
    steps = np.diff(times[order])
    same &= steps > 0  # windows with the same start are copies, not neighbours
    usual = np.median(steps[same]) if same.any() else 0.0
    follows = np.concatenate([[False], same & (steps <= 1.5 * usual)])
    return usable[order], recording, follows
