"""Fine-tuning of a pretrained encoder with labels, as a classifier."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted
from skorch.callbacks import LRScheduler
from torch.optim.lr_scheduler import ExponentialLR

from ._data._labeled import LabeledWindows
from ._data._labels import class_weights
from .base import (
    BaseEncoderTransformer,
    BaseWindowClassifier,
    Callbacks,
    Parts,
    WindowBatches,
    WindowEmbedder,
    check_integer,
    check_option,
    check_real,
)
from .base._typing import (
    BagPooling,
    ClassWeight,
    InputLayout,
    PathLike,
    Pooling,
    Precision,
    RandomState,
)
from .evaluation import make_linear_probe
from .objectives import Source

_ENCODER_PARAMS = ("embedding_dim", "encoder_hidden_dim", "encoder_depth", "pooling")


class FineTuneClassifier(BaseWindowClassifier):
    """Classify windows by a pretrained encoder that is fine-tuned with a new head.

    The pretrained encoder is copied, so the estimator that was passed stays as it is. If the
    windows have another number of channels than those of the pretraining, a linear map of each step
    comes first. A head of two layers with a tanh between them follows, and all parts are trained
    together on the cross-entropy. The defaults are the published settings for Epilepsy, with
    batches of 30; the published batches for Gesture hold 100. Windows may be of another length than
    in pretraining.

    Parameters
    ----------
    pretrained : FrozenEstimator, path-like or None, default=None
        The encoder to start from: ``FrozenEstimator(transformer)`` around a fitted transformer of
        this package, the folder of a saved transformer, or None, which trains a new encoder from
        scratch. A bare transformer is refused: scikit-learn's `clone`, and with it every search and
        cross-validation, would drop its fit.
    freeze_epochs : int, default=0
        Number of epochs at the start in which only the head, and the map of the channels, are
        trained.
    select : {"last", "best_val"}, default="last"
        Epoch whose weights are kept: the last epoch, as in the published code, or the epoch of the
        lowest validation loss.
    score_with : {"head", "probe"}, default="head"
        Classifier that predicts: the head, or a linear probe fitted on the fine-tuned embeddings of
        `X` (as for the published table). Both use `class_weight`; if it is None, the probe balances
        its classes.
    embedding_dim : int, default=320
        Width of the embedding of a new encoder. With `pretrained` the encoder keeps its width, and
        another value here is an error.
    encoder_hidden_dim : int, default=64
        Width of the residual blocks of a new encoder. With `pretrained` the encoder keeps its
        width, and another value here is an error.
    encoder_depth : int, default=10
        Number of residual blocks of a new encoder before the last block. With `pretrained` the
        encoder keeps its depth, and another value here is an error.
    pooling : {"max", "mean"}, default="max"
        How a new encoder pools its output over time. With `pretrained` the encoder keeps its
        pooling, and another value here is an error.
    max_epochs : int, default=40
        Number of passes through the training samples.
    lr : float, default=3e-4
        Learning rate of Adam in the first step; `lr_decay` lowers it.
    weight_decay : float, default=1e-6
        L2 penalty, which is added to the gradient before Adam scales it (not decoupled).
    lr_decay : float, default=0.9999
        Factor that multiplies the learning rate after each batch; 1 keeps it constant.
    batch_size : int, default=30
        Number of distinct samples per training step.
    validation_fraction : float, default=0.0
        Fraction of the samples that is held out to validate on, the same fraction of every class,
        or of the groups if `fit` is given `groups`. 0 holds out none, as published; then `select`
        must be "last" and `patience` None, unless `fit` is given samples to validate on.

    Attributes
    ----------
    encoder_ : torch.nn.Module
        The fine-tuned encoder; ``net_.module_.in_head`` is the map of the channels before it.
    probe_ : sklearn.pipeline.Pipeline
        The probe on the output of `transform`; only with ``score_with="probe"``.

    Notes
    -----
    Source: paper, Section 5.3 and Appendix F. The paper speaks of a weight decay of 1e-5 and of
    the best validation epoch for Epilepsy; the published code uses 1e-6, trains on the training
    and validation parts together, keeps the last epoch and scores by a linear probe. The defaults
    are those of the code, except for `score_with`. Pass both parts as `X`.

    Samples with the same values and the same label count as one sample of their summed weight, so
    `sample_weight` and repetition are the same, and the order of samples does not matter.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn_pulse import FineTuneClassifier, PulseTransformer
    >>> rng = np.random.default_rng(0)
    >>> unlabeled = rng.normal(size=(20, 64, 6))
    >>> pulse = PulseTransformer(embedding_dim=16, max_epochs=1, random_state=0).fit(unlabeled)
    >>> X, y = rng.normal(size=(12, 48, 3)), np.repeat(["left", "right"], 6)
    >>> X[y == "right"] *= 4  # three channels of another length, and two classes
    >>> gesture = FineTuneClassifier(FrozenEstimator(pulse), random_state=0).fit(X, y)
    >>> gesture.score(X, y)
    1.0
    """

    _objective_names = (*BaseWindowClassifier._objective_names, "freeze_epochs")
    _optimizer = torch.optim.Adam

    def __init__(
        self,
        pretrained: FrozenEstimator | PathLike | None = None,
        *,
        head_hidden_dim: int | None = 64,
        freeze_epochs: int = 0,
        select: Literal["last", "best_val"] = "last",
        score_with: Literal["head", "probe"] = "head",
        embedding_dim: int = 320,
        encoder_hidden_dim: int = 64,
        encoder_depth: int = 10,
        pooling: Pooling = "max",
        max_epochs: int = 40,
        lr: float = 3e-4,
        weight_decay: float = 1e-6,
        lr_decay: float = 0.9999,
        batch_size: int = 30,
        class_weight: ClassWeight = None,
        validation_fraction: float = 0.0,
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
        self.pretrained = pretrained
        self.head_hidden_dim = head_hidden_dim
        self.freeze_epochs = freeze_epochs
        self.select = select
        self.score_with = score_with
        self.embedding_dim = embedding_dim
        self.encoder_hidden_dim = encoder_hidden_dim
        self.encoder_depth = encoder_depth
        self.pooling = pooling
        self.max_epochs = max_epochs
        self.lr = lr
        self.weight_decay = weight_decay
        self.lr_decay = lr_decay
        self.batch_size = batch_size
        self.class_weight = class_weight
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

    def _check_params(self) -> None:
        super()._check_params()
        check_integer("freeze_epochs", self.freeze_epochs, 0)
        check_option("score_with", self.score_with, ("head", "probe"))
        check_real("lr_decay", self.lr_decay, 0.0, 1.0, open_minimum=True, open_maximum=False)

    def _load_source(self, n_timesteps: int) -> Source | None:
        self._variable_length, self._n_timesteps_before = True, 0
        if self.pretrained is None:
            return None
        transformer = _load_pretrained(self.pretrained)
        self._check_encoder_params(transformer)
        fitted = transformer.n_timesteps_in_
        self._variable_length = transformer._variable_length
        if not self._variable_length and n_timesteps != fitted:
            raise ValueError(
                f"X has windows of {n_timesteps} time steps, but the pretrained"
                f" {type(transformer).__name__} was fitted on windows of {fitted} and takes no"
                f" other length: cut X into windows of {fitted} steps."
            )
        self._n_timesteps_before = fitted or 0
        return Source(
            copy.deepcopy(transformer.net_.module_),
            transformer.n_channels_in_,
            transformer._n_features_out,
            transformer._min_batch_size,
        )

    def _check_encoder_params(self, transformer: WindowEmbedder) -> None:
        """Raise if a parameter asks for another encoder than the pretrained one."""
        signature = inspect.signature(type(self).__init__).parameters
        for name in _ENCODER_PARAMS:
            asked = getattr(self, name)
            if asked not in (signature[name].default, getattr(transformer, name, asked)):
                raise ValueError(
                    f"{name}={asked!r}, but the pretrained encoder has"
                    f" {getattr(transformer, name)!r}: leave {name} at its default, or set"
                    " pretrained=None to train a new encoder."
                )

    def _identity(self) -> dict[str, Any]:
        identity = super()._identity()
        if self.pretrained is not None:
            # Its weights are among those that the run starts from, wherever they were loaded from.
            source = _load_pretrained(self.pretrained)
            identity["pretrained"] = (type(source), source._objective_params())
        return identity

    def _schedule(self, train: WindowBatches) -> Callbacks:
        decay = LRScheduler(ExponentialLR, step_every="batch", gamma=self.lr_decay)
        return [("lr_scheduler", decay)]

    def _after_training(self, parts: Parts) -> None:
        self.__dict__.pop("probe_", None)
        if self.score_with == "head":
            return
        labeled: LabeledWindows = parts.samples
        embedding = self._embed(labeled.windows)[labeled.samples].astype(np.float64)
        # Without class_weight the probe balances its classes. The weights are computed here, since
        # "balanced" ignores sample weights in older versions of scikit-learn.
        class_weight = "balanced" if self.class_weight is None else self.class_weight
        by_class = class_weights(class_weight, self.classes_, labeled.y, labeled.weight)
        self.probe_ = _fit_probe(
            embedding,
            self.classes_[labeled.y],
            labeled.weight,
            dict(zip(self.classes_, by_class, strict=True)),
        )

    def _probabilities(self, embedding: NDArray[np.float32]) -> NDArray[np.float64]:
        check_option("score_with", self.score_with, ("head", "probe"))
        if self.score_with == "head":
            return super()._probabilities(embedding)
        if not hasattr(self, "probe_"):
            raise ValueError(
                "score_with='probe' was set after a fit with 'head', which fits no probe: fit"
                " again."
            )
        return self.probe_.predict_proba(embedding.astype(np.float64))


def _load_pretrained(pretrained: Any) -> WindowEmbedder:
    """Return the fitted transformer that the parameter `pretrained` stands for."""
    if isinstance(pretrained, str | os.PathLike):
        return BaseEncoderTransformer.from_pretrained(pretrained, device="cpu")
    if isinstance(pretrained, WindowEmbedder):
        raise TypeError(
            f"pretrained is a bare {type(pretrained).__name__}, whose fit scikit-learn's clone"
            " would drop: pass sklearn.frozen.FrozenEstimator(transformer)."
        )
    if not isinstance(pretrained, FrozenEstimator):
        raise TypeError(
            "pretrained must be a FrozenEstimator around a fitted transformer of sklearn_pulse, a"
            f" folder written by save_pretrained, or None, got {pretrained!r}"
        )
    transformer = pretrained.estimator
    if not isinstance(transformer, WindowEmbedder):
        raise TypeError(
            f"pretrained freezes a {type(transformer).__name__}, which has no encoder to"
            " fine-tune: freeze the fitted transformer of sklearn_pulse alone (of a Pipeline,"
            " that step alone), and apply the steps before it to X."
        )
    check_is_fitted(
        transformer, msg="pretrained freezes a %(name)s that is not fitted: fit it first."
    )
    return transformer


def _fit_probe(
    embedding: NDArray[np.float64],
    y: NDArray[Any],
    weight: NDArray[np.float64],
    class_weight: dict[Any, float],
) -> Pipeline:
    """Fit the linear probe on weighted samples of weighted classes."""
    probe = make_linear_probe().set_params(probe__class_weight=class_weight)
    if (weight == 1).all():
        return probe.fit(embedding, y)
    # The steps are fitted one by one: whether a pipeline passes weights on depends on metadata
    # routing being switched on.
    scale, classifier = (step for _, step in probe.steps)
    scaled = scale.fit(embedding, sample_weight=weight).transform(embedding)
    classifier.fit(scaled, y, sample_weight=weight)
    return probe
