"""Classifier that learns from the labelled rows only."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    clone,
    is_clusterer,
    is_regressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags, assert_all_finite, get_tags, indexable
from sklearn.utils.metadata_routing import (
    UNUSED,
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_method_params,
    _num_samples,
    check_is_fitted,
    column_or_1d,
)

from .._data._labels import labeled_mask
from .._groups import nan_where_masked
from .._inputs._stored import take_rows

# Methods that are passed on to the fitted classifier.
_PASSED_ON = ("predict", "predict_proba", "predict_log_proba", "decision_function")


def _estimator_has(method: str) -> Callable[[LabeledSubsetClassifier], bool]:
    """Return a check for ``available_if``: whether the classifier, fitted or not, has a method."""

    def check(self: LabeledSubsetClassifier) -> bool:
        estimator = getattr(self, "estimator_", None)
        # getattr raises the estimator's own AttributeError, which names the reason.
        getattr(self._sub_estimator() if estimator is None else estimator, method)
        return True

    return check


class LabeledSubsetClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Classifier that learns from the labelled rows only.

    scikit-learn marks an unlabelled row by ``y == -1``. As the last step of a pipeline, this
    classifier leaves unlabelled rows to the earlier steps, which pretrain on every row, and fits
    a classifier on the labelled rows.

    Parameters
    ----------
    estimator : classifier, default=None
        The classifier to fit on the labelled rows; a clone of it is fitted. None stands for
        ``LogisticRegression(max_iter=1000, class_weight="balanced")``.
    unlabeled_label : int, str or None, default=-1
        The value of ``y`` that marks an unlabelled row. With None, every row is labelled.

    Attributes
    ----------
    estimator_ : classifier
        The fitted clone of ``estimator``.
    classes_ : ndarray of shape (n_classes,)
        Class labels; ``unlabeled_label`` is never one of them.
    n_features_in_ : int
        Number of features seen during fit, if ``estimator_`` has this attribute.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features seen during fit, if ``estimator_`` has this attribute.

    Notes
    -----
    With text labels and the marker -1, every row is labelled, since no text equals a number. The
    text "-1" is then an error: NumPy turns a -1 beside text into this text. ``X`` is only indexed
    along its first axis and never converted. So the estimator may take arrays of any dimension,
    data frames, sparse matrices, lists or lazy arrays. If all rows are labelled, nothing is copied.

    Source: paper, Section 5.2 (a probe on few labels).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.evaluation import LabeledSubsetClassifier
    >>> X = np.array([[0.0], [0.2], [0.9], [1.0], [0.5]])
    >>> y = np.array([0, 0, 1, 1, -1])
    >>> probe = LabeledSubsetClassifier().fit(X, y)
    >>> probe.classes_
    array([0, 1])
    >>> probe.predict([[0.1], [0.8]])
    array([0, 1])
    >>> probe.score([[0.3], [0.7]], [0, 1])
    1.0
    """

    # The estimator requests the weights of fit; this class only passes them on.
    __metadata_request__fit = {"sample_weight": UNUSED}

    def __init__(self, estimator: Any = None, unlabeled_label: Any = -1) -> None:
        self.estimator = estimator
        self.unlabeled_label = unlabeled_label

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, **fit_params: Any
    ) -> LabeledSubsetClassifier:
        """Fit the classifier on the labelled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Embeddings, or any other input of the estimator.
        y : array-like of shape (n_samples,)
            Labels; ``unlabeled_label`` marks the unlabelled rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of all rows, for an estimator that takes weights. Weights of unlabelled rows
            are ignored.
        **fit_params : dict
            Other parameters for the ``fit`` of the estimator. Parameters with one entry per row
            are cut to the labelled rows, except ``channel_names`` and those whose names end in
            ``_val``, such as ``X_val`` and ``y_val``, which belong to other rows. With metadata
            routing enabled, these parameters and the weights are routed as the estimator requests.

        Returns
        -------
        LabeledSubsetClassifier
            The fitted classifier itself.

        Raises
        ------
        ValueError
            If no row is labelled, a label is None or NaN, or the lengths of the inputs differ, that
            of ``sample_weight`` included.
        TypeError
            If ``estimator`` cannot be fitted, or is a regressor or a clusterer, or if
            ``unlabeled_label`` is no label.
        """
        estimator = clone(self._sub_estimator())
        _check_predicts_classes(estimator)
        given, y = y, _flat_labels(y)
        if sample_weight is not None:
            _check_weights(sample_weight, _num_samples(y))
            fit_params["sample_weight"] = nan_where_masked(sample_weight)
        if get_config()["enable_metadata_routing"]:
            fit_params = process_routing(self, "fit", **fit_params)["estimator"]["fit"]
        labeled = labeled_mask(given, self.unlabeled_label, "LabeledSubsetClassifier")
        if self.unlabeled_label is not None:
            if not labeled.any():
                raise ValueError(
                    f"y holds no labelled row: all {labeled.size} entries equal "
                    f"unlabeled_label={self.unlabeled_label!r}. Label at least one row of each "
                    "class, or set unlabeled_label=None if this value is a class."
                )
            X, y, fit_params = _take_rows(X, y, labeled, fit_params)
        estimator.fit(X, y, **fit_params)
        known = hasattr(estimator, "classes_")
        self.classes_ = estimator.classes_ if known else np.unique(np.asarray(y))
        self.estimator_ = estimator
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))
            elif hasattr(self, name):  # left by an earlier fit on other data
                delattr(self, name)
        return self

    @available_if(_estimator_has("predict"))
    def predict(self, X: Any, **params: Any) -> NDArray[Any]:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Embeddings, or any other input of the estimator.
        **params : dict
            Parameters for the method of the estimator, such as the ``sampling_rate`` of `X` for a
            classifier of windows. With metadata routing enabled they are routed.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted labels, never ``unlabeled_label``.
        """
        return self._called("predict", X, params)

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X: Any, **params: Any) -> NDArray[Any]:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Embeddings, or any other input of the estimator.
        **params : dict
            Parameters for the method of the estimator, such as the ``sampling_rate`` of `X` for a
            classifier of windows. With metadata routing enabled they are routed.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities from 0 to 1, with columns in the order of ``classes_``.
        """
        return self._called("predict_proba", X, params)

    @available_if(_estimator_has("predict_log_proba"))
    def predict_log_proba(self, X: Any, **params: Any) -> NDArray[Any]:
        """Predict the logarithm of the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Embeddings, or any other input of the estimator.
        **params : dict
            Parameters for the method of the estimator, such as the ``sampling_rate`` of `X` for a
            classifier of windows. With metadata routing enabled they are routed.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Natural logarithms of the probabilities, with columns in the order of ``classes_``.
        """
        return self._called("predict_log_proba", X, params)

    @available_if(_estimator_has("decision_function"))
    def decision_function(self, X: Any, **params: Any) -> NDArray[Any]:
        """Return the estimator's decision values.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Embeddings, or any other input of the estimator.
        **params : dict
            Parameters for the method of the estimator, such as the ``sampling_rate`` of `X` for a
            classifier of windows. With metadata routing enabled they are routed.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Decision values: one per row for two classes, else one per row and class.
        """
        return self._called("decision_function", X, params)

    def score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, **params: Any
    ) -> float:
        """Return the accuracy on the labelled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Embeddings, or any other input of the estimator.
        y : array-like of shape (n_samples,)
            True labels; rows marked with ``unlabeled_label`` are ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of all rows. Weights of unlabelled rows are ignored.
        **params : dict
            Parameters for the ``predict`` of the estimator. Those with one entry per row are cut
            to the labelled rows, as in :meth:`fit`.

        Returns
        -------
        float
            Share of correct predictions, 0 to 1.

        Raises
        ------
        ValueError
            If all rows are unlabelled, a label is None or NaN, the weight of a labelled row is NaN
            or masked, or the length of ``sample_weight`` is not that of ``y``.
        """
        check_is_fitted(self)
        given, y = y, _flat_labels(y)
        if sample_weight is not None:
            _check_weights(sample_weight, _num_samples(y))
        # Routed by the names that the caller gives them, and cut by those of the estimator.
        weight = nan_where_masked(sample_weight)
        params = self._routed("score", "predict", params) | {"sample_weight": weight}
        # A test set may hold one of the classes alone.
        classes = np.asarray(self.classes_).tolist()
        labeled = labeled_mask(
            given, self.unlabeled_label, "LabeledSubsetClassifier", classes=classes
        )
        if self.unlabeled_label is not None:
            if not labeled.any():
                raise ValueError(
                    f"All {labeled.size} rows of y are unlabelled (equal to "
                    f"unlabeled_label={self.unlabeled_label!r}), so there is nothing to score; "
                    "keep labelled rows in each test set, for instance with "
                    "sklearn_pulse.model_selection.LabeledTestSplit."
                )
            X, y, params = _take_rows(X, y, labeled, params)
        weight = params.pop("sample_weight")
        if weight is not None:  # scikit-learn before 1.8 scores with weights that are NaN
            assert_all_finite(np.asarray(weight), input_name="sample_weight")
        predicted = self.estimator_.predict(X, **params)
        return float(accuracy_score(y, predicted, sample_weight=weight))

    def _called(self, method: str, X: Any, params: dict[str, Any]) -> NDArray[Any]:
        """Call a method of the fitted estimator, with routed parameters."""
        check_is_fitted(self)
        return getattr(self.estimator_, method)(X, **self._routed(method, method, params))

    def _routed(self, caller: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of a method of the estimator that a method of this one calls."""
        if not get_config()["enable_metadata_routing"]:
            return params
        return dict(process_routing(self, caller, **params)["estimator"][method])

    def get_metadata_routing(self) -> MetadataRouter:
        """Route the parameters of each method to the same method of the estimator.

        Those of ``score`` go to ``predict``.

        Returns
        -------
        :class:`~sklearn.utils.metadata_routing.MetadataRouter`
            The metadata routing of this classifier.
        """
        mapping = MethodMapping().add(caller="score", callee="predict")
        for method in ("fit", *_PASSED_ON):
            mapping.add(caller=method, callee=method)
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)  # sample_weight of score
            .add(estimator=self._sub_estimator(), method_mapping=mapping)
        )

    def __sklearn_tags__(self) -> Tags:
        """Take over the estimator's tags about its input, its target and its quality."""
        tags = super().__sklearn_tags__()
        sub_tags = get_tags(self._sub_estimator())
        tags.input_tags = sub_tags.input_tags
        tags.non_deterministic = sub_tags.non_deterministic
        if sub_tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = sub_tags.classifier_tags.multi_class
            tags.classifier_tags.poor_score = sub_tags.classifier_tags.poor_score
        return tags

    def _sub_estimator(self) -> Any:
        """Return the unfitted classifier that ``estimator`` stands for."""
        if self.estimator is None:
            return LogisticRegression(max_iter=1000, class_weight="balanced")
        if not hasattr(self.estimator, "fit") or isinstance(self.estimator, type):
            raise TypeError(
                "estimator must be a classifier instance with a fit method, or None for "
                f"logistic regression; got {self.estimator!r}."
            )
        return self.estimator


def _check_predicts_classes(estimator: Any) -> None:
    """Raise for a regressor and for a clusterer."""
    if is_regressor(estimator):
        raise TypeError(
            f"estimator is a regressor, {type(estimator).__name__}, and predicts no classes: pass a"
            " classifier, or fit the regressor itself on the rows whose number is known."
        )
    if is_clusterer(estimator):
        raise TypeError(
            f"estimator is a clusterer, {type(estimator).__name__}, which would predict numbers of"
            " clusters: pass a classifier."
        )


def _flat_labels(y: Any) -> Any:
    """Flatten a column of labels with scikit-learn's warning; refuse several columns.

    The result has no mask any more, so :func:`labeled_mask` needs the labels as they were given.
    """
    return column_or_1d(y, warn=True) if np.asarray(y).ndim == 2 else y


def _check_weights(sample_weight: Any, n_rows: int) -> None:
    """Raise if there are more or fewer weights than rows; a single number is allowed."""
    if not isinstance(sample_weight, Real) and _num_samples(sample_weight) != n_rows:
        raise ValueError(
            f"sample_weight has {_num_samples(sample_weight)} entries, but there are {n_rows} rows:"
            " pass a weight for each row, labelled or not. Weights of unlabelled rows are ignored."
        )


def _take_rows(
    X: Any, y: Any, mask: NDArray[np.bool_], params: dict[str, Any]
) -> tuple[Any, Any, dict[str, Any]]:
    """Cut X, y and the per-row entries of ``params`` to the rows of a boolean mask."""
    X, y = indexable(X, y)
    if mask.all():
        return X, y, params
    rows = np.flatnonzero(mask)
    # Validation data may happen to have as many rows, and windows as many channels.
    per_row = {
        name: value
        for name, value in params.items()
        if not name.endswith("_val") and name != "channel_names"
    }
    params = params | _check_method_params(X, per_row, indices=rows)
    return take_rows(X, rows), take_rows(y, rows), params
