"""Features of random convolutions: MiniRocket and MultiRocket, with missing steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from torch import Tensor

from .._data._windows import Block, CheckedWindows
from .._docstrings import complete_docstring
from .._parameters import check_boolean, check_integer, check_option
from .._persistence import stored_array, tensor_of
from .._threads import threads
from .._typing import BagPooling, InputLayout, RandomState
from ._base import check_features
from ._convolution_base import BaseConvolutionTransformer, reach_of, represent
from ._convolutions import (
    KERNEL_LENGTH,
    KERNELS,
    N_KERNELS,
    POOLINGS,
    ConvolutionBank,
    convolve,
    convolve_each,
    first_windows,
    is_padded,
    pool_outputs,
    spread_dilations,
)

_MAX_CHANNELS = 9  # channels that a kernel adds up
_ROUNDING = 16 * float(np.finfo(np.float32).eps)  # of an output, as a share of the values
_GOLDEN = (np.sqrt(5.0) + 1.0) / 2.0


@complete_docstring
class RandomConvolutionTransformer(BaseConvolutionTransformer):
    """Features of random convolutions: MiniRocket and MultiRocket, with missing steps.

    The 84 kernels of nine places have the weights -1 and 2. They are applied at dilations up to
    the length of the window, each to a random subset of the channels. The biases are quantiles of
    the outputs for random windows of `fit`. Nothing else is learned.

    Parameters
    ----------
    num_kernels : int, default=10_000
        Number of pairs of a kernel and a bias, at least 84; it is rounded down to a multiple of
        84. Each pair gives one feature per pooling.
    poolings : sequence of {"ppv", "mean", "position", "stretch"}, default=("ppv",)
        What is pooled from the outputs: the share that is above the bias ("ppv", MiniRocket), the
        mean excess of these positive outputs over the bias ("mean"), their mean place in the window
        ("position"), and the longest stretch of successive positive outputs ("stretch"). All four
        make MultiRocket. Places and stretches are shares of the window; a window without a positive
        output has the place -1.
    difference : bool, default=False
        Whether the differences of neighbouring steps are convolved too, for as many features again.
    standardize : bool, default=False
        Whether each channel of a window is first scaled to mean 0 and standard deviation 1, so that
        its level and its gain leave no trace in the features. A constant channel becomes zero.
    device : str or torch.device, default="auto"
        Device of the computation; "auto" is CUDA where PyTorch finds a device.
    num_threads : int or None, default=None
        Number of threads of PyTorch, at most 1024. None keeps the present number.
    random_state : int, RandomState instance or None, default=None
        Seed of the channel subsets, and of the windows that the biases are taken from.

    Attributes
    ----------
    banks_ : tuple of ConvolutionBank
        Dilations, biases and channels of the convolutions of the windows, and of their
        differences if `difference` is set.

    See Also
    --------
    sklearn_pulse.baselines.MiniRocketTransformer : MiniRocket of sktime.

    Notes
    -----
    On complete windows, MiniRocket's features are those of sktime for the same dilations,
    channels and biases. The biases of `fit` lie above the quantiles by about 2e-6 of the signal,
    so that rounding does not decide about outputs that equal their quantile, as many do where the
    signal is constant or holds integers in another unit.

    A time step counts as missing if any of its channels is NaN. No output is centred on a missing
    step, and the kernels without padding skip every output that reads one. Those with padding read
    the straight line between its observed neighbours; before the first observed step and after the
    last they read zeros, as outside of the window. A window that is padded with missing steps
    therefore has the features of the window before padding.

    Windows at `transform` may be longer than those at `fit`, and shorter if the kernels of the
    largest dilation still fit.

    References
    ----------
    Dempster, Schmidt and Webb, "MiniRocket", KDD 2021.

    Tan, Dempster, Bergmeir and Webb, "MultiRocket", Data Mining and Knowledge Discovery 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.features import RandomConvolutionTransformer
    >>> X = np.random.default_rng(0).normal(size=(20, 64, 3))
    >>> RandomConvolutionTransformer(num_kernels=200, random_state=0).fit_transform(X).shape
    (20, 168)
    >>> multirocket = RandomConvolutionTransformer(
    ...     num_kernels=200,
    ...     poolings=("ppv", "mean", "position", "stretch"),
    ...     difference=True,
    ...     random_state=0,
    ... )
    >>> multirocket.fit_transform(X).shape
    (20, 1344)
    """

    _unstored = ("banks_",)

    def __init__(
        self,
        num_kernels: int = 10_000,
        *,
        poolings: Sequence[str] = ("ppv",),
        difference: bool = False,
        standardize: bool = False,
        bag_pooling: BagPooling = "mean",
        device: str | torch.device = "auto",
        num_threads: int | None = None,
        input_layout: InputLayout = "ntc",
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.num_kernels = num_kernels
        self.poolings = poolings
        self.difference = difference
        self.standardize = standardize
        self.bag_pooling = bag_pooling
        self.device = device
        self.num_threads = num_threads
        self.input_layout = input_layout
        self.sampling_rate = sampling_rate
        self.channel_names = channel_names
        self.random_state = random_state

    def _check_params(self) -> None:
        super()._check_params()
        check_integer("num_kernels", self.num_kernels, N_KERNELS)
        _check_poolings(self.poolings)
        check_boolean("difference", self.difference)

    def _fit_shape(self) -> None:
        super()._fit_shape()
        self._poolings = tuple(self.poolings)

    def _fit(self, windows: CheckedWindows, usable: NDArray[np.intp]) -> None:
        super()._fit(windows, usable)
        rng = check_random_state(self.random_state)
        n_per_kernel = int(self.num_kernels) // N_KERNELS
        with threads(self.num_threads):
            self.banks_ = tuple(
                _draw_bank(windows, usable, n_per_kernel, bool(differenced), rng, self._read)
                for differenced in range(1 + bool(self.difference))
            )

    def _weights(self) -> dict[str, Tensor]:
        return {
            f"banks.{i}.{level}.{name}": tensor_of(values[level])
            for i, bank in enumerate(self.banks_)
            for level in range(len(bank.dilations))
            for name, values in (("biases", bank.biases), ("channels", bank.channels))
        }

    def _restore(self, weights: Mapping[str, Tensor]) -> None:
        super()._restore(weights)
        n_per_kernel = int(self.num_kernels) // N_KERNELS
        banks = []
        for i in range(1 + bool(self.difference)):
            dilations, n_biases = spread_dilations(self.n_timesteps_in_ - i, n_per_kernel)
            biases = [
                stored_array(weights, f"banks.{i}.{level}.biases", np.float32, (N_KERNELS, n))
                for level, n in enumerate(n_biases)
            ]
            shape = (N_KERNELS, self.n_channels_in_)
            channels = [
                stored_array(weights, f"banks.{i}.{level}.channels", np.bool_, shape)
                for level in range(len(n_biases))
            ]
            banks.append(ConvolutionBank(dilations, biases, channels))
        self.banks_ = tuple(banks)

    def _convolutions(self, x: Tensor, observed: Tensor | None, n_pooled: int) -> Tensor:
        features = []
        for differenced, bank in enumerate(self.banks_):
            signal, seen = represent(x, observed, bool(differenced))
            fitted = self.n_timesteps_in_ - differenced
            features += _pool_bank(signal, seen, bank, self._poolings, fitted, n_pooled)
        return torch.cat(features, dim=1)

    def _n_outputs(self, n_timesteps: int) -> int:
        return N_KERNELS // 2 * n_timesteps

    @property
    def _reach(self) -> int:
        longest = int(max(bank.dilations[-1] for bank in self.banks_))
        return reach_of(longest, differenced=len(self.banks_) > 1)

    @property
    def _numbers_of_biases(self) -> list[int]:
        """Number of the biases of each bank."""
        return [sum(biases.size for biases in bank.biases) for bank in self.banks_]

    @property
    def _n_features_out(self) -> int:
        return sum(self._numbers_of_biases) * len(self._poolings)

    @property
    def _spread_has_unit(self) -> NDArray[np.bool_]:
        have_unit = [pooling == "mean" and not self._standardizes for pooling in self._poolings]
        return np.concatenate([np.repeat(have_unit, number) for number in self._numbers_of_biases])


def _check_poolings(poolings: Any) -> None:
    """Raise unless `poolings` is a sequence of distinct names of poolings."""
    if isinstance(poolings, str) or not isinstance(poolings, Sequence):
        raise TypeError(
            f"poolings must be a sequence of names, got {poolings!r}; pass for example"
            ' poolings=("ppv",)'
        )
    for pooling in poolings:
        check_option("each of poolings", pooling, POOLINGS)
    if not poolings or len(set(poolings)) < len(poolings):
        raise ValueError(
            f"poolings must name one pooling or more, and each only once, got {poolings!r}; pass"
            ' for example poolings=("ppv",)'
        )


def _weights(channels: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Weights of the kernels of one dilation, shape (84, n_channels * 9)."""
    return (channels[:, :, None] * KERNELS[:, None, :]).reshape(N_KERNELS, -1).astype(np.float32)


