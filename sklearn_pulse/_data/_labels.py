"""Checks of labels, targets and sample weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from .._groups import missing_mask, mixes_text, nan_where_masked, refuse_nested
from .._inputs._numbers import of_tensor
from .._parameters import check_label, check_real

_WRAPPER = "sklearn_pulse.evaluation.LabeledSubsetClassifier"
_LARGEST_EXPONENT = 64  # of two: such a number and its inverse are far from the ends of float32
# Another remedy for missing labels, which only a classifier has.
OF_A_CLASSIFIER = f", or mark them by -1 and wrap a classifier in {_WRAPPER}"


def check_labels(
    y: ArrayLike | None,
    n_samples: int,
    owner: str,
    name: str = "y",
    unlabeled_label: int | str | None = None,
    remedy: str = "",
) -> NDArray[Any]:
    """Return the labels as a flat array.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or None
        The labels.
    n_samples : int
        Number of samples in X.
    owner : str
        Name of the class that needs the labels.
    name : str, default="y"
        Name of the argument.
    unlabeled_label : int, str or None, default=None
        Mark of a sample without a label; None means that every label is a class. The mark -1 is a
        class after all where the labels say so themselves: if they are -1 and 1 and nothing else,
        the usual names of two classes, or if another label is negative too.
    remedy : str, default=""
        Another remedy, which the message about missing labels adds to "leave them out".

    Returns
    -------
    ndarray of shape (n_samples,)
        The labels.

    Raises
    ------
    TypeError
        If `y` mixes text with other labels, or is of NumPy's StringDType.
    ValueError
        If `y` is None, has another length, holds missing values, the mark, or continuous numbers.

    Examples
    --------
    >>> check_labels([-1, 1], 2, "FineTuneClassifier", unlabeled_label=-1)
    array([-1,  1])
    """
    _check_given(y, owner, name)
    y = of_tensor(y)
    _refuse_string_dtype(y, name)
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    refuse_nested(labels, name)
    missing = missing_mask(y)
    if missing.any():
        raise ValueError(
            f"Input {name} contains NaN or None in {missing.sum()} of {len(labels)} samples, which"
            f" have no label: leave them out{remedy}."
        )
    assert_all_finite(labels, input_name=name)
    _refuse_unlabeled(labels, unlabeled_label, owner)
    if labels.dtype == object and mixes_text(labels):
        raise TypeError(f"{name} mixes text with other labels: make all of them text, or none.")
    if labels.dtype == object and len(labels) and not isinstance(labels[0], str):
        raise ValueError(
            f"Unknown label type: {name} has dtype object and holds no text: pass"
            f" {name}.astype(int) if it holds whole numbers."
        )
    check_classification_targets(labels)
    _check_length(labels, n_samples, name, "label")
    return labels


def check_true_labels(
    y: ArrayLike | None, owner: str, classes: NDArray[Any], unlabeled_label: int | str | None
) -> None:
    """Raise if a sample that predictions are to be compared with has no label.

    `classes` are those of the fitted `owner`; a mark that is one of them marks nothing.
    """
    _check_given(y, owner, "y")
    y = of_tensor(y)
    missing = missing_mask(y)
    if missing.any():
        raise ValueError(
            f"Input y contains NaN or None in {missing.sum()} of {missing.size} samples, which have"
            " no label to compare with: leave these samples out."
        )
    known = classes.tolist()
    if unlabeled_label not in known:
        _refuse_unlabeled(np.asarray(y).ravel(), unlabeled_label, owner, known)


def check_targets(
    y: ArrayLike | None, n_samples: int, owner: str, name: str = "y"
) -> NDArray[np.float64]:
    """Return the targets of a regression as an array.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, n_targets), or None
        The targets.
    n_samples : int
        Number of samples in X.
    owner : str
        Name of the class that needs the targets.
    name : str, default="y"
        Name of the argument.

    Returns
    -------
    ndarray of float64, of shape (n_samples,) or (n_samples, n_targets)
        The targets.

    Raises
    ------
    ValueError
        If `y` is None, has another length or shape, holds something else than real numbers, or
        holds missing or infinite values.

    Examples
    --------
    >>> check_targets([1, 2], 2, "FineTuneRegressor")
    array([1., 2.])
    """
    _check_given(y, owner, name)
    try:
        targets = np.asarray(nan_where_masked(of_tensor(y)))
    except ValueError as error:  # ragged
        raise ValueError(
            f"{name} cannot be read as an array ({error}): pass as many targets for each sample"
        ) from error
    refuse_nested(targets, name)
    if targets.ndim not in (1, 2) or targets.shape[1:] == (0,):
        raise ValueError(
            f"{name} has shape {targets.shape}: pass one target per sample, shape (n_samples,), or"
            " several, shape (n_samples, n_targets)."
        )
    missing = missing_mask(targets)
    if missing.any():
        n_missing = int(missing.reshape(len(targets), -1).any(1).sum())
        windows = name.replace("y", "X")
        raise ValueError(
            f"Input {name} contains NaN or None in {n_missing} of {len(targets)} samples, which"
            f" {owner} cannot learn from: leave these samples out of {windows} and {name}."
        )
    try:
        if targets.dtype.kind not in "fiubO":
            raise TypeError(f"dtype {targets.dtype}")
        targets = targets.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} does not hold real numbers ({error}): convert it to float, or use a classifier"
            " for labels."
        ) from error
    assert_all_finite(targets, input_name=name)
    _check_length(targets, n_samples, name, "target")
    return targets


def _refuse_string_dtype(y: Any, name: str) -> None:
    """Raise if labels are of NumPy's StringDType, which scikit-learn neither learns nor scores."""
    dtype = getattr(y, "dtype", None)
    if getattr(dtype, "kind", None) == "T":
        raise TypeError(
            f"{name} has dtype {dtype}, which scikit-learn does not take as labels: pass"
            f" {name}.astype(object)."
        )


