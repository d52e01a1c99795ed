"""Fine-tuning of a pretrained encoder with targets, as a regressor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from sklearn.frozen import FrozenEstimator

from ._typing import BagPooling, InputLayout, PathLike, Pooling, Precision, RandomState
from .base import BaseWindowRegressor
from .base._finetuning import FineTuner


class FineTuneRegressor(FineTuner, BaseWindowRegressor):
    """Predict numbers from windows by a pretrained encoder that is fine-tuned with a new head.

    One target or several, such as heart rate, age and glucose: `y` has the shape (n_samples,) or
    (n_samples, n_targets). The targets are standardised for the training, each to mean 0 and
    standard deviation 1, so that all count alike and `lr` suits any units; predictions are in the
    units of `y`. The loss is the mean squared error. All else is as in
    :class:`~sklearn_pulse.FineTuneClassifier`: the pretrained encoder is copied, a linear map comes
    first if the windows have another number of channels, and encoder and head are trained together.

    Parameters
    ----------
    validation_fraction : float, default=0.0
        Fraction of the samples that is held out to validate on, or of the groups if `fit` is given
        `groups`. 0 holds out none; then `select` must be "last" and `patience` None, unless `fit`
        is given samples to validate on.

    Notes
    -----
    The paper fine-tunes classifiers only; the defaults are those of its classifier.

    Samples with the same values and the same targets count as one sample of their summed weight, so
    `sample_weight` and repetition are the same, and the order of samples does not matter, neither
    of `X` nor of `X_val`. The validation loss is the mean over batches, as in the published code,
    of which the last may be small.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn_pulse import FineTuneRegressor, PulseTransformer
    >>> rng = np.random.default_rng(0)
    >>> heart_rate = rng.uniform(50, 150, size=40)  # beats per minute
    >>> time = np.arange(64) / 16  # 4 seconds
    >>> X = np.sin(2 * np.pi * heart_rate[:, None] / 60 * time)[:, :, None]
    >>> pulse = PulseTransformer(embedding_dim=16, max_epochs=1, random_state=0).fit(X)
    >>> tuned = FineTuneRegressor(FrozenEstimator(pulse), lr=3e-3, random_state=0)
    >>> tuned.fit(X[:30], heart_rate[:30]).score(X[30:], heart_rate[30:]) > 0.8
    True
    """

    def __init__(
        self,
        pretrained: FrozenEstimator | PathLike | None = None,
        *,
        head_hidden_dim: int | None = 64,
        freeze_epochs: int = 0,
        select: Literal["last", "min_val"] = "last",
        embedding_dim: int = 320,
        encoder_hidden_dim: int = 64,
        encoder_depth: int = 10,
        pooling: Pooling = "max",
        max_epochs: int = 40,
        lr: float = 3e-4,
        weight_decay: float = 1e-6,
        lr_decay: float = 0.9999,
        batch_size: int = 30,
        validation_fraction: float = 0.0,
        patience: int | None = None,
        bag_pooling: BagPooling = "mean",
        checkpoint_dir: PathLike | None = None,
        precision: Precision = "float32",
        compile: bool = False,
        device: str | torch.device = "auto",
        num_threads: int | None = None,
        input_layout: InputLayout | None = None,
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
        callbacks: list[Any] | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.pretrained = pretrained
        self.head_hidden_dim = head_hidden_dim
        self.freeze_epochs = freeze_epochs
        self.select = select
        self.embedding_dim = embedding_dim
        self.encoder_hidden_dim = encoder_hidden_dim
        self.encoder_depth = encoder_depth
        self.pooling = pooling
        self.max_epochs = max_epochs
        self.lr = lr
        self.weight_decay = weight_decay
        self.lr_decay = lr_decay
        self.batch_size = batch_size
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.bag_pooling = bag_pooling
        self.checkpoint_dir = checkpoint_dir
        self.precision = precision
        self.compile = compile
        self.device = device
        self.num_threads = num_threads
        self.input_layout = input_layout
        self.sampling_rate = sampling_rate
        self.channel_names = channel_names
        self.callbacks = callbacks
        self.random_state = random_state
        self.verbose = verbose
