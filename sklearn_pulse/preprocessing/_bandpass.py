"""Zero-phase filters of recordings and windows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, sosfiltfilt

from .._docstrings import complete_docstring
from .._parameters import check_integer, check_real
from .._typing import InputLayout
from ._base import BasePreprocessor
from ._runs import bridge_gaps, runs_alike
from ._source import WindowSource
from ._values import WindowMap


@complete_docstring
class BandpassFilter(BasePreprocessor):
    """Keep a band of frequencies, without a delay.

    A Butterworth filter runs forwards and backwards over each channel (scipy's ``sosfiltfilt``), so
    that peaks stay where they are. Filter recordings before they are cut: each window has two ends,
    at which a filter knows less.

    Parameters
    ----------
    low : float or None, default=None
        Lower end of the band, in Hz: slower changes are removed. None makes a low-pass filter.
    high : float or None, default=None
        Upper end of the band, in Hz: faster changes are removed. None makes a high-pass filter.
    sampling_rate : float, default=None
        Sampling rate of the recordings, in Hz. `fit` needs it.
    order : int, default=4
        Order of the Butterworth filter, from 1 to 16. Both directions together halve the amplitude
        at the ends of the band, and double the order.

    Attributes
    ----------
    sos_ : ndarray of shape (n_sections, 6)
        Second-order sections of the filter, as scipy writes them.

    See Also
    --------
    Resampler : Change the sampling rate; it filters by itself.

    Notes
    -----
    Missing values (NaN) stay where they are and do not spread. The filter reads a straight line
    across a gap of a channel that is shorter than half a period of `low` (of `high` if `low` is
    None). Between longer gaps each run of steps is filtered as a signal of its own. At its ends a
    signal is continued by its odd reflection, over as many steps as scipy takes, or as the run has.
    After a long gap, and near the ends, slow components are therefore less exact. In a run that is
    shorter than one period of `low`, even components inside the band are damped.

    `fit` designs the filter and reads no values. Every window must be as long as one period of
    `low`. Lazy windows stay lazy in `transform`; everything else becomes an array in memory, or a
    list of arrays. Each window of a bag is filtered by itself.

    ``set_output`` concerns 2-D output; windows of several channels stay arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.preprocessing import BandpassFilter
    >>> time = np.arange(640) / 64
    >>> pulse = np.sin(2 * np.pi * 1.2 * time)
    >>> drift = 5 * np.sin(2 * np.pi * 0.02 * time)
    >>> recordings = [(pulse + drift)[:, np.newaxis]]
    >>> (filtered,) = BandpassFilter(0.5, 8.0, sampling_rate=64).fit_transform(recordings)
    >>> bool(np.abs(filtered[:, 0] - pulse)[128:-128].max() < 0.05)
    True
    """

    _rate_name = "sampling_rate"

    def __init__(
        self,
        low: float | None = None,
        high: float | None = None,
        sampling_rate: float | None = None,
        order: int = 4,
        input_layout: InputLayout = "ntc",
    ) -> None:
        self.low = low
        self.high = high
        self.sampling_rate = sampling_rate
        self.order = order
        self.input_layout = input_layout

    def _check_params(self) -> None:
        super()._check_params()
        rate = check_real(
            "sampling_rate", self.sampling_rate, open_minimum=True, meaning="in Hz", example=64
        )
        check_integer("order", self.order, 1, 16)
        nyquist = rate / 2
        for name, value in (("low", self.low), ("high", self.high)):
            if value is None:
                continue
            meaning = f"in Hz, below half of sampling_rate={rate:g}"
            check_real(name, value, 0, nyquist, open_minimum=True, meaning=meaning)
        if self.low is None and self.high is None:
            raise ValueError(
                "low and high are both None, so there is nothing to filter: set one of them."
            )
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError(
                f"low={self.low!r} must be below high={self.high!r}: exchange them, or set one of"
                " them to None."
            )

    def _derive(self) -> None:
        super()._derive()
        ends = [float(end) for end in (self.low, self.high) if end is not None]
        kind = "lowpass" if self.low is None else "highpass" if self.high is None else "bandpass"
        band = ends if len(ends) == 2 else ends[0]
        self.sos_ = butter(
            int(self.order), band, kind, fs=float(self.sampling_rate or 0), output="sos"
        )

    def _function(self, windows: WindowSource) -> WindowMap:
        return partial(
            _filter,
            sos=self.sos_,
            keeps_level=self._fitted("low") is None,
            longest_bridge=self._longest_bridge(),
        )

    def _longest_bridge(self) -> float:
        """Return the largest number of steps that are fewer than half a period of the lower end."""
        low, high, rate = map(self._fitted, ("low", "high", "sampling_rate"))
        return _whole_steps(0.5 * float(rate) / float(high if low is None else low)) - 1

    def _check_windows(self, windows: WindowSource) -> None:
        """Raise if a window is shorter than one period of `low`."""
        super()._check_windows(windows)
        low, rate = self._fitted("low"), self._fitted("sampling_rate")
        period = _whole_steps(float(rate) / float(low or np.inf))
        n_timesteps, name = windows.shortest
        if n_timesteps < period:
            raise ValueError(
                f"{name} of {n_timesteps} time steps, which is shorter than one period of low="
                f"{low!r} at sampling_rate={rate!r} ({period:.0f} steps): filter recordings before"
                " they are cut, leave short ones out, or raise low (None removes it)."
            )


def _whole_steps(quotient: float) -> float:
    """Round up, but for a quotient that misses an integer by rounding: 2.1 / 0.3 is above 7."""
    return float(np.ceil((1 - 1e-9) * quotient))


def _filter(
    x: NDArray[np.float64],
    recording: Any,
    *,
    sos: NDArray[np.float64],
    keeps_level: bool,
    longest_bridge: float,
) -> NDArray[np.float64]:
    """Filter windows (n, n_channels, n_timesteps), in place, each run between long gaps alone."""
    missing = np.isnan(x)
    bridge_gaps(x, longest_bridge)
    for window, channel, first, end in runs_alike(x):
        run = window, channel, slice(first, end)
        x[run] = _both_ways(sos, x[run], keeps_level)
    x[missing] = np.nan
    return x


def _both_ways(
    sos: NDArray[np.float64], x: NDArray[np.float64], keeps_level: bool
) -> NDArray[np.float64]:
    """Filter along the last axis; short signals are continued over fewer steps.

    The mean passes by the filter, or is dropped: a filter far below the sampling rate would leave a
    part of a large one.
    """
    sos = np.array(sos)  # scipy wants it writable, which joblib's memory maps are not
    taps = 2 * len(sos) + 1 - min((sos[:, 2] == 0).sum(), (sos[:, 5] == 0).sum())
    mean = x.mean(-1, keepdims=True)
    filtered = sosfiltfilt(sos, x - mean, padlen=min(3 * int(taps), x.shape[-1] - 1))
    return np.asarray(filtered + mean if keeps_level else filtered)
