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


def row_numbers(key: Any, n_rows: int) -> NDArray[np.intp]:
    """Return the numbers of the rows that a key selects, as ``numpy.arange(n_rows)[key]`` does.

    For integers, slices and arrays of integers nothing is made that has all rows.

    Parameters
    ----------
    key : slice, ndarray or any index
        What selects the rows.
    n_rows : int
        Number of rows.

    Returns
    -------
    ndarray of int
        The numbers, none negative; of no axis if `key` is an integer.

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
