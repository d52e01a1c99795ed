"""Indices of lazy windows: which parts of them can be applied before a window is read."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray


def is_simple(key: Any) -> bool:
    """Return whether an index is an integer or a slice: it adds no axis and never broadcasts."""
    is_integer = isinstance(key, numbers.Integral) and not isinstance(key, (bool, np.bool_))
    return is_integer or isinstance(key, slice)


def keeps_all(key: Any) -> bool:
    """Return whether an index selects one or several whole axes."""
    return key is Ellipsis or (isinstance(key, slice) and key == slice(None))


def takes_an_axis(key: Any) -> bool:
    """Return whether an index selects along one axis, which None and Ellipsis do not."""
    return is_simple(key) or np.ndim(key) == 1


def rows_to_read(key: Any, n_rows: int) -> tuple[NDArray[np.intp], Any]:
    """Return the rows that the first index of an array needs, and the index among these rows.

    Parameters
    ----------
    key : any index
        The index of the first axis.
    n_rows : int
        Number of rows.

    Returns
    -------
    rows : ndarray of int of shape (n_needed,)
        The rows; all of them if the index is no slice, integer, mask or array of integers.
    place : any index
        Index that selects the same from these rows, whatever indices follow.

    Raises
    ------
    IndexError
        If a number is out of bounds.

    Examples
    --------
    >>> rows_to_read([7, 3, 7], 10)
    (array([3, 7]), array([1, 0, 1]))
    """
    if isinstance(key, slice):
        return row_numbers(key, n_rows), slice(None)
    array = np.asarray(key)
    if array.ndim == 0 and array.dtype.kind in "iu":
        return np.atleast_1d(row_numbers(int(key), n_rows)), 0
    if array.ndim == 1 and not array.size:
        array = array.astype(np.intp)
    if array.dtype.kind in "iu" or (array.dtype.kind == "b" and array.ndim == 1):
        numbers = row_numbers(array, n_rows)
        rows, place = np.unique(numbers, return_inverse=True)
        return rows, place.reshape(numbers.shape)
    return np.arange(n_rows), key


def row_numbers(key: Any, n_rows: int) -> NDArray[np.intp]:
    """Return the numbers of the rows that a key selects, as ``numpy.arange(n_rows)[key]`` does.

    Integers, slices and arrays of integers take no memory in proportion to `n_rows`.

    Parameters
    ----------
    key : slice, ndarray or any index
        Index of the rows.
    n_rows : int
        Number of rows.

    Returns
    -------
    ndarray of int
        The numbers, none of them negative; 0-D if `key` is an integer.

    Raises
    ------
    IndexError
        If a number is out of bounds, or `key` is no index of one axis.
    """
    if isinstance(key, slice):
        return np.arange(*key.indices(n_rows))
    if is_simple(key) and -n_rows <= key < n_rows:
        return np.asarray(int(key) % n_rows)
    if isinstance(key, np.ndarray) and key.ndim and key.size and key.dtype.kind in "iu":
        if -n_rows <= key.min() and key.max() < n_rows:
            rows = key.astype(np.intp)
            return np.where(rows < 0, rows + n_rows, rows)
    return np.asarray(np.arange(n_rows)[key])
