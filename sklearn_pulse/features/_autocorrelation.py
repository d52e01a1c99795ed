"""Autocorrelation of each channel and of its speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from torch import Tensor

from .._data._windows import Block
from .._docstrings import complete_docstring
from .._parameters import check_integer
from .._typing import BagPooling, InputLayout
from ._base import BaseFeatureTransformer
from ._channels import channels_first

_MOST_STORED_BINS = 2**20  # of a file, which holds their number alone
_LANES = 16  # signals that a Fourier transform may compute side by side
_ROUNDING = float(np.finfo(np.float32).eps)  # share of the values that a speed may be wrong by


@complete_docstring
class AutocorrelationTransformer(BaseFeatureTransformer):
    """Autocorrelation of each channel and of its speed.

    The autocorrelation shows rhythm and regularity, whatever the phase and the amplitude. It is
    computed for each channel and for the absolute difference of neighbouring steps (the speed),
    at lags from one step to two thirds of the window, and averaged over neighbouring lags.

    Parameters
    ----------
    max_bins : int, default=40
        Largest number of bins that the lags are divided into. Windows with fewer lags have one
        bin per lag.

    Attributes
    ----------
    bin_edges_ : ndarray of int of shape (n_bins + 1,)
        First lag of each bin, in time steps, and the lag after the last bin. The first lag is in
        the name of a feature.

    See Also
    --------
    StatisticsTransformer : Moments and log band powers of each channel.

    Notes
    -----
    The signal is centred. The sum of the products of all steps that are a lag apart is divided
    by the sum of the squares, so that values lie between -1 and 1 and shrink towards long lags,
    which have fewer pairs. A constant channel has zeros, and so has the speed of a straight line.

    A time step counts as missing if any of its channels is NaN. The sums run over pairs of
    observed steps, and a speed is observed where both of its steps are. Each sum is divided by the
    share of observed pairs among the pairs between the first and the last observed step, and the
    sum of squares by the share of observed steps, so that gaps do not shrink the values. A lag
    without an observed pair has 0. Where few pairs are left, a quotient may leave the range from
    -1 to 1, and the nearest end is taken. The features are computed in float64.

    Windows at `transform` may have another length than those at `fit` if they are longer than
    the longest lag.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.features import AutocorrelationTransformer
    >>> X = np.sin(np.arange(60) * 2 * np.pi / 10).reshape(1, 60, 1)
    >>> autocorrelation = AutocorrelationTransformer().fit(X)
    >>> features = autocorrelation.transform(X)
    >>> features.shape
    (1, 80)
    >>> [f"{x:.2f}" for x in features[0, [4, 9]]]  # half a period and a period
    ['-0.92', '0.83']
    >>> autocorrelation.get_feature_names_out()[[0, 40]].tolist()
    ['channel0_lag1', 'channel0_speed_lag1']
    """

    _reads_scale = False

    _unstored = ("bin_edges_",)

    def __init__(
        self,
        max_bins: int = 40,
        *,
        bag_pooling: BagPooling = "mean",
        input_layout: InputLayout = "ntc",
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> None:
        self.max_bins = max_bins
        self.bag_pooling = bag_pooling
        self.input_layout = input_layout
        self.sampling_rate = sampling_rate
        self.channel_names = channel_names

    def _check_params(self) -> None:
        super()._check_params()
        check_integer("max_bins", self.max_bins, 1)

    def _fit_shape(self) -> None:
        longest = max(1, 2 * self.n_timesteps_in_ // 3)  # a lag that no pair has gives zero
        n_bins = min(int(self.max_bins), longest)
        width, n_wider = divmod(longest, n_bins)  # the first bins have one lag more
        numbers = np.arange(n_bins + 1)
        self.bin_edges_ = 1 + numbers * width + np.minimum(numbers, n_wider)

    def _restore(self, weights: Mapping[str, Tensor]) -> None:
        if min(self.max_bins, self.n_timesteps_in_) > _MOST_STORED_BINS:
            raise ValueError(
                f"max_bins={self.max_bins} bins of windows of {self.n_timesteps_in_} time steps are"
                f" more than the {_MOST_STORED_BINS} that a file may ask for: fit with fewer bins."
            )
        super()._restore(weights)

    def _check_input_length(self, n_timesteps: int) -> None:
        longest = int(self.bin_edges_[-1]) - 1
        if n_timesteps <= longest and n_timesteps != self.n_timesteps_in_:
            raise ValueError(
                f"X has windows of {n_timesteps} time steps, but the lags of fit reach up to"
                f" {longest} steps: pass at least {longest + 1} steps, or fit on shorter windows."
            )

    def _features(self, block: Block) -> NDArray[np.float64]:
        signal = channels_first(block)
        observed = np.ones((len(signal), 1, signal.shape[2]), dtype=bool)
        if block.observed is not None:
            observed = block.observed[:, None, :]
        speed = np.abs(np.diff(signal))
        moved = observed[..., 1:] & observed[..., :-1]
        n_lags = int(self.bin_edges_[-1])
        noise = _ROUNDING * np.abs(signal).max(-1, keepdims=True)
        values = [
            _autocorrelation(signal, observed, n_lags),
            _autocorrelation(speed, moved, n_lags, noise),
        ]
        # (n, n_channels, 2, n_bins)
        features = [_binned(of_lags, self.bin_edges_) for of_lags in values]
        return np.stack(features, axis=2).reshape(len(signal), -1)

    @property
    def _n_features_out(self) -> int:
        return self.n_channels_in_ * 2 * (len(self.bin_edges_) - 1)

    def _feature_names(self, channels: Sequence[str]) -> list[str]:
        return [
            f"{channel}{speed}_lag{lag}"
            for channel in channels
            for speed in ("", "_speed")
            for lag in self.bin_edges_[:-1]
        ]


def _autocorrelation(
    signal: NDArray[np.float64],
    observed: NDArray[np.bool_],
    n_lags: int,
    noise: NDArray[np.float64] | float = 0.0,
) -> NDArray[np.float64]:
    """Autocorrelation at the lags 0 to ``n_lags - 1`` along the last axis.

    `signal` has the shape (n, n_channels, n_timesteps) and `observed` (n, 1, n_timesteps). `noise`,
    of shape (n, n_channels, 1), is the standard deviation up to which a signal counts as constant.
    """
    n, n_channels, n_timesteps = signal.shape
    count = np.maximum(observed.sum(-1, keepdims=True), 1)
    mean = np.sum(signal, -1, where=observed, keepdims=True) / count
    centred = np.where(observed, signal - mean, 0.0)
    n_fft = next_fast_len(n_timesteps + n_lags, real=True)  # products of the two ends never meet
    # The transform treats full groups of signals and the remaining signals by different code.
    # Zeros fill the last group, so that a row does not depend on the number of rows.
    rows = np.zeros((-(-n * n_channels // _LANES) * _LANES, n_fft))
    rows[: n * n_channels, :n_timesteps] = centred.reshape(n * n_channels, n_timesteps)
    spectrum = rfft(rows)
    power = spectrum.real**2 + spectrum.imag**2
    products = irfft(power, n_fft)[: n * n_channels, :n_lags].reshape(n, n_channels, n_lags)
    energy = np.sum(centred**2, -1, keepdims=True)
    # What rounding leaves of a constant is no signal.
    varies = energy > count * np.maximum(1e-12 * np.abs(mean), noise) ** 2
    values = np.where(varies, products / np.where(varies, energy, 1.0), 0.0)
    span = _span(observed)
    gaps = np.flatnonzero((span != observed.sum(-1))[:, 0])
    if len(gaps):
        filled = values[gaps] * _weight_of_pairs(observed[gaps], span[gaps], n_lags)
        values[gaps] = np.clip(filled, -1.0, 1.0)
    return values


def _span(observed: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Count the steps from the first to the last observed step; 0 where no step is observed."""
    if not observed.shape[-1]:  # the speed of a single step
        return np.zeros(observed.shape[:-1], dtype=np.intp)
    first, after_last = observed.argmax(-1), observed.shape[-1] - observed[..., ::-1].argmax(-1)
    return np.where(observed.any(-1), after_last - first, 0)


def _weight_of_pairs(
    observed: NDArray[np.bool_], span: NDArray[np.intp], n_lags: int
) -> NDArray[np.float64]:
    """Divide the share of observed steps by that of pairs at the lags 0 to ``n_lags - 1``.

    Shares are those of the steps, and of the pairs, between the first and the last observed step.
    The weight of a lag without an observed pair is 0.
    """
    n_fft = next_fast_len(observed.shape[-1] + n_lags, real=True)
    spectrum = rfft(observed.astype(np.float64), n_fft)
    pairs = irfft(spectrum.real**2 + spectrum.imag**2, n_fft)[..., :n_lags].round()
    possible = np.maximum(span[..., None] - np.arange(n_lags), 0)
    weight = np.divide(possible, pairs, out=np.zeros_like(pairs), where=pairs > 0)
    return weight / np.maximum(weight[..., :1], 1.0)


def _binned(values: NDArray[np.float64], edges: NDArray[np.intp]) -> NDArray[np.float64]:
    """Mean of the last axis over each bin of its entries."""
    return np.add.reduceat(values, edges[:-1], axis=-1) / np.diff(edges)
