"""Random draws of labelled rows, shared by masking and splitting."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from .._parameters import check_real


def own_permutation(n: int, random_state: Any) -> NDArray[np.intp]:
    """Return a permutation of n rows that differs from those of scikit-learn's splitters.

    ``KFold(shuffle=True, random_state=0)`` and ``ShuffleSplit`` take their test rows from the
    front of ``RandomState(0).permutation(n)``. If the labelled rows were drawn from the same
    permutation, they would all fall into one test fold, and the training part would have no labels.
    """
    seed = check_random_state(random_state).randint(2**31 - 1)
    return np.random.RandomState(seed).permutation(n)


def check_share(name: str, value: Any) -> float:
    """Raise unless `value` is a share between 0 and 1, both included."""
    meaning = "it is a share, not a number of rows"
    return check_real(name, value, 0.0, 1.0, open_maximum=False, meaning=meaning)


def one_more_of_each_class(
    labels: NDArray[Any], permutation: NDArray[np.intp], n_drawn: int
) -> NDArray[np.intp]:
    """Return the first row of each class that follows the drawn rows in the permutation."""
    rest = permutation[n_drawn:]
    # np.unique returns the first position of each class in the rest of the permutation.
    _, first_of_class = np.unique(labels[rest], return_index=True)
    return rest[first_of_class]
