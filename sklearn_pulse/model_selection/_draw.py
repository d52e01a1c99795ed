"""Draws of labelled rows, and checks of labels and folds, shared by masking and splitting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from .._groups import check_groups, mixes_text
from .._parameters import check_integer, check_real

_LONGEST = 200  # characters of a value in a message


def own_permutation(n: int, random_state: Any) -> NDArray[np.intp]:
    """Return a permutation of n rows that differs from those of scikit-learn's splitters.

    ``KFold(shuffle=True, random_state=0)`` and ``ShuffleSplit`` take their test rows from the
    front of ``RandomState(0).permutation(n)``. If the labelled rows were drawn from the same
    permutation, they would all fall into one test fold, and the training part would have no labels.
    """
    seed = check_random_state(random_state).randint(2**31 - 1)
    return np.random.RandomState(seed).permutation(n)


def check_fraction(fraction: Any) -> float:
    """Raise unless `fraction` is a share between 0 and 1, both included."""
    meaning = "it is a share, not a number of rows"
    return check_real("fraction", fraction, 0.0, 1.0, open_maximum=False, meaning=meaning)


def as_labels(y: Any) -> NDArray[Any]:
    """Return labels as a flat array, in which a number beside text stays a number."""
    return np.asarray(y, dtype=object if isinstance(y, (list, tuple)) else None).ravel()


def check_one_kind(labels: NDArray[Any]) -> None:
    """Raise if labels mix text with numbers, which have no order."""
    if labels.dtype == object and mixes_text(labels):
        other = next(label for label in labels if not isinstance(label, str))
        raise TypeError(
            f"y mixes text with other labels, such as {other!r}: make all of them text, or set"
            f" unlabeled_label={other!r} if it marks unlabelled rows."
        )


def as_indices(part: ArrayLike, n_rows: int) -> NDArray[np.intp]:
    """Return the indices of a part, which a list of folds may give as a boolean mask or a list."""
    rows = np.asarray(part)
    if rows.size == 0:
        return np.empty(0, np.intp)
    if rows.dtype == bool and rows.shape == (n_rows,):
        return np.flatnonzero(rows)
    if (
        rows.dtype.kind not in "iu"
        or rows.ndim != 1
        or not -n_rows <= rows.min() <= rows.max() < n_rows
    ):
        raise ValueError(
            f"cv has a part that does not name some of {n_rows} rows: pass pairs of arrays of"
            f" indices below {n_rows}, or of boolean masks of this length, got"
            f" {short(part)}."
        )
    return rows


def check_pairs(cv: Any) -> None:
    """Raise if a list of folds holds something else than pairs, which scikit-learn unpacks."""
    if hasattr(cv, "split") or not isinstance(cv, Iterable) or isinstance(cv, Iterator):
        return
    for split in cv:
        try:
            _, _ = split
        except (TypeError, ValueError):
            raise ValueError(
                "cv must be a splitter or hold pairs (train, test) of the rows of each split, but"
                f" holds {short(split)}: if it holds the fold of each row, pass"
                " sklearn.model_selection.PredefinedSplit(cv)."
            ) from None


def short(value: Any) -> str:
    """Return the representation of a value, shortened if it is long, as that of a list of folds."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def for_splitters(y: Any, unlabeled_label: Any) -> Any:
    """Return labels that scikit-learn's splitters accept.

    These refuse text mixed with numbers, such as text labels beside the marker -1. Mixed labels
    become the numbers of their classes, and -1 for unlabelled rows. Others stay as they are.
    """
    if y is None or hasattr(y, "detach"):  # a tensor holds numbers alone
        return y
    labels = as_labels(y)
    if labels.dtype != object or not mixes_text(labels):
        return y
    text = labels.astype(str)
    codes = np.unique(text, return_inverse=True)[1]
    codes[text == str(unlabeled_label)] = -1
    return codes


def one_more_of_each_class(
    labels: NDArray[Any], permutation: NDArray[np.intp], n_drawn: int
) -> NDArray[np.intp]:
    """Return the first row of each class that follows the drawn rows in the permutation."""
    rest = permutation[n_drawn:]
    # np.unique returns the first position of each class in the rest of the permutation.
    _, first_of_class = np.unique(labels[rest], return_index=True)
    return rest[first_of_class]


def check_one_of(fraction: Any, n_groups: Any) -> None:
    """Raise unless exactly one of two parameters says how many labels to keep."""
    if (fraction is None) == (n_groups is None):
        raise ValueError(
            f"fraction={fraction!r} and n_groups={n_groups!r}: set one of them, the share of the"
            " labels or the number of labelled groups of each class, and the other to None."
        )


def check_labeled_groups(n_groups: Any, groups: ArrayLike | None, n_samples: int) -> NDArray[Any]:
    """Return the groups; raise unless `n_groups` counts groups and each row has one."""
    check_integer("n_groups", n_groups, 1, meaning="it counts the labelled groups of each class")
    checked = check_groups(groups, n_samples, unit="row")
    if checked is None:
        raise ValueError(
            f"n_groups={n_groups} labels whole groups: pass the group of each row as groups, for"
            " example its subject."
        )
    return checked


def rows_of_groups(
    labels: NDArray[Any], groups: NDArray[Any], order: NDArray[np.intp], n_groups: int
) -> NDArray[np.intp]:
    """Return the rows of the first groups that together show each class in `n_groups` groups.

    `order` holds the positions of the groups among their sorted names. The groups are gone through
    in this order. A group is taken if fewer than `n_groups` groups so far show one of its classes,
    so fewer groups have a subset of the rows of more groups.
    """
    _, codes = np.unique(groups, return_inverse=True)
    by_group = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    classes, numbers = np.unique(labels, return_inverse=True)
    shown = np.zeros(len(classes), dtype=np.intp)
    chosen = np.zeros(len(sizes), dtype=bool)
    for group in order:
        if (shown >= n_groups).all():
            break
        own = np.unique(numbers[by_group[starts[group] : ends[group]]])
        if (shown[own] < n_groups).any():
            chosen[group] = True
            shown[own] += 1
    return np.flatnonzero(chosen[codes])
