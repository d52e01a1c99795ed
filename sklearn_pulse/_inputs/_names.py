"""Names of the channels that windows and recordings carry."""

from __future__ import annotations

from typing import Any

from ._lazy import LazyWindows
from ._tables import frame_channels


def carried_names(X: Any) -> tuple[str, ...] | None:
    """Return the channel names that X, or a frame in it, carries; None if they are unknown."""
    if not isinstance(X, LazyWindows):
        return frame_channels(X)
    return None if X.channel_names is None else tuple(X.channel_names)
