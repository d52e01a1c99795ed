"""Random draws of labelled rows, shared by masking and splitting."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state


def own_permutation(n: int, random_state: Any) -> NDArray[np.intp]:
    """Return a permutation of n rows that differs from those of scikit-learn's splitters.

    ``KFold(shuffle=True, random_state=0)`` and ``ShuffleSplit`` take their test rows from the
    front of ``RandomState(0).permutation(n)``. If the labelled rows were drawn from the same
    permutation, they would all fall into one test fold, and the training part would have no labels.
    """
    seed = check_random_state(random_state).randint(2**31 - 1)
    return np.random.RandomState(seed).permutation(n)


def check_fraction(fraction, name: str = "fraction") -> None:
    """Refuse what is no share between 0 and 1."""
    if isinstance(fraction, (bool, np.bool_)) or not isinstance(fraction, Real):
        raise TypeError(f"{name} must be a number between 0 and 1, got {fraction!r}.")
    if not 0 <= fraction <= 1:
        raise ValueError(
            f"{name} must lie between 0 and 1, got {fraction!r}; it is a share, "
            "not a number of rows."
        )


def one_more_of_each_class(
    labels: NDArray[Any], permutation: NDArray[np.intp], n_drawn: int
) -> NDArray[np.intp]:
    """Return the first row of each class that follows the drawn rows in the permutation."""
    rest = permutation[n_drawn:]
    # np.unique returns the first position of each class in the rest of the permutation.
    _, first_of_class = np.unique(labels[rest], return_index=True)
    return rest[first_of_class]
