"""Classification head on an encoder, trained with labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit

from .._data._labeled import LabeledBatches, LabeledWindows
from .._data._labels import (
    check_labels,
    check_sample_weight,
    check_together,
    check_two_classes,
    class_weights,
    encode_labels,
)
from .._data._validation import CheckedWindows, check_windows
from .._parameters import check_integer
from .._training._device import resolve_device, threads
from .._training._progress import with_callbacks
from ..objectives import Classification, Source
from ._training import FitData, Parts, TrainedEmbedder

_HEAD_BLOCK = 256  # rows that the head reads at a time


class BaseWindowClassifier(ClassifierMixin, TrainedEmbedder):
    """A classification head on an encoder, trained together with labels.

    A subclass stores its parameters in `__init__` and returns a pretrained encoder in
    `_load_source`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the classes.
    head_ : torch.nn.Module
        The fitted head, from embeddings to logits.
    """

    _objective_class = Classification
    _objective_names: tuple[str, ...] = (
        "embedding_dim",
        "encoder_hidden_dim",
        "encoder_depth",
        "pooling",
        "head_hidden_dim",
        "bag_pooling",
    )
    _selections: Mapping[str, str | None] = {"last": None, "best_val": "min_val"}

    def _check_params(self) -> None:
        super()._check_params()
        if self.head_hidden_dim is not None:
            check_integer("head_hidden_dim", self.head_hidden_dim, 1)

    def _objective_params(self) -> dict[str, Any]:
        return super()._objective_params() | {"n_classes": len(self.classes_)}

    def _load_source(self, n_timesteps: int) -> Source | None:
        """Return the pretrained encoder, for windows of this length; None makes a new encoder."""
        return None

    @property
    def head_(self) -> torch.nn.Module:
        """The fitted head, embedding to logits."""
        return self.net_.module_.head

    @property
    def _n_features_out(self) -> int:
        return self.net_.module_.embedding_dim

    @with_callbacks
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> BaseWindowClassifier:
        """Train encoder and head.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Labels, numbers or strings; -1 is a class like any other.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each sample. A weight of two counts as the sample twice; a weight of zero
            leaves the sample out. None weights all samples alike.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            For a parameter out of its range, an input outside the data contract, labels that are
            no classes, or a single class.
        FloatingPointError
            If a loss becomes NaN or infinite.
        """
        return self._fit(FitData(X, y, groups, X_val, y_val, sample_weight))

    def _prepare(self, data: FitData, seed: int) -> Parts:
        windows = check_windows(self, data.X, reset=True, groups=data.groups)
        source = self._load_source(windows.n_timesteps)
        labeled = self._check_labeled(windows, data.y, data.sample_weight)
        check_together(data.X_val, data.y_val)
        train, valid = self._divide(labeled, data.X_val, data.y_val, seed)
        training, validation = self._weighted_batches(train, valid)
        min_batch_size = 1 if source is None else source.min_batch_size
        settings = {
            "module__source": source,
            "iterator_train__min_batch_size": min_batch_size,
            "iterator_valid__min_batch_size": min_batch_size,
        }
        return Parts(training, validation, settings, labeled)

    def _check_labeled(
        self, windows: CheckedWindows, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> LabeledWindows:
        """Check the labels and weights of `fit`; return the distinct samples with a weight."""
        y = check_labels(y, windows.n_samples, type(self).__name__)
        weight = check_sample_weight(sample_weight, windows.n_samples)
        samples = np.flatnonzero(weight)
        self.classes_, codes = np.unique(y[samples], return_inverse=True)
        check_two_classes(self.classes_)
        windows.scan()
        return LabeledWindows(windows, samples, codes, weight[samples]).distinct()

    def _divide(
        self,
        labeled: LabeledWindows,
        X_val: ArrayLike | None,
        y_val: ArrayLike | None,
        seed: int,
    ) -> tuple[LabeledWindows, LabeledWindows | None]:
        """Return the samples to train on, and those to validate on where there are any."""
        if X_val is not None and y_val is not None:
            return labeled, self._check_validation(X_val, y_val)
        if self.validation_fraction == 0:
            if self.select == "best_val" or self.patience is not None:
                what = "select='best_val'" if self.select == "best_val" else "patience"
                raise ValueError(
                    f"{what} needs samples to validate on: set validation_fraction, for example"
                    " to 0.2, or pass X_val and y_val to fit."
                )
            return labeled, None
        groups = labeled.windows.groups
        groups = None if groups is None else groups[labeled.samples]
        train, valid = self._hold_out(labeled.y, groups, seed)
        if not len(valid):
            if self.patience is not None:
                raise ValueError(
                    f"validation_fraction={self.validation_fraction} of so few samples is less"
                    " than one sample, and patience needs some: raise validation_fraction, pass"
                    " X_val and y_val, or set patience=None."
                )
            return labeled.take(train), None
        return labeled.take(train), labeled.take(valid)

    def _hold_out(
        self, y: NDArray[np.intp], groups: NDArray[Any] | None, seed: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        splitter = StratifiedShuffleSplit if groups is None else GroupShuffleSplit
        split = splitter(1, test_size=self.validation_fraction, random_state=seed)
        try:
            train, valid = next(split.split(y, y, groups))
        except ValueError as error:
            raise ValueError(
                f"validation_fraction={self.validation_fraction} cannot be held out ({error}): set"
                " it to 0, or pass X_val and y_val to fit."
            ) from error
        lost = np.setdiff1d(y, y[train])
        if len(lost):
            raise ValueError(
                f"the groups held out to validate on hold every sample of {self.classes_[lost]}:"
                " pass X_val and y_val, another random_state, or validation_fraction=0."
            )
        return train, valid

    def _check_validation(self, X_val: ArrayLike, y_val: ArrayLike) -> LabeledWindows:
        windows = check_windows(self, X_val, reset=False)
        self._check_validation_length(windows.n_timesteps)
        windows.scan()
        y_val = check_labels(y_val, windows.n_samples, type(self).__name__, "y_val")
        codes = encode_labels(y_val, self.classes_, "y_val")
        return LabeledWindows(windows, np.arange(len(codes)), codes, np.ones(len(codes)))

    def _weighted_batches(
        self, train: LabeledWindows, valid: LabeledWindows | None
    ) -> tuple[LabeledBatches, LabeledBatches | None]:
        """Return batches whose weights count the class in, with mean one in training."""
        device = resolve_device(self.device)
        by_class = class_weights(self.class_weight, self.classes_, train.y, train.weight)
        scale = np.mean(train.weight * by_class[train.y])
        if scale == 0:
            raise ValueError(
                "class_weight and sample_weight leave no sample a weight above zero: raise one."
            )

        def batches(part: LabeledWindows) -> LabeledBatches:
            weight = part.weight * by_class[part.y] / scale
            return LabeledBatches(part._replace(weight=weight), device)

        return batches(train), None if valid is None else batches(valid)

    def predict_proba(
        self,
        X: ArrayLike,
        *,
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> NDArray[np.float64]:
        """Predict the probability of each class.

        Returns
        -------
        ndarray of float64, of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        windows = self._check_input(X, (sampling_rate, channel_names))
        return self._probabilities(self._embed(windows))

    def predict(
        self,
        X: ArrayLike,
        *,
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> NDArray[Any]:
        """Predict the class of each sample.

        Returns
        -------
        ndarray of shape (n_samples,)
            The labels.
        """
        windows = self._check_input(X, (sampling_rate, channel_names))
        return self.classes_[self._probabilities(self._embed(windows)).argmax(axis=1)]

    def _probabilities(self, embedding: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the probability of each class, from embeddings."""
        return self._head_probabilities(embedding)

    def _head_probabilities(self, embedding: NDArray[np.float32]) -> NDArray[np.float64]:
        """Run the head over blocks of one shape, so that no row depends on the others."""
        device = torch.device(self.net_.device)
        logits = np.empty((len(embedding), len(self.classes_)))
        block = torch.zeros(_HEAD_BLOCK, embedding.shape[1], device=device)
        with threads(self.num_threads), torch.inference_mode():
            for start in range(0, len(embedding), _HEAD_BLOCK):
                rows = torch.from_numpy(embedding[start : start + _HEAD_BLOCK])
                block[: len(rows)] = rows.to(device)
                logits[start : start + len(rows)] = self.head_(block)[: len(rows)].cpu().numpy()
        return softmax(logits, axis=1)
