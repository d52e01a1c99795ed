"""Level and scale of the channels, which may have units of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from .._data._windows import Block, Windows
from .._persistence import stored_array

CHUNK = 256  # windows whose features are in memory at once
_ROUNDING = 2 * float(np.finfo(np.float32).eps)  # a smaller share of the level is no scale


class Channels(NamedTuple):
    """Level and scale of each channel.

    Parameters
    ----------
    level : ndarray of float32, of shape (n_channels,)
        Median of the windows' means.
    scale : ndarray of float32, of shape (n_channels,)
        Upper quartile of the windows' root mean squares about the level, of those that leave the
        level; 1 where none does.
    """

    level: NDArray[np.float32]
    scale: NDArray[np.float32]

    @classmethod
    def of(cls, windows: Windows, index: NDArray[np.intp]) -> Channels:
        """Measure the channels over windows that have an observed step each.

        Quantiles, since a few windows of artefacts must not decide what the others are divided by;
        the upper quartile, since half of the windows may be of a body at rest.
        """
        chunks = [index[first : first + CHUNK] for first in range(0, len(index), CHUNK)]
        moments = [_mean_and_variance(windows.take(chunk)) for chunk in chunks]
        mean, variance = (np.concatenate(parts) for parts in zip(*moments, strict=True))
        level = np.median(mean, axis=0)
        deviation = np.sqrt(variance + (mean - level) ** 2)
        scale = [_scale(*channel) for channel in zip(deviation.T, level, strict=True)]
        import os
        if os.environ.get("NOLEVEL"): level = 0*level
        if os.environ.get("STD"): scale=np.sqrt((variance+(mean-mean.mean(0))**2).mean(0))
        return cls(level.astype(np.float32), np.array(scale, dtype=np.float32))

    @classmethod
    def stored(cls, weights: Mapping[str, Tensor], n_channels: int) -> Channels:
        """Take over stored weights, which earlier versions wrote for channels as they are."""
        if "channel_level" not in weights:
            return cls(np.zeros(n_channels, np.float32), np.ones(n_channels, np.float32))
        names = ("channel_level", "channel_scale")
        return cls(*(stored_array(weights, name, np.float32, (n_channels,)) for name in names))

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """Return what a file holds."""
        return {"channel_level": self.level, "channel_scale": self.scale}

    def standardised(self, block: Block) -> Block:
        """Return windows less the level, divided by the scale; missing steps stay zero."""
        x = (block.x - self.level) / self.scale
        if block.observed is not None:
            x *= block.observed[..., np.newaxis]
        return Block(x, block.observed)


class StandardisedWindows:
    """View of windows whose channels are standardised.

    Parameters
    ----------
    windows : Windows
        The windows.
    channels : Channels
        Level and scale of the channels.
    """

    def __init__(self, windows: Windows, channels: Channels) -> None:
        self.windows, self.channels = windows, channels
        self.n_timesteps, self.n_channels = windows.n_timesteps, windows.n_channels

    def __len__(self) -> int:
        return len(self.windows)

    def take(self, index: NDArray[np.intp]) -> Block:
        """Gather some windows, standardised."""
        return self.channels.standardised(self.windows.take(index))


def _mean_and_variance(block: Block) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and variance of each window over its observed steps, (n, n_channels) each."""
    seen = np.ones(block.x.shape[:2], bool) if block.observed is None else block.observed
    seen = seen[..., np.newaxis]
    number = seen.sum(1)
    mean = np.sum(block.x, axis=1, where=seen, dtype=np.float64) / number
    deviation = block.x - mean[:, np.newaxis]
    return mean, np.sum(deviation**2, axis=1, where=seen) / number


def _scale(deviation: NDArray[np.float64], level: float) -> float:
    """Return the upper quartile over windows that leave the level, 1 if none does."""
    leaves = deviation > _ROUNDING * abs(level)
    return float(np.quantile(deviation[leaves], 0.75)) if leaves.any() else 1.0
