"""Logarithm of the covariance of the channels, now and some steps ago."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from .._data._windows import Block, CheckedWindows
from .._docstrings import complete_docstring
from .._parameters import check_integer, check_real
from .._persistence import stored_array, tensor_of
from .._typing import BagPooling, InputLayout
from ._base import CHUNK, BaseFeatureTransformer, check_features
from ._channels import channels_first

_LARGEST = 64  # rows of a covariance matrix: its logarithm takes the third power of them
_FLOOR = 1e-6  # a variance that counts as none, in squares of the usual standard deviation


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
        256 windows. Channels are divided by it, so that their units do not matter.

    See Also
    --------
    AutocorrelationTransformer : Correlation of each channel with itself, at many delays.

    Notes
    -----
    The matrix S has a row for each delay d of each channel i. Its entry for ``(d, i)`` and
    ``(e, j)`` is the mean of ``x_i(t - d) x_j(t - e)`` over a window, where x is the channel, less
    its mean, over `scale_`. With k rows, and the shrinkage s, the features are the entries on and
    above the diagonal of ``log((1 - s) S + (s tr S / k + 1e-6) I)``, those above it times the root
    of 2. So the distance of two rows of features is that of the matrices in the log-Euclidean
    metric.

    A time step counts as missing if any of its channels is NaN. Each entry of S is the mean over
    the pairs of steps that are both observed; eigenvalues of S below zero, which such means may
    have, count as zero. Windows may have another length than those of `fit`
    if it is above twice the longest delay. The features are computed in float64.

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
    _unstored = ("delays_", "scale_")

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
        check_real(
            "shrinkage",
            self.shrinkage,
            0.0,
            1.0,
            open_minimum=True,
            open_maximum=False,
            example=0.1,
        )

    def _fit_shape(self) -> None:
        delays = sorted(int(delay) for delay in self.delays)
        fitting = [delay for delay in delays if 2 * delay < self.n_timesteps_in_]
        if not fitting:
            raise ValueError(
                f"delays={self.delays!r} holds no delay below half of the windows, which have"
                f" {self.n_timesteps_in_} time steps: pass shorter delays, or longer windows."
            )
        self.delays_ = np.array(fitting[: max(1, _LARGEST // self.n_channels_in_)])
        self._share = float(self.shrinkage)

    def _fit(self, windows: CheckedWindows, usable: NDArray[np.intp]) -> None:
        self._fit_shape()
        number = min(len(usable), CHUNK)
        index = usable[np.linspace(0, len(usable) - 1, number).astype(np.intp)]
        covariance = _covariance(windows.take(index), np.zeros(1, dtype=np.intp))
        scale = np.sqrt(np.diagonal(covariance.mean(0)))
        check_features(scale, windows, index)
        self.scale_ = np.where(scale > 0, scale, 1.0)

    def _weights(self) -> dict[str, Tensor]:
        return {"scale": tensor_of(self.scale_)}

    def _restore(self, weights: Mapping[str, Tensor]) -> None:
        super()._restore(weights)
        self.scale_ = stored_array(weights, "scale", np.float64, (self.n_channels_in_,))

    def _check_input_length(self, n_timesteps: int) -> None:
        longest = int(self.delays_[-1])
        if n_timesteps <= 2 * longest:
            raise ValueError(
                f"X has windows of {n_timesteps} time steps, too short for the delay of {longest}"
                f" steps of fit: pass at least {2 * longest + 1} steps, or fit on shorter windows."
            )

    def _features(self, block: Block) -> NDArray[np.float64]:
        covariance = _covariance(block, self.delays_)
        scale = np.tile(self.scale_, len(self.delays_))
        matrix = _logarithm(covariance / (scale[:, None] * scale), self._share)
        row, column = np.triu_indices(len(scale))
        return matrix[:, row, column] * np.where(row == column, 1.0, np.sqrt(2.0))

    @property
    def _n_features_out(self) -> int:
        size = self.n_channels_in_ * len(self.delays_)
        return size * (size + 1) // 2

    def _feature_names(self) -> list[str]:
        names = [
            f"channel{c}_delay{delay}" for delay in self.delays_ for c in range(self.n_channels_in_)
        ]
        return [f"{names[i]}_{names[j]}" for i, j in zip(*np.triu_indices(len(names)), strict=True)]


def _check_delays(delays: Any) -> None:
    """Raise unless `delays` holds distinct numbers of steps."""
    example = "pass for example delays=(0, 2, 4, 8)"
    is_sequence = isinstance(delays, Sequence) or (isinstance(delays, np.ndarray) and delays.ndim)
    if isinstance(delays, str) or not is_sequence:
        raise TypeError(f"delays must be a sequence of integers, got {delays!r}; {example}")
    for delay in delays:
        check_integer("each of delays", delay, 0)
    if not len(delays) or len(set(delays)) < len(delays):
        raise ValueError(
            f"delays must name one delay or more, and each only once, got {delays!r}; {example}"
        )


def _covariance(block: Block, delays: NDArray[np.intp]) -> NDArray[np.float64]:
    """Covariance of the delayed channels of each window, delays before channels in its rows."""
    signal = channels_first(block)
    n, n_channels, n_timesteps = signal.shape
    seen = np.ones((n, 1, n_timesteps))
    if block.observed is not None:
        seen[:] = block.observed[:, None]
    signal -= np.sum(signal * seen, axis=-1, keepdims=True) / np.maximum(seen.sum(-1), 1.0)[:, None]
    signal *= seen
    n_delays = len(delays)
    covariance = np.empty((n, n_delays, n_channels, n_delays, n_channels))
    later = delays[:, None] - delays
    for lag in np.unique(np.abs(later)):
        first, last = slice(n_timesteps - lag), slice(lag, n_timesteps)
        pairs = seen[..., first] @ seen[..., last].swapaxes(1, 2)
        products = signal[..., first] @ signal[..., last].swapaxes(1, 2) / np.maximum(pairs, 1.0)
        for a, b in zip(*np.nonzero(later == lag), strict=True):
            covariance[:, a, :, b] = products
            covariance[:, b, :, a] = products.swapaxes(1, 2)
    return covariance.reshape(n, n_delays * n_channels, n_delays * n_channels)


def _logarithm(covariance: NDArray[np.float64], shrinkage: float) -> NDArray[np.float64]:
    """Logarithm of each shrunk matrix; what missing steps leave negative counts as zero."""
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 0.0)
    level = shrinkage * values.mean(-1, keepdims=True) + _FLOOR
    logarithms = np.log((1.0 - shrinkage) * values + level)
    return (vectors * logarithms[:, None]) @ vectors.swapaxes(1, 2)
