"""Correlation of channels, from the time steps at which two of them are observed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .._moments import Moments
from ._statistics import Statistics, of_moments

Matrix = NDArray[np.float64]


def correlation_of_pieces(
    pieces: Iterable[NDArray[np.float64]], n_channels: int
) -> tuple[Statistics, Matrix]:
    """Return mean and standard deviation of each channel, and the correlations, in one pass.

    Parameters
    ----------
    pieces : iterable of ndarray of shape (n, n_channels, n_timesteps)
        Some steps of some windows, NaN where a value is missing.
    n_channels : int
        Number of channels.

    Returns
    -------
    statistics : Statistics
        Mean and population standard deviation.
    correlation : ndarray of shape (n_channels, n_channels)
        Correlation of each two channels over the steps at which both are observed; 0 if one of
        them does not vary there, and 1 on the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[[1.0, 2.0, 3.0, np.nan], [2.0, 4.0, 6.0, 9.0]]])
    >>> correlation_of_pieces([x], 2)[1].round(6).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    moments = Moments.of_nothing(n_channels)
    shift = np.full((n_channels, 1), np.nan)  # near the mean, so that squares lose no digits
    sums = np.zeros((4, n_channels, n_channels))
    for piece in pieces:
        x = piece.swapaxes(0, 1).reshape(n_channels, -1)
        of_piece = Moments.of(x)
        moments = moments.merged(of_piece)
        seen_now = np.where(of_piece.number > 0, of_piece.mean, np.nan)[:, np.newaxis]
        shift = np.where(np.isnan(shift), seen_now, shift)
        sums += _sums_of_pairs(x - shift)
    return of_moments(moments), _correlation(*sums)


def _sums_of_pairs(x: Matrix) -> Matrix:
    """Sum ones, values, squares and products over the steps at which two channels are observed.

    Values and squares are those of the channel of the row.
    """
    seen = ~np.isnan(x)
    x, seen = np.where(seen, x, 0.0), seen.astype(np.float64)
    return np.stack([seen @ seen.T, x @ seen.T, x**2 @ seen.T, x @ x.T])


def _correlation(number: Matrix, values: Matrix, squares: Matrix, products: Matrix) -> Matrix:
    """Return the correlations of sums over pairs."""
    count = np.maximum(number, 1)
    variance = np.maximum(squares / count - (values / count) ** 2, 0.0)
    covariance = products / count - values * values.T / count**2
    spread = np.sqrt(variance * variance.T)
    # Rounding of the squares is no variance.
    varies = spread > 1e-12 * np.sqrt(squares * squares.T) / count
    result = np.divide(covariance, spread, out=np.zeros_like(spread), where=varies)
    np.fill_diagonal(result, 1.0)
    return result