def _pool_bank(
    signal: Tensor,
    observed: Tensor | None,
    bank: ConvolutionBank,
    poolings: tuple[str, ...],
    n_timesteps_fitted: int,
    n: int,
) -> list[Tensor]:
    """Return the features of the first `n` windows, (n, 84 * number of biases) per pooling."""
    device = signal.device
    features: list[list[Tensor]] = [[] for _ in poolings]
    for level, dilation in enumerate(bank.dilations.tolist()):
        weight = torch.from_numpy(_weights(bank.channels[level])).to(device)
        biases = tensor_of(bank.biases[level]).to(device)
        pooled = [weight.new_empty(n, *biases.shape) for _ in poolings]
        in_padded = is_padded(level, n_timesteps_fitted)
        for padded, chosen in ((True, in_padded), (False, ~in_padded)):
            if not chosen.any():
                continue
            # Numbers, since a device is waited for until Booleans have been counted.
            kernels = torch.from_numpy(np.flatnonzero(chosen)).to(device)
            outputs = convolve(signal, weight[kernels], dilation, padded=padded)
            outputs = first_windows(outputs, n)
            counted = _counted(None if observed is None else observed[:n], dilation, padded)
            if counted is None:
                counted = torch.ones(1, outputs.shape[2], dtype=torch.bool, device=device)
            else:
                outputs.masked_fill_(~counted, -torch.inf)
            parts = pool_outputs(outputs, biases[kernels], counted, poolings)
            for whole, part in zip(pooled, parts, strict=True):
                whole[:, kernels] = part
        for blocks, block in zip(features, pooled, strict=True):
            blocks.append(block.flatten(1))
    return [torch.cat(blocks, dim=1) for blocks in features]


