"""Denoising of wrist photoplethysmograms (blood volume pulse), step by step.

Source: paper, Appendix D (PPG), after Heo, Kwon and Lee (2021), "Stress Detection with Single PPG
Sensor by Orchestrating Multiple Denoising and Peak-Detecting Methods", IEEE Access 9.
"""

from __future__ import annotations

import numpy as np
from scipy.signal import butter, lfilter

SAMPLING_RATE = 64
_PASS_BAND = (0.5, 10.0)  # Hz
_BLOCK = 12 * SAMPLING_RATE  # steps of a block of the brick wall
_OVERLAP = 15  # 2 % of a block, in steps
_HOP = _BLOCK - _OVERLAP
_EDGE = _OVERLAP // 2  # steps that a block gives up at either side
_HISTORY = 10  # heart rates that stand in for an implausible one
_MAX_HIGH = 5.0  # Hz
_SPECTRAL_THRESHOLD = 0.1  # of the largest magnitude


def denoise(signal: np.ndarray, *, aligned: bool = False) -> np.ndarray:
    """Denoise a recording: band-pass, brick wall at cut-offs of its own, moving average.

    Parameters
    ----------
    signal : ndarray of shape (n_timesteps,)
        Blood volume pulse at 64 Hz.
    aligned : bool, default=False
        False is the published processing: each block of the brick wall repeats one step of the
        block before it, so that the output falls behind by one step in 753, and the moving
        average loses the first and last step (334,080 steps give 334,521). True repeats and
        loses nothing: step i of the output belongs to step i of the input.

    Returns
    -------
    denoised : ndarray of shape (n_denoised,), dtype float64
        Its length is `n_timesteps` if `aligned`.

    Raises
    ------
    ValueError
        If the recording has no pulse from which cut-offs can be estimated.
    """
    filtered = bandpass(signal)
    low, high = cutoffs(filtered)
    return smooth(brick_wall(filtered, low, high, aligned=aligned), aligned=aligned)


def bandpass(signal: np.ndarray) -> np.ndarray:
    """Causal Butterworth band-pass of order 2, 0.5 to 10 Hz, from rest.

    Parameters
    ----------
    signal : ndarray of shape (n_timesteps,)
        Recording at 64 Hz.

    Returns
    -------
    filtered : ndarray of shape (n_timesteps,)
        The filtered recording.
    """
    b, a = butter(2, [f / (SAMPLING_RATE / 2) for f in _PASS_BAND], btype="bandpass")
    return lfilter(b, a, signal)


def peaks_above_mean(signal: np.ndarray) -> np.ndarray:
    """Return the first maximum of each completed run of samples at or above the mean.

    Parameters
    ----------
    signal : ndarray of shape (n_timesteps,)
        Filtered recording.

    Returns
    -------
    peaks : ndarray of shape (n_peaks,), dtype int64
        Time steps, ascending. A run that the recording ends in gives no peak.
    """
    above = np.concatenate([[False], signal >= signal.mean()])
    change = np.flatnonzero(above[1:] != above[:-1])
    runs = zip(change[::2], change[1::2], strict=False)
    return np.array([start + signal[start:end].argmax() for start, end in runs], dtype=np.int64)


def heart_rates(intervals: np.ndarray) -> np.ndarray:
    """Turn intervals between beats into heart rates, implausible ones replaced.

    Between 400 and 1,500 ms (both exclusive) the rate is 60,000 / interval. Others get the mean of
    the last ten rates, replaced ones included, or 60 if there is none yet. Exactly 400 and
    1,500 ms get 0, as in the published code.

    Parameters
    ----------
    intervals : ndarray of shape (n_intervals,)
        Milliseconds between beats.

    Returns
    -------
    rates : ndarray of shape (n_intervals,)
        Beats a minute.
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


def cutoffs(filtered: np.ndarray) -> tuple[float, float]:
    """Estimate the brick wall's cut-offs from the band-passed recording.

    Parameters
    ----------
    filtered : ndarray of shape (n_timesteps,)
        Band-passed recording at 64 Hz.

    Returns
    -------
    low, high : float
        Hz, rounded to 0.1. `low` is the mean heart rate (beats a second) less 0.6; `high` the
        highest frequency up to 5 Hz whose magnitude exceeds a tenth of the largest.

    Raises
    ------
    ValueError
        If there are fewer than two beats, or no frequency stands out.
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


def brick_wall(signal: np.ndarray, low: float, high: float, *, aligned: bool = False) -> np.ndarray:
    """Remove all frequencies below `low` and above `high` from overlapping blocks.

    Blocks have 768 steps and start every 753. The first keeps its steps up to 761, the others
    7 to 761 (both exclusive at the end): one more than the hop, so each block repeats a step.

    Parameters
    ----------
    signal : ndarray of shape (n_timesteps,)
        Recording at 64 Hz.
    low, high : float
        Hz; both are kept.
    aligned : bool, default=False
        Whether blocks keep one step less, so that nothing is repeated.

    Returns
    -------
    filtered : ndarray of shape (n_filtered,)
        Its length is `n_timesteps` if `aligned`.
    """
    n_full = max((len(signal) - _BLOCK) // _HOP + 1, 0)
    blocks: list[np.ndarray] = []
    if n_full:
        full = np.lib.stride_tricks.sliding_window_view(signal, _BLOCK)[::_HOP]
        blocks.extend(_remove_outside(full, low, high))
    for start in range(n_full * _HOP, len(signal), _HOP):
        blocks.append(_remove_outside(signal[start:], low, high))
    stop = _EDGE + _HOP if aligned else _EDGE + _HOP + 1
    kept = [block[_EDGE if i else 0 : stop] for i, block in enumerate(blocks)]
    return np.concatenate(kept) if kept else np.empty(0)


def smooth(signal: np.ndarray, *, aligned: bool = False) -> np.ndarray:
    """Three-point moving average; run forwards and backwards it is the same.

    Parameters
    ----------
    signal : ndarray of shape (n_timesteps,)
        Recording.
    aligned : bool, default=False
        Whether the ends are repeated for it; otherwise the first and last step are lost.

    Returns
    -------
    smoothed : ndarray of shape (n_timesteps - 2,) or (n_timesteps,)
        The means; without `aligned` step k is centred on step k + 1 of the input.
    """
    if aligned:
        signal = np.pad(signal, 1, mode="edge")
    return np.convolve(signal, np.full(3, 1 / 3), mode="valid")


def _remove_outside(blocks: np.ndarray, low: float, high: float) -> np.ndarray:
    """Zero the spectrum outside [low, high] along the last axis."""
    n_timesteps = blocks.shape[-1]
    # This product, and no other form of it, decides as published on which side of a cut-off a
    # frequency lies that equals it.
    frequency = np.fft.rfftfreq(n_timesteps) * SAMPLING_RATE
    spectrum = np.fft.rfft(blocks, axis=-1)
    spectrum[..., (frequency < low) | (frequency > high)] = 0
    return np.fft.irfft(spectrum, n=n_timesteps, axis=-1)
