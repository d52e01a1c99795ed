"""Scores of the linear probe: accuracy, and areas under two curves, averaged over classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.metrics import accuracy_score, average_precision_score, roc_auc_score
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from .._groups import nan_where_masked
from .._inputs._numbers import of_tensor
from .._pipelines import before_last_step, last_step
from ._scoring import MetricScorer, check_one_kind, check_scored, labeled_rows


def macro_auroc(y_true: ArrayLike, y_score: ArrayLike, *, classes: ArrayLike) -> float:
    """Area under the ROC curve of each class against the others, averaged over classes.

    The mean runs over the classes that occur in `y_true`. A class without a column, since it was
    not trained, counts with a constant score, whose area is 0.5. A class that does not occur has no
    curve and is left out.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_score : array-like of shape (n_samples, n_classes)
        Probability, or another score that ranks the rows, for each class.
    classes : array-like of shape (n_classes,)
        Class label of each column of `y_score`, such as the ``classes_`` of a classifier.

    Returns
    -------
    float
        Mean area, between 0 and 1; NaN, with scikit-learn's warning, if `y_true` holds one class
        only.

    Raises
    ------
    TypeError
        If `y_score` holds no numbers, or `y_true` and `classes` mix text with numbers.
    ValueError
        If `y_score` does not have one row per label and one column per class, or a value is
        not finite; if a label is missing (NaN, None or masked); or if `classes` names a class
        twice.

    Notes
    -----
    Source: paper, Section 5.1.

    Examples
    --------
    >>> from sklearn_pulse.evaluation import macro_auroc
    >>> macro_auroc(["a", "b", "b"], [[0.9, 0.1], [0.4, 0.6], [0.8, 0.2]], classes=["a", "b"])
    1.0
    """
    return _macro_average(roc_auc_score, y_true, y_score, classes)


def macro_auprc(y_true: ArrayLike, y_score: ArrayLike, *, classes: ArrayLike) -> float:
    """Average precision of each class against the others, averaged over classes.

    The mean runs over the classes that occur in `y_true`; in a binary task, over both. A class
    without a column, since it was not trained, counts with a constant score, whose precision is the
    share of its rows. A class that does not occur has no precision and is left out.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_score : array-like of shape (n_samples, n_classes)
        Probability, or another score that ranks the rows, for each class.
    classes : array-like of shape (n_classes,)
        Class label of each column of `y_score`, such as the ``classes_`` of a classifier.

    Returns
    -------
    float
        Mean of the average precisions, between 0 and 1. If `y_true` holds one class only, every
        ranking is perfect and the value is 1.

    Raises
    ------
    TypeError
        If `y_score` holds no numbers, or `y_true` and `classes` mix text with numbers.
    ValueError
        If `y_score` does not have one row per label and one column per class, or a value is
        not finite; if a label is missing (NaN, None or masked); or if `classes` names a class
        twice.

    Notes
    -----
    Source: paper, Section 5.1. The curve is a step function without interpolation, as in
    :func:`~sklearn.metrics.average_precision_score`.

    Examples
    --------
    >>> from sklearn_pulse.evaluation import macro_auprc
    >>> macro_auprc(["a", "b", "b"], [[0.9, 0.1], [0.4, 0.6], [0.8, 0.2]], classes=["a", "b"])
    1.0
    """
    return _macro_average(average_precision_score, y_true, y_score, classes)


def probe_scores(estimator: Any, X: Any, y: ArrayLike) -> dict[str, float]:
    """Score a fitted classifier as the paper scores its linear probe.

    As ``scoring`` of :func:`~sklearn.model_selection.cross_validate`, this function gives all three
    scores with one pass through the steps before the classifier. A search needs the name of one
    score, for example ``refit="auroc"``, or one of :data:`PROBE_SCORERS`.

    Parameters
    ----------
    estimator : classifier or pipeline
        A fitted estimator with `predict`, and with `predict_proba` or `decision_function`.
    X : array-like of shape (n_samples, ...)
        Input of the estimator, such as windows for a pipeline or embeddings for a classifier.
    y : array-like of shape (n_samples,)
        True labels. Rows without a label are left out of the scores: those that equal the
        parameter `unlabeled_label` of the classifier, as that of
        :class:`~sklearn_pulse.evaluation.LabeledSubsetClassifier`, unless it is one of its classes.

    Returns
    -------
    dict of str to float
        "accuracy", "auroc" (:func:`macro_auroc`) and "auprc" (:func:`macro_auprc`).

    Raises
    ------
    TypeError
        If `estimator` has neither `predict_proba` nor `decision_function`, or labels mix text with
        numbers.
    ValueError
        If the scores of the classes do not have one column per class, as those of pairs of classes;
        if no row has a label, or a label is missing (NaN, None or masked); or if `y` marks
        unlabelled rows by -1, which is no class of the classifier, and the classifier has no
        `unlabeled_label`.

    Notes
    -----
    Source: paper, Section 5.1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.evaluation import make_linear_probe, probe_scores
    >>> embeddings, y = np.array([[0.0], [0.1], [0.2], [1.0], [1.1]]), [0, 0, 0, 1, 1]
    >>> probe_scores(make_linear_probe().fit(embeddings, y), embeddings, y)
    {'accuracy': 1.0, 'auroc': 1.0, 'auprc': 1.0}
    """
    X, classifier = before_last_step(estimator, X)
    ranking = ranking_scores(classifier, X, y)  # before the accuracy, since it checks more
    return {**accuracy_scores(classifier, X, y), **ranking}


def accuracy_scores(estimator: Any, X: Any, y: ArrayLike) -> dict[str, float]:
    """Return the accuracy of :func:`probe_scores` alone."""
    X, classifier = before_last_step(estimator, X)
    X, y = labeled_rows(classifier, X, y)
    return {"accuracy": float(accuracy_score(y, classifier.predict(X)))}


def ranking_scores(estimator: Any, X: Any, y: ArrayLike) -> dict[str, float]:
    """Return AUROC and AUPRC of :func:`probe_scores`, without the accuracy."""
    X, classifier = before_last_step(estimator, X)
    X, y = labeled_rows(classifier, X, y)
    y_score, classes = _class_scores(classifier, X)
    return {
        "auroc": macro_auroc(y, y_score, classes=classes),
        "auprc": macro_auprc(y, y_score, classes=classes),
    }


PROBE_SCORERS = {
    "accuracy": MetricScorer(accuracy_scores, "accuracy"),
    "auroc": MetricScorer(ranking_scores, "auroc"),
    "auprc": MetricScorer(ranking_scores, "auprc"),
}
"""Scorers of the linear probe by name, for the ``scoring`` of a search or a cross-validation.

