"""Moments of observed values, summed piece by piece in float64."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Moments(NamedTuple):
    """Number, mean and sum of squared deviations of observed values, and their range.

    Each piece of the values is centred by its own mean, and the moments of pieces are merged (Chan,
    Golub and LeVeque 1979); so an offset that is far larger than the spread costs no precision.

    Examples
    --------
    >>> import numpy as np
    >>> pieces = np.array([[1.0, 3.0]]), np.array([[np.nan, 8.0]])
    >>> moments = Moments.of(pieces[0]).merged(Moments.of(pieces[1]))
    >>> moments.number, moments.mean, moments.spread.round(3)
    (array([3.]), array([4.]), array([2.944]))
    """

    number: NDArray[np.float64]
    mean: NDArray[np.float64]
    squares: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def of_nothing(cls, n_channels: int) -> Moments:
        """Return the moments of each channel before a value was seen."""
        return cls.of(np.empty((n_channels, 0)))

    @classmethod
    def of(cls, x: NDArray[np.float64]) -> Moments:
        """Return the moments along the last axis."""
        seen = ~np.isnan(x)
        n = seen.sum(-1).astype(np.float64)
        mean = np.where(seen, x, 0.0).sum(-1) / np.maximum(n, 1)
        deviation = np.where(seen, x - mean[..., np.newaxis], 0.0)
        # The second term would be 0 without rounding of the mean.
        squares = (deviation**2).sum(-1) - deviation.sum(-1) ** 2 / np.maximum(n, 1)
        low = np.fmin.reduce(x, axis=-1, initial=np.inf)
        high = np.fmax.reduce(x, axis=-1, initial=-np.inf)
        return cls(n, mean, np.maximum(squares, 0.0), low, high)

    def merged(self, other: Moments) -> Moments:
        """Return the moments of the values of both."""
        total = self.number + other.number
        share = other.number / np.maximum(total, 1)
        delta = other.mean - self.mean
        return Moments(
            total,
            self.mean + delta * share,
            self.squares + (other.squares + delta**2 * self.number * share),
            np.fmin(self.low, other.low),
            np.fmax(self.high, other.high),
        )

    @property
    def spread(self) -> NDArray[np.float64]:
        """Population standard deviation; 0 where nothing was observed."""
        return np.sqrt(self.squares / np.maximum(self.number, 1))
