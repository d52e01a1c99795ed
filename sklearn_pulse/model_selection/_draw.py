"""Which rows keep their label: the draws that masking and splitting share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._parameters import check_real


def own_permutation(n: int, random_state) -> np.ndarray:
    """Permutation of n rows that differs from the one scikit-learn's splitters draw.

    ``KFold(shuffle=True, random_state=0)`` and ``ShuffleSplit`` take their test rows from the
    front of ``RandomState(0).permutation(n)``. Drawn alike with the same seed, the labelled rows
    would all fall into one test fold and leave the training part without any.
    """
    seed = check_random_state(random_state).randint(2**31 - 1)
    return np.random.RandomState(seed).permutation(n)


def check_share(name: str, value: Any) -> float:
    """Raise unless `value` is a share between 0 and 1, both included."""
    meaning = "it is a share, not a number of rows"
    return check_real(name, value, 0.0, 1.0, open_maximum=False, meaning=meaning)


def one_more_of_each_class(labels: np.ndarray, permutation: np.ndarray, n_drawn: int) -> np.ndarray:
    """First row of each class after the drawn ones, in the order of the permutation."""
    rest = permutation[n_drawn:]
    # np.unique gives the first place of each class in the rest of the permutation.
    _, first_of_class = np.unique(labels[rest], return_index=True)
    return rest[first_of_class]