Each gives a score of :func:`probe_scores`.
"""


def _class_scores(classifier: Any, X: Any) -> tuple[NDArray[np.floating], NDArray[Any]]:
    """Return scores of shape (n_samples, n_classes), and the classes."""
    methods = [name for name in ("predict_proba", "decision_function") if hasattr(classifier, name)]
    if methods and not hasattr(classifier, "classes_"):
        check_is_fitted(classifier)
    if not methods or not hasattr(classifier, "classes_"):
        raise TypeError(
            f"{type(classifier).__name__} has no classes_ with predict_proba or"
            " decision_function, by which AUROC and AUPRC rank the rows: use a classifier with"
            " these, such as make_linear_probe(), or score by accuracy."
        )
    y_score = np.asarray(getattr(classifier, methods[0])(X))
    inner = _innermost(classifier)
    if (
        methods[0] == "decision_function"
        and len(classifier.classes_) > 2
        and getattr(inner, "decision_function_shape", "ovr") == "ovo"
    ):  # three classes have as many pairs, so the shape does not tell
        raise ValueError(
            f"{type(inner).__name__} scores pairs of classes, by which no class ranks the"
            " rows: set decision_function_shape='ovr'."
        )
    if y_score.ndim == 1:  # two classes have one decision value, which is high for the second class
        y_score = np.column_stack([-y_score, y_score])
    return y_score, np.asarray(classifier.classes_)


def _innermost(classifier: Any) -> Any:
    """Return the fitted classifier that predicts inside searches, wrappers and pipelines."""
    while True:
        classifier = last_step(classifier)
        for name in ("best_estimator_", "estimator_"):
            if hasattr(classifier, name):
                classifier = getattr(classifier, name)
                break
        else:
            return classifier


def _macro_average(
    metric: Callable[..., float], y_true: ArrayLike, y_score: ArrayLike, classes: ArrayLike
) -> float:
    """Average a binary metric over the classes that occur in `y_true`."""
    labels = check_scored(y_true, "y_true")
    scores = np.asarray(nan_where_masked(of_tensor(y_score)))
    columns = np.asarray(classes)
    if columns.ndim != 1:
        raise ValueError(
            f"classes has shape {columns.shape}, expected one class per column of y_score: pass a"
            " list of labels, such as the classes_ of a classifier."
        )
    if scores.shape != (len(labels), len(columns)):
        raise ValueError(
            f"y_score has shape {scores.shape}, expected one row for each of {len(labels)} labels"
            f" and one column for each of {len(columns)} classes (a one-versus-one classifier"
            " scores pairs of classes: set decision_function_shape='ovr')."
        )
    if scores.dtype.kind not in "biufO":
        raise TypeError(f"y_score has dtype {scores.dtype}: pass real numbers.")
    with config_context(assume_finite=False):  # a NaN would count as a score
        check_array(scores, dtype=float, ensure_min_samples=0, input_name="y_score")
    check_one_kind([*labels.tolist(), *columns.tolist()], "y_true and classes")
    column_of = {label: column for column, label in enumerate(columns.tolist())}
    if len(column_of) < len(columns):
        raise ValueError(
            f"classes={columns.tolist()} names a class twice: give every column of y_score a class"
            " of its own."
        )
    never_predicted = np.zeros(len(labels))
    values = [
        metric(
            labels == label,
            scores[:, column_of[label]] if label in column_of else never_predicted,
        )
        for label in np.unique(labels).tolist()
    ]
    return float(np.minimum(np.mean(values), 1.0))  # rounding may exceed 1
