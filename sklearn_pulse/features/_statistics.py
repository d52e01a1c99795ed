"""Moments and log band powers of each channel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.signal import welch

from .._data._windows import Block
from .._docstrings import complete_docstring
from .._parameters import check_integer
from .._typing import BagPooling, InputLayout
from ._base import BaseFeatureTransformer
from ._channels import channels_first, without_gaps

_MOMENTS = ("mean", "std", "skewness", "kurtosis", "min", "max")
_WITHOUT_UNIT = ("skewness", "kurtosis")
_LONGEST_SEGMENT = 256  # time steps of a segment of the spectrum
# Share of the variance that is added to each power, whose logarithm would else not be finite. A
# variance of 0, or above 1, counts as 1.
_NO_POWER = 1e-20
_ROUNDING = 1e-12  # a smaller share of the mean is what rounding leaves of a constant


@complete_docstring
class StatisticsTransformer(BaseFeatureTransformer):
    """Moments and log band powers of each channel.

    The features are the mean, standard deviation, skewness, excess kurtosis, minimum and maximum
    of the observed values, and the logarithm of the power in octave bands: from a quarter of the
    sampling rate up to half of it, from an eighth up to a quarter, and so on down to the lowest
    octave that the window resolves. To each power 1e-20 times the variance of the channel is added,
    so that the logarithm is finite; here a variance of 0, or above 1, counts as 1.

    Parameters
    ----------
    max_bands : int, default=6
        Largest number of octaves. Shorter windows have fewer octaves; windows of one time step
        have none.

    Attributes
    ----------
    n_bands_ : int
        Number of octaves of the windows at `fit`.

    See Also
    --------
    sklearn_pulse.baselines.MiniRocketTransformer : Features of random convolutions.

    Notes
    -----
    A time step counts as missing if any of its channels is NaN. Missing steps are left out of the
    moments. The spectrum is that of the steps from the first to the last observed one, where
    straight lines bridge what is missing between. So windows that are padded with NaN have the
    features of the shorter windows, as long as ``2**n_bands_`` steps are left. The skewness and
    kurtosis of a constant channel are zero here.

    The spectrum is Welch's, over segments of at most 256 steps, in squared units of the signal.
    Each segment overlaps the segment before it by half. The steps after the last whole segment, at
    most 127, are not in the spectrum. In the names of features, octave 0 is the highest. The
    features are computed in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.features import StatisticsTransformer
    >>> X = np.random.default_rng(0).normal(size=(20, 64, 3))
    >>> statistics = StatisticsTransformer().fit(X)
    >>> statistics.transform(X).shape
    (20, 36)
    >>> statistics.get_feature_names_out()[[0, 6, -1]].tolist()
    ['channel0_mean', 'channel0_octave0', 'channel2_octave5']
    """

    _unstored = ("n_bands_",)

    def __init__(
        self,
        max_bands: int = 6,
        *,
        bag_pooling: BagPooling = "mean",
        input_layout: InputLayout = "ntc",
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> None:
        self.max_bands = max_bands
        self.bag_pooling = bag_pooling
        self.input_layout = input_layout
        self.sampling_rate = sampling_rate
        self.channel_names = channel_names

    def _check_params(self) -> None:
        super()._check_params()
        check_integer("max_bands", self.max_bands, 0)

    def _fit_shape(self) -> None:
        resolved = int(np.log2(min(self.n_timesteps_in_, _LONGEST_SEGMENT)))
        self.n_bands_ = min(int(self.max_bands), resolved)

    def _check_input_length(self, n_timesteps: int) -> None:
        if n_timesteps < 2**self.n_bands_:
            raise ValueError(
                f"X has windows of {n_timesteps} time steps, too short for the {self.n_bands_}"
                f" octaves of fit: pass at least {2**self.n_bands_} steps, or fit on shorter"
                " windows."
            )

    def _features(self, block: Block) -> NDArray[np.float64]:
        signal = channels_first(block)
        observed = np.ones(signal.shape, dtype=bool)
        if block.observed is None:
            powers = _log_band_powers(signal, self.n_bands_)
        else:
            observed &= block.observed[:, None, :]
            signal = without_gaps(signal, block.observed)
            # A window without an observed step counts nowhere; zeros keep its moments finite.
            observed |= ~np.asarray(block.observed.any(1, keepdims=True))[:, None, :]
            powers = _log_band_powers_of_observed(signal, block.observed, self.n_bands_)
        features = [_moments(signal, observed), powers]
        return np.concatenate(features, axis=-1).reshape(len(signal), -1)

    @property
    def _n_features_out(self) -> int:
        return self.n_channels_in_ * (len(_MOMENTS) + self.n_bands_)

    @property
    def _spread_has_unit(self) -> NDArray[np.bool_]:
        of_moments = [name not in _WITHOUT_UNIT for name in _MOMENTS]
        return np.tile([*of_moments, *[False] * self.n_bands_], self.n_channels_in_)

    def _feature_names(self, channels: Sequence[str]) -> list[str]:
        names = [*_MOMENTS, *(f"octave{band}" for band in range(self.n_bands_))]
        return [f"{channel}_{name}" for channel in channels for name in names]


def _moments(signal: NDArray[np.float64], observed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Moments over the observed values of the last axis, in the order of ``_MOMENTS``."""
    n = observed.sum(-1)
    mean = np.sum(signal, -1, where=observed) / n
    centred = np.where(observed, signal - mean[..., None], 0.0)
    squared = centred * centred
    # Products, since numpy's powers above 2 take twenty times as long.
    second, third, fourth = (
        np.sum(power, -1) / n for power in (squared, squared * centred, squared * squared)
    )
    std = np.sqrt(second)
    varies = std > _ROUNDING * np.abs(mean)
    unit = np.where(varies, std, 1.0)
    return np.stack(
        [
            mean,
            std,
            np.where(varies, third / unit**3, 0.0),
            np.where(varies, fourth / unit**4 - 3.0, 0.0),
            np.min(signal, -1, where=observed, initial=np.inf),
            np.max(signal, -1, where=observed, initial=-np.inf),
        ],
        axis=-1,
    )


