"""Change of the sampling rate."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.signal import firwin, resample_poly
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from .._docstrings import complete_docstring
from .._parameters import check_real
from .._typing import InputLayout
from ._base import BasePreprocessor
from ._runs import runs_alike
from ._source import WindowSource
from ._values import WindowMap

_LARGEST = 1000  # numerator and denominator of a ratio
_TOLERANCE = 1e-5  # relative: a drift of 36 ms in an hour, below that of a recorder's clock


@complete_docstring
class Resampler(BasePreprocessor):
    """Change the sampling rate of recordings or windows.

    An anti-aliasing filter without a delay precedes the choice of steps (scipy's
    ``resample_poly``, with a Kaiser window of 5.0).

    Parameters
    ----------
    from_rate : float, default=None
        Sampling rate of `X`, in Hz. `fit` needs it.
    to_rate : float, default=None
        Sampling rate of the output, in Hz. `fit` needs it.

    Attributes
    ----------
    up_, down_ : int
        Ratio of the rates: `to_rate` to `from_rate` is as `up_` to `down_`.

    See Also
    --------
    BandpassFilter : Keep a band of frequencies.

    Notes
    -----
    `n_timesteps` steps become ``ceil(n_timesteps * up_ / down_)``. Output step j lies at input step
    ``j * down_ / up_``. It is missing (NaN) if and only if the input step at this time, rounded
    down, is missing: gaps keep their place and do not spread. Each run of observed steps of a
    channel is resampled as a signal of its own, whose first and last values go on beyond its ends.
    The coefficients that an output step is made of add up to one, so that a large offset causes no
    ripple. A run that lies between two output steps is lost.

    `fit` reads no values. Lazy windows stay lazy in `transform`, and the starts of windows are
    still counted in steps of the recording; everything else becomes an array in memory, or a list
    of arrays. Each window of a bag is resampled by itself.

    In a list, the times in the index of a frame or Series of pandas, in any form that `fit`
    compares with `from_rate`, go on at `to_rate` from the first time. Where they drift from
    `from_rate` by more than a step, as by the clock of a recorder, they go on at their own pace.
    Numbers go on in their own unit, such as milliseconds. Names, and pandas' own count of the steps
    (a RangeIndex), become 0, 1, 2, ...

    ``set_output`` concerns 2-D output; windows of several channels stay arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.preprocessing import Resampler
    >>> recordings = [np.ones((360, 2)), np.ones((700, 2))]
    >>> [x.shape for x in Resampler(360, 100).fit_transform(recordings)]
    [(100, 2), (195, 2)]
    """

    _names_of: ClassVar[type] = ClassNamePrefixFeaturesOutMixin
    _rate_name = "from_rate"

    def __init__(
        self,
        from_rate: float | None = None,
        to_rate: float | None = None,
        input_layout: InputLayout = "ntc",
    ) -> None:
        self.from_rate = from_rate
        self.to_rate = to_rate
        self.input_layout = input_layout

    def _check_params(self) -> None:
        super()._check_params()
        for name in ("from_rate", "to_rate"):
            meaning = "a sampling rate in Hz"
            check_real(name, getattr(self, name), open_minimum=True, meaning=meaning, example=64)
        self._ratio()

    def _ratio(self) -> Fraction:
        """Return the ratio of the rates; raise if it is not one of small integers."""
        from_rate, to_rate = float(self.from_rate or 0), float(self.to_rate or 0)
        with np.errstate(all="ignore"):
            ratio = float(np.float64(to_rate) / np.float64(from_rate))
        if not 1 / _LARGEST <= ratio <= _LARGEST:
            raise ValueError(
                f"from_rate={self.from_rate!r} and to_rate={self.to_rate!r} differ by a factor of"
                f" more than {_LARGEST}: check their units (Hz), or resample in several steps."
            )
        nearest = Fraction(ratio).limit_denominator(_LARGEST)
        if nearest > 1:
            nearest = 1 / Fraction(1 / ratio).limit_denominator(_LARGEST)
        if abs(float(nearest) / ratio - 1) > _TOLERANCE:
            raise ValueError(
                f"from_rate={self.from_rate!r} and to_rate={self.to_rate!r} are not in a ratio of"
                f" integers up to {_LARGEST}: pass for example to_rate={from_rate * nearest:.10g}"
                f" ({nearest.numerator} to {nearest.denominator})."
            )
        return nearest

    def _length(self, n_timesteps: int) -> int:
        return -(-n_timesteps * self.up_ // self.down_)

    def _rate(self, sampling_rate: float | None) -> float:
        return float(self._fitted("to_rate"))

    def _rate_ratio(self) -> float:
        return self.up_ / self.down_

    @property
    def _n_features_out(self) -> int:
        """Number of columns of 2-D output."""
        return self._length(self.n_features_in_)

    def _derive(self) -> None:
        super()._derive()
        self.up_, self.down_ = self._ratio().as_integer_ratio()

    def _function(self, windows: WindowSource) -> WindowMap:
        return partial(
            _resample, up=self.up_, down=self.down_, lowpass=_lowpass(self.up_, self.down_)
        )


def _lowpass(up: int, down: int) -> NDArray[np.float64]:
    """Return the filter that `resample_poly` designs by default, but with a sum of 1 at each step.

    An output step reads every `up`-th coefficient. Without equal sums a constant signal would come
    out with a ripple.
    """
    longest = max(up, down)
    if longest == 1:  # nothing is filtered
        return np.ones(1)
    lowpass = np.asarray(firwin(20 * longest + 1, 1 / longest, window=("kaiser", 5.0)))
    for phase in range(up):
        lowpass[phase::up] /= up * lowpass[phase::up].sum()
    return lowpass


def _resample(
    x: NDArray[np.float64], recording: Any, *, up: int, down: int, lowpass: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Resample windows (n, n_channels, n_timesteps), each run of observed steps by itself."""
    result = np.full((*x.shape[:2], -(-x.shape[2] * up // down)), np.nan)
    for window, channel, first, end in runs_alike(x):
        # The first output step at or after an input step.
        steps = slice(-(-first * up // down), -(-end * up // down))
        run = x[window, channel, first:end]
        result[window, channel, steps] = _resample_run(run, first, up, down, lowpass)
    return result


def _resample_run(
    x: NDArray[np.float64], first: int, up: int, down: int, lowpass: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Resample signals (..., n_timesteps) that begin at input step `first`.

    Output steps fall on input steps that are multiples of `down`, so the signal is continued to
    the left to begin on one of them, and what this adds is cut off again.
    """
    lead = first % down
    padded = np.concatenate([np.repeat(x[..., :1], lead, axis=-1), x], axis=-1)
    resampled = resample_poly(padded, up, down, axis=-1, window=lowpass, padtype="edge")
    skipped = -(-lead * up // down)
    return np.asarray(resampled[..., skipped:])