def _refuse_unlabeled(
    labels: NDArray[Any], unlabeled_label: Any, owner: str, classes: Sequence[Any] = ()
) -> None:
    """Raise if labels hold the mark of a sample without a label, which is no class."""
    if unlabeled_label is None:
        return
    marked = unlabeled_rows(labels, unlabeled_label, classes)
    if marked.any():
        mark = "" if unlabeled_label == -1 else f", unlabeled_label={unlabeled_label!r}"
        raise ValueError(
            f"y holds {unlabeled_label!r} in {marked.sum()} of {len(labels)} samples, which marks a"
            f" sample without a label, and {owner} needs a label for each. Wrap it, as"
            f" {_WRAPPER}({owner}(...){mark}); or set unlabeled_label=None if {unlabeled_label!r}"
            " is a class."
        )


def unlabeled_rows(
    labels: NDArray[Any], unlabeled_label: int | str, classes: Sequence[Any] = ()
) -> NDArray[np.bool_]:
    """Return a boolean mask of the rows without a label; no row where the mark is a class.

    Other labels, and `classes` that are known beside them, may show that -1 is a class, as in
    :func:`check_labels`.

    Examples
    --------
    >>> unlabeled_rows(np.array([0, -1, 1]), -1)
    array([False,  True, False])
    """
    values = labels.astype(object)
    # NumPy turns -1 into text where a list holds text too.
    marked = (values == unlabeled_label) | (values == str(unlabeled_label))
    others = [*values[~marked].tolist(), *classes]
    return marked & (unlabeled_label != -1 or not _names_minus_one(others))


def _names_minus_one(others: list[Any]) -> bool:
    """Whether the labels other than -1, numbers or text, show that -1 is the name of a class."""
    try:
        numbers = [int(label) if isinstance(label, str) else label for label in others]
    except ValueError:  # a word
        return False
    if not numbers or not all(isinstance(number, Real) for number in numbers):
        return False
    return min(numbers) < 0 or set(numbers) == {1}


def _check_given(y: ArrayLike | None, owner: str, name: str) -> None:
    if y is None:
        raise ValueError(
            f"This {owner} estimator requires {name} to be passed, but the target {name} is None."
        )


def _check_length(y: NDArray[Any], n_samples: int, name: str, what: str) -> None:
    if len(y) != n_samples:
        windows = name.replace("y", "X")
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {windows} has"
            f" {n_samples}, {name} has {len(y)}. Pass one {what} per sample (a bag is one sample)."
        )


def check_together(X_val: ArrayLike | None, y_val: ArrayLike | None) -> None:
    """Raise if only one of the validation windows and their labels is given."""
    if (X_val is None) != (y_val is None):
        raise ValueError("X_val and y_val come together: pass both, or neither.")


def encode_labels(y_val: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the number of each label's class; raise if a label is of another class."""
    # With many classes NumPy would compare the numbers as text, in which 10 is below 2.
    if isinstance(y_val[0], str) != isinstance(classes[0], str):
        raise TypeError("only one of y and y_val is text: make both of them text, or neither.")
    unknown = ~np.isin(y_val, classes)
    if unknown.any():
        raise ValueError(
            f"y_val holds classes that y does not: {np.unique(y_val[unknown]).tolist()}. A"
            " classifier cannot know them: leave these samples out, or add some of them to X and y."
        )
    return np.searchsorted(classes, y_val)


def check_two_classes(classes: NDArray[Any]) -> None:
    """Raise, in scikit-learn's words, if all samples are of one class."""
    if len(classes) < 2:
        raise ValueError(
            "This solver needs samples of at least 2 classes in the data, but the data contains"
            f" only one class: {classes.tolist()[0]!r}. Add samples of another class to X and y"
            " (a sample of weight 0 does not count)."
        )


def check_sample_weight(sample_weight: ArrayLike | None, n_samples: int) -> NDArray[np.float64]:
    """Return moderate weights, ones for None; raise if all of them are zero."""
    try:
        weight = _check_sample_weight(
            nan_where_masked(of_tensor(sample_weight)),
            np.arange(n_samples),
            dtype=np.float64,
            ensure_non_negative=True,
        )
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"sample_weight must hold one number of at least 0 per sample: {error}"
        ) from error
    if not weight.any():  # scikit-learn before 1.9 accepts zeros
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return _moderate(weight)


