"""Amplitude of the windows of fit, with which that of later windows is compared."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._warnings import warn_user
from ._windows import Block, CheckedWindows, evenly

# Most windows that are looked at, evenly spaced, and most values of those of `fit`.
_MAX_NOTED, _MAX_COMPARED, _MAX_ELEMENTS = 64, 8, 2**20
_ARTEFACTS = 5  # percent of windows at either end
_TOO_MUCH = 30.0  # units are a thousand or a million times apart; rest and effort are closer


def note_amplitude(estimator: Any, windows: CheckedWindows) -> None:
    """Set the fitted attribute ``amplitude_in_``.

    Parameters
    ----------
    estimator : estimator
        The estimator that is fitted.
    windows : CheckedWindows
        The windows of `fit`.
    """
    size = windows.n_timesteps * windows.n_channels
    number = evenly(len(windows), min(_MAX_NOTED, max(1, _MAX_ELEMENTS // size)))
    # A block at a time, since memory maps may be long. Infinities are refused later.
    parts = np.split(number, range(windows.block_size, len(number), windows.block_size))
    rows = (_amplitudes(windows.values(part)) for part in parts)
    with np.errstate(over="ignore", invalid="ignore"):
        amplitudes = np.concatenate(list(rows))
    low, high = np.full((2, windows.n_channels), np.nan)
    for channel, values in enumerate(amplitudes.T):
        known = values[~np.isnan(values)]
        if len(known):
            # Values of windows, and not between two: of a few windows the least and the largest.
            low[channel] = np.percentile(known, _ARTEFACTS, method="lower")
            high[channel] = np.percentile(known, 100 - _ARTEFACTS, method="higher")
    estimator.amplitude_in_ = np.stack([low, high])


def compare_amplitude(estimator: Any, windows: CheckedWindows) -> None:
    """Warn, once windows are read, of a channel far larger or far smaller than at `fit`.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator. Nothing is known of the amplitude if it was saved by an earlier version,
        or if its weights come from elsewhere.
    windows : CheckedWindows
        The windows to compare, of whose first block eight are looked at.
    """
    fitted = getattr(estimator, "amplitude_in_", None)
    if fitted is not None:
        name = type(estimator).__name__
        windows.on_first_block = partial(_warn, fitted=np.asarray(fitted), name=name)


def _warn(block: Block, fitted: NDArray[np.float64], name: str) -> None:
    """Warn if the median amplitude of a channel lies far beyond that of `fit`."""
    low, high = fitted
    chosen = evenly(len(block.x), _MAX_COMPARED)
    x = block.x[chosen]
    if block.observed is not None:
        x = np.where(block.observed[chosen, :, np.newaxis], x, np.float32(np.nan))
    amplitudes = np.sort(_amplitudes(x), axis=0)  # NaN come last
    middle = np.maximum(np.count_nonzero(~np.isnan(amplitudes), axis=0) - 1, 0) // 2
    median = np.take_along_axis(amplitudes, middle[np.newaxis], axis=0)[0]
    with np.errstate(over="ignore"):
        ratio = np.fmax(median / high, low / median)
    wrong = np.flatnonzero(ratio > _TOO_MUCH)
    if len(wrong):
        c = wrong[0]
        larger = "larger" if median[c] > high[c] else "smaller"
        warn_user(
            f"Channel {c} of X is {ratio[c]:.2g} times {larger} than the windows that {name} was"
            f" fitted on: the root mean square of a window is {median[c]:.3g}, and was"
            f" {low[c]:.3g} to {high[c]:.3g}. If X has another unit, convert it; if the sensor was"
            " changed or failed, fit on windows of this kind too."
        )


def _amplitudes(x: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the root mean square of windows, by channel; NaN where a window holds none.

    A flat line at zero, as of a sensor that was off, says nothing of the unit.
    """
    known = np.isfinite(x)
    squares = np.where(known, x, np.float32(0)).astype(np.float64) ** 2
    amplitudes = np.sqrt(squares.sum(1) / np.maximum(known.sum(1), 1))
    return np.where(amplitudes > 0, amplitudes, np.nan)
