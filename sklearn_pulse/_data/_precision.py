"""Precision of the conversion to float32, in which all methods compute."""

from __future__ import annotations

import numpy as np

from .._warnings import warn_user
from ._windows import CheckedWindows, evenly

# Most windows and time steps that are looked at, and most values: fewer windows of many channels.
_MAX_WINDOWS, _MAX_STEPS, _MAX_ELEMENTS = 64, 1024, 2**20
_MOSTLY_LOST = 0.05  # rounding to float32, as a share of the variation of a channel
_NO_VARIATION = 1e-11  # a smaller share of the values is rounding of earlier steps in float64


def warn_of_lost_variation(windows: CheckedWindows) -> None:
    """Warn of channels whose variation within windows is lost in float32."""
    lost = lost_variation(windows)
    if lost is not None:
        warn_user(lost)


def lost_variation(windows: CheckedWindows) -> str | None:
    """Say which channels vary so little within windows that this is lost in float32.

    At most 64 windows, evenly spaced, and about 1,024 steps of each are looked at. Lazy windows
    are float32 from the start.

    Parameters
    ----------
    windows : CheckedWindows
        Checked input.

    Returns
    -------
    str or None
        What is lost, with a remedy; None if nothing is.
    """
    dtype = windows.data.dtype
    if windows.lazy is not None or not len(windows) or dtype.itemsize < 4 or dtype == np.float32:
        return None
    step = -(-windows.n_timesteps // _MAX_STEPS)
    size = -(-windows.n_timesteps // step) * windows.n_channels
    chosen = evenly(len(windows), min(_MAX_WINDOWS, max(1, _MAX_ELEMENTS // size)))
    # One window at a time, since memory maps may be long.
    sample = np.stack([windows._gather(number)[0, ::step] for number in chosen[:, np.newaxis]])
    x = sample.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        error = x - x.astype(np.float32)
    # Missing steps count as zeros; infinities are refused later.
    seen = np.isfinite(error).all(-1, keepdims=True)
    count = np.maximum(seen.sum(1, keepdims=True), 1)
    x, error = np.where(seen, x, 0.0), np.where(seen, error, 0.0)
    largest = np.abs(x).max((0, 1))
    unit = np.where(largest > 0, largest, 1.0)  # squares of tiny values would vanish
    x, error = x / unit, error / unit
    centred = np.where(seen, x - x.sum(1, keepdims=True) / count, 0.0)
    spread, lost = (np.sqrt(np.sum(part**2, (0, 1)) / count.sum()) for part in (centred, error))
    wrong = np.flatnonzero((spread > _NO_VARIATION) & (lost > _MOSTLY_LOST * spread))
    if not len(wrong):
        return None
    c = wrong[0]
    remedy = (
        "multiply X in float64 first"
        if largest[c] < 1
        else "subtract the mean of each channel in float64 first, for example by"
        " sklearn_pulse.preprocessing.WindowScaler as a step before this one"
    )
    return (
        f"float32 does not hold the variation of X in {len(wrong)} of {windows.n_channels}"
        f" channels: channel {c} reaches {largest[c]:.3g} and varies by"
        f" {spread[c] * unit[c]:.3g} within windows, which rounding changes by"
        f" {lost[c] * unit[c]:.3g}. Some or all of the signal is lost: {remedy}."
    )
