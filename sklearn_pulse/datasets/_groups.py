"""What the ``groups`` of a data set's windows stand for."""

from __future__ import annotations

import numpy as np

from .._parameters import check_option

_GROUPS = ("subject", "recording")


def window_groups(group: str, recording: np.ndarray, subject: np.ndarray) -> np.ndarray:
    """Return a group per window: its subject, or its recording.

    Parameters
    ----------
    group : {"subject", "recording"}
        What a group is.
    recording : ndarray of int of shape (n_windows,)
        Index of each window's recording.
    subject : ndarray of shape (n_recordings,)
        Subject of each recording.

    Returns
    -------
    groups : ndarray of shape (n_windows,)
        Subjects or indices of recordings.

    Examples
    --------
    >>> import numpy as np
    >>> window_groups("subject", np.array([0, 0, 1]), np.array([7, 9])).tolist()
    [7, 7, 9]
    """
    check_group(group)
    return subject[recording] if group == "subject" else recording.copy()


def check_group(group: str) -> None:
    """Raise unless `group` is a name of what windows can be grouped by."""
    check_option("group", group, _GROUPS)
