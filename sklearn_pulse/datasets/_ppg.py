"""Denoising of wrist photoplethysmograms (blood volume pulse).

Source: paper, Appendix D (PPG), after Heo, Kwon and Lee (2021), "Stress Detection with Single PPG
Sensor by Orchestrating Multiple Denoising and Peak-Detecting Methods", IEEE Access 9.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, lfilter

SAMPLING_RATE = 64
_PASS_BAND = (0.5, 10.0)  # Hz
_BLOCK = 12 * SAMPLING_RATE  # steps in a block of the brick wall filter
_OVERLAP = 15  # steps that two blocks share, 2 % of a block
_HOP = _BLOCK - _OVERLAP
_EDGE = _OVERLAP // 2  # steps that are dropped at either side of a block
_HISTORY = 10  # number of heart rates whose mean replaces an implausible one
_MAX_HIGH = 5.0  # Hz
_SPECTRAL_THRESHOLD = 0.1  # fraction of the largest magnitude


def denoise(signal: NDArray[np.float64], *, aligned: bool = False) -> NDArray[np.float64]:
    """Denoise a recording: band-pass, brick wall at estimated cut-offs, moving average.

    Parameters
    ----------
    signal : ndarray of shape (n_timesteps,)
        Blood volume pulse at 64 Hz.
    aligned : bool, default=False
        False is the published processing. Each block of the brick wall repeats one step of the
        block before it, so that the output falls behind by one step in 753, and the moving
        average loses the first and the last step (334,080 steps give 334,521). With True, no
        step is repeated or lost: step i of the output belongs to step i of the input.

    Returns
    -------
    denoised : ndarray of shape (n_denoised,), dtype float64
        The denoised recording. Its length is `n_timesteps` if `aligned`.

    Raises
    ------
    ValueError
        If a value is not finite, or there is no pulse from which to estimate the cut-offs.
    """
    if not np.isfinite(signal).all():  # the filter would spread it over all later steps
        raise ValueError(
            "the recording holds a value that is not finite; unpack the data set again."
        )
    filtered = bandpass(signal)
    low, high = cutoffs(filtered)
    return smooth(brick_wall(filtered, low, high, aligned=aligned), aligned=aligned)


def bandpass(signal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Filter with a causal Butterworth band-pass of order 2, 0.5 to 10 Hz, from rest."""
    b, a = butter(2, [f / (SAMPLING_RATE / 2) for f in _PASS_BAND], btype="bandpass")
    return lfilter(b, a, signal)


