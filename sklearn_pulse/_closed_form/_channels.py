"""Channels that share most of what they record, and what is read in place of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from .._data._windows import Block, CheckedWindows
from .._parameters import LARGEST_FLOAT32
from .._persistence import stored_array
from ..preprocessing import ChannelWhitener
from ._types import Index

# Mean squared correlation of two channels above which they are whitened. Electrodes of one head
# have 0.37 to 0.86, other sensors at most 0.22.
_MUCH_IN_COMMON = 0.3
FEWEST_TO_WHITEN = 4  # three, such as those of a chaotic system, may be all that there is
_AT_ONCE = 2**20  # values that are copied to float64
_LEARNT = {"center": 1, "correlation": 2, "whitening": 2}  # with their axes, each of all channels


class WhitenedWindows:
    """View of windows whose channels a fitted step has whitened.

    Parameters
    ----------
    windows : CheckedWindows or PartOfWindows
        The windows.
    whitener : ChannelWhitener
        The fitted step.
    """

    def __init__(self, windows: Any, whitener: ChannelWhitener) -> None:
        self.windows, self.whitener = windows, whitener
        self.n_timesteps, self.n_channels = windows.n_timesteps, windows.n_channels

    def take(self, index: Index) -> Block:
        """Gather some windows."""
        return whitened(self.windows.take(index), self.whitener)


def whitened(block: Block, whitener: ChannelWhitener) -> Block:
    """Return windows with whitened channels; steps that were not observed stay zero."""
    whiten, combined = whitener._function(), np.empty_like(block.x)
    for own in _pieces(block.x.shape):
        x = whiten(np.array(block.x[own].swapaxes(1, 2), dtype=np.float64, order="C"), None)
        # Features are of finite values; those that overflow by themselves name the window.
        combined[own] = np.clip(x, -LARGEST_FLOAT32, LARGEST_FLOAT32, out=x).swapaxes(1, 2)
    if block.observed is not None:
        combined[~block.observed] = 0.0
    return Block(combined, block.observed)


def whitener_of(windows: CheckedWindows, sample: Index, input_layout: Any) -> ChannelWhitener:
    """Return a step that has learnt from the observed steps of some windows."""
    whitener = ChannelWhitener(input_layout=input_layout)
    whitener._note_part(windows.n_channels)
    whitener._learn_of(_values(windows, sample), windows.n_channels)
    return whitener


def share_most(whitener: ChannelWhitener) -> bool:
    """Tell whether the channels that a step was fitted to share most of what they record."""
    between = whitener.correlation_[~np.eye(len(whitener.correlation_), dtype=bool)]
    return bool(np.mean(between**2) > _MUCH_IN_COMMON)


def arrays_of(whitener: ChannelWhitener | None) -> dict[str, NDArray[np.float64]]:
    """Return what a step has learnt, under the names of the files of a transformer."""
    if whitener is None:
        return {}
    return {f"whitener.{name}": getattr(whitener, f"{name}_") for name in _LEARNT}


def restored(weights: Mapping[str, Tensor], n_channels: int, input_layout: Any) -> ChannelWhitener:
    """Return the step that `arrays_of` stored; ValueError if it is of other channels."""
    whitener = ChannelWhitener(input_layout=input_layout)
    whitener._note_part(n_channels)
    for name, axes in _LEARNT.items():
        shape = (n_channels,) * axes
        array = stored_array(weights, f"whitener.{name}", np.float64, shape)
        setattr(whitener, f"{name}_", array)
    return whitener


def _pieces(shape: tuple[int, ...]) -> Iterator[slice]:
    """Divide windows into pieces whose copies in float64 take little memory."""
    n_windows, n_timesteps, n_channels = shape
    size = max(1, _AT_ONCE // (n_timesteps * n_channels))
    for first in range(0, n_windows, size):
        yield slice(first, first + size)


def _values(windows: CheckedWindows, sample: Index) -> Iterator[NDArray[np.float64]]:
    """Yield the values of windows, (n, n_channels, n_timesteps), NaN where not observed."""
    for own in _pieces((len(sample), windows.n_timesteps, windows.n_channels)):
        x, observed = windows.take(sample[own])
        values = x.swapaxes(1, 2).astype(np.float64)
        if observed is not None:
            values.swapaxes(1, 2)[~observed] = np.nan
        yield values
