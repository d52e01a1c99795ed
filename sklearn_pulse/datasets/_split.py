"""The published division of recordings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SPLIT_SEED = 1234


def shuffled_split(n_recordings: int) -> tuple[NDArray[np.intp], NDArray[np.str_]]:
    """Return the published order and split of the recordings.

    The recordings are shuffled with seed 1234. The first 70 % are for training, the next 15 %
    for validation, and the rest for testing (paper, Appendix D).

    Parameters
    ----------
    n_recordings : int
        Number of recordings.

    Returns
    -------
    order : ndarray of shape (n_recordings,), dtype int64
        Index of the recording at each place of the shuffled order.
    split : ndarray of shape (n_recordings,), dtype str
        "train", "val" or "test" for each place of the shuffled order.

    See Also
    --------
    sklearn_pulse.model_selection.GroupHoldout : The same division of any recordings.

    Examples
    --------
    >>> order, split = shuffled_split(10)
    >>> split.tolist().count("train")
    7
    """
    order = np.arange(n_recordings)
    np.random.RandomState(SPLIT_SEED).shuffle(order)
    split = np.full(n_recordings, "train", dtype="<U5")
    split[int(0.7 * n_recordings) :] = "val"
    split[int(0.85 * n_recordings) :] = "test"
    return order, split
