"""Checks of labels and sample weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight


def check_labels(y: ArrayLike | None, n_samples: int, owner: str, name: str = "y") -> NDArray[Any]:
    """Return the labels as a flat array.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or None
        The labels.
    n_samples : int
        Number of samples in X.
    owner : str
        Name of the class that needs them.
    name : str, default="y"
        Name of the argument.

    Returns
    -------
    ndarray of shape (n_samples,)
        The labels.

    Raises
    ------
    ValueError
        If `y` is None, has another length, holds missing values, or holds continuous numbers.
    """
    if y is None:
        raise ValueError(
            f"This {owner} estimator requires {name} to be passed, but the target {name} is None."
        )
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name=name)
    check_classification_targets(labels)
    if len(labels) != n_samples:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_samples},"
            f" {name} has {len(labels)}. Pass one label per sample (a bag is one sample)."
        )
    return labels


def check_together(X_val: ArrayLike | None, y_val: ArrayLike | None) -> None:
    """Raise if only one of the validation windows and their labels is given."""
    if (X_val is None) != (y_val is None):
        raise ValueError("X_val and y_val come together: pass both, or neither.")


def encode_labels(y: NDArray[Any], classes: NDArray[Any], name: str) -> NDArray[np.intp]:
    """Return the number of each label's class; raise if a label is of another class."""
    unknown = ~np.isin(y, classes)
    if unknown.any():
        raise ValueError(
            f"{name} holds classes that y does not: {np.unique(y[unknown]).tolist()}. A classifier"
            " cannot know them: leave these samples out, or add some of them to X and y."
        )
    return np.searchsorted(classes, y)


def check_two_classes(classes: NDArray[Any], where: str = "the data") -> None:
    """Raise, in scikit-learn's words, if all samples are of one class."""
    if len(classes) < 2:
        raise ValueError(
            f"This solver needs samples of at least 2 classes in {where}, but {where} contains"
            f" only one class: {classes[0]!r}"
        )


def check_sample_weight(sample_weight: ArrayLike | None, n_samples: int) -> NDArray[np.float64]:
    """Return the weights as an array, ones for None; raise if all of them are zero."""
    weight = _check_sample_weight(
        sample_weight, np.arange(n_samples), dtype=np.float64, ensure_non_negative=True
    )
    if not weight.any():  # scikit-learn before 1.9 accepts zeros
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weight


def class_weights(
    class_weight: Any, classes: NDArray[Any], y: NDArray[np.intp], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return a weight for each class.

    Parameters
    ----------
    class_weight : None, "balanced" or dict
        None gives ones; "balanced" gives weights inverse to the total weight of each class; a
        dict gives weights by label.
    classes : array of shape (n_classes,)
        Labels of the classes.
    y : array of int, of shape (n_samples,)
        Number of each sample's class; every class occurs.
    weight : array of shape (n_samples,)
        Weights of the samples.

    Returns
    -------
    array of shape (n_classes,)
        The weights.
    """
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(y, weights=weight, minlength=len(classes))
        return counts.sum() / (len(classes) * counts)
    return compute_class_weight(class_weight, classes=classes, y=classes[y])


def labeled_mask(y: Any, unlabeled_label: Any, caller: str) -> NDArray[np.bool_]:
    """Return a boolean mask of the labelled rows.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, 1)
        Labels.
    unlabeled_label : int, str or None
        The value that marks an unlabelled row. With None every row is labelled.
    caller : str
        Name of the class that needs the labels, for the error message.

    Returns
    -------
    ndarray of bool of shape (n_samples,)
        True where a row is labelled.

    Raises
    ------
    ValueError
        If `y` is None or has several columns, or if the marker is NaN.

    Examples
    --------
    >>> labeled_mask(["a", -1, "b"], -1, "LabeledTestSplit")
    array([ True, False,  True])
    """
    if y is None:
        raise ValueError(
            f"{caller} requires y to be passed, but the target y is None; it needs y to know the "
            "labelled rows."
        )
    if unlabeled_label != unlabeled_label:
        raise ValueError(
            "unlabeled_label must not be NaN, which equals nothing; mark unlabelled rows with -1."
        )
    # A list may mix text with -1, which numpy would turn into the text "-1".
    values = np.asarray(y, dtype=object if isinstance(y, (list, tuple)) else None)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"y must hold one label per row, shape (n_samples,); got shape {values.shape}."
        )
    if unlabeled_label is None:
        return np.ones(values.size, dtype=bool)
    return np.asarray(values != unlabeled_label, dtype=bool)
