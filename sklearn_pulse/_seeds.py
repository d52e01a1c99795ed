"""Seeds drawn from a random state, and the random generator that numpy has once per process."""

from __future__ import annotations

import contextlib
import numbers
import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

_HIGHEST = np.iinfo(np.int32).max


class _GlobalGenerator:
    """The lock of numpy's global generator, which the thread that seeds it holds."""

    lock = threading.Lock()

    @classmethod
    def renew(cls) -> None:
        """Forget a thread that holds the lock, and is not in a forked child."""
        cls.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_GlobalGenerator.renew)


def draw_seed(random_state: Any, high: int = _HIGHEST) -> int:
    """Draw a seed below `high` from a random state, which an integer or None stands for."""
    return int(check_random_state(random_state).randint(high, dtype=np.int64))


def as_seed(random_state: Any, high: int = _HIGHEST) -> int:
    """Return an integer as it is, so that published seeds keep their meaning; else draw a seed."""
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return draw_seed(random_state, high)


@contextlib.contextmanager
def global_generator_kept() -> Iterator[None]:
    """Leave numpy's global generator as it was, around code that seeds it and draws from it.

    One thread is inside at a time. Else two of them would draw from one another's seed, and the
    second would take the seed of the first for the state to set back.
    """
    with _GlobalGenerator.lock:
        state = np.random.get_state()
        try:
            yield
        finally:
            np.random.set_state(state)
