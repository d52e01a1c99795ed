"""Scale of the channels of windows that a network reads."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .._moments import Moments
from .._warnings import warn_user
from ._windows import Block, CheckedWindows, evenly

_MAX_WINDOWS = 256
_EXTREME = 1e3  # largest spread, its inverse the smallest, and largest mean in spreads
_FAR, _LARGE = 10, 500  # largest mean in spreads if the mean is above 500, as of raw counts
_ROUNDING = 2 * float(np.finfo(np.float32).eps)  # relative to the values: less is no spread


def warn_of_scale(windows: CheckedWindows, index: NDArray[np.intp]) -> None:
    """Warn of channels with a scale that a network learns badly from.

    At most 256 windows, evenly spaced, are looked at. A constant channel has no scale.

    Parameters
    ----------
    windows : CheckedWindows
        Checked input.
    index : ndarray of int of shape (n,)
        Numbers of the windows to train on.
    """
    index = index.ravel()  # windows of bags lie in rows
    # One window at a time, since memory maps may be long.
    chosen = index[evenly(len(index), _MAX_WINDOWS), np.newaxis]
    # No `map`: it would end, without a word, at a StopIteration from the `take` of a user.
    blocks = (windows.take(number) for number in chosen)
    moments = _moments_of(blocks, windows.n_channels)
    mean, spread = moments.mean, moments.spread
    extreme = (spread > _EXTREME) | (spread < 1 / _EXTREME)
    far = np.abs(mean) > np.where(np.abs(mean) > _LARGE, _FAR, _EXTREME) * spread
    wrong = np.flatnonzero(_varies(moments) & (extreme | far))
    if len(wrong):
        c = wrong[0]
        warn_user(
            f"The scale of X is extreme in {len(wrong)} of {windows.n_channels} channels: the mean"
            f" of channel {c} is {mean[c]:.3g}, its standard deviation {spread[c]:.3g}. A network"
            " learns badly from such values: scale X first, for example by"
            " sklearn_pulse.preprocessing.WindowScaler as a step before this one."
        )


def channel_scales(windows: CheckedWindows) -> NDArray[np.float64]:
    """Return the standard deviation of each channel over all observed steps; 1 for a constant."""
    moments = _moments_of((block for _, block in windows.blocks()), windows.n_channels)
    return np.where(_varies(moments), moments.spread, 1.0)


def _moments_of(blocks: Iterable[Block], n_channels: int) -> Moments:
    """Return the moments of each channel over the observed steps of windows."""
    moments = Moments.of_nothing(n_channels)
    for block in blocks:
        steps = block.x.reshape(-1, n_channels)
        if block.observed is not None:
            steps = steps[block.observed.ravel()]
        moments = moments.merged(Moments.of(steps.T.astype(np.float64)))
    return moments


def _varies(moments: Moments) -> NDArray[np.bool_]:
    """Return which channels vary by more than rounding to float32."""
    return moments.spread > _ROUNDING * np.maximum(np.abs(moments.low), np.abs(moments.high))
