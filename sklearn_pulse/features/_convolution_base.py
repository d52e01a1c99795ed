"""Base of features of convolutions, computed on a few windows at a time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._data._windows import Block
from .._parameters import check_boolean, check_seed, check_threads
from .._threads import threads
from .._training._device import resolve_device
from ._base import CHUNK, BaseFeatureTransformer
from ._convolutions import KERNEL_LENGTH
from ._standardized import standardized

# Outputs of convolutions computed at a time: few enough for the cache of a processor, and so many
# that threads, which share the interpreter, seldom wait for one another.
_BLOCK_OUTPUTS = {"cpu": 2**19, "cuda": 2**26, "mps": 2**24}


class BaseConvolutionTransformer(BaseFeatureTransformer):
    """Features of convolutions with kernels of nine places.

    A subclass has the parameters `standardize`, `device`, `num_threads` and `random_state`, and
    computes the features of a few windows in `_convolutions`. `_standardizes` is `standardize` as
    it was at `fit`.
    """

    standardize: bool
    device: str | torch.device
    num_threads: int | None
    random_state: int | np.random.RandomState | None
    _standardizes: bool

    def _check_params(self) -> None:
        super()._check_params()
        check_boolean("standardize", self.standardize)
        resolve_device(self.device)
        check_seed("random_state", self.random_state)

    def _check_params_read_later(self) -> None:
        super()._check_params_read_later()
        check_threads(self.num_threads)

    def _fit_shape(self) -> None:
        self._standardizes = bool(self.standardize)

    @abstractmethod
    def _convolutions(self, x: Tensor, observed: Tensor | None, n_pooled: int) -> Tensor:
        """Return all features of the first `n_pooled` windows, (n_pooled, n_features).

        `x` has the shape (n, n_timesteps, n_channels), `observed` (n, n_timesteps).
        """

    @abstractmethod
    def _n_outputs(self, n_timesteps: int) -> int:
        """Return the number of outputs of a window that are in memory at a time."""

    @property
    @abstractmethod
    def _reach(self) -> int:
        """Number of time steps that the longest kernel reads."""

    def _check_input_length(self, n_timesteps: int) -> None:
        needed = min(self._reach, self.n_timesteps_in_)
        if n_timesteps < needed:
            raise ValueError(
                f"X has windows of {n_timesteps} time steps, but the kernels of fit span"
                f" {self._reach}: pass at least {needed} steps, or fit on shorter windows."
            )

    def _read(self, block: Block) -> Block:
        """Return windows as the kernels read them."""
        return standardized(block) if self._standardizes else block

    def _features(self, block: Block) -> NDArray[np.float32]:
        block = self._read(block)
        device = resolve_device(self.device)
        size = self._block_size(block.x.shape[1], device)
        features = np.empty((len(block.x), self._n_features_out), dtype=np.float32)

        def compute(start: int) -> None:
            rows = slice(start, start + size)
            x = torch.from_numpy(block.x[rows]).to(device)
            observed = None
            if block.observed is not None and not block.observed[rows].all():
                observed = torch.from_numpy(block.observed[rows]).to(device)
            # Products of PyTorch round differently for different shapes; zeros fill up the last
            # rows, so that a row does not depend on the number of rows. What is pooled from the
            # products is computed row by row on a CPU, where the zeros are left out.
            n_pooled = len(x) if device.type == "cpu" else size
            seen = None if observed is None else _filled(observed, size)
            with torch.inference_mode(), torch.autocast(device.type, enabled=False):
                pooled = self._convolutions(_filled(x, size), seen, n_pooled)
            features[rows] = pooled[: len(x)].cpu().numpy()

        with threads(self.num_threads):
            _for_each(compute, range(0, len(block.x), size), parallel=device.type == "cpu")
        return features

    def _block_size(self, n_timesteps: int, device: torch.device) -> int:
        """Return the number of windows that are convolved at a time.

        The last windows are filled up to this number, so it is at most the number of windows that a
        closed form reads at a time.
        """
        fitting = _BLOCK_OUTPUTS[device.type] // self._n_outputs(n_timesteps)
        return min(max(1, fitting), CHUNK)


def represent(
    x: Tensor, observed: Tensor | None, differenced: bool
) -> tuple[Tensor, Tensor | None]:
    """Return windows or their differences, channels first, and which steps are observed.

    A missing step has the value of the straight line between its observed neighbours; before the
    first observed step and after the last it is zero, as outside of the window. A difference that
    needs a missing step is zero.

    Parameters
    ----------
    x : Tensor of shape (n, n_timesteps, n_channels)
        Windows, zero at missing steps.
    observed : Tensor of bool, of shape (n, n_timesteps), or None
        Observed steps; None if all are.
    differenced : bool
        Whether to take the differences of neighbouring steps.

    Returns
    -------
    signal : Tensor of shape (n, n_channels, n_timesteps), one step less if differenced
        The windows. One step has no difference, and gives a zero that is not observed.
    observed : Tensor of bool, or None
        Observed steps of `signal`; a difference needs both.

    Examples
    --------
    >>> import torch
    >>> represent(torch.tensor([[[1.0], [3.0], [6.0]]]), None, True)[0]
    tensor([[[2., 3.]]])
    """
    signal = x.mT.contiguous()
    if not differenced:
        return (signal if observed is None else _bridged(signal, observed)), observed
    if x.shape[1] == 1:
        return torch.zeros_like(signal), x.new_zeros(x.shape[:2], dtype=torch.bool)
    signal = signal.diff()
    if observed is None:
        return signal, None
    observed = observed[:, 1:] & observed[:, :-1]
    return signal * observed.unsqueeze(1), observed


def _bridged(signal: Tensor, observed: Tensor) -> Tensor:
    """Bridge the missing steps between observed ones by straight lines, shape (n, channels, time).

    Else a kernel would read an offset of the signal as a spike at each missing step.
    """
    n_timesteps = signal.shape[2]
    time = torch.arange(n_timesteps, device=signal.device).expand_as(observed)
    before = torch.where(observed, time, -1).cummax(1).values  # -1 before the first observed step
    after = torch.where(observed, time, n_timesteps).flip(1).cummin(1).values.flip(1)
    inside = ~observed & (before >= 0) & (after < n_timesteps)
    # Cast first: a quotient of integers has the default dtype, which a user may set.
    share = ((time - before).to(signal.dtype) / (after - before).clamp(min=1)).unsqueeze(1)
    left, right = (
        signal.gather(2, step.clamp(0, n_timesteps - 1).unsqueeze(1).expand_as(signal))
        for step in (before, after)
    )
    return torch.where(inside.unsqueeze(1), left + share * (right - left), signal)


def reach_of(dilation: int, *, differenced: bool) -> int:
    """Return the number of time steps that a kernel reads."""
    return dilation * (KERNEL_LENGTH - 1) + 1 + differenced


def _for_each(compute: Callable[[int], None], starts: range, parallel: bool) -> None:
    """Compute blocks of windows, on a CPU side by side on the present number of threads.

    A thread per block uses the cores better than threads within the short operations on a block.
    A block that is alone has one thread too: where other work shares the cores, threads within
    its operations wait for each other for seconds.
    """
    number = min(torch.get_num_threads(), len(starts)) if parallel else 1
    if number <= 1:
        with threads(1 if parallel else None):
            for start in starts:
                compute(start)
        return
    # A new thread does not inherit the number of threads of PyTorch.
    pool = ThreadPoolExecutor(number, initializer=torch.set_num_threads, initargs=(1,))
    with threads(1), pool:
        list(pool.map(compute, starts))


def _filled(x: Tensor, size: int) -> Tensor:
    """Append zeros up to `size` rows."""
    if len(x) == size:
        return x
    return torch.cat([x, x.new_zeros(size - len(x), *x.shape[1:])])
