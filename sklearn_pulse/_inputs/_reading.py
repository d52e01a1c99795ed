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


def read_places(windows: LazyWindows, name: str) -> NDArray[Any] | None:
    """Return `recording` or `start` of lazy windows; raise unless each window has one.

    Parameters
    ----------
    windows : LazyWindows
        The windows.
    name : {"recording", "start"}
        Name of the attribute.

    Returns
    -------
    ndarray of shape (n_windows,), or None
        The attribute.

    Raises
    ------
    ValueError
        If the attribute has another shape.
    """
    values = getattr(windows, name)
    if values is None:
        return None
    places = np.asarray(values)
    if places.shape != (len(windows),):
        raise ValueError(
            f"X.{name} has shape {places.shape}, but X holds {len(windows)} windows: let the"
            f" attribute {name} of {type(windows).__name__} hold one number per window."
        )
    return places