def _log_band_powers_of_observed(
    signal: NDArray[np.float64], observed: NDArray[np.bool_], n_bands: int
) -> NDArray[np.float64]:
    """Logarithm of the power in octave bands between the ends of what each window observed."""
    powers = np.empty((*signal.shape[:-1], n_bands))
    ends, number = np.unique(_ends(observed, 2**n_bands), axis=0, return_inverse=True)
    for i, (first, end) in enumerate(ends):
        rows = number.ravel() == i
        part = np.ascontiguousarray(signal[rows, :, first:end])
        powers[rows] = _log_band_powers(part, n_bands)
    return powers


def _ends(observed: NDArray[np.bool_], n_least: int) -> NDArray[np.intp]:
    """Return the first observed step of each window and the one after the last.

    They are at least `n_least` steps apart. Of a window without an observed step they are its ends.
    """
    end = observed.shape[1] - observed[:, ::-1].argmax(1)
    first = np.minimum(observed.argmax(1), np.maximum(end - n_least, 0))
    return np.stack([first, np.maximum(end, first + n_least)], axis=1)


def _log_band_powers(signal: NDArray[np.float64], n_bands: int) -> NDArray[np.float64]:
    """Logarithm of the power in octave bands along the last axis, the highest first."""
    if n_bands == 0:
        return np.empty((*signal.shape[:-1], 0))
    n_segment = min(signal.shape[-1], _LONGEST_SEGMENT)
    frequency, power = welch(signal, nperseg=n_segment, scaling="spectrum", axis=-1)
    octave = np.full(len(frequency), -1)
    octave[1:] = np.floor(-np.log2(2.0 * frequency[1:]))  # half the sampling rate is octave 0
    # A mask leaves the values of a row apart in memory: sums would round by the number of rows.
    columns = (np.ascontiguousarray(power[..., octave == band]) for band in range(n_bands))
    bands = [of_band.sum(-1) for of_band in columns]
    variance = signal.var(-1)
    varies = np.sqrt(variance) > _ROUNDING * np.abs(signal.mean(-1))
    nothing = _NO_POWER * np.where(varies, np.minimum(variance, 1.0), 1.0)
    return np.log(np.stack(bands, axis=-1) + nothing[..., None])
