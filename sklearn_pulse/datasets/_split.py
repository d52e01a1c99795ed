"""The published division of recordings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SPLIT_SEED = 1234


def shuffled_split(n_recordings: int) -> tuple[NDArray[np.intp], NDArray[np.str_]]:
    """Return the published order of the recordings, and the part of the split of each place in it.

    The recordings are shuffled with seed 1234. The first 70 % are for training ("train"), the next
    15 % for validation ("val"), and the rest for testing ("test"; paper, Appendix D), as
    :class:`sklearn_pulse.model_selection.GroupHoldout` divides any recordings.

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
