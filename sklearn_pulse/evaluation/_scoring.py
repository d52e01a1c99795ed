"""Shared parts of the scores: rows with labels, and signs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import indexable
from sklearn.utils.validation import column_or_1d

from .._data._labels import labeled_mask, unlabeled_rows
from .._groups import missing_mask, mixes_text
from .._inputs._stored import take_rows
from .._pipelines import last_step

_SPLIT = "sklearn_pulse.model_selection.LabeledTestSplit"


def reconstructs(transformer: Any) -> bool:
    """Return whether a transformer has a method `reconstruct`; SimMTM has a parameter so named."""
    return callable(getattr(transformer, "reconstruct", None))


def check_scored(y: Any, name: str = "y") -> NDArray[Any]:
    """Return true labels as a flat array; raise if there is no label, or if one is missing."""
    y = _of_known_type(y)
    labels = np.asarray(column_or_1d(y))
    missing = missing_mask(y)
    if missing.any():
        raise ValueError(
            f"Input {name} contains NaN or None in {missing.sum()} of {len(labels)} rows, which"
            " have no label to compare with: leave these rows out."
        )
    if not labels.size:
        raise ValueError(f"{name} holds no label: pass the label of one row or more.")
    return labels


def _of_known_type(y: Any) -> Any:
    """Return labels of NumPy's StringDType, which scikit-learn does not know, as objects."""
    kind = getattr(getattr(y, "dtype", None), "kind", "")
    return y.astype(object) if kind == "T" else y


def check_one_kind(labels: list[Any], name: str) -> None:
    """Raise if labels mix text with numbers, which have no order and never equal each other."""
    if mixes_text(labels):
        raise TypeError(f"{name}: text is mixed with numbers; make all labels text.")


def labeled_rows(classifier: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Leave out the rows without a label, since a prediction of them cannot be scored.

    The parameter `unlabeled_label` of the classifier says which rows these are. A classifier that
    lacks it knows no such rows; then -1 is an error, unless it is a class.
    """
    y = _of_known_type(y)
    classifier = last_step(getattr(classifier, "best_estimator_", classifier))
    name, classes = type(classifier).__name__, np.asarray(getattr(classifier, "classes_", []))
    knows = hasattr(classifier, "unlabeled_label")
    mark = classifier.unlabeled_label if knows else -1
    if mark is None or mark in classes.tolist():
        check_scored(y)
        return X, y
    if not knows:
        labels = check_scored(y)
        unlabeled = unlabeled_rows(labels, mark, classes.tolist())
        if unlabeled.any() and str(mark) not in classes.tolist():  # the class may be text
            raise ValueError(
                f"y holds -1 in {unlabeled.sum()} of {len(labels)} rows, which marks a row without"
                f" a label and is no class of {name}: leave these rows out, or wrap the classifier"
                " in sklearn_pulse.evaluation.LabeledSubsetClassifier."
            )
        return X, y
    labeled = labeled_mask(y, mark, name, classes=classes.tolist())
    if labeled.all():
        return X, y
    if not labeled.any():
        raise ValueError(
            f"All {labeled.size} rows of y are unlabelled (equal to unlabeled_label={mark!r}), so"
            f" there is nothing to score: keep labelled rows in each test set, by {_SPLIT}."
        )
    rows = np.flatnonzero(labeled)
    X, y = indexable(X, y)
    return take_rows(X, rows), take_rows(y, rows)


class MetricScorer:
    """Scorer of one of several scores, for scikit-learn's ``scoring``.

    Parameters
    ----------
    scores : callable
        Function of estimator, X and y that returns a dictionary of scores.
    metric : str
        Key of the score in this dictionary.
    sign : {1, -1}, default=1
        Factor of the score: -1 for a score of which lower is better.
    """

    def __init__(self, scores: Callable[..., dict[str, float]], metric: str, sign: int = 1) -> None:
        self.scores = scores
        self.metric = metric
        self.sign = sign

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """Score a fitted estimator; higher is better."""
        scores = self.scores(estimator, X, y)
        if self.metric not in scores:
            raise ValueError(
                f"{self.metric!r} needs labels, but y is None: pass y, or leave this scorer out."
            )
        return self.sign * scores[self.metric]

    def __repr__(self) -> str:
        return f"MetricScorer({self.scores.__name__}, {self.metric!r}, sign={self.sign})"
