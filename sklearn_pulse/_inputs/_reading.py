"""Checked reading of lazy windows, whose class may be a user's own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._lazy import LazyWindows, check_taken
from ._numbers import as_real_array


def read_windows(windows: LazyWindows, indices: NDArray[np.intp]) -> NDArray[Any]:
    """Read selected windows; raise unless `take` returns real numbers, a window for each index.

    Parameters
    ----------
    windows : LazyWindows
        The windows.
    indices : ndarray of int of shape (n_selected,)
        Indices of the windows.

    Returns
    -------
    ndarray of shape (n_selected, *windows.shape[1:])
        The windows; masked values are NaN.

    Raises
    ------
    TypeError
        If `take` does not return numbers.
    ValueError
        If `take` returns an array of another shape, or numbers that are not real.
    """
    name = f"{type(windows).__name__}.take"
    taken = as_real_array(windows.take(indices), f"what {name} returned")
    check_taken(windows, taken.shape, len(indices))
    return taken
