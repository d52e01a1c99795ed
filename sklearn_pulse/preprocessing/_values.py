"""Values of windows: float64 while a step computes, float32 when it is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._parameters import LARGEST_FLOAT32

# A function of windows of shape (n, n_channels, n_timesteps), which it may overwrite, and of the
# recording of each window. It returns the changed windows.
WindowMap = Callable[[NDArray[np.float64], NDArray[np.intp] | None], NDArray[np.float64]]


def _beyond(x: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which values are too large for float32, without a copy of the values."""
    return (x > LARGEST_FLOAT32) | (x < -LARGEST_FLOAT32)


def as_float64(
    x: NDArray[Any], channels_first: bool, name: Callable[[int], str]
) -> NDArray[np.float64]:
    """Copy windows into an array of shape (n, n_channels, n_timesteps).

    Time is the last axis of contiguous memory, so that sums over time do not depend on the other
    windows.

    Parameters
    ----------
    x : ndarray of shape (n, n_timesteps, n_channels)
        Windows; of shape (n, n_channels, n_timesteps) with `channels_first`.
    channels_first : bool
        Order of the last two axes.
    name : callable
        From the number of a window to its name in the error message.

    Returns
    -------
    ndarray of shape (n, n_channels, n_timesteps)
        The copy.

    Raises
    ------
    ValueError
        If a value is infinite, or too large for float32.
    """
    x = np.array(x if channels_first else x.swapaxes(1, 2), dtype=np.float64, order="C")
    is_beyond = _beyond(x).any(axis=(1, 2))
    if is_beyond.any():
        raise ValueError(
            f"Input {name(int(is_beyond.argmax()))} contains infinity or a value too large for"
            " float32: replace it, by NaN if the value is missing (missing values are kept)."
        )
    return x


def as_float32(
    x: NDArray[np.float64], channels_first: bool, name: Callable[[int], str]
) -> NDArray[np.float32]:
    """Round the results of a step, and swap the last two axes unless `channels_first`.

    Parameters
    ----------
    x : ndarray of shape (n, n_channels, n_timesteps)
        Windows.
    channels_first : bool
        Order of the last two axes of the result.
    name : callable
        From the number of a window to its name in the error message.

    Returns
    -------
    ndarray
        The windows.

    Raises
    ------
    ValueError
        If a value is too large for float32.
    """
    is_beyond = _beyond(x).any(axis=(1, 2))
    if is_beyond.any():
        raise ValueError(
            f"The values of {name(int(is_beyond.argmax()))} lead to results too large for float32:"
            " replace outliers by NaN, or fit on data of this scale."
        )
    rounded = x.astype(np.float32)
    return rounded if channels_first else rounded.swapaxes(1, 2)
