"""Hiding of most labels, for pipelines that pretrain on every row."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._parameters import check_seed
from ._draw import check_share, one_more_of_each_class, own_permutation


def mask_labels(
    y: ArrayLike,
    fraction: float,
    random_state: int | np.random.RandomState | None = None,
    *,
    unlabeled_label: int | str = -1,
) -> NDArray[Any]:
    """Hide all but a fraction of the labels, keeping some of each class.

    The n labelled rows are permuted at random. The first ``int(fraction * n)`` of them keep their
    label, and so does the next row of each class in the permutation, if the class has a further
    row. No class is lost, and with the same integer seed a smaller fraction keeps a subset of the
    labels of a larger fraction.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Integer labels (or text labels, with a text ``unlabeled_label``). Rows that are already
        unlabelled stay so and are not counted.
    fraction : float
        Share of the labels to keep, 0 to 1, before the further row of each class. With 0, one
        label of each class is kept; with 1, all labels are kept.
    random_state : int, RandomState instance or None, default=None
        Seed of the permutation.
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
        If ``fraction`` is outside 0 to 1, or ``y`` is not one-dimensional or holds no label.

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
    """
    check_share("fraction", fraction)
    check_seed("random_state", random_state)
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(
            f"y must hold one label per row, shape (n_samples,); got shape {labels.shape}."
        )
    masked = np.array(labels, dtype=_masked_dtype(labels, unlabeled_label))
    candidates = np.flatnonzero(masked != unlabeled_label)
    if candidates.size == 0:
        raise ValueError(
            f"y holds no label: all {labels.size} entries equal "
            f"unlabeled_label={unlabeled_label!r}; pass the labels before they are masked."
        )
    permutation = own_permutation(candidates.size, random_state)
    n_drawn = int(fraction * candidates.size)
    more = one_more_of_each_class(labels[candidates], permutation, n_drawn)
    hidden = np.setdiff1d(permutation[n_drawn:], more)
    masked[candidates[hidden]] = unlabeled_label
    return masked


def _masked_dtype(labels: NDArray[Any], unlabeled_label: Any) -> np.dtype[Any]:
    """Return a type that holds the labels and the marker."""
    if isinstance(unlabeled_label, Integral) and not isinstance(unlabeled_label, bool):
        if labels.dtype.kind not in "iu":
            raise TypeError(
                f"y must hold integers beside unlabeled_label={unlabeled_label!r}, got "
                f"{labels.dtype} labels; encode them with sklearn.preprocessing.LabelEncoder, "
                "or, if they are text, pass a text unlabeled_label."
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
            "labels; pass an integer unlabeled_label."
        )
    raise TypeError(f"unlabeled_label must be an integer or a text, got {unlabeled_label!r}.")
