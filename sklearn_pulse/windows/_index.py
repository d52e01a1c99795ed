"""Indices of lazy windows: which parts of them can be applied before a window is read."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np


def is_simple(key: Any) -> bool:
    """Return whether an index is an integer or a slice: it adds no axis and never broadcasts."""
    is_integer = isinstance(key, numbers.Integral) and not isinstance(key, (bool, np.bool_))
    return is_integer or isinstance(key, slice)


def keeps_all(key: Any) -> bool:
    """Return whether an index selects one or several whole axes."""
    return key is Ellipsis or (isinstance(key, slice) and key == slice(None))
