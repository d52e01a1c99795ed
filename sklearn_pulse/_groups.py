"""Groups of samples, and missing entries among groups, labels and windows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def check_groups(
    groups: ArrayLike | None, n_samples: int, *, unit: str = "sample", name: str = "groups"
) -> NDArray[Any] | None:
    """Return the groups as an array; raise unless `groups` holds one entry per sample.

    Parameters
    ----------
    groups : array-like of shape (n_samples,) or None
        Recording or subject of each sample.
    n_samples : int
        Number of samples.
    unit : {"sample", "recording"}, default="sample"
        What a sample is called in the message.
    name : str, default="groups"
        Name of the parameter.

    Returns
    -------
    ndarray of shape (n_samples,) or None
        The groups; None if `groups` is None.

    Raises
    ------
    ValueError
        If `groups` has another shape, holds values that cannot be sorted (text beside numbers), or
        a group is missing (None, NaN, NaT or masked).

    Examples
    --------
    >>> check_groups(["anna", "ben"], 3)
    Traceback (most recent call last):
    ...
    ValueError: groups has shape (2,), but there are 3 samples: pass one group per sample, for
    example its subject
    """
    if groups is None:
        return None
    given = groups
    if isinstance(given, Mapping):
        raise ValueError(
            f"{name} is a {type(given).__name__}, whose order need not be that of the {unit}s: pass"
            f" [{name}[key] for key in keys], where keys lists the {unit}s in their order"
        )
    try:
        groups = np.asarray(given)
    except ValueError as error:  # ragged
        raise ValueError(
            f"{name} cannot be read as an array ({error}): pass one group per {unit}, for example"
            " its subject"
        ) from error
    if groups.dtype.kind == "T":  # NumPy's StringDType, which scikit-learn's splitters do not know
        groups = groups.astype(object)
    refuse_nested(groups, name)
    if groups.shape != (n_samples,):
        raise ValueError(
            f"{name} has shape {groups.shape}, but there are {n_samples} {unit}s: pass one group"
            f" per {unit}, for example its subject"
        )
    if groups.dtype == object or isinstance(given, list | tuple):
        _check_one_kind(given, name)
    is_missing = missing_mask(given)
    if is_missing.any():
        raise ValueError(
            f"{name} is missing for {int(is_missing.sum())} {unit}(s) (first {unit}"
            f" {int(is_missing.argmax())}): give every {unit} a group, one of its own if need be"
        )
    return groups


def _check_one_kind(groups: Any, name: str) -> None:
    """Raise if groups cannot be sorted: text beside numbers, or dates beside numbers."""
    known = [group for group in groups if not _is_missing(group)]
    if mixes_text(known):
        raise ValueError(
            f"{name} mixes text with numbers: make all of them text, for example by"
            f" [str(group) for group in {name}]"
        )
    of_type = {type(group): group for group in known}
    try:
        for first, second in itertools.product(of_type.values(), repeat=2):
            first < second  # noqa: B015 - raises if there is no order
    except TypeError as error:
        raise ValueError(
            f"{name} holds values without an order ({error}): make all of them text, for example by"
            f" [str(group) for group in {name}]"
        ) from error


def mixes_text(values: Iterable[Any]) -> bool:
    """Return whether some values are text and others are not, so that they have no order."""
    return len({isinstance(value, str) for value in values}) > 1


def missing_mask(values: Any) -> NDArray[np.bool_]:
    """Return which entries are missing: None, NaN, NaT, pandas' NA, or masked.

    Parameters
    ----------
    values : array-like
        Numbers, text, dates or objects. The entries of a list are tested one by one, since numpy
        turns a NaN among texts into the text "nan".

    Returns
    -------
    ndarray of bool
        In the shape of `values`.

    Examples
    --------
    >>> missing_mask(["a", None, float("nan")])
    array([False,  True,  True])
    """
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.getmaskarray(values) | missing_mask(values.data)
    values = np.asarray(values, dtype=object if isinstance(values, list | tuple) else None)
    if values.dtype.kind == "T":  # NumPy's StringDType, where a missing entry equals itself
        values = values.astype(object)
    if values.dtype != object:
        return np.asarray(values != values)
    return np.array([_is_missing(value) for value in values.flat], bool).reshape(values.shape)


def nan_where_masked(values: Any) -> Any:
    """Return a masked array of real numbers with NaN for its masked entries.

    Parameters
    ----------
    values : masked array, Dask array or object
        An array of real numbers, or anything else.

    Returns
    -------
    ndarray, Dask array or object
        `values` itself if it is neither. A Dask array is not computed.

    Examples
    --------
    >>> nan_where_masked(np.ma.masked_equal([1, 2], 2))
    array([ 1., nan])
    """
    if is_dask(values):
        return values.map_blocks(nan_where_masked)
    if not isinstance(values, np.ma.MaskedArray):
        return values
    return np.ma.filled(values.astype(np.promote_types(values.dtype, np.float32)), np.nan)


def is_dask(values: Any) -> bool:
    """Return whether values are a Dask array, without importing Dask."""
    return type(values).__module__.startswith("dask.array") and hasattr(values, "dask")


def refuse_nested(values: NDArray[Any], name: str) -> None:
    """Raise if the entries of an array are arrays, as those of a column of lists are."""
    if values.dtype != object or not any(isinstance(v, np.ndarray | list) for v in values.flat):
        return
    raise ValueError(
        f"{name} holds arrays as its entries: pass numpy.stack(list({name})), if several columns"
        " are possible here, or a column with one value per row"
    )


def _is_missing(value: Any) -> bool:
    """Return whether a value of an array of objects is None, NaN, NaT or pandas' NA."""
    if isinstance(value, np.ndarray):
        return False
    try:
        return value is None or not bool(value == value)
    except TypeError:  # pandas' NA is neither equal to itself nor different
        return True