def _counted(observed: Tensor | None, dilation: int, padded: bool) -> Tensor | None:
    """Tell which outputs count: those at observed steps or, without padding, of observed steps."""
    if observed is None or padded:
        return observed
    n_outputs = observed.shape[1] - dilation * (KERNEL_LENGTH - 1)
    return observed.unfold(1, n_outputs, dilation).all(1)  # (n, 9, n_outputs) before


def _draw_bank(
    windows: CheckedWindows,
    usable: NDArray[np.intp],
    n_per_kernel: int,
    differenced: bool,
    rng: np.random.RandomState,
    read: Callable[[Block], Block],
) -> ConvolutionBank:
    """Draw the channels of each kernel, and the windows whose outputs have the biases."""
    n_timesteps = windows.n_timesteps - differenced
    dilations, n_biases = spread_dilations(n_timesteps, n_per_kernel)
    shares = np.arange(1, N_KERNELS * n_per_kernel + 1) * _GOLDEN % 1  # spread evenly over [0, 1]
    biases, channels, first = [], [], 0
    for dilation, n in zip(dilations.tolist(), n_biases, strict=True):
        channels.append(np.stack([_draw_channels(windows.n_channels, rng) for _ in KERNELS]))
        numbers = rng.choice(usable, N_KERNELS)
        block = read(windows.take(numbers))
        quantiles = shares[first : first + N_KERNELS * n].reshape(N_KERNELS, n)
        biases.append(_quantiles_of_outputs(block, channels[-1], dilation, quantiles, differenced))
        check_features(biases[-1], windows, numbers)
        first += N_KERNELS * n
    return ConvolutionBank(dilations, biases, channels)


def _draw_channels(n_channels: int, rng: np.random.RandomState) -> NDArray[np.bool_]:
    """Draw a subset of the channels, more often a small subset than a large one."""
    most = min(n_channels, _MAX_CHANNELS)
    number = int(2.0 ** rng.uniform(0.0, np.log2(most + 1)))
    chosen = np.zeros(n_channels, dtype=bool)
    chosen[rng.choice(n_channels, number, replace=False)] = True
    return chosen


def _quantiles_of_outputs(
    block: Block,
    channels: NDArray[np.bool_],
    dilation: int,
    quantiles: NDArray[np.float64],
    differenced: bool,
) -> NDArray[np.float32]:
    """Quantiles of the output of each kernel for its own window; `block` has one per kernel.

    On the grid of a recorder, and where a signal is constant, many outputs equal their quantile.
    The biases lie so far above it that rounding does not decide whether these are positive.
    """
    x = torch.from_numpy(block.x)
    seen = None if block.observed is None else torch.from_numpy(block.observed)
    signal, seen = represent(x, seen, differenced)
    with torch.autocast("cpu", enabled=False), threads(1):  # small products: threads would wait
        outputs = convolve_each(signal, torch.from_numpy(_weights(channels)), dilation).numpy()
    counts = np.full(len(outputs), outputs.shape[1])
    if seen is not None:
        outputs[~seen.numpy()] = np.nan
        counts = seen.sum(1).numpy()
    biases = _row_quantiles(outputs, counts, quantiles)
    largest = np.abs(block.x).max(1).astype(np.float64)  # (n_kernels, n_channels)
    for channel in largest.T:  # a view, which is written to; a window may be zero
        if channel.any():
            channel[:] = np.maximum(channel, np.median(channel[channel > 0]))
    noise = _ROUNDING * np.sum(largest, axis=1, where=channels)
    return biases + noise[:, None].astype(np.float32)


def _row_quantiles(
    rows: NDArray[np.float32], counts: NDArray[np.intp], shares: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Return the quantiles of the `counts` values of each row that are followed by NaN, or zero.

    Each row has shares of its own, so that :func:`numpy.quantile` would need a call for each.
    """
    ordered = np.sort(rows, axis=1)  # NaN comes last
    largest = np.maximum(counts - 1, 0)[:, None]
    place = shares * largest
    below = place.astype(np.intp)
    low, high = (
        np.take_along_axis(ordered, at, 1) for at in (below, np.minimum(below + 1, largest))
    )
    with np.errstate(invalid="ignore"):  # infinite outputs, which the caller refuses by name
        quantiles = low + (place - below) * (high - low)
    quantiles[np.isnan(np.take_along_axis(ordered, largest, 1))[:, 0]] = np.nan
    quantiles[counts == 0] = 0.0
    return quantiles.astype(np.float32)
