"""Scale of the channels of windows that a network is to see."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from .._warnings import warn_user
from ._windows import CheckedWindows

_MAX_WINDOWS = 256
_EXTREME = 1e3  # a spread beyond it or below its inverse, or a mean beyond as many spreads
_FAR, _LARGE = 10, 500  # a mean beyond as many spreads, and beyond as many units: raw counts
_ROUNDING = 2 * float(np.finfo(np.float32).eps)  # a smaller share of the values is no spread


def warn_of_scale(windows: CheckedWindows, index: NDArray[np.intp]) -> None:
    """Warn of channels whose scale a network learns badly from.

    At most 256 windows, evenly spaced, are looked at. A constant channel has no scale.

    Parameters
    ----------
    windows : CheckedWindows
        Checked input.
    index : ndarray of int of shape (n,)
        Numbers of the windows to train on.
    """
    index = index.ravel()  # windows of bags lie in rows
    n_windows = min(len(index), _MAX_WINDOWS)
    count, shift, first, second, largest = (0, *np.zeros((4, windows.n_channels)))
    for number in index[np.linspace(0, len(index) - 1, n_windows).astype(np.intp)]:
        block = windows.take(np.array([number]))  # one at a time: memory maps may be long
        seen = slice(None) if block.observed is None else block.observed[0]
        x = block.x[0][seen].astype(np.float64)
        if not len(x):
            continue
        shift = x.mean(0) if count == 0 else shift  # squares of what is left round less
        count += len(x)
        first += (x - shift).sum(0)
        second += ((x - shift) ** 2).sum(0)
        largest = np.maximum(largest, np.abs(x).max(0))
    mean = shift + first / max(count, 1)
    spread = np.sqrt(np.maximum(second / max(count, 1) - (first / max(count, 1)) ** 2, 0.0))
    varies = spread > _ROUNDING * largest
    extreme = (spread > _EXTREME) | (spread < 1 / _EXTREME)
    far = np.abs(mean) > np.where(np.abs(mean) > _LARGE, _FAR, _EXTREME) * spread
    wrong = np.flatnonzero(varies & (extreme | far))
    if len(wrong):
        c = wrong[0]
        warn_user(
            f"The scale of X is extreme in {len(wrong)} of {windows.n_channels} channels: the mean"
            f" of channel {c} is {mean[c]:.3g}, its standard deviation {spread[c]:.3g}. A network"
            " learns badly from such values: scale X first, for example by"
            " sklearn_pulse.preprocessing.WindowScaler as a step before this one."
        )


def channel_scales(windows: CheckedWindows) -> NDArray[np.float64]:
    """Return the standard deviation of each channel over all windows.

    Parameters
    ----------
    windows : CheckedWindows
        Checked input. Missing steps do not count.

    Returns
    -------
    ndarray of float64, of shape (n_channels,)
        The standard deviations; 1 for a channel that is constant.
    """
    scaler = StandardScaler()
    for _, block in windows.blocks():
        steps = block.x.reshape(-1, windows.n_channels)
        if block.observed is not None:
            steps = steps[block.observed.ravel()]
        if len(steps):
            scaler.partial_fit(steps)
    return scaler.scale_
