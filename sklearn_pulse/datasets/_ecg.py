"""Processing of ECG signals: missing samples, resampling, cleaning.

Source: paper, Appendix D (ECG).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, filtfilt, resample_poly, sosfiltfilt

SAMPLING_RATE = 250.0
_POWERLINE_PERIOD = 5  # time steps at 250 Hz in one period of 50 Hz


def resampling_ratio(sampling_rate: float) -> tuple[int, int]:
    """Return the integers (up, down) with ``sampling_rate * up / down`` equal to 250 Hz.

    Examples
    --------
    >>> resampling_ratio(360)
    (25, 36)
    """
    ratio = Fraction(SAMPLING_RATE) / Fraction(sampling_rate).limit_denominator(1000)
    return ratio.numerator, ratio.denominator


def fill_missing(signals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fill each missing sample with the last sample before it, or with the first sample.

    Parameters
    ----------
    signals : ndarray of shape (n_timesteps, n_leads)
        Signals in which missing samples are NaN. Each lead has at least one sample.

    Returns
    -------
    filled : ndarray of shape (n_timesteps, n_leads)
        The signals without NaN.

    Examples
    --------
    >>> import numpy as np
    >>> fill_missing(np.array([[np.nan], [1.0], [np.nan], [2.0]])).ravel().tolist()
    [1.0, 1.0, 1.0, 2.0]
    """
    missing = np.isnan(signals)
    if not missing.any():
        return signals
    # step of the last sample at or before each step, -1 before the first sample
    steps = np.where(missing, -1, np.arange(len(signals))[:, np.newaxis])
    last = np.maximum.accumulate(steps, axis=0)
    last = np.where(last < 0, np.argmin(missing, axis=0), last)
    return np.take_along_axis(signals, last, axis=0)


def resample(signals: NDArray[np.float64], up: int, down: int) -> NDArray[np.float64]:
    """Resample each lead by ``up / down``; the ends are extended along a line, not by zeros."""
    if up == down:
        return signals
    return resample_poly(signals, up, down, axis=0, padtype="line")


def clean_ecg(signals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Remove baseline wander and powerline noise from an ECG at 250 Hz.

    A Butterworth high-pass of order 5 at 0.5 Hz and a moving average of 5 steps are each applied
    forwards and backwards, as in neurokit2's default cleaning (paper, Appendix D). The ECG, of
    shape (n_timesteps, n_leads), has more than 18 steps, and no NaN.
    """
    sections = butter(5, 0.5, btype="highpass", output="sos", fs=SAMPLING_RATE)
    drift_free = sosfiltfilt(sections, signals, axis=0)
    average = np.full(_POWERLINE_PERIOD, 1 / _POWERLINE_PERIOD)
    return filtfilt(average, [1.0], drift_free, axis=0)
