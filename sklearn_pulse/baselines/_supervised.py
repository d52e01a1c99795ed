"""Supervised baseline: encoder and linear head, trained together from scratch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._typing import (
    BagPooling,
    ClassWeight,
    InputLayout,
    PathLike,
    Pooling,
    Precision,
    RandomState,
    Select,
)
from ..base import BaseWindowClassifier, check_boolean


class SupervisedClassifier(BaseWindowClassifier):
    """Classify windows by an encoder and a head that are trained with labels, from scratch.

    The encoder is that of :class:`~sklearn_pulse.PulseTransformer`, the head a linear map of its
    embedding, and the loss the cross-entropy. A pretraining is worth its effort if it does better
    than this classifier. Pass few windows for the semi-supervised comparison, and all validation
    windows as `X_val` and `y_val`, as published.

    Parameters
    ----------
    train_head : bool, default=True
        Whether the head is trained too. False leaves the head as it was initialised, and the
        encoder alone adapts to it: the published behaviour.
    batch_size : int, default=64
        Number of distinct samples per training step.
    validation_fraction : float, default=0.15
        Fraction of the samples that is held out to validate on: of each class as near to it as
        leaves a sample to train on, or of the groups if `fit` is given `groups`. If no sample is
        held out, as for 0, the last weights are kept; ``select="min_val"`` refuses 0.

    Notes
    -----
    Source: paper, Section 5.2. The head predicts; no probe is fitted.

    A draw of few labels may leave a class out. The classifier then does not know this class, and
    refuses a `y_val` that holds it: leave its samples out of `X_val` and `y_val`, or draw the
    labels by :func:`~sklearn_pulse.model_selection.mask_labels`, which keeps some labels of each
    class.

    Samples with the same values and the same label count as one sample of their summed weight, so
    `sample_weight` and repetition are the same, and the order of samples does not matter, neither
    of `X` nor of `X_val`. The validation loss is the mean over batches, as in the published code,
    of which the last may be small.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.baselines import SupervisedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 32, 2)), np.repeat(["calm", "active"], 20)
    >>> X[y == "active"] *= 4
    >>> small = {"embedding_dim": 16, "encoder_hidden_dim": 16, "encoder_depth": 3}
    >>> supervised = SupervisedClassifier(**small, max_epochs=20, lr=1e-2, random_state=0)
    >>> supervised.fit(X[::2], y[::2]).score(X[1::2], y[1::2])
    1.0
    """

    _objective_names = (*BaseWindowClassifier._objective_names, "train_head")
    _selections = {"trailing_mean": "trailing_mean", "min_val": "min_val", "last": None}

    def __init__(
        self,
        *,
        embedding_dim: int = 320,
        encoder_hidden_dim: int = 64,
        encoder_depth: int = 10,
        pooling: Pooling = "max",
        head_hidden_dim: int | None = None,
        train_head: bool = True,
        max_epochs: int = 100,
        lr: float = 1e-3,
        weight_decay: float = 1e-5,
        batch_size: int = 64,
        gradient_clip_value: float | None = None,
        class_weight: ClassWeight = None,
        unlabeled_label: int | str | None = -1,
        validation_fraction: float = 0.15,
        validation_every: int = 2,
        select: Select = "trailing_mean",
        patience: int | None = None,
        bag_pooling: BagPooling = "mean",
        checkpoint_dir: PathLike | None = None,
        precision: Precision = "float32",
        compile: bool = False,
        device: str | torch.device = "auto",
        num_threads: int | None = None,
        input_layout: InputLayout = "ntc",
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
        self.head_hidden_dim = head_hidden_dim
        self.train_head = train_head
        self.max_epochs = max_epochs
        self.lr = lr
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.gradient_clip_value = gradient_clip_value
        self.class_weight = class_weight
        self.unlabeled_label = unlabeled_label
        self.validation_fraction = validation_fraction
        self.validation_every = validation_every
        self.select = select
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

    def _check_params(self) -> None:
        super()._check_params()
        check_boolean("train_head", self.train_head)

    def _hold_out(
        self, y: NDArray[np.intp], groups: NDArray[Any] | None, seed: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        if groups is not None:
            return super()._hold_out(y, groups, seed)
        rng = np.random.default_rng(seed)
        held_out = []
        for code in np.unique(y):
            rows = rng.permutation(np.flatnonzero(y == code))
            n_held_out = round(self.validation_fraction * len(rows))
            held_out.append(rows[: min(n_held_out, len(rows) - 1)])
        valid = np.sort(np.concatenate(held_out))
        return np.setdiff1d(np.arange(len(y)), valid), valid
