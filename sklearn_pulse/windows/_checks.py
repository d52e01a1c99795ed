"""Checks of the parameters that the cutters share."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from ._panel import align, instance_labels


def check_positive_int(value: Any, name: str, meaning: str) -> int:
    """Return `value` as an int of at least 1 (a bool is none), or raise a ValueError.

    The message names the parameter and ends with `meaning`, which says what it counts.
    """
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))
    if not is_integer or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}; {meaning}.")
    return int(value)


def check_fraction(value: Any, name: str) -> None:
    """Raise a ValueError unless `value` is a number in (0, 1]."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    if not is_number or not 0 < value <= 1:
        raise ValueError(
            f"{name} must be a number in (0, 1], got {value!r}; 1.0 means all of them."
        )


def check_length(length: Any) -> int:
    """Return the number of steps in a window."""
    return check_positive_int(length, "length", "it counts time steps of a window")


def check_stride(stride: Any, length: int) -> int:
    """Return the number of steps between the starts of two windows; None means `length`."""
    if stride is None:
        return length
    return check_positive_int(
        stride, "stride", "it counts time steps between windows, and None means length"
    )


def check_grid(length: Any, stride: Any, downsample: Any) -> tuple[int, int, int]:
    """Return length, stride and downsample as integers."""
    length = check_length(length)
    stride = check_stride(stride, length)
    return length, stride, check_positive_int(downsample, "downsample", "1 keeps every step")


def check_groups(groups: Any, n_recordings: int, recordings: Any = None) -> np.ndarray:
    """Return one group per recording; None makes each recording (or instance) its own group."""
    if groups is None:
        labels = instance_labels(recordings)
        return np.arange(n_recordings) if labels is None else labels
    groups = np.asarray(align(groups, recordings, "groups"))
    if groups.shape != (n_recordings,):
        raise ValueError(
            f"groups must hold one group per recording, shape ({n_recordings},), got shape "
            f"{groups.shape}; None makes each recording a group."
        )
    return groups