def _moderate(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiply weights by one power of two if the largest is huge or tiny.

    Weights count relative to one another. No sum overflows then, and no product vanishes.
    """
    exponent = int(np.frexp(weight.max())[1])
    return np.ldexp(weight, -exponent) if abs(exponent) > _LARGEST_EXPONENT else weight


def class_weights(
    class_weight: Any, classes: NDArray[Any], y: NDArray[np.intp], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return a moderate weight for each class.

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
    if isinstance(class_weight, Mapping):
        for label, value in class_weight.items():
            check_real(f"class_weight[{label!r}]", value, example=1.0)
        class_weight = dict(class_weight)
    elif class_weight is not None:
        kind = ValueError if isinstance(class_weight, str) else TypeError
        raise kind(
            "class_weight must be None, 'balanced' or a dict of a weight for each label, got"
            f" {class_weight!r}; pass for example class_weight='balanced'"
        )
    return _moderate(compute_class_weight(class_weight, classes=classes, y=classes[y]))


def labeled_mask(
    y: Any,
    unlabeled_label: Any,
    caller: str,
    *,
    allow_missing: bool = False,
    classes: Sequence[Any] = (),
) -> NDArray[np.bool_]:
    """Return a boolean mask of the labelled rows.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, 1)
        Labels.
    unlabeled_label : int, str or None
        The value that marks an unlabelled row. With None every row is labelled.
    caller : str
        Name of the class that needs the labels, for the error message.
    allow_missing : bool, default=False
        Whether a row whose label is missing (None, NaN or masked) is unlabelled too.
    classes : sequence, default=()
        Classes that are known beside those of the labels.

    Returns
    -------
    ndarray of bool of shape (n_samples,)
        True where a row is labelled.

    Raises
    ------
    TypeError
        If `unlabeled_label` is no label, or `y` is of NumPy's StringDType, unless `allow_missing`.
    ValueError
        If `y` is None or has several columns, if a label is missing or the marker written as text.

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
    check_label(unlabeled_label)
    y = of_tensor(y)
    if not allow_missing:  # otherwise labels only decide which rows are drawn
        _refuse_string_dtype(y, "y")
    values = _as_column(y)
    refuse_nested(values, "y")
    missing = missing_mask(y).reshape(values.shape)
    if missing.any() and not allow_missing:
        mark = -1 if unlabeled_label is None else unlabeled_label
        raise ValueError(
            f"Input y contains NaN or None in {missing.sum()} of {len(values)} rows, and {caller}"
            f" knows an unlabelled row by unlabeled_label={unlabeled_label!r}: mark these rows by"
            f" {mark!r}" + (" and set unlabeled_label=-1." if unlabeled_label is None else ".")
        )
    _refuse_mark_as_text(values, unlabeled_label)
    labeled = ~missing
    if unlabeled_label is None:
        return labeled
    labeled[labeled] = values[labeled] != unlabeled_label
    is_marked = bool((labeled != ~missing).any())
    known = [*values[labeled].tolist(), *classes]
    if is_marked and unlabeled_label == -1 and _names_minus_one(known):
        if allow_missing:
            return ~missing
        raise ValueError(
            f"y holds -1 beside {sorted(set(values[labeled].tolist()))} alone, where -1 is mostly"
            f" the name of a class, and {caller} takes it for unlabelled rows: if it is a class,"
            " pass another unlabeled_label (None, or -2 for mask_labels); if not, call the class 0."
        )
    return labeled


def _as_column(y: Any) -> NDArray[Any]:
    """Return labels as a flat array; raise if they have several columns."""
    # A list may mix text with -1, which numpy would turn into the text "-1".
    values = np.asarray(y, dtype=object if isinstance(y, (list, tuple)) else None)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"y must hold one label per row, shape (n_samples,); got shape {values.shape}."
        )
    return values


def _refuse_mark_as_text(values: NDArray[Any], unlabeled_label: Any) -> None:
    """Raise if an array of text holds the text of a marker that is a number."""
    if values.dtype.kind != "U" or not isinstance(unlabeled_label, Integral):
        return
    marked = values == str(unlabeled_label)
    if marked.any():
        raise ValueError(
            f"y is text and holds '{unlabeled_label}' in {marked.sum()} of {len(values)} rows,"
            f" which NumPy makes of {unlabeled_label} beside text: pass a list or an array of"
            f" objects that holds the number, or set unlabeled_label='{unlabeled_label}' (None if"
            " it is a class)."
        )
