"""Controls of the comparison whose features come from aeon: MultiRocket-Hydra and QUANT."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._data._windows import Block, CheckedWindows
from .._extras import needs
from .._parameters import check_seed
from .._seeds import draw_seed, global_generator_kept
from .._threads import threads
from ..base import complete_docstring
from ..features._base import BaseFeatureTransformer


class _AeonTransformer(BaseFeatureTransformer):
    """Features of aeon, with the input contract of this package.

    Windows must be complete, as long as those at `fit`, and at least `_shortest` steps long.
    """

    _allow_nan = False
    _variable_length = False
    _shortest = 1

    def __init__(
        self,
        *,
        bag_pooling: str = "mean",
        input_layout: str = "ntc",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.bag_pooling = bag_pooling
        self.input_layout = input_layout
        self.random_state = random_state

    def _check_params(self) -> None:
        super()._check_params()
        check_seed("random_state", self.random_state)

    def _fit(self, windows: CheckedWindows, usable: NDArray[np.intp]) -> None:
        if windows.n_timesteps < self._shortest:
            raise ValueError(
                f"X has windows of {windows.n_timesteps} time steps, but {type(self).__name__}"
                f" needs at least {self._shortest}: cut longer windows."
            )
        X = np.concatenate([self._complete(block) for _, block in windows.blocks()])
        seed = draw_seed(self.random_state)
        with _global_state():
            self._fit_aeon(X, seed)
            self.n_features_out_ = self._compute(X[:1]).shape[1]

    @abstractmethod
    def _fit_aeon(self, X: NDArray[np.float32], seed: int) -> None:
        """Fit aeon's transformers on windows of shape (n, n_channels, n_timesteps)."""

    @abstractmethod
    def _compute(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the features of windows of shape (n, n_channels, n_timesteps)."""

    def _features(self, block: Block) -> NDArray[np.float32]:
        with _global_state():
            return self._compute(self._complete(block))

    def _complete(self, block: Block) -> NDArray[np.float32]:
        """Return the windows, channels first; raise if a time step is missing."""
        self._check_complete(block.observed)
        return np.ascontiguousarray(block.x.swapaxes(1, 2))

    @property
    def _n_features_out(self) -> int:
        return self.n_features_out_


@complete_docstring
class MultiRocketHydraTransformer(_AeonTransformer):
    """Features of MultiRocket and of Hydra, side by side, through aeon.

    MultiRocket pools random convolutions of the windows and of their differences in four ways.
    Hydra counts which kernel of a group fits each time step best or worst. As in aeon's
    classifier, the features of Hydra pass a scaler for sparse counts, which is fitted on the
    windows of `fit`.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed of the kernels and of their biases.

    Attributes
    ----------
    hydra_ : object
        The fitted ``HydraTransformer`` of aeon.
    multirocket_ : object
        The fitted ``MultiRocket`` of aeon.
    n_features_out_ : int
        Number of features.

    Notes
    -----
    Windows must be complete and of one length, at least ten time steps.

    References
    ----------
    Dempster, Schmidt and Webb, "Hydra", Data Mining and Knowledge Discovery 2023.

    Tan, Dempster, Bergmeir and Webb, "MultiRocket", Data Mining and Knowledge Discovery 2022.
    """

    _shortest = 10

    def _fit_aeon(self, X: NDArray[np.float32], seed: int) -> None:
        convolution, _ = _import_aeon()
        X = X if len(X) > 1 else X.repeat(2, axis=0)  # aeon takes one window for one long series
        self.hydra_ = convolution.HydraTransformer(random_state=seed, output_type="numpy").fit(X)
        self.multirocket_ = convolution.MultiRocket(random_state=seed).fit(X)
        counts = _root_of_counts(self.hydra_.transform(X))
        # The scaler of Hydra: a column that is rarely above zero is not blown up.
        self._center = counts.mean(0)
        self._scale = counts.std(0, ddof=1) + (counts == 0).mean(0) ** 4 + 1e-8

    def _compute(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        counts = _root_of_counts(self.hydra_.transform(X))
        scaled = (counts - self._center) * (counts != 0) / self._scale
        pooled = self.multirocket_.transform(X)
        return np.concatenate([scaled, pooled], axis=1, dtype=np.float32)


@complete_docstring
class QuantTransformer(_AeonTransformer):
    """Quantiles of nested intervals of windows, their differences and spectra, through aeon.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Not used: the features are not random.

    Attributes
    ----------
    quant_ : object
        The fitted ``QUANTTransformer`` of aeon.
    n_features_out_ : int
        Number of features.

    Notes
    -----
    Windows must be complete and of one length, at least three time steps.

    References
    ----------
    Dempster, Schmidt and Webb, "QUANT", Data Mining and Knowledge Discovery 2024.
    """

    _shortest = 3

    def _fit_aeon(self, X: NDArray[np.float32], seed: int) -> None:
        _, interval = _import_aeon()
        with _quiet():
            self.quant_ = interval.QUANTTransformer().fit(X)

    def _compute(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        with _quiet():
            return np.asarray(self.quant_.transform(X), dtype=np.float32)


def _root_of_counts(counts: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the square roots of Hydra's counts, where negative sums count as zero."""
    return np.sqrt(np.maximum(counts, 0))


@contextmanager
def _global_state() -> Iterator[None]:
    """Leave as they were what aeon sets: global generators of numpy and torch, and torch's threads.

    Numba sets the threads of OpenMP, which torch has too, when it first runs in parallel.
    """
    with (
        global_generator_kept(),
        threads(torch.get_num_threads()),
        torch.random.fork_rng(devices=[]),
    ):
        yield


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide numpy's warning that aeon calls it on tensors of torch."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="__array_wrap__", category=DeprecationWarning)
        yield


def _import_aeon() -> tuple[Any, Any]:
    """Return aeon's modules of convolutions and of intervals."""
    with needs("MultiRocket-Hydra and QUANT need aeon", "controls"):
        from aeon.transformations.collection import convolution_based, interval_based
    return convolution_based, interval_based
