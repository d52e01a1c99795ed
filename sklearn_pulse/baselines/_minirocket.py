"""Features of random convolutions by MiniRocket, through sktime."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._data._windows import Block, CheckedWindows
from .._extras import needs
from .._parameters import check_integer, check_seed
from .._seeds import draw_seed, global_generator_kept
from .._threads import threads
from .._typing import BagPooling, InputLayout, RandomState
from ..base import complete_docstring
from ..features._base import BaseFeatureTransformer

_KERNEL_LENGTH = 9  # time steps; a shorter window is filled up by its last value


@complete_docstring
class MiniRocketTransformer(BaseFeatureTransformer):
    """Embed windows by the random convolutions of MiniRocket, through sktime.

    A strong control that trains no encoder. Fixed kernels of nine steps convolve the windows at
    many dilations. A feature is the share of the outputs of a kernel that lie above a bias, which
    is drawn from the windows of `fit`.

    Parameters
    ----------
    num_kernels : int, default=10_000
        Number of features, at least 84; it is rounded down to a multiple of 84.
    random_state : int, RandomState instance or None, default=None
        Seed of the windows, and of the channel subsets, that the biases are taken from.

    Attributes
    ----------
    rocket_ : object
        The fitted transformer of sktime: ``MiniRocket``, or ``MiniRocketMultivariate`` for
        several channels.

    See Also
    --------
    sklearn_pulse.RandomEncoderTransformer : An untrained encoder, a control too.
    sklearn_pulse.features.StatisticsTransformer : Moments and band powers of each channel.

    Notes
    -----
    MiniRocket knows no missing values: a window with some missing steps is an error. A window of
    a bag without an observed step is left out. All windows must have the length of those at
    `fit`.

    `fit` needs sktime and numba, and raises an ImportError that names the extra to install.

    References
    ----------
    Dempster, Schmidt and Webb, "MiniRocket", KDD 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.baselines import MiniRocketTransformer
    >>> X = np.random.default_rng(0).normal(size=(20, 64, 3))
    >>> MiniRocketTransformer(num_kernels=200, random_state=0).fit_transform(X).shape
    (20, 168)
    """

    _allow_nan = False
    _variable_length = False

    def __init__(
        self,
        *,
        num_kernels: int = 10_000,
        bag_pooling: BagPooling = "mean",
        input_layout: InputLayout = "ntc",
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.num_kernels = num_kernels
        self.bag_pooling = bag_pooling
        self.input_layout = input_layout
        self.sampling_rate = sampling_rate
        self.channel_names = channel_names
        self.random_state = random_state

    def _check_params(self) -> None:
        super()._check_params()
        check_integer("num_kernels", self.num_kernels, 84)
        check_seed("random_state", self.random_state)

    def _fit(self, windows: CheckedWindows, usable: NDArray[np.intp]) -> None:
        univariate, multivariate = _import_minirocket()
        rocket = univariate if windows.n_channels == 1 else multivariate
        X = np.concatenate([self._complete(block) for _, block in windows.blocks()])
        seed = draw_seed(self.random_state)
        fitted = rocket(int(self.num_kernels), n_jobs=1, random_state=seed)
        with global_generator_kept(), _threads_kept():  # sktime seeds the global generator
            fitted.fit(X)
        self.rocket_ = fitted

    def _features(self, block: Block) -> NDArray[np.float32]:
        features = np.zeros((len(block.x), self._n_features_out), dtype=np.float32)
        X = self._complete(block)
        if len(X):
            usable = slice(None) if block.observed is None else block.observed.any(1)
            with _threads_kept():
                features[usable] = self.rocket_.transform(X).to_numpy(dtype=np.float32)
        return features

    def _complete(self, block: Block) -> NDArray[np.float32]:
        """Return the windows with an observed step, channels first, at least one kernel long."""
        x = block.x
        if block.observed is not None:
            usable = block.observed.any(1)
            self._check_complete(block.observed[usable])
            x = x[usable]
        n_lacking = max(0, _KERNEL_LENGTH - x.shape[1])
        if n_lacking:
            x = np.pad(x, [(0, 0), (0, n_lacking), (0, 0)], mode="edge")
        return np.ascontiguousarray(x.swapaxes(1, 2), dtype=np.float32)

    @property
    def _n_features_out(self) -> int:
        return self.rocket_.num_kernels_

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "rocket_" in state:
            # numba compiles for writable arrays, and joblib's memory maps are read-only.
            writable = (np.require(array, requirements="W") for array in self.rocket_.parameters)
            self.rocket_.parameters = tuple(writable)


def _threads_kept() -> AbstractContextManager[None]:
    """Return a context that restores the number of torch threads, which numba changes."""
    return threads(torch.get_num_threads())


def _import_minirocket() -> tuple[Any, Any]:
    """Return sktime's transformers of one and of several channels."""
    with needs("MiniRocketTransformer needs sktime and numba", "benchmark"):
        import numba  # noqa: F401
        from sktime.transformations.rocket import MiniRocket, MiniRocketMultivariate
    return MiniRocket, MiniRocketMultivariate
