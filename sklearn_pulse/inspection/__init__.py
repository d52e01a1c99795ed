"""What a fitted model has looked at."""

from ._channel_importance import channel_importance

__all__ = ["channel_importance"]
