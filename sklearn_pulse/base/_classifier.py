"""Classification head on an encoder, trained with labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedShuffleSplit
from torch import Tensor

from .._data._labeled import LabeledBatches, LabeledWindows
from .._data._labels import (
    OF_A_CLASSIFIER,
    check_labels,
    check_sample_weight,
    check_true_labels,
    check_two_classes,
    class_weights,
    encode_labels,
)
from .._parameters import check_label
from .._training._progress import with_callbacks
from ..objectives import Classification
from ._fit_data import FitData
from ._labeled import LabeledEmbedder


class BaseWindowClassifier(ClassifierMixin, LabeledEmbedder):
    """A classification head on an encoder, trained together with labels.

    A subclass stores its parameters in `__init__`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse import FineTuneClassifier
    >>> from sklearn_pulse.base import BaseWindowClassifier
    >>> X = np.random.default_rng(0).normal(size=(12, 32, 2))
    >>> y = np.repeat(["rest", "walk"], 6)
    >>> X[y == "walk"] *= 4
    >>> classifier = FineTuneClassifier(embedding_dim=8, encoder_depth=2, random_state=0).fit(X, y)
    >>> isinstance(classifier, BaseWindowClassifier), classifier.classes_.tolist()
    (True, ['rest', 'walk'])
    >>> classifier.predict_proba(X).shape
    (12, 2)
    """

    _objective_class = Classification
    _splitter = StratifiedShuffleSplit

    class_weight: Any
    unlabeled_label: Any

    def _check_params(self) -> None:
        super()._check_params()
        check_label(self.unlabeled_label)

    def _objective_params(self) -> dict[str, Any]:
        return super()._objective_params() | {"n_classes": len(self.classes_)}

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
            Labels, numbers or strings. Every sample has a label; see `unlabeled_label`.
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
            no classes, a missing label, or a single class.
        FloatingPointError
            If a loss becomes NaN or infinite.
        """
        return self._fit(FitData(X, y, groups, X_val, y_val, sample_weight))

    def _check_y(self, y: ArrayLike | None, n_samples: int) -> NDArray[Any]:
        name = type(self).__name__
        mark = self.unlabeled_label
        return check_labels(y, n_samples, name, unlabeled_label=mark, remedy=OF_A_CLASSIFIER)

    def _learn_y(self, y: NDArray[Any]) -> NDArray[Any]:
        self.classes_, codes = np.unique(y, return_inverse=True)
        check_two_classes(self.classes_)
        return codes

    def _check_y_val(self, y_val: ArrayLike, n_samples: int) -> NDArray[Any]:
        labels = check_labels(y_val, n_samples, type(self).__name__, "y_val")
        return encode_labels(labels, self.classes_)

    def _hold_out(
        self, y: NDArray[Any], groups: NDArray[Any] | None, seed: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        train, valid = super()._hold_out(y, groups, seed)
        lost = np.setdiff1d(y, y[train])
        if len(lost):
            what, remedy = ("samples", "a lower validation_fraction")
            if groups is not None:
                what, remedy = ("groups", "another random_state")
            raise ValueError(
                f"the {what} held out to validate on hold every sample of {self.classes_[lost]}:"
                f" pass X_val and y_val, {remedy}, or validation_fraction=0."
            )
        return train, valid

    def _weighted_batches(
        self, train: LabeledWindows, valid: LabeledWindows | None
    ) -> tuple[LabeledBatches, LabeledBatches | None]:
        device = self._device
        by_class = class_weights(self.class_weight, self.classes_, train.y, train.weight)

        def batches(part: LabeledWindows, use: str) -> LabeledBatches:
            weight = part.weight * by_class[part.y]
            mean = weight.mean()
            if mean == 0:
                raise ValueError(
                    f"class_weight and sample_weight leave no sample to {use} on a weight above"
                    " zero: raise one."
                )
            return LabeledBatches(part._replace(weight=weight / mean), device)

        return batches(train, "train"), None if valid is None else batches(valid, "validate")

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

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> float:
        """Return the share of samples whose class is predicted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels)
            Windows, as for `predict`.
        y : array-like of shape (n_samples,)
            True labels. Every sample has one; see `unlabeled_label`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each sample. None weights all samples alike.

        Returns
        -------
        float
            The accuracy, 0 to 1.

        Raises
        ------
        ValueError
            If a label is `unlabeled_label`, or a label or a weight is NaN, None or masked.
        """
        predicted = self.predict(X, sampling_rate=sampling_rate, channel_names=channel_names)
        check_true_labels(y, type(self).__name__, self.classes_, self.unlabeled_label)
        if sample_weight is not None:
            check_sample_weight(sample_weight, len(predicted))
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def _probabilities(self, embedding: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the probability of each class, from embeddings."""
        return softmax(self._head_output(embedding), axis=1)

    def _restore(self, weights: Mapping[str, Tensor]) -> None:
        classes: Any = vars(self).get("classes_")
        if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
            raise ValueError("classes_ must be an array of two labels or more: save it again.")
        kinds = {type(label) for label in classes.tolist()}
        if len(kinds) > 1 or not kinds <= {bool, int, float, str}:
            raise ValueError("classes_ must hold labels of one kind, numbers or text.")
        if not np.array_equal(classes, np.unique(classes)):
            raise ValueError("classes_ must be in order, each label once: save the model again.")
        super()._restore(weights)
