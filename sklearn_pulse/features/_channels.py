"""Channels of windows with time last, and features of windows with missing steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .._data._windows import Block


def channels_first(block: Block) -> NDArray[np.float64]:
    """Return windows in float64, of shape (n, n_channels, n_timesteps).

    Time is last and contiguous, so that a row is computed the same way in every block.
    """
    return np.ascontiguousarray(block.x.swapaxes(1, 2), dtype=np.float64)


def without_gaps(signal: NDArray[np.float64], observed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Bridge the missing steps of each window by straight lines.

    `signal` has the shape (n, n_channels, n_timesteps) and `observed` (n, n_timesteps). A window
    without an observed step stays as it is.
    """
    signal = signal.copy()
    time = np.arange(signal.shape[-1])
    for row in np.flatnonzero(~observed.all(1) & observed.any(1)):
        known = observed[row]
        for values in signal[row]:
            values[~known] = np.interp(time[~known], time[known], values[known])
    return signal


def over_observed_parts(
    block: Block,
    compute: Callable[[NDArray[np.float64], NDArray[np.bool_] | None], NDArray[np.float64]],
    n_features: int,
) -> NDArray[np.float64]:
    """Compute the features of windows, each read from its first to its last observed step.

    `compute` gets complete windows together, and None. It gets each other window alone, with
    straight lines across the gaps, and its observed steps. A window without an observed step has
    zeros.
    """
    signal = channels_first(block)
    if block.observed is None or block.observed.all():
        return compute(signal, None)
    features = np.zeros((len(signal), n_features))
    complete = block.observed.all(1)
    features[complete] = compute(signal[complete], None)
    signal = without_gaps(signal, block.observed)
    for row in np.flatnonzero(~complete & block.observed.any(1)):
        seen = np.flatnonzero(block.observed[row])
        part = slice(seen[0], seen[-1] + 1)
        window = np.ascontiguousarray(signal[[row], :, part])
        features[row] = compute(window, block.observed[row, part])[0]
    return features
