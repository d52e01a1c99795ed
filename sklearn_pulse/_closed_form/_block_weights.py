"""Shares of the variance that the blocks of stacked features get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._parameters import check_real, is_auto

BLOCKS = (
    "statistics",
    "autocorrelation",
    "minirocket",
    "multirocket",
    "quantiles",
    "hydra",
    "rhythm",
    "covariance",
    "envelopes",
)
# Blocks with maps of their own: beside many columns, few get no weight.
APART = ("rhythm", "covariance", "envelopes")
USUAL_WEIGHTS = (0.06, 0.03, 0.36, 0.15, 0.15, 0.25)
# A window that was cut from a recording may start anywhere: where in it something happens says
# little, and statistics do not hold it. Trials without recordings begin at an event.
WEIGHTS_OF_RECORDED_CHANNELS = (0.6, 0.01, 0.15, 0.065, 0.065, 0.11)
# Quantiles of parts of a window tell beats from pauses. The level and bands of beats tell people.
WEIGHTS_OF_RHYTHMS = (0.0, 0.03, 0.32, 0.13, 0.3, 0.22)
OF_ORDER = (1, 0, 0, 0, 0, 1)
RHYTHM_ALONE = (0, 0, 0, 0, 0, 0, 1)
ENVELOPES_ALONE = (0, 0, 0, 0, 0, 0, 0, 0, 1)
_SHARE_APART = 0.15  # of the one of them that is used
_WHITENING_OF_RHYTHM = 0.5  # large directions of beats are those of their shape, which tells people
# In ECGs, the nearest windows are those of people whose beats look alike.
_WEIGHT_OF_NEAREST = 0.5
_SMALLEST, _LARGEST = 1e-6, 1e6  # bounds of the largest share, whose features are float32
_FEWEST = 4  # blocks that have a share; the others may be left out


def check_weights(weights: Any) -> None:
    """Raise unless `weights` are "auto", or four to nine numbers from 0 to 1e6, not all tiny."""
    example = f"pass for example block_weights={USUAL_WEIGHTS}"
    if is_auto(weights):
        return
    kind = "block_weights must be 'auto' or four to nine numbers"
    is_single = isinstance(weights, np.ndarray) and weights.ndim == 0
    if is_single or not isinstance(weights, Sequence | np.ndarray):
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


def weights_with(name: str, others: Sequence[float] = USUAL_WEIGHTS) -> NDArray[np.float64]:
    """Return the shares of a block with a map of its own, and of the others."""
    weights = (1.0 - _SHARE_APART) * all_weights(others)
    weights[BLOCKS.index(name)] = _SHARE_APART
    return weights


def automatic_whitening(weights: NDArray[np.float64]) -> float:
    """Return how far to whiten what views share, under shares that the windows asked for."""
    return _WHITENING_OF_RHYTHM if weights[BLOCKS.index("rhythm")] else 0.0


def automatic_nearest(weights: NDArray[np.float64]) -> float:
    """Return the weight of what the nearest windows share, of windows without recordings."""
    return _WEIGHT_OF_NEAREST if weights[BLOCKS.index("covariance")] else 0.0
