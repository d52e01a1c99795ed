"""Fitted state, committed at the end of `fit` or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def unchanged_on_failure(estimator: Any) -> Iterator[None]:
    """Set an estimator back to its attributes before the block if it raises or is interrupted.

    A generator in `random_state`, from which the block may have drawn a seed, is set back too.
    """
    before = dict(vars(estimator))
    generator: Any = before.get("random_state")
    state = generator.get_state() if isinstance(generator, np.random.RandomState) else None
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        if state is not None:
            generator.set_state(state)
        raise
