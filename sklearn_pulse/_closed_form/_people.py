"""Who is shown by which recording."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._data._windows import CheckedWindows
from .._groups import check_groups


def take_recordings(
    windows: CheckedWindows, recording: ArrayLike | None
) -> NDArray[np.intp] | None:
    """Let the windows know their recordings, and return the person of each.

    Parameters
    ----------
    windows : CheckedWindows
        The windows, with their groups. `recording` takes the place of these.
    recording : array-like of shape (n_samples,) or None
        Recording of each sample. None leaves what the windows know.

    Returns
    -------
    ndarray of int of shape (n_windows,) or None
        The people, who are the groups that the windows had. None if each of these is one recording,
        or if a recording has windows of several groups, which then are parts of recordings.

    Raises
    ------
    ValueError
        If `recording` does not hold one entry per sample.

    Examples
    --------
    >>> windows = CheckedWindows(np.zeros((4, 8)), groups=["a", "a", "b", "b"])
    >>> take_recordings(windows, ["a1", "a2", "b1", "b1"])
    array([0, 0, 1, 1])
    >>> windows = CheckedWindows(np.zeros((4, 8)), groups=["a", "a", "b", "c"])
    >>> take_recordings(windows, ["a1", "a2", "b1", "b1"]) is None
    True
    """
    groups = windows.groups
    if recording is not None:
        windows.groups = check_groups(recording, windows.n_samples, name="recording")
    if groups is None:
        return None
    person = np.repeat(np.unique(groups, return_inverse=True)[1], windows.n_windows)
    pairs = np.unique(np.stack([windows.recording, person]), axis=1)
    one_of_each_recording = len(np.unique(pairs[0])) == pairs.shape[1]
    several_of_some = len(np.unique(pairs[1])) < pairs.shape[1]
    return person if one_of_each_recording and several_of_some else None
