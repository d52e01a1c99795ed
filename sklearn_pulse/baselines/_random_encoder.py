"""Untrained encoder: the control of every comparison."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike

from .._commit import unchanged_on_failure
from .._data._scale import warn_of_scale
from .._data._validation import check_windows
from .._seeds import draw_seed
from .._typing import BagPooling, InputLayout, Pooling, Precision, RandomState
from ..base import BaseEncoderTransformer, complete_docstring
from ..networks import SystemEncoder
from ..objectives import Objective


@complete_docstring
class UntrainedEncoder(Objective):
    """Encoder without a loss.

    Parameters
    ----------
    n_channels : int
        Number of channels of the windows.
    """

    def __init__(
        self,
        n_channels: int,
        *,
        embedding_dim: int = 320,
        encoder_hidden_dim: int = 64,
        encoder_depth: int = 10,
        pooling: Pooling = "max",
        seed: int = 0,
    ) -> None:
        super().__init__(seed)
        self.encoder = SystemEncoder(
            n_channels, encoder_hidden_dim, embedding_dim, encoder_depth, pooling
        )


class RandomEncoderTransformer(BaseEncoderTransformer):
    """Embed windows by PULSE's encoder as it was initialised.

    This is a strong baseline: methods of random kernels are little more than random dilated
    convolutions with a maximum over time. With the same `random_state` and sizes, the weights are
    those that :class:`~sklearn_pulse.PulseTransformer` starts from.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed of the weights.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.baselines import RandomEncoderTransformer
    >>> X = np.random.default_rng(0).normal(size=(20, 64, 3))
    >>> RandomEncoderTransformer(embedding_dim=16, random_state=0).fit_transform(X).shape
    (20, 16)
    """

    _objective_class = UntrainedEncoder
    _objective_names = ("embedding_dim", "encoder_hidden_dim", "encoder_depth", "pooling")

    def __init__(
        self,
        *,
        embedding_dim: int = 320,
        encoder_hidden_dim: int = 64,
        encoder_depth: int = 10,
        pooling: Pooling = "max",
        bag_pooling: BagPooling = "mean",
        precision: Precision = "float32",
        compile: bool = False,
        device: str | torch.device = "auto",
        num_threads: int | None = None,
        input_layout: InputLayout = "ntc",
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.embedding_dim = embedding_dim
        self.encoder_hidden_dim = encoder_hidden_dim
        self.encoder_depth = encoder_depth
        self.pooling = pooling
        self.bag_pooling = bag_pooling
        self.precision = precision
        self.compile = compile
        self.device = device
        self.num_threads = num_threads
        self.input_layout = input_layout
        self.sampling_rate = sampling_rate
        self.channel_names = channel_names
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: None = None) -> RandomEncoderTransformer:
        """Initialise the encoder for the channels of `X`.

        Parameters
        ----------
        y : Ignored
            Present for pipelines.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_params()
        with unchanged_on_failure(self):
            windows = check_windows(self, X, reset=True)
            windows.scan()
            warn_of_scale(windows, np.arange(len(windows)))
            seed = draw_seed(self.random_state)
            self.net_ = self._build_net(seed, verbose=0).initialize()
        return self
