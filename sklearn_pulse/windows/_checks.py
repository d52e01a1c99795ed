"""Checks of the parameters that the cutters share."""

from __future__ import annotations

from typing import Any

from .._parameters import check_integer


def check_grid(length: Any, stride: Any, downsample: Any = 1) -> tuple[int, int, int]:
    """Return length, stride and downsample as integers; a stride of None means `length`."""
    length = check_integer("length", length, 1, meaning="it counts the time steps of a window")
    stride = length if stride is None else stride
    meaning = "it counts the time steps between windows, and None means length"
    stride = check_integer("stride", stride, 1, meaning=meaning)
    return length, stride, check_downsample(downsample)


def check_downsample(downsample: Any, maximum: int | None = None) -> int:
    """Return `downsample` as an integer."""
    return check_integer("downsample", downsample, 1, maximum, meaning="1 keeps every step")
