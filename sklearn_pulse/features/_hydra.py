"""Features of Hydra: which kernel of a group fits each time step best and worst."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from torch import Tensor

from .._data._windows import CheckedWindows
from .._docstrings import complete_docstring
from .._parameters import check_integer
from .._persistence import stored_array, tensor_of
from .._products import multiply
from .._typing import BagPooling, InputLayout, RandomState
from ._convolution_base import BaseConvolutionTransformer, reach_of, represent
from ._convolutions import KERNEL_LENGTH, first_windows

_MAX_CHANNELS = 8  # channels that a group adds up
_ROUNDING = 16 * float(np.finfo(np.float32).eps)  # of an output, as a share of what it adds up
_LARGEST = float(np.finfo(np.float32).max)


class KernelGroups(NamedTuple):
    """Groups of kernels that compete, at each dilation of one representation of a window.

    Parameters
    ----------
    dilations : ndarray of int of shape (n_dilations,)
        Steps between the places of a kernel.
    kernels : ndarray of float32, of shape (n_dilations, n_groups, n_kernels, 9)
        Weights of the kernels, which add up to zero.
    channels : ndarray of bool, of shape (n_dilations, n_groups, n_channels)
        Channels that each group adds up.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.features import KernelGroups
    >>> kernels = np.random.default_rng(0).normal(size=(2, 3, 4, 9)).astype(np.float32)
    >>> kernels -= kernels.mean(-1, keepdims=True)
    >>> groups = KernelGroups(np.array([1, 2]), kernels, np.ones((2, 3, 5), bool))
    >>> groups.kernels[..., 0].size  # kernels
    24
    """

    dilations: NDArray[np.int64]
    kernels: NDArray[np.float32]
    channels: NDArray[np.bool_]


@complete_docstring
class HydraTransformer(BaseConvolutionTransformer):
    """Features of Hydra: which kernel of a group fits each time step best and worst.

    Random kernels of nine places are drawn in groups. At each time step the kernels of a group
    compete: the one with the largest output fits the signal best, the one with the smallest worst.
    Two features per kernel tell how well it fits where it wins, and how often it loses. The
    patterns of a signal are counted as words are in a text. Nothing is learned.

    Parameters
    ----------
    num_groups : int, default=64
        Number of groups at each dilation, at least 2. Half of them read the windows, the others
        the differences of neighbouring steps.
    kernels_per_group : int, default=8
        Number of kernels that compete, at least 2.
    standardize : bool, default=False
        Whether each channel of a window is first scaled to mean 0 and standard deviation 1, so that
        its level and its gain leave no trace in the features. A constant channel becomes zero.
    device : str or torch.device, default="auto"
        Device of the computation; "auto" is CUDA where PyTorch finds a device.
    num_threads : int or None, default=None
        Number of threads of PyTorch, at most 1024. None keeps the present number.
    random_state : int, RandomState instance or None, default=None
        Seed of the kernels and of the channels of each group.

    Attributes
    ----------
    groups_ : tuple of KernelGroups
        The groups that read the windows, and those that read their differences.

    See Also
    --------
    RandomConvolutionTransformer : MiniRocket and MultiRocket.

    Notes
    -----
    Dilations are the powers of two at which a kernel is no longer than the window. A group adds up
    half of the channels, at least two and at most eight, drawn at random. Let z be the output of a
    kernel, with zeros outside the window. Its two features are the square roots of

    - the mean over time of z where it is the largest of its group, and of 0 elsewhere; 0 if this
      is negative (Hydra's "soft" count of the largest), and
    - the share of time at which z is the smallest of its group (its "hard" count of the smallest).

    Hydra sums where these are means, so that windows of other lengths can be compared. Where all
    outputs of a group are equal up to rounding, as they are for a constant stretch, and where its
    channels cancel each other, no kernel wins or loses.

    A time step counts as missing if any of its channels is NaN. No output is centred on a missing
    step. Kernels that reach it read the straight line between its observed neighbours; before the
    first observed step and after the last they read zeros, as outside of the window.

    Windows at `transform` may be longer than those at `fit`, and shorter if the kernels of the
    largest dilation still fit.

    References
    ----------
    Dempster, Schmidt and Webb, "Hydra", Data Mining and Knowledge Discovery 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.features import HydraTransformer
    >>> X = np.random.default_rng(0).normal(size=(20, 64, 3))
    >>> hydra = HydraTransformer(num_groups=8, random_state=0)
    >>> hydra.fit_transform(X).shape  # 3 dilations, 8 groups, 8 kernels, 2 features
    (20, 384)
    """

    _unstored = ("groups_",)

    def __init__(
        self,
        num_groups: int = 64,
        *,
        kernels_per_group: int = 8,
        standardize: bool = False,
        bag_pooling: BagPooling = "mean",
        device: str | torch.device = "auto",
        num_threads: int | None = None,
        input_layout: InputLayout = "ntc",
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.num_groups = num_groups
        self.kernels_per_group = kernels_per_group
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
        check_integer("num_groups", self.num_groups, 2)
        check_integer("kernels_per_group", self.kernels_per_group, 2)

    def _fit(self, windows: CheckedWindows, usable: NDArray[np.intp]) -> None:
        super()._fit(windows, usable)
        rng = check_random_state(self.random_state)
        n_kernels = int(self.kernels_per_group)
        groups = []
        for differenced, n_groups in enumerate(self._numbers_of_groups()):
            dilations = _dilations(windows.n_timesteps - differenced)
            shape = (len(dilations), n_groups)
            kernels = _draw_kernels((*shape, n_kernels), rng)
            groups.append(KernelGroups(dilations, kernels, _draw_channels(shape, windows, rng)))
        self.groups_ = tuple(groups)

    def _numbers_of_groups(self) -> tuple[int, int]:
        """Return how many groups read the windows, and how many their differences."""
        of_differences = int(self.num_groups) // 2
        return int(self.num_groups) - of_differences, of_differences

    def _weights(self) -> dict[str, Tensor]:
        return {
            f"groups.{i}.{name}": tensor_of(getattr(groups, name))
            for i, groups in enumerate(self.groups_)
            for name in ("kernels", "channels")
        }

    def _restore(self, weights: Mapping[str, Tensor]) -> None:
        super()._restore(weights)
        restored = []
        for i, n_groups in enumerate(self._numbers_of_groups()):
            dilations = _dilations(self.n_timesteps_in_ - i)
            shape = (len(dilations), n_groups)
            of_kernels = (*shape, int(self.kernels_per_group), KERNEL_LENGTH)
            of_channels = (*shape, self.n_channels_in_)
            kernels = stored_array(weights, f"groups.{i}.kernels", np.float32, of_kernels)
            channels = stored_array(weights, f"groups.{i}.channels", np.bool_, of_channels)
            restored.append(KernelGroups(dilations, kernels, channels))
        self.groups_ = tuple(restored)

    def _convolutions(self, x: Tensor, observed: Tensor | None, n_pooled: int) -> Tensor:
        features = []
        for differenced, groups in enumerate(self.groups_):
            signal, seen = represent(x, observed, bool(differenced))
            for dilation, *drawn in zip(*groups, strict=True):
                weights, channels = (
                    torch.from_numpy(part).to(signal.device)
                    for part in (_weights(*drawn), drawn[1].astype(np.float32))
                )
                found = _compete(signal, weights, channels, int(dilation))
                outputs, noise = (first_windows(part, n_pooled) for part in found)
                features += _counts(outputs, noise, None if seen is None else seen[:n_pooled])
        return torch.cat(features, dim=1).sqrt_()

    def _n_outputs(self, n_timesteps: int) -> int:
        n_groups, n_kernels = self.groups_[0].kernels.shape[1:3]
        return n_groups * n_kernels * n_timesteps

    @property
    def _reach(self) -> int:
        return max(
            reach_of(int(groups.dilations[-1]), differenced=bool(differenced))
            for differenced, groups in enumerate(self.groups_)
        )

    @property
    def _n_features_out(self) -> int:
        return sum(2 * groups.kernels[..., 0].size for groups in self.groups_)

    @property
    def _spread_has_unit(self) -> NDArray[np.bool_]:
        # Per dilation: the roots of the largest outputs, then the roots of shares.
        numbers = [
            of_dilation[..., 0].size for groups in self.groups_ for of_dilation in groups.kernels
        ]
        return np.concatenate(
            [np.repeat([not self._standardizes, False], number) for number in numbers]
        )


def _dilations(n_timesteps: int) -> NDArray[np.int64]:
    """Return the powers of two at which a kernel is no longer than the window; at least 1."""
    most = max((n_timesteps - 1) // (KERNEL_LENGTH - 1), 1)
    return 2 ** np.arange(int(math.log2(most)) + 1, dtype=np.int64)


def _draw_kernels(shape: tuple[int, ...], rng: np.random.RandomState) -> NDArray[np.float32]:
    """Draw normal weights that add up to zero, and whose sizes add up to one."""
    kernels = rng.normal(size=(*shape, KERNEL_LENGTH))
    kernels -= kernels.mean(-1, keepdims=True)
    kernels /= np.abs(kernels).sum(-1, keepdims=True)
    return kernels.astype(np.float32)


def _draw_channels(
    shape: tuple[int, int], windows: CheckedWindows, rng: np.random.RandomState
) -> NDArray[np.bool_]:
    """Draw half of the channels for each group, at least two and at most eight."""
    n_channels = windows.n_channels
    number = min(max(n_channels // 2, 2), _MAX_CHANNELS, n_channels)
    order = rng.uniform(size=(*shape, n_channels)).argsort(-1)
    return order < number


def _weights(kernels: NDArray[np.float32], channels: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Weights of the differences between places, shape (n_groups, n_kernels, n_channels * 8).

    A kernel whose weights add up to zero sees differences alone: with sums W_j of the first
    weights, ``sum_j w_j x_j = sum_j W_j (x_j - x_{j+1})``.
    """
    of_steps = kernels.cumsum(-1)[..., :-1]
    weights = channels[:, None, :, None] * of_steps[:, :, None, :]
    return weights.reshape(*of_steps.shape[:2], -1).astype(np.float32)


def _compete(
    signal: Tensor, weights: Tensor, channels: Tensor, dilation: int
) -> tuple[Tensor, Tensor]:
    """Return the outputs of the kernels, and how far rounding may have moved them.

    They have the shapes (n_groups, n_kernels, n, n_timesteps) and (n_groups, n, n_timesteps).

    The differences of a constant stretch are zero, and so are its outputs: no rounding decides
    which kernel fits it best. Where channels cancel each other, rounding leaves outputs.
    """
    n, n_channels, n_timesteps = signal.shape
    reach = dilation * (KERNEL_LENGTH // 2)
    padded = torch.nn.functional.pad(signal, (reach, reach))
    places = padded.unfold(2, n_timesteps, dilation)  # (n, n_channels, 9, n_timesteps)
    steps = places[:, :, :-1] - places[:, :, 1:]
    columns = steps.permute(1, 2, 0, 3).reshape(n_channels * (KERNEL_LENGTH - 1), -1)
    outputs = multiply(weights.flatten(0, 1), columns).view(*weights.shape[:2], n, n_timesteps)
    largest = steps.abs().amax(2).transpose(0, 1).flatten(1)  # (n_channels, n * n_timesteps)
    # Infinite outputs stay decided, so that an error names their window.
    noise = (_ROUNDING * (channels @ largest)).clamp_(max=_LARGEST)
    return outputs, noise.view(len(channels), n, n_timesteps)


def _counts(outputs: Tensor, noise: Tensor, observed: Tensor | None) -> list[Tensor]:
    """Return the mean of the largest outputs, and the share of the smallest, per kernel.

    Outputs that differ by no more than `noise` are equal.
    """
    n, n_timesteps = outputs.shape[2:]
    largest, smallest = outputs.amax(1, keepdim=True), outputs.amin(1, keepdim=True)
    decided = largest - smallest > noise.unsqueeze(1)  # (n_groups, 1, n, n_timesteps)
    n_counted = outputs.new_full((n,), n_timesteps)
    if observed is not None:
        decided &= observed
        n_counted = observed.sum(-1).clamp_(min=1).to(outputs.dtype)
    # An output that does not count is compared with a value that it cannot have.
    smallest.masked_fill_(~decided, torch.nan)
    largest.masked_fill_(~decided, torch.nan)
    # A comparison that writes floats, and sums of floats, are faster than those of Booleans.
    fits = torch.empty_like(outputs)
    torch.eq(outputs, smallest, out=fits)
    lost = fits.sum(-1)
    torch.eq(outputs, largest, out=fits)
    won = fits.mul_(outputs).sum(-1).clamp_(min=0.0)
    # (n_groups, n_kernels, n) to (n, n_groups * n_kernels)
    return [(count / n_counted).flatten(0, 1).T for count in (won, lost)]
