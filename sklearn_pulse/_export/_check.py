"""Comparison of a graph with the estimator that it was made from."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

# Values of a batch that both compute as a test; a window of the length at `fit` may have more.
_LARGEST = 2**18


def check_equal(
    program: Any,
    reference: Callable[[NDArray[np.float32]], NDArray[Any]],
    n_timesteps: int,
    any_length: bool,
    draw: Callable[[tuple[int, int]], NDArray[np.float32]],
    tolerance: float,
) -> None:
    """Raise unless a program and the estimator agree, for several batches and lengths.

    Parameters
    ----------
    program : torch.export.ExportedProgram
        The program.
    reference : callable
        Function of windows, which the estimator computes.
    n_timesteps : int
        Number of time steps at `fit`.
    any_length : bool
        Whether the program takes windows of every length.
    draw : callable
        Function of (n_windows, n_timesteps) that draws windows.
    tolerance : float
        Largest difference from a value, as a share of it or of the largest value.

    Raises
    ------
    ValueError
        If a result differs, or the program refuses a batch.
    """
    lengths = {n_timesteps, max(1, n_timesteps // 2), n_timesteps + 7}
    run = program.module()
    for length in sorted(lengths if any_length else {n_timesteps}):
        for n_windows in (1, 3):
            x = draw((n_windows, length))
            if x.size > _LARGEST and (n_windows, length) != (1, n_timesteps):
                continue
            x[-1, length // 2 + 1 :: 3, 0] = np.nan
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of windows longer than those of fit
                expected = np.asarray(reference(x), dtype=np.float64)
            try:
                with torch.no_grad(), torch.autocast("cpu", enabled=False):
                    found = run(torch.from_numpy(x)).numpy()
            except (AssertionError, RuntimeError) as error:
                raise ValueError(
                    f"its graph refuses {n_windows} window(s) of {length} steps"
                    f" ({str(error).splitlines()[0]}): serve it by save_pretrained and"
                    " load_pretrained instead."
                ) from error
            # A score near zero may be the difference of large terms.
            near_zero = tolerance * max(1.0, np.abs(expected).max(initial=0.0))
            if found.shape != expected.shape or not np.allclose(
                found, expected, rtol=tolerance, atol=near_zero
            ):
                raise ValueError(
                    f"its graph computes something else for {n_windows} window(s) of {length}"
                    " steps: serve it by save_pretrained and load_pretrained instead."
                )
