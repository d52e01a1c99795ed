"""Results of windows: collected block by block, checked, and pooled over bags."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._windows import Block, CheckedWindows

Rows = NDArray[np.floating[Any]]


def collect(
    windows: CheckedWindows,
    blocks: Iterable[tuple[NDArray[np.intp], Block, Rows]],
    shape: tuple[int, ...],
    read: slice = slice(None),
    *,
    dtype: type[np.floating[Any]] = np.float32,
    nan_allowed: bool = False,
    remedy: str = "",
) -> tuple[Rows, NDArray[np.bool_]]:
    """Collect results that were computed block by block, and check that they are finite.

    Parameters
    ----------
    windows : CheckedWindows
        Windows that the results were computed from.
    blocks : iterable of (indices, block, rows)
        Numbers of a few windows, the windows, and the result of each.
    shape : tuple of int
        Shape of the result of a window.
    read : slice, default=slice(None, None, None)
        Time steps that were read.
    dtype : type, default=np.float32
        Data type of the results.
    nan_allowed : bool, default=False
        Whether results may be NaN.
    remedy : str, default=""
        A further remedy, for the message about values that are not finite.

    Returns
    -------
    rows : ndarray of shape (n_windows, *shape)
        Result of each window.
    usable : ndarray of bool of shape (n_windows,)
        Windows with an observed step that was read.

    Raises
    ------
    TypeError
        If a block of results has another shape.
    ValueError
        If no window of a sample has an observed step that was read, or a result is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> windows = CheckedWindows(np.zeros((2, 8, 1)))
    >>> blocks = ((index, block, block.x.sum(1)) for index, block in windows.blocks())
    >>> rows, usable = collect(windows, blocks, (1,))
    >>> rows.shape, usable.tolist()
    ((2, 1), [True, True])
    """
    result = np.empty((len(windows), *shape), dtype=dtype)
    usable = np.ones(len(windows), dtype=bool)
    finite = np.ones(len(windows), dtype=bool)
    for index, block, rows in blocks:
        rows = np.asarray(rows, dtype=dtype)
        if rows.shape != (len(index), *shape):  # a hook of a user may have computed them
            raise TypeError(
                f"the results of {len(index)} windows have the shape {rows.shape}, and must have"
                f" {(len(index), *shape)}: return a row for each window, of the width that the"
                " transformer states."
            )
        result[index] = rows
        written = rows.reshape(len(rows), -1)
        finite[index] = (~np.isinf(written) if nan_allowed else np.isfinite(written)).all(1)
        if block.observed is not None:
            usable[index] = block.observed[:, read].any(1)
    windows.check_usable(usable, read)
    windows.check_computed(finite, usable, remedy)
    return result, usable


def pooled(windows: CheckedWindows, rows: Rows, usable: NDArray[np.bool_], pooling: str) -> Rows:
    """Return one row per sample: the row of its window, or the pooled rows of a bag's windows.

    The arguments are those of :func:`pool_bags`.

    Examples
    --------
    >>> import numpy as np
    >>> bags = CheckedWindows(np.zeros((2, 2, 8, 1)))
    >>> pooled(bags, np.array([[1.0], [3.0], [5.0], [9.0]]), np.ones(4, bool), "max").tolist()
    [[3.0], [9.0]]
    """
    return pool_bags(rows, usable, windows.n_windows, pooling) if windows.is_bag else rows


def pool_bags(rows: Rows, usable: NDArray[np.bool_], n_windows: int, pooling: str) -> Rows:
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
    # Along the windows NumPy adds one row after another, and float32 would round each sum.
    return np.asarray(np.mean(bags, axis=1, where=keep, dtype=np.float64), dtype=rows.dtype)
