"""Runs of observed steps between gaps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def observed_runs(x: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Yield first step and end of each run of steps that are not NaN.

    Parameters
    ----------
    x : ndarray of shape (n_timesteps,)
        One channel of one window.

    Yields
    ------
    tuple of two ints
        First step of the run, and the step after its last.

    Examples
    --------
    >>> import numpy as np
    >>> list(observed_runs(np.array([np.nan, 1.0, 2.0, np.nan, 3.0])))
    [(1, 3), (4, 5)]
    """
    observed = np.concatenate([[False], ~np.isnan(x), [False]])
    edges = np.flatnonzero(np.diff(observed))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
