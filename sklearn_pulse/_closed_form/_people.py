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
        The windows, with their groups. The recordings take the place of these.
    recording : array-like of shape (n_samples,) or None
        Recording of each sample; those that two groups share by number stay apart. None leaves what
        the windows know.

    Returns
    -------
    ndarray of int of shape (n_windows,) or None
        The people, who are the groups that the windows had. None if each of these is one recording,
        or if the windows know recordings that groups divide, which then are no people.

    Raises
    ------
    ValueError
        If `recording` does not hold one entry per sample.

    Examples
    --------
    >>> windows = CheckedWindows(np.zeros((4, 8)), groups=["a", "a", "b", "b"])
    >>> take_recordings(windows, [0, 1, 0, 0])
    array([0, 0, 1, 1])
    >>> windows.recording
    array([0, 2, 1, 1])
    """
    groups = windows.groups
    if recording is not None:
        windows.groups = check_groups(recording, windows.n_samples, name="recording")
    if groups is None:
        return None
    of_sample = np.unique(groups, return_inverse=True)[1]
    if recording is not None:
        number = np.unique(np.asarray(windows.groups), return_inverse=True)[1]
        windows.groups = number * (of_sample.max() + 1) + of_sample
    person = np.repeat(of_sample, windows.n_windows)
    pairs = np.unique(np.stack([windows.recording, person]), axis=1)
    one_of_each_recording = len(np.unique(pairs[0])) == pairs.shape[1]
    several_of_some = len(np.unique(pairs[1])) < pairs.shape[1]
    return person if one_of_each_recording and several_of_some else None