def peaks_above_mean(signal: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the first maximum of each completed run of samples at or above the mean.

    Parameters
    ----------
    signal : ndarray of shape (n_timesteps,)
        Filtered recording.

    Returns
    -------
    peaks : ndarray of shape (n_peaks,), dtype int64
        Ascending time steps. A run that lasts to the end of the recording gives no peak.
    """
    above = np.concatenate([[False], signal >= signal.mean()])
    change = np.flatnonzero(above[1:] != above[:-1])
    runs = zip(change[::2], change[1::2], strict=False)
    return np.array([start + signal[start:end].argmax() for start, end in runs], dtype=np.int64)


def heart_rates(intervals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn intervals between beats into heart rates and replace implausible rates.

    An interval between 400 and 1,500 ms (both exclusive) has the rate 60,000 / interval. A
    shorter or longer interval gets the mean of the last ten rates, replaced rates included, or 60
    if it is the first interval. Exactly 400 and 1,500 ms get 0, as in the published code.

    Parameters
    ----------
    intervals : ndarray of shape (n_intervals,)
        Intervals between beats in milliseconds.

    Returns
    -------
    rates : ndarray of shape (n_intervals,)
        Heart rates in beats per minute.
    """
    rates: list[float] = []
    for interval in intervals.tolist():
        if 400 < interval < 1500:
            rates.append(60_000 / interval)
        elif interval in (400, 1500):
            rates.append(0.0)
        else:
            rates.append(float(np.mean(rates[-_HISTORY:])) if rates else 60.0)
    return np.array(rates)


def cutoffs(filtered: NDArray[np.float64]) -> tuple[float, float]:
    """Estimate the brick wall's cut-offs from the band-passed recording.

    Parameters
    ----------
    filtered : ndarray of shape (n_timesteps,)
        Band-passed recording at 64 Hz.

    Returns
    -------
    low : float
        Lower cut-off in Hz, rounded to 0.1: the mean heart rate in beats per second minus 0.6.
    high : float
        Upper cut-off in Hz, rounded to 0.1: the highest frequency up to 5 Hz whose magnitude
        exceeds a tenth of the largest magnitude.

    Raises
    ------
    ValueError
        If the recording has fewer than two beats, or no frequency exceeds this magnitude.
    """
    intervals = np.diff(peaks_above_mean(filtered)) / SAMPLING_RATE * 1000
    duration = len(filtered) / SAMPLING_RATE
    magnitude = np.abs(np.fft.rfft(filtered))[: len(filtered) // 2]
    candidates = magnitude[1 : int(_MAX_HIGH * duration) + 1]
    strong = np.flatnonzero(candidates > _SPECTRAL_THRESHOLD * magnitude.max(initial=0.0))
    if len(intervals) == 0 or len(strong) == 0:
        raise ValueError("the recording has no pulse; its cut-offs cannot be estimated.")
    low = np.round(heart_rates(intervals).mean() / 60 - 0.6, 1)
    return float(low), float(np.round((strong[-1] + 1) / duration, 1))


def brick_wall(
    signal: NDArray[np.float64], low: float, high: float, *, aligned: bool = False
) -> NDArray[np.float64]:
    """Remove all frequencies below `low` and above `high` from overlapping blocks.

    A block has 768 steps and starts 753 steps after the block before it. The first block keeps
    its steps 0 to 760, the others keep their steps 7 to 760. These are 754 steps, one more than
    the distance between blocks, so each block repeats one step of the block before it.

    Parameters
    ----------
    signal : ndarray of shape (n_timesteps,)
        Recording at 64 Hz.
    low : float
        Lowest frequency that is kept, in Hz.
    high : float
        Highest frequency that is kept, in Hz.
    aligned : bool, default=False
        Whether blocks keep one step less, so that no step is repeated.

    Returns
    -------
    filtered : ndarray of shape (n_filtered,)
        The filtered recording. Its length is `n_timesteps` if `aligned`.
    """
    n_full = max((len(signal) - _BLOCK) // _HOP + 1, 0)
    blocks: list[NDArray[np.float64]] = []
    if n_full:
        full = np.lib.stride_tricks.sliding_window_view(signal, _BLOCK)[::_HOP]
        blocks.extend(_remove_outside(full, low, high))
    for start in range(n_full * _HOP, len(signal), _HOP):
        blocks.append(_remove_outside(signal[start:], low, high))
    stop = _EDGE + _HOP if aligned else _EDGE + _HOP + 1
    kept = [block[_EDGE if i else 0 : stop] for i, block in enumerate(blocks)]
    return np.concatenate(kept) if kept else np.empty(0)


def smooth(signal: NDArray[np.float64], *, aligned: bool = False) -> NDArray[np.float64]:
    """Return the three-point moving average, which is the same forwards and backwards.

    It is two steps shorter than the signal, so that step k is centred on step k + 1 of the
    signal. If it is `aligned`, the first and the last step are repeated before averaging.
    """
    if aligned:
        signal = np.pad(signal, 1, mode="edge")
    return np.convolve(signal, np.full(3, 1 / 3), mode="valid")


def _remove_outside(blocks: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Zero the spectrum outside [low, high] along the last axis."""
    n_timesteps = blocks.shape[-1]
    # Keep this form of the product: its rounding decides, as published, on which side of a
    # cut-off an equal frequency lies.
    frequency = np.fft.rfftfreq(n_timesteps) * SAMPLING_RATE
    spectrum = np.fft.rfft(blocks, axis=-1)
    spectrum[..., (frequency < low) | (frequency > high)] = 0
    return np.fft.irfft(spectrum, n=n_timesteps, axis=-1)
