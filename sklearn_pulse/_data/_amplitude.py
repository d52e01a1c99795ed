"""Amplitude of the windows of fit, with which that of later windows is compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._warnings import warn_user
from ._windows import CheckedWindows

# Most windows that are read, evenly spaced, and most values of them.
_MAX_NOTED, _MAX_COMPARED, _MAX_ELEMENTS = 64, 8, 2**20
_PERCENTILES = (5, 95)  # windows of artefacts lie beyond
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
    low, high = np.full((2, windows.n_channels), np.nan)
    for channel, values in enumerate(_amplitudes(windows, _MAX_NOTED).T):
        known = values[~np.isnan(values)]
        if len(known):
            low[channel], high[channel] = np.percentile(known, _PERCENTILES)
    estimator.amplitude_in_ = np.stack([low, high])


def warn_of_another_amplitude(estimator: Any, windows: CheckedWindows) -> None:
    """Warn of a channel that is far larger, or far smaller, than in the windows of `fit`.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator. Nothing is known of the amplitude if it was saved by an earlier version,
        or if its weights come from elsewhere.
    windows : CheckedWindows
        The windows to compare.
    """
    fitted = getattr(estimator, "amplitude_in_", None)
    if fitted is None or not len(windows):
        return
    low, high = np.asarray(fitted)
    amplitudes = np.sort(_amplitudes(windows, _MAX_COMPARED), axis=0)  # NaN come last
    middle = np.maximum(np.count_nonzero(~np.isnan(amplitudes), axis=0) - 1, 0) // 2
    median = np.take_along_axis(amplitudes, middle[np.newaxis], axis=0)[0]
    with np.errstate(over="ignore"):
        ratio = np.fmax(median / high, low / median)
    wrong = np.flatnonzero(ratio > _TOO_MUCH)
    if len(wrong):
        c = wrong[0]
        larger = "larger" if median[c] > high[c] else "smaller"
        warn_user(
            f"Channel {c} of X is {ratio[c]:.2g} times {larger} than the windows that"
            f" {type(estimator).__name__} was fitted on: the root mean square of a window is"
            f" {median[c]:.3g}, and was {low[c]:.3g} to {high[c]:.3g}. If X has another unit,"
            " convert it; if the sensor was changed or failed, fit on windows of this kind too."
        )


def _amplitudes(windows: CheckedWindows, most: int) -> NDArray[np.float64]:
    """Return the root mean square of some windows, by channel; NaN where a window holds none."""
    size = windows.n_timesteps * windows.n_channels
    n_windows = min(len(windows), most, max(1, _MAX_ELEMENTS // size))
    number = np.linspace(0, len(windows) - 1, n_windows).astype(np.intp)
    amplitudes = np.empty((n_windows, windows.n_channels))
    for i in range(n_windows):  # one at a time, since memory maps may be long
        with np.errstate(over="ignore", invalid="ignore"):
            x = windows.values(number[i : i + 1])[0].astype(np.float64)
            amplitudes[i] = np.sqrt(np.einsum("tc,tc->c", x, x) / len(x))
        if not np.isfinite(amplitudes[i]).all():
            known = np.isfinite(x)
            squares = np.where(known, x, 0.0) ** 2
            amplitudes[i] = np.sqrt(squares.sum(0) / np.maximum(known.sum(0), 1))
    # A flat line at zero, as of a sensor that was off, says nothing of the unit.
    return np.where(amplitudes > 0, amplitudes, np.nan)
