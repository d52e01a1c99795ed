"""Shares of the variance that the blocks of stacked features get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._parameters import check_real, is_auto


def standardized(name: str) -> str:
    """Return the name of a block that reads windows standardized one by one."""
    return f"{name}_standardized"


BLOCKS = (
    "statistics",
    "autocorrelation",
    "minirocket",
    "multirocket",
    "quantiles",
    "hydra",
    "rhythm",
    *(standardized(name) for name in ("minirocket", "multirocket", "quantiles", "hydra")),
)
# Of halves of windows, and of neighbouring windows, whose recordings may differ in their gain.
HALVES_WEIGHTS = (0.06, 0.03, 0.36, 0.15, 0.15, 0.25)
ADJACENT_WEIGHTS = (0.18, 0.01, 0.15, 0.065, 0.065, 0.105, 0.0, 0.17, 0.07, 0.065, 0.12)
RHYTHM_ALONE = (0, 0, 0, 0, 0, 0, 1)
_RHYTHM_SHARE = 0.15
_SMALLEST, _LARGEST = 1e-6, 1e6  # bounds of the largest share, whose features are float32
_FEWEST = 4  # blocks that have a share; the others may be left out


def check_weights(weights: Any) -> None:
    """Raise unless `weights` are "auto", or four to eleven numbers from 0 to 1e6, not all tiny."""
    example = f"pass for example block_weights={HALVES_WEIGHTS}"
    if is_auto(weights):
        return
    kind = "block_weights must be 'auto' or four to eleven numbers"
    if not isinstance(weights, Sequence | np.ndarray):
        raise TypeError(f"{kind}, got {weights!r}; {example}")
    if isinstance(weights, str) or not _FEWEST <= len(weights) <= len(BLOCKS):
        raise ValueError(f"{kind}, got {weights!r}; {example}")
    for weight in weights:
        check_real("each of block_weights", weight, 0.0, _LARGEST, open_maximum=False, example=0.25)
    if not any(weights):
        raise ValueError(f"block_weights must not all be 0, got {weights!r}; {example}")
    if max(weights) < _SMALLEST:
        raise ValueError(
            f"the largest of block_weights must be at least {_SMALLEST:g}, got {weights!r};"
            f" {example}"
        )


def all_weights(weights: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a share for each block, 0 for those without one."""
    return np.array([*weights, *[0.0] * (len(BLOCKS) - len(weights))], dtype=np.float64)


def with_rhythm(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give 0.15 of the variance to the rhythm, and the rest to the former blocks."""
    return (1 - _RHYTHM_SHARE) * weights + _RHYTHM_SHARE * all_weights(RHYTHM_ALONE)
