"""Names of the channels that windows and recordings carry."""

from __future__ import annotations

from typing import Any

from ._lazy import LazyWindows
from ._tables import frame_channels


def carried_names(X: Any) -> tuple[str, ...] | None:
    """Return the names of the channels that X carries.

    Parameters
    ----------
    X : LazyWindows, sequence of array-like or Any
        The windows or recordings. Entries of a list may be frames.

    Returns
    -------
    tuple of str or None
        The names; None if they are unknown.
    """
    if not isinstance(X, LazyWindows):
        return frame_channels(X)
    return None if X.channel_names is None else tuple(X.channel_names)
