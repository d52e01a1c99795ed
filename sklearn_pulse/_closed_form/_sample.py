"""Windows that stand for all, where all would not fit into memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._types import Index

_SAMPLE = 5000  # windows whose features fit into memory together


def sample_of(index: Index, seed: int) -> Index:
    """Draw the windows that scales and components come from, in the order of `index`.

    At most 5,000 of the numbers in it are returned.
    """
    if len(index) <= _SAMPLE:
        return index
    rng = np.random.RandomState(seed)
    return index[np.sort(rng.choice(len(index), _SAMPLE, replace=False))]


def sample_of_people(person: NDArray[np.intp], seed: int) -> Index:
    """Draw people until they have as many windows as a sample; the last may be cut.

    `person` numbers the person of each window from 0, in ascending order. The places in it of at
    most 5,000 windows are returned, in ascending order.
    """
    sizes = np.bincount(person)
    order = np.random.RandomState(seed).permutation(len(sizes))
    before = np.cumsum(sizes[order]) - sizes[order]
    return np.flatnonzero(np.isin(person, order[before < _SAMPLE]))[:_SAMPLE]
