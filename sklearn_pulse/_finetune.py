"""Fine-tuning of a pretrained encoder with labels, as a classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from torch import Tensor

from ._data._labeled import LabeledWindows
from ._data._labels import class_weights
from ._persistence import stored_array, tensor_of
from ._typing import (
    BagPooling,
    ClassWeight,
    InputLayout,
    PathLike,
    Pooling,
    Precision,
    RandomState,
)
from .base import BaseWindowClassifier, Parts, check_option
from .base._finetuning import FineTuner
from .evaluation import make_linear_probe
from .evaluation._probe import probe_arrays, restore_probe


class FineTuneClassifier(FineTuner, BaseWindowClassifier):
    """Classify windows by a pretrained encoder that is fine-tuned with a new head.

    The pretrained encoder is copied, so the estimator that was passed stays as it is. If the
    windows have another number of channels than those of the pretraining, a linear map of each step
    comes first. A head of two layers with a tanh between them follows, and all parts are trained
    together on the cross-entropy. The defaults are the published settings for Epilepsy, with
    batches of 30; the published batches for Gesture hold 100. Windows may be of another length than
    in pretraining.

    Parameters
    ----------
    score_with : {"head", "probe"}, default="head"
        Classifier that predicts: the head, or a linear probe fitted on the fine-tuned embeddings of
        `X` (as for the published table). Both use `class_weight`; if it is None, the probe balances
        its classes.
    validation_fraction : float, default=0.0
        Fraction of the samples that is held out to validate on, the same fraction of every class,
        or of the groups if `fit` is given `groups`. 0 holds out none, as published; then `select`
        must be "last" and `patience` None, unless `fit` is given samples to validate on.

    Attributes
    ----------
    probe_ : sklearn.pipeline.Pipeline
        The probe on the output of `transform`; only with ``score_with="probe"``.

    Notes
    -----
    Source: paper, Section 5.3. The paper speaks of a weight decay of 1e-5 (Appendix G) and of the
    best validation epoch for Epilepsy (Appendix D); the published code uses 1e-6, trains on the
    training and validation parts together, keeps the last epoch and scores by a linear probe. The
    defaults are those of the code, except for `score_with`. Pass both parts as `X`.

    Samples with the same values and the same label count as one sample of their summed weight, so
    `sample_weight` and repetition are the same, and the order of samples does not matter, neither
    of `X` nor of `X_val`. The validation loss is the mean over batches, as in the published code,
    of which the last may be small.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn_pulse import FineTuneClassifier, PulseTransformer
    >>> rng = np.random.default_rng(0)
    >>> unlabeled = rng.normal(size=(20, 64, 6))
    >>> pulse = PulseTransformer(embedding_dim=16, max_epochs=1, random_state=0).fit(unlabeled)
    >>> X, y = rng.normal(size=(24, 48, 3)), np.repeat(["left", "right"], 12)
    >>> X[y == "right"] *= 4  # three channels of another length, and two classes
    >>> gesture = FineTuneClassifier(FrozenEstimator(pulse), random_state=0)
    >>> gesture.fit(X[::2], y[::2]).score(X[1::2], y[1::2])
    1.0
    """

    _unstored = ("net_", "probe_")

    def __init__(
        self,
        pretrained: FrozenEstimator | PathLike | None = None,
        *,
        head_hidden_dim: int | None = 64,
        freeze_epochs: int = 0,
        select: Literal["last", "min_val"] = "last",
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
        unlabeled_label: int | str | None = -1,
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
        self.unlabeled_label = unlabeled_label
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
        check_option("score_with", self.score_with, ("head", "probe"))

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
        weights = dict(enumerate(by_class))
        with self._threads():  # their number decides how linear algebra rounds
            self.probe_ = _fit_probe(embedding, labeled.y, labeled.weight, weights)
        # The probe learnt from numbers, since scikit-learn cannot weight classes that are dates.
        classifier = self.probe_[-1]
        classifier.set_params(class_weight=dict(zip(self.classes_, by_class, strict=True)))
        classifier.classes_ = self.classes_

    def _probabilities(self, embedding: NDArray[np.float32]) -> NDArray[np.float64]:
        check_option("score_with", self.score_with, ("head", "probe"))
        if self.score_with == "head":
            return super()._probabilities(embedding)
        self._check_probe()
        return self.probe_.predict_proba(embedding.astype(np.float64))

    def _check_probe(self) -> None:
        """Raise if a probe is to predict, and `fit` made none."""
        if self.score_with == "probe" and not hasattr(self, "probe_"):
            raise ValueError(
                "score_with='probe' was set after a fit with 'head', which fits no probe: fit"
                " again."
            )

    def _check_unchanged(self, twin: Any) -> None:
        super()._check_unchanged(twin)
        self._check_probe()

    def _weights(self) -> dict[str, Tensor]:
        if not hasattr(self, "probe_"):
            return super()._weights()
        return super()._weights() | {
            f"probe.{name}": tensor_of(array) for name, array in probe_arrays(self.probe_).items()
        }

    def _restore(self, weights: Mapping[str, Tensor]) -> None:
        own = {name: value for name, value in weights.items() if not name.startswith("probe.")}
        super()._restore(own)
        if len(own) == len(weights):
            return
        rows = 1 if len(self.classes_) == 2 else len(self.classes_)
        width = self._n_features_out
        shapes: dict[str, tuple[int | None, ...]] = {
            "mean": (width,),
            "scale": (width,),
            "coef": (rows, width),
            "intercept": (rows,),
        }
        arrays = {
            name: stored_array(weights, f"probe.{name}", np.float64, shape)
            for name, shape in shapes.items()
        }
        self.probe_ = _on_arrays(restore_probe(arrays, self.classes_))


def _fit_probe(
    embedding: NDArray[np.float64],
    y: NDArray[Any],
    weight: NDArray[np.float64],
    class_weight: dict[Any, float],
) -> Pipeline:
    """Fit the linear probe on samples with weights, of classes with weights."""
    probe = _on_arrays(make_linear_probe().set_params(probe__class_weight=class_weight))
    if (weight == 1).all():
        return probe.fit(embedding, y)
    # The steps are fitted one by one: whether a pipeline passes weights on depends on metadata
    # routing being switched on.
    scale, classifier = (step for _, step in probe.steps)
    scaled = scale.fit(embedding, sample_weight=weight).transform(embedding)
    classifier.fit(scaled, y, sample_weight=weight)
    return probe


def _on_arrays(probe: Pipeline) -> Pipeline:
    """Let the steps of a probe exchange arrays, whatever output scikit-learn is configured for.

    Between tables the classifier would warn if the configurations of fit and prediction differ.
    """
    return probe.set_output(transform="default")
