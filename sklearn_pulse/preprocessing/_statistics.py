"""Centre and scale of channels, from observed values only, in float64."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._moments import Moments

# Interquartile range of a normal distribution, in standard deviations.
NORMAL_RANGE = 1.3489795003921634
ROUNDING = 1e-14  # a spread below this share of the largest value is rounding
LEAST = float(np.finfo(np.float32).tiny)  # in float32, a smaller spread is no spread


class Statistics(NamedTuple):
    """Centre and scale.

    Attributes
    ----------
    center : ndarray of float64
        Number that is subtracted: 0 where nothing was observed.
    scale : ndarray of float64
        Divisor: 1 where nothing was observed, or where all values are the same.
    """

    center: NDArray[np.float64]
    scale: NDArray[np.float64]


def of_pieces(pieces: Iterable[NDArray[np.float64]], n_channels: int) -> Statistics:
    """Return mean and population standard deviation of each channel, in one pass.

    Each piece has the shape (n, n_channels, n_timesteps), and is NaN where a value is missing.
    """
    moments = Moments.of_nothing(n_channels)
    for x in pieces:
        moments = moments.merged(Moments.of(x.swapaxes(0, 1).reshape(n_channels, -1)))
    return of_moments(moments)


def of_windows(x: NDArray[np.float64]) -> Statistics:
    """Return mean and population standard deviation of each channel of each window.

    `x` has the shape (n, n_channels, n_timesteps), and is NaN where a value is missing.
    """
    return of_moments(Moments.of(x))


def robust_of_windows(x: NDArray[np.float64]) -> Statistics:
    """Return median and scaled interquartile range of each channel of each window.

    Parameters
    ----------
    x : ndarray of shape (n, n_channels, n_timesteps)
        Windows, NaN where missing.

    Returns
    -------
    Statistics
        Arrays of shape (n, n_channels).
    """
    ordered = np.sort(x, axis=-1)  # NaN comes last
    count = np.sum(~np.isnan(x), axis=-1)

    def quantile(q: float) -> NDArray[np.float64]:
        place = np.maximum(count - 1, 0) * q
        below = np.floor(place).astype(np.intp)
        above = np.minimum(below + 1, np.maximum(count - 1, 0))
        lower, upper = (
            np.take_along_axis(ordered, at[..., np.newaxis], axis=-1)[..., 0]
            for at in (below, above)
        )
        return lower + (place - below) * (upper - lower)

    return from_quartiles(count, quantile(0.25), quantile(0.5), quantile(0.75))


def from_quartiles(
    count: NDArray[np.intp],
    first: NDArray[np.float64],
    median: NDArray[np.float64],
    third: NDArray[np.float64],
) -> Statistics:
    """Return the median, and the interquartile range in units of a standard deviation."""
    return _checked(count, median, (third - first) / NORMAL_RANGE, first, third)


def of_moments(moments: Moments) -> Statistics:
    """Return mean and population standard deviation; the mean of a constant is not rounded."""
    center = np.where(moments.low == moments.high, moments.low, moments.mean)
    return _checked(moments.number, center, moments.spread, moments.low, moments.high)


def _checked(
    count: NDArray[np.floating | np.integer],
    center: NDArray[np.float64],
    spread: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> Statistics:
    """Return 0 for an unknown centre, and 1 for a spread that cannot be divided by."""
    unseen = count == 0
    largest = np.where(unseen, 0.0, np.maximum(np.abs(low), np.abs(high)))
    least = np.maximum(ROUNDING * largest, LEAST)
    constant = unseen | (low == high) | (spread <= least)
    return Statistics(np.where(unseen, 0.0, center), np.where(constant, 1.0, spread))
