"""Pooling of what was computed for the windows of a bag."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def pool_bags(
    rows: NDArray[np.floating[Any]], usable: NDArray[np.bool_], n_windows: int, pooling: str
) -> NDArray[np.floating[Any]]:
    """Pool the windows of each bag, leaving out those without an observed step.

    Parameters
    ----------
    rows : ndarray of shape (n_samples * n_windows, n_features)
        One row per window.
    usable : ndarray of bool of shape (n_samples * n_windows,)
        The windows that count; each bag has one at least.
    n_windows : int
        Number of windows in a bag.
    pooling : {"mean", "max"}
        How rows are pooled.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        One row per bag.

    Examples
    --------
    >>> rows = np.array([[1.0], [3.0], [5.0], [9.0]])
    >>> pool_bags(rows, np.array([True, True, True, False]), 2, "mean").tolist()
    [[2.0], [5.0]]
    """
    bags = rows.reshape(-1, n_windows, rows.shape[1])
    keep = usable.reshape(-1, n_windows, 1)
    if pooling == "max":
        return np.max(bags, axis=1, where=keep, initial=-np.inf)
    return np.mean(bags, axis=1, where=keep)
