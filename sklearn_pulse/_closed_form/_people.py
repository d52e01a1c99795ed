"""Who is shown by which recording."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._data._windows import CheckedWindows


def people_of(groups: NDArray[Any] | None, windows: CheckedWindows) -> NDArray[np.intp] | None:
    """Return the person of each window, where some person has several recordings.

    Parameters
    ----------
    groups : ndarray of shape (n_samples,) or None
        Group of each sample.
    windows : CheckedWindows
        The windows, which know their recordings.

    Returns
    -------
    ndarray of int of shape (n_windows,) or None
        The people. None if each group is one recording, or if a recording has windows of several
        groups, which then are parts of recordings and no people.

    Examples
    --------
    >>> windows = CheckedWindows(np.zeros((4, 8)), groups=["a1", "a2", "b1", "b1"])
    >>> people_of(np.array(["a", "a", "b", "b"]), windows)
    array([0, 0, 1, 1])
    >>> people_of(np.array(["a", "a", "b", "c"]), windows) is None
    True
    """
    if groups is None:
        return None
    person = np.repeat(np.unique(groups, return_inverse=True)[1], windows.n_windows)
    pairs = np.unique(np.stack([windows.recording, person]), axis=1)
    one_of_each_recording = len(np.unique(pairs[0])) == pairs.shape[1]
    several_of_some = len(np.unique(pairs[1])) < pairs.shape[1]
    return person if one_of_each_recording and several_of_some else None
