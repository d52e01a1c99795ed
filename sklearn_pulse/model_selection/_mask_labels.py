"""Hiding of most labels, for pipelines that pretrain on every row."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._data._labels import labeled_mask
from .._parameters import check_seed, is_number
from ._draw import (
    as_labels,
    check_fraction,
    check_labeled_groups,
    check_one_of,
    one_more_of_each_class,
    own_permutation,
    rows_of_groups,
)


def mask_labels(
    y: ArrayLike,
    fraction: float | None = None,
    random_state: int | np.random.RandomState | None = None,
    *,
    n_groups: int | None = None,
    groups: ArrayLike | None = None,
    unlabeled_label: int | str = -1,
) -> NDArray[Any]:
    """Hide all but a fraction of the labels, or those of all but a few groups, such as people.

    With `fraction`, the n labelled rows are permuted at random. The first ``int(fraction * n)`` of
    them keep their label, and so does the next row of each class in the permutation, if the class
    has a further row. No class is lost, and with the same integer seed a smaller fraction keeps a
    subset of the labels of a larger fraction.

    With `n_groups`, whole groups keep their labels, as if few people had been annotated. Groups are
    visited in random order, and a group is kept if it shows a class that fewer than `n_groups` kept
    groups show. With the same integer seed, fewer groups keep a subset of the labels.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Integer labels (or text labels, with a text ``unlabeled_label``). Rows that are already
        unlabelled stay so and are not counted.
    fraction : float or None, default=None
        Share of the labels to keep, 0 to 1, before the further row of each class. With 0, one
        label of each class is kept; with 1, all labels are kept. Pass either this or `n_groups`.
    random_state : int, RandomState instance or None, default=None
        Seed of the permutation.
    n_groups : int or None, default=None
        Number of labelled groups that show each class, or all groups of a class that has fewer.
    groups : array-like of shape (n_samples,) or None, default=None
        Group of each row, for example its subject; needed with `n_groups`.
    unlabeled_label : int or str, default=-1
        The value that marks an unlabelled row.

    Returns
    -------
    ndarray of shape (n_samples,)
        Copy of ``y`` with hidden labels replaced by ``unlabeled_label``. It has the type of ``y``
        if that type can hold this value, else int64 or a longer text type.

    Raises
    ------
    TypeError
        If the labels or a parameter are of the wrong type.
    ValueError
        If ``fraction`` is outside 0 to 1, if both or neither of ``fraction`` and ``n_groups``
        are given, if groups or a label are missing, or if ``y`` is not one-dimensional or holds no
        label.

    See Also
    --------
    LabelFractionSplit : Splitter that drops rows, for encoders that are already trained.

    Notes
    -----
    Source: paper, Section 5.2 ("1 % and 5 % of the ground truth labels", smoothed so that all
    classes are represented).

    Examples
    --------
    >>> from sklearn_pulse.model_selection import mask_labels
    >>> mask_labels([0, 0, 0, 0, 0, 0, 1, 1], 0.25, random_state=0)
    array([-1,  0, -1, -1, -1,  0,  1,  1])
    >>> people = ["ann", "ann", "ben", "ben", "cleo", "cleo"]
    >>> mask_labels([0, 1, 0, 1, 0, 1], n_groups=1, groups=people, random_state=0)
    array([-1, -1, -1, -1,  0,  1])
    """
    check_one_of(fraction, n_groups)
    check_seed("random_state", random_state)
    labels = _one_per_row(y)
    candidates = np.flatnonzero(labeled_mask(y, unlabeled_label, "mask_labels"))
    masked = np.array(labels, dtype=_masked_dtype(labels, unlabeled_label))
    if candidates.size == 0:
        raise ValueError(
            f"y holds no label: all {labels.size} entries equal "
            f"unlabeled_label={unlabeled_label!r}; pass the labels before they are masked."
        )
    if n_groups is not None:
        who = check_labeled_groups(n_groups, groups, labels.size)[candidates]
        order = own_permutation(np.unique(who).size, random_state)
        kept = rows_of_groups(labels[candidates], who, order, n_groups)
        masked[np.delete(candidates, kept)] = unlabeled_label
        return masked
    share = check_fraction(fraction)
    permutation = own_permutation(candidates.size, random_state)
    n_drawn = int(share * candidates.size)
    more = one_more_of_each_class(labels[candidates], permutation, n_drawn)
    hidden = np.setdiff1d(permutation[n_drawn:], more)
    masked[candidates[hidden]] = unlabeled_label
    return masked


def _one_per_row(y: ArrayLike) -> NDArray[Any]:
    """Return labels as an array, numbers beside text as objects; raise unless it has one axis."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(
            f"y must hold one label per row, shape (n_samples,); got shape {labels.shape}."
        )
    if not labels.size:
        raise ValueError("y holds no label: pass the label of one row or more.")
    given = as_labels(y)  # NumPy made text of numbers beside text, which are still numbers here
    if labels.dtype.kind == "U" and not all(isinstance(label, str) for label in given):
        return given
    return labels


def _masked_dtype(labels: NDArray[Any], unlabeled_label: Any) -> np.dtype[Any]:
    """Return a type that holds the labels and the marker."""
    if is_number(unlabeled_label, Integral):
        if labels.dtype.kind not in "iu":
            remedy = (
                "encode them with sklearn.preprocessing.LabelEncoder, or, if they are text, pass a"
                " text unlabeled_label."
            )
            if all(isinstance(label, Real) for label in labels.tolist()):
                # LabelEncoder would make a class of a marker among these numbers.
                remedy = "pass y.astype(int) if they are whole numbers."
            raise TypeError(
                f"y must hold integers beside unlabeled_label={unlabeled_label!r}, got "
                f"{labels.dtype} labels; {remedy}"
            )
        if labels.size and labels.max() > np.iinfo(np.int64).max:
            raise ValueError(
                "y holds numbers beyond 64-bit integers with a sign: number the classes, for"
                " example by numpy.unique(y, return_inverse=True)[1]."
            )
        held = np.iinfo(labels.dtype)
        fits = held.min <= int(unlabeled_label) <= held.max
        return labels.dtype if fits else np.dtype(np.int64)
    if isinstance(unlabeled_label, str):
        if labels.dtype.kind == "U":
            return np.result_type(labels.dtype, np.asarray(unlabeled_label).dtype)
        if labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels):
            return labels.dtype
        raise TypeError(
            f"y must hold text beside unlabeled_label={unlabeled_label!r}, got {labels.dtype} "
            "labels; make all of them text, or pass an integer unlabeled_label."
        )
    raise TypeError(f"unlabeled_label must be an integer or a text, got {unlabeled_label!r}.")
