"""PULSE as a transformer of sktime."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Literal

import torch

from .._docstrings import described_parameters
from .._pulse import PulseTransformer
from .._typing import (
    BagPooling,
    Distributed,
    PathLike,
    Pooling,
    Precision,
    RandomState,
    Select,
)
from ._adapter import SMALL, PanelAdapter


class PulsePanelTransformer(PanelAdapter):
    """PULSE as a transformer of sktime, on panels.

    One encoder is trained on all instances, without labels. It embeds each instance as a row of
    `embedding_dim` numbers ("Primitives" in the terms of sktime).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    estimator_ : PulseTransformer
        The fitted transformer, with ``input_layout="nct"``. It takes "numpy3D" arrays, and has
        ``history_``, ``reconstruct`` and ``save_pretrained``.
    channel_names_in_ : list of str or None
        Names of the channels in `fit`, those of the panel or, if it has none, those that the
        transformer was given; None without either.
    unequal_length_ : bool
        Whether the instances of `fit` differed in length.
    input_layout_ : "nct"
        Layout of arrays, whatever that of `estimator_`: "numpy3D" has channels first.

    See Also
    --------
    PanelTransformer : The same adapter for every other transformer of the package.

    Notes
    -----
    The parameters are those of :class:`~sklearn_pulse.PulseTransformer`, with its defaults, except
    for three. There is no `input_layout`, since sktime's containers define their layout, no
    `warm_start`, since sktime's `fit` always starts afresh, and no `encoder`, since another
    transformer of the package is adapted by :class:`PanelTransformer`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pulse.panel import PulsePanelTransformer
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(12, 3, 40)), np.arange(12) % 2
    >>> pulse = PulsePanelTransformer(embedding_dim=8, max_epochs=1, random_state=0)
    >>> classifier = pulse * LogisticRegression()
    >>> classifier.fit(X, y).predict(X).shape
    (12,)
    """

    def __init__(
        self,
        *,
        embedding_dim: int = 320,
        encoder_hidden_dim: int = 64,
        encoder_depth: int = 10,
        pooling: Pooling = "max",
        time_varying_dim: int = 1,
        time_varying_pool: int = 1,
        init_kernel_size: int = 3,
        init_dilation: int = 1,
        init_hidden_dim: int = 64,
        shared_encoder: bool = False,
        gru_num_layers: int = 2,
        gru_hidden_dim: int = 64,
        observation: Literal["mlp", "linear"] = "mlp",
        n_crops: int = 2,
        crop: Literal["suffix", "fixed"] = "suffix",
        crop_length: int | float | None = None,
        min_crop_length: int | float = 0.5,
        pairing: Literal["crops", "random"] = "crops",
        loss_reduction: Literal["published", "valid"] = "published",
        dropout: float = 0.1,
        theta_dropout: Literal["step", "sequence"] = "step",
        max_epochs: int = 100,
        lr: float = 1e-3,
        weight_decay: float = 1e-5,
        batch_size: int = 128,
        gradient_clip_value: float | None = 5.0,
        validation_fraction: float = 0.15,
        validation_every: int = 2,
        deterministic_validation: bool = True,
        select: Select = "trailing_mean",
        bag_pooling: BagPooling = "mean",
        checkpoint_dir: PathLike | None = None,
        precision: Precision = "float32",
        compile: bool = False,
        device: str | torch.device = "auto",
        num_threads: int | None = None,
        distributed: Distributed = False,
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
        callbacks: list[Any] | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.embedding_dim = embedding_dim
        self.encoder_hidden_dim = encoder_hidden_dim
        self.encoder_depth = encoder_depth
        self.pooling = pooling
        self.time_varying_dim = time_varying_dim
        self.time_varying_pool = time_varying_pool
        self.init_kernel_size = init_kernel_size
        self.init_dilation = init_dilation
        self.init_hidden_dim = init_hidden_dim
        self.shared_encoder = shared_encoder
        self.gru_num_layers = gru_num_layers
        self.gru_hidden_dim = gru_hidden_dim
        self.observation = observation
        self.n_crops = n_crops
        self.crop = crop
        self.crop_length = crop_length
        self.min_crop_length = min_crop_length
        self.pairing = pairing
        self.loss_reduction = loss_reduction
        self.dropout = dropout
        self.theta_dropout = theta_dropout
        self.max_epochs = max_epochs
        self.lr = lr
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.gradient_clip_value = gradient_clip_value
        self.validation_fraction = validation_fraction
        self.validation_every = validation_every
        self.deterministic_validation = deterministic_validation
        self.select = select
        self.bag_pooling = bag_pooling
        self.checkpoint_dir = checkpoint_dir
        self.precision = precision
        self.compile = compile
        self.device = device
        self.num_threads = num_threads
        self.distributed = distributed
        self.sampling_rate = sampling_rate
        self.channel_names = channel_names
        self.callbacks = callbacks
        self.random_state = random_state
        self.verbose = verbose
        super().__init__()

    def _build_estimator(self) -> PulseTransformer:
        return PulseTransformer(**self.get_params(deep=False), input_layout="nct")

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return small parameters for sktime's tests.

        Parameters
        ----------
        parameter_set : str, default="default"
            Name of the set of parameters; there is only the default set.

        Returns
        -------
        list of dict
            Values for the parameters of `__init__`.
        """
        return [
            SMALL | {"init_hidden_dim": 4, "gru_hidden_dim": 4},
            SMALL | {"n_crops": 0, "pooling": "mean", "crop": "fixed"},
        ]


if PulsePanelTransformer.__doc__:  # python -OO drops docstrings
    # Fill in the descriptions of the shared parameters, so that they are written only once.
    _described = described_parameters(PulseTransformer)
    PulsePanelTransformer.__doc__ = inspect.cleandoc(PulsePanelTransformer.__doc__).replace(
        "{parameters}",
        "\n".join(_described[name] for name in inspect.signature(PulsePanelTransformer).parameters),
    )
