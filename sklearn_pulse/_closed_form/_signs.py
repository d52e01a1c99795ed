"""Signs of eigenvectors, which their definition leaves open."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Directions = TypeVar("Directions", bound=NDArray[Any])


def reference(n_columns: int) -> NDArray[np.float64]:
    """Draw the vector that signs are decided by; the same vector at each call."""
    return np.random.RandomState(0).normal(size=n_columns)


def oriented(directions: Directions, reference: NDArray[np.float64]) -> Directions:
    """Turn directions (n, k), so that their products with a reference (n,) are not negative.

    Eigenvectors of the same matrix come out with other signs on another number of threads, or
    after the last bit of an entry has changed. The largest entry or the sum of the cubes would not
    decide: two entries of equal size and opposite sign are common, for example where two channels
    differ. A random reference has no such ties, whatever the data.

    Examples
    --------
    >>> import numpy as np
    >>> oriented(np.array([[1.0, -1.0], [2.0, -2.0]]), np.array([0.3, 0.5]))
    array([[1., 1.],
           [2., 2.]])
    """
    signs = np.where(reference @ directions < 0, -1, 1).astype(directions.dtype)
    return directions * signs
