"""Groups of the windows of a data set: subjects or recordings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._parameters import check_option

_GROUPS = ("subject", "recording")


def window_groups(
    group: str, recording: NDArray[np.integer[Any]], subject: NDArray[Any]
) -> NDArray[Any]:
    """Return the group of each window: its subject, or the index of its recording.

    `subject` holds the subject of each recording.

    Examples
    --------
    >>> import numpy as np
    >>> window_groups("subject", np.array([0, 0, 1]), np.array([7, 9])).tolist()
    [7, 7, 9]
    """
    return subject[recording] if group == "subject" else recording.copy()


def check_group(group: str) -> None:
    """Raise unless `group` is "subject" or "recording"."""
    check_option("group", group, _GROUPS)
