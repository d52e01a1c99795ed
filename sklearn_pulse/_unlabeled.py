"""Which rows of a target are labelled."""

from __future__ import annotations

from typing import Any

import numpy as np


def labeled_mask(y: Any, unlabeled_label: Any, caller: str) -> np.ndarray:
    """Return a boolean mask of the labelled rows.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, 1)
        Labels.
    unlabeled_label : int, str or None
        The value that marks an unlabelled row. With None every row is labelled.
    caller : str
        Name of the class that needs the labels, for the error message.

    Returns
    -------
    ndarray of bool of shape (n_samples,)
        True where a row is labelled.

    Raises
    ------
    ValueError
        If `y` is None or has several columns, or if the marker is NaN.

    Examples
    --------
    >>> labeled_mask(["a", -1, "b"], -1, "LabeledTestSplit")
    array([ True, False,  True])
    """
    if y is None:
        raise ValueError(
            f"{caller} requires y to be passed, but the target y is None; it needs y to know the "
            "labelled rows."
        )
    if unlabeled_label != unlabeled_label:
        raise ValueError(
            "unlabeled_label must not be NaN, which equals nothing; mark unlabelled rows with -1."
        )
    # A list may mix text with -1, which numpy would turn into the text "-1".
    values = np.asarray(y, dtype=object if isinstance(y, (list, tuple)) else None)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"y must hold one label per row, shape (n_samples,); got shape {values.shape}."
        )
    if unlabeled_label is None:
        return np.ones(values.size, dtype=bool)
    return np.asarray(values != unlabeled_label, dtype=bool)
