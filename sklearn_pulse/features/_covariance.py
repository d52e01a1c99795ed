"""Logarithm of the covariance of the channels, now and some steps ago."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from .._data._windows import Block, CheckedWindows, evenly
from .._docstrings import complete_docstring
from .._parameters import check_integer, check_share
from .._persistence import stored_array, tensor_of
from .._typing import BagPooling, InputLayout
from ._base import CHUNK, BaseFeatureTransformer
from ._channels import channels_first

_LARGEST = 64  # rows of a covariance matrix: its logarithm takes the third power of them
_FLOOR = 1e-6  # a variance that counts as none, in squares of the usual standard deviation
_ARTEFACT = 1e6  # variances of the median window, above which a window is no part of a mean

Signals = NDArray[np.float64]  # of shape (n, n_signals, n_steps), or what is computed from them
Observed = NDArray[np.bool_]  # of shape (n, n_steps): the steps that count


@complete_docstring
class CovarianceTransformer(BaseFeatureTransformer):
    """Logarithm of the covariance of the channels, now and some steps ago.

    The covariance says which channels move together, and after which delay, whatever the phase of
    the window. Its logarithm turns factors, such as another amplitude of all channels, into sums,
    which a linear model can tell from the rest.

    Parameters
    ----------
    delays : sequence of int, default=(0, 2, 4, 8)
        Delays of the channels, in time steps.
    shrinkage : float, default=0.1
        Share of the covariance that is replaced by the mean variance on its diagonal, above 0 and
        at most 1. It keeps directions without variance from deciding.

    Attributes
    ----------
    delays_ : ndarray of int of shape (n_delays,)
        The delays in use, in ascending order: those below half the window, and so many of them
        that the matrix has at most 64 rows (one delay for more channels).
    scale_ : ndarray of shape (n_channels,)
        Standard deviation of each channel within windows, the root of the mean variance of at most
        256 windows. Channels are divided by it, so that their units do not matter. A window with
        more than a million times the variance of the median window is left out, as an artefact.

    See Also
    --------
    AutocorrelationTransformer : Correlation of each channel with itself, at many delays.

    Notes
    -----
    Let ``z(t)`` hold the channels, over `scale_`, at the steps ``t - d`` for all delays d, and S be
    the covariance of ``z(t)`` over the steps t of a window. With k rows, and the shrinkage s, the
    features are the entries on and above the diagonal of
    ``log((1 - s) S + (s tr S / k + 1e-6) I)``, those above it times the root of 2. So the distance
    of two rows of features is that of the matrices in the log-Euclidean metric.

    A time step counts as missing if any of its channels is NaN. S is that of the steps at which all
    of ``z(t)`` is observed, and zero if there are none. Windows may have another length than those
    of `fit` if it is above twice the longest delay. The features are computed in float64.

    Source: Arsigny, Fillard, Pennec and Ayache (2006), "Log-Euclidean metrics for fast and simple
    calculus on diffusion tensors", Magnetic Resonance in Medicine 56, for the logarithm; Barachant,
    Bonnet, Congedo and Jutten (2012), "Multiclass brain-computer interface classification by
    Riemannian geometry", IEEE Transactions on Biomedical Engineering 59, for windows of signals.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.features import CovarianceTransformer
    >>> X = np.random.default_rng(0).normal(size=(20, 64, 3))
    >>> covariance = CovarianceTransformer(delays=(0, 4)).fit(X)
    >>> covariance.transform(X).shape
    (20, 21)
    >>> covariance.get_feature_names_out()[1]
    'channel0_delay0_channel1_delay0'
    """

    scale_: NDArray[np.float64]
    _unit = "steps"  # of the delays
    _least_scale = 0.0  # above which a signal varies
    _unstored: tuple[str, ...] = ("delays_", "scale_")

    def __init__(
        self,
        delays: Sequence[int] = (0, 2, 4, 8),
        shrinkage: float = 0.1,
        *,
        bag_pooling: BagPooling = "mean",
        input_layout: InputLayout = "ntc",
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> None:
        self.delays = delays
        self.shrinkage = shrinkage
        self.bag_pooling = bag_pooling
        self.input_layout = input_layout
        self.sampling_rate = sampling_rate
        self.channel_names = channel_names

    def _check_params(self) -> None:
        super()._check_params()
        _check_delays(self.delays)
        check_share("shrinkage", self.shrinkage, example=0.1)

    def _fit_shape(self) -> None:
        delays = sorted(int(delay) for delay in self.delays)
        n_steps = self._n_steps(self.n_timesteps_in_)
        fitting = [delay for delay in delays if 2 * delay < n_steps]
        if not fitting:
            raise ValueError(
                f"delays={self.delays!r} holds no delay below half of the {n_steps} {self._unit} of"
                " a window: pass shorter delays, or longer windows."
            )
        self.delays_ = np.array(fitting[: max(1, _LARGEST // self._n_signals)])
        self._share = float(self.shrinkage)

    def _fit(self, windows: CheckedWindows, usable: NDArray[np.intp]) -> None:
        self._fit_shape()
        block = windows.take(spread_evenly(usable))
        variance = self._of_signals(block, _variances, self._n_signals)
        scale = np.sqrt(mean_without_artefacts(variance, np.ones((len(variance), 1))))
        self.scale_ = np.where(scale > self._least_scale, scale, 1.0)

    def _weights(self) -> dict[str, Tensor]:
        return {"scale": tensor_of(self.scale_)}

    def _restore(self, weights: Mapping[str, Tensor]) -> None:
        super()._restore(weights)
        self.scale_ = stored_array(weights, "scale", np.float64, (self._n_signals,))

    def _check_input_length(self, n_timesteps: int) -> None:
        longest = int(self.delays_[-1])
        if self._n_steps(n_timesteps) > 2 * longest:
            return
        lengths = itertools.count(n_timesteps)
        needed = next(n for n in lengths if self._n_steps(n) > 2 * longest)
        raise ValueError(
            f"X has windows of {n_timesteps} time steps, too short for the delay of {longest}"
            f" {self._unit} of fit: pass at least {needed} time steps, or fit on shorter windows."
        )

    def _n_steps(self, n_timesteps: int) -> int:
        """Return the number of steps of the signals that a window is read as."""
        return n_timesteps

    @property
    def _n_signals(self) -> int:
        return self.n_channels_in_

    def _signal_names(self, channels: Sequence[str]) -> Sequence[str]:
        return channels

    def _of_signals(
        self, block: Block, compute: Callable[[Signals, Observed], Signals], n_values: int
    ) -> Signals:
        """Compute values of the signals that windows are read as, shape (n, n_values)."""
        signals = channels_first(block)
        observed = block.observed
        if observed is None:
            observed = np.ones((len(signals), signals.shape[-1]), dtype=bool)
        return compute(signals, observed)

    def _features(self, block: Block) -> Signals:
        return self._of_signals(block, self._log_covariance, self._n_features_out)

    def _log_covariance(self, signals: Signals, observed: Observed) -> Signals:
        covariance = _covariance(signals, observed, self.delays_)
        scale = np.tile(self.scale_, len(self.delays_))
        matrix = _logarithm(covariance / (scale[:, None] * scale), self._share)
        row, column = np.triu_indices(len(scale))
        return matrix[:, row, column] * np.where(row == column, 1.0, np.sqrt(2.0))

    @property
    def _n_features_out(self) -> int:
        size = self._n_signals * len(self.delays_)
        return size * (size + 1) // 2

    def _feature_names(self, channels: Sequence[str]) -> list[str]:
        signals = self._signal_names(channels)
        names = [f"{name}_delay{delay}" for delay in self.delays_ for name in signals]
        return [f"{names[i]}_{names[j]}" for i, j in zip(*np.triu_indices(len(names)), strict=True)]


def _check_delays(delays: Any) -> None:
    """Raise unless `delays` holds distinct numbers of steps."""
    example = "pass for example delays=(0, 2, 4, 8)"
    is_array = isinstance(delays, np.ndarray) and delays.ndim > 0
    if not isinstance(delays, list | tuple) and not is_array:
        raise TypeError(f"delays must be a list or tuple of integers, got {delays!r}; {example}")
    for delay in delays:
        check_integer("each of delays", delay, 0)
    if not len(delays) or len(set(delays)) < len(delays):
        raise ValueError(
            f"delays must name one delay or more, and each only once, got {delays!r}; {example}"
        )


def spread_evenly(usable: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return at most 256 of the numbers, spread evenly."""
    return usable[evenly(len(usable), CHUNK)]


