"""Checks of the parameters that the cutters share."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._groups import check_groups
from .._parameters import check_integer
from ._panel import align, instance_labels


def check_grid(length: Any, stride: Any, downsample: Any = 1) -> tuple[int, int, int]:
    """Return length, stride and downsample as integers; a stride of None means `length`."""
    length = check_integer("length", length, 1, meaning="it counts the time steps of a window")
    stride = length if stride is None else stride
    meaning = "it counts the time steps between windows, and None means length"
    stride = check_integer("stride", stride, 1, meaning=meaning)
    return length, stride, check_downsample(downsample)


def check_downsample(downsample: Any) -> int:
    """Return `downsample` as an integer."""
    return check_integer("downsample", downsample, 1, meaning="1 keeps every step")


def recording_groups(groups: Any, n_recordings: int, recordings: Any = None) -> np.ndarray:
    """Return one group per recording; None makes each recording (or instance) its own group."""
    if groups is not None:
        groups = check_groups(align(groups, recordings, "groups"), n_recordings, unit="recording")
    else:
        groups = instance_labels(recordings)
    return np.arange(n_recordings) if groups is None else groups
