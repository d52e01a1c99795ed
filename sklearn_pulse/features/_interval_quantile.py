"""Quantiles of each channel on intervals of the window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .._data._windows import Block
from .._docstrings import complete_docstring
from .._parameters import check_boolean, check_integer
from .._typing import BagPooling, InputLayout
from ._base import BaseFeatureTransformer
from ._channels import over_observed_parts
from ._standardized import standardized

_STEPS_PER_QUANTILE = 4
Series = NDArray[np.float64]  # of shape (n, n_channels, n_steps)


def _amplitudes(signal: Series) -> Series:
    return np.abs(np.fft.rfft(signal, axis=-1))


def _differences(signal: Series, order: int) -> Series:
    """Differences of neighbouring steps; a single zero where there are too few steps."""
    if signal.shape[-1] <= order:
        return np.zeros((*signal.shape[:-1], 1))
    return np.diff(signal, order, axis=-1)


_SERIES: Mapping[str, Callable[[Series], Series]] = {
    "signal": lambda signal: signal,
    "difference": lambda signal: _differences(signal, 1),
    "second_difference": lambda signal: _differences(signal, 2),
    "amplitude": _amplitudes,
}


def _lengths(n_timesteps: int) -> dict[str, int]:
    """Return the number of steps of each series; none is made, since a file may say any number."""
    return {
        "signal": n_timesteps,
        "difference": max(n_timesteps - 1, 1),
        "second_difference": max(n_timesteps - 2, 1),
        "amplitude": n_timesteps // 2 + 1,
    }


@complete_docstring
class IntervalQuantileTransformer(BaseFeatureTransformer):
    """Quantiles of each channel, of its differences and of its spectrum, on dyadic intervals.

    Four series are made of each channel: the signal, its first and second differences, and the
    amplitudes of its Fourier transform. At level k, each series is cut into ``2**k`` intervals of
    equal length, and into as many minus one that are shifted by half an interval. The features are
    quantiles of the values in each interval, from the minimum to the maximum; every second quantile
    is relative to the mean of the interval. A quantile that is alone in its interval is the median.

    Parameters
    ----------
    depth : int, default=6
        Largest number of levels. Short windows have fewer levels.
    standardize : bool, default=False
        Whether each channel of a window is first scaled to mean 0 and standard deviation 1, so that
        its level and its gain leave no trace in the features. A constant channel becomes zero.

    Attributes
    ----------
    n_quantiles_ : dict of str to list of int
        Number of quantiles per interval at each level, by the name of the series: one for every
        four steps of an interval of the windows at `fit`.

    See Also
    --------
    StatisticsTransformer : Moments and band powers of whole windows.

    Notes
    -----
    A time step counts as missing if any of its channels is NaN. A window with missing steps is
    read from its first to its last observed step, with straight lines across the gaps, and the
    intervals are those of this part. Windows may have another length than those of `fit`: the
    intervals are shares of the window, and amplitudes are multiplied by the root of the length at
    `fit` over the length, so that those of noise stay as large as they were. The peak of a
    sustained oscillation still grows with the root of the length. The features are computed in
    float64.

    Source: Dempster, Schmidt and Webb (2024), "QUANT: a minimalist interval method for time series
    classification", Data Mining and Knowledge Discovery 38. There the first differences are
    smoothed, and trees classify the features.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.features import IntervalQuantileTransformer
    >>> X = np.random.default_rng(0).normal(size=(20, 64, 3))
    >>> quantiles = IntervalQuantileTransformer(depth=2).fit(X)
    >>> quantiles.n_quantiles_["signal"]
    [16, 8]
    >>> quantiles.transform(X).shape
    (20, 423)
    """

    _unstored = ("n_quantiles_",)

    def __init__(
        self,
        depth: int = 6,
        *,
        standardize: bool = False,
        bag_pooling: BagPooling = "mean",
        input_layout: InputLayout = "ntc",
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> None:
        self.depth = depth
        self.standardize = standardize
        self.bag_pooling = bag_pooling
        self.input_layout = input_layout
        self.sampling_rate = sampling_rate
        self.channel_names = channel_names

    def _check_params(self) -> None:
        super()._check_params()
        check_integer("depth", self.depth, 1)
        check_boolean("standardize", self.standardize)

    def _fit_shape(self) -> None:
        self._standardizes = bool(self.standardize)
        self.n_quantiles_ = {}
        for name, n_steps in _lengths(self.n_timesteps_in_).items():
            n_levels = min(int(self.depth), n_steps.bit_length())  # those with a step per interval
            self.n_quantiles_[name] = [
                1 + ((n_steps >> level) - 1) // _STEPS_PER_QUANTILE for level in range(n_levels)
            ]

    def _features(self, block: Block) -> NDArray[np.float64]:
        block = standardized(block) if self._standardizes else block
        return over_observed_parts(
            block, lambda signal, _: self._quantiles(signal), self._n_features_out
        )

    def _quantiles(self, signal: Series) -> NDArray[np.float64]:
        """Return the features of complete windows, shape (n, n_features)."""
        features = []
        for name, numbers in self.n_quantiles_.items():
            series = _SERIES[name](signal)
            if name == "amplitude":
                # Amplitudes of noise grow with the root of the number of steps. The factor is
                # exactly 1 for windows as long as those of `fit`.
                series *= np.sqrt(self.n_timesteps_in_ / signal.shape[-1])
            for level, number in enumerate(numbers):
                for first, last in _intervals(level, series.shape[-1]):
                    features.append(_of_interval(series[..., first:last], number))
        return np.concatenate(features, axis=-1).reshape(len(signal), self._n_features_out)

    @property
    def _n_features_out(self) -> int:
        per_channel = sum(
            number * (2 ** (level + 1) - 1)
            for numbers in self.n_quantiles_.values()
            for level, number in enumerate(numbers)
        )
        return self.n_channels_in_ * per_channel

    @property
    def _spread_has_unit(self) -> NDArray[np.bool_]:
        return np.full(self._n_features_out, not self._standardizes)


def _intervals(level: int, n_steps: int) -> Iterator[tuple[int, int]]:
    """Yield the first step of each interval, and the step after its last; none is empty."""
    n_halves = 2 ** (level + 1)  # an interval is two halves
    for shift in (0, 1):
        for half in range(shift, n_halves - 1, 2):
            first = min(half * n_steps // n_halves, n_steps - 1)
            yield first, max((half + 2) * n_steps // n_halves, first + 1)


def _of_interval(values: Series, number: int) -> Series:
    """Return quantiles of the last axis, every second one relative to the mean."""
    ordered = np.sort(values, axis=-1)
    largest = values.shape[-1] - 1
    place = np.linspace(0, largest, number) if number > 1 else np.array([largest / 2])
    below = place.astype(np.intp)
    weight = place - below
    above = np.minimum(below + 1, largest)
    quantiles = ordered[..., below] * (1 - weight) + ordered[..., above] * weight
    quantiles[..., 1::2] -= values.mean(axis=-1, keepdims=True)
    return quantiles
