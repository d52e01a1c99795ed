"""Seeds drawn from a random state."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

_HIGHEST = np.iinfo(np.int32).max


def draw_seed(random_state: Any, high: int = _HIGHEST) -> int:
    """Draw a seed below `high` from a random state, which an integer or None stands for."""
    return int(check_random_state(random_state).randint(high, dtype=np.int64))


def as_seed(random_state: Any, high: int = _HIGHEST) -> int:
    """Return an integer as it is, so that published seeds keep their meaning; else draw a seed."""
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return draw_seed(random_state, high)