def mean_without_artefacts(sums: Signals, number: Signals) -> NDArray[np.float64]:
    """Return the mean of what windows sum up, but for those far above the median window.

    One artefact, such as a saturated amplifier, would make all other windows look quiet. `sums`, of
    shape (n, n_signals), are sums of values from 0 on over `number` (n, 1) parts of each window. A
    mean of no part is 0.
    """
    own = sums / np.maximum(number, 1.0)
    median = np.median(own, axis=0)
    kept = (own <= _ARTEFACT * median) | (median <= 0.0)
    return np.asarray((sums * kept).sum(0) / np.maximum(1.0, (number * kept).sum(0)))


def _variances(signals: Signals, observed: Observed) -> Signals:
    """Variance of each signal over its steps that count."""
    covariance = _covariance(signals, observed, np.zeros(1, dtype=np.intp))
    return np.diagonal(covariance, axis1=1, axis2=2)


def _covariance(signals: Signals, observed: Observed, delays: NDArray[np.intp]) -> Signals:
    """Covariance of the delayed signals of each window, delays before signals in its rows."""
    n_steps = signals.shape[-1]
    first = delays[-1]
    parts = [slice(first - delay, max(0, n_steps - delay)) for delay in delays]
    seen = np.all([observed[:, part] for part in parts], axis=0)[:, None]
    number = np.maximum(seen.sum(-1, keepdims=True), 1)
    delayed = np.concatenate([signals[..., part] for part in parts], axis=1) * seen
    delayed -= delayed.sum(-1, keepdims=True) / number
    delayed *= seen
    return (delayed @ delayed.swapaxes(1, 2)) / number


def _logarithm(covariance: Signals, shrinkage: float) -> Signals:
    """Logarithm of each shrunk matrix."""
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 0.0)  # rounding may leave less
    level = shrinkage * values.mean(-1, keepdims=True) + _FLOOR
    logarithms = np.log((1.0 - shrinkage) * values + level)
    return (vectors * logarithms[:, None]) @ vectors.swapaxes(1, 2)
