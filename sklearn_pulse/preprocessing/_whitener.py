"""Channels without what they have in common."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from .._docstrings import complete_docstring
from .._inputs._shape import note_channels
from .._parameters import check_share
from .._typing import InputLayout
from ._base import BasePreprocessor
from ._correlation import correlation_of_pieces
from ._source import WindowSource
from ._values import WindowMap


@complete_docstring
class ChannelWhitener(BasePreprocessor):
    """Replace the channels by combinations of them that do not correlate.

    Electrodes of one head, or of one reference, record much the same signal, beside which what each
    of them has of its own is small. Features of a channel, and sums of a few channels, then hold
    little but the common signal. After this step the combinations of channels have the same weight,
    whatever their size was. Use it for EEG and MEG, and compare it where channels correlate.

    Parameters
    ----------
    shrinkage : float, default=0.01
        Share of the correlations that is replaced by none, above 0 and at most 1. It bounds how
        far small combinations, such as the noise of a recorder, are enlarged, to the root of its
        inverse. With 1 each channel is scaled by itself.

    Attributes
    ----------
    center_ : ndarray of float64 of shape (n_channels,)
        Mean of each channel.
    correlation_ : ndarray of float64 of shape (n_channels, n_channels)
        Correlation of each two channels before.
    whitening_ : ndarray of float64 of shape (n_channels, n_channels)
        Matrix W. The row of a channel is near the channel itself.

    See Also
    --------
    WindowScaler : Centre and scale each channel by itself.

    Notes
    -----
    Let P be the correlations of the channels, s the shrinkage, and V the variances. Then
    ``W = ((1 - s) P + s I)^(-1/2) V^(-1/2)``, and a time step x becomes ``W (x - center_)``. Of all
    maps to uncorrelated channels this one leaves each channel as near to itself as possible, so
    that channels keep their names, and the unit of a channel does not matter.

    Mean, variance and correlation are those of all values of `fit`. The correlation of two channels
    is that of the steps at which both are observed. A missing value (NaN) stays missing, and in the
    other channels the mean stands for it. Sums are in float64.

    `fit` reads arrays, memory maps, lists and lazy windows in blocks, once. Lazy windows stay lazy
    in `transform`; everything else becomes an array in memory, or a list of arrays.

    Source: Kessy, Lewin and Strimmer (2018), "Optimal whitening and decorrelation", The American
    Statistician 72 (there ZCA-cor).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.preprocessing import ChannelWhitener
    >>> rng = np.random.default_rng(0)
    >>> X = 10 * rng.normal(size=(20, 100, 1)) + rng.normal(size=(20, 100, 3))
    >>> round(float(np.corrcoef(X.reshape(-1, 3).T).min()), 2)
    0.99
    >>> whitened = ChannelWhitener(shrinkage=1e-4).fit_transform(X)
    >>> bool(abs(np.corrcoef(whitened.reshape(-1, 3).T) - np.eye(3)).max() < 0.02)
    True
    """

    center_: NDArray[np.float64]
    correlation_: NDArray[np.float64]
    whitening_: NDArray[np.float64]

    def __init__(self, shrinkage: float = 0.01, input_layout: InputLayout = "ntc") -> None:
        self.shrinkage = shrinkage
        self.input_layout = input_layout

    def _check_params(self) -> None:
        super()._check_params()
        check_share("shrinkage", self.shrinkage, example=0.01)

    def _learn(self, windows: WindowSource) -> None:
        self._learn_of(windows.pieces(), windows.n_channels)

    def _learn_of(self, pieces: Iterable[NDArray[np.float64]], n_channels: int) -> None:
        """Learn from pieces of values of shape (n, n_channels, n_timesteps)."""
        (center, scale), self.correlation_ = correlation_of_pieces(pieces, n_channels)
        self.center_ = center
        self.whitening_ = _root_of_inverse(self.correlation_, float(self.shrinkage)) / scale

    def _function(self, windows: WindowSource | None = None) -> WindowMap:
        return partial(_whiten, center=self.center_, matrix=self.whitening_)

    def _note_part(self, n_channels: int) -> None:
        """Note windows that another estimator, which this step is a part of, has checked."""
        self._derive()
        note_channels(self, n_channels)
        self.channel_names_in_ = None

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.float32] | Any:
        """Undo the whitening.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels), list or LazyWindows
            Whitened windows without missing values, of which the others would depend.

        Returns
        -------
        ndarray, list of ndarray, or LazyWindows
            The windows in their former units, float32. A missing value counts as the mean of its
            whitened channel.

        Raises
        ------
        TypeError
            If `X` holds no numbers.
        ValueError
            If `X` has an infinite value, or another number or other names of channels than in
            `fit`.
        """
        windows = self._read(X)
        matrix = np.linalg.inv(self.whitening_)
        return self._map(windows, partial(_colour, center=self.center_, matrix=matrix))


def _root_of_inverse(correlation: NDArray[np.float64], shrinkage: float) -> NDArray[np.float64]:
    """Return the inverse of the root of shrunk correlations.

    Those of pairs of observed steps may have a negative eigenvalue.
    """
    values, vectors = eigh(correlation)
    shrunk = (1 - shrinkage) * np.maximum(values, 0.0) + shrinkage
    return np.asarray((vectors / np.sqrt(shrunk)) @ vectors.T)


def _whiten(
    x: NDArray[np.float64], recording: Any, *, center: NDArray[Any], matrix: NDArray[Any]
) -> NDArray[np.float64]:
    """Combine the channels of windows (n, n_channels, n_timesteps)."""
    x -= center[:, np.newaxis]
    return _combined(matrix, x)


def _colour(
    x: NDArray[np.float64], recording: Any, *, center: NDArray[Any], matrix: NDArray[Any]
) -> NDArray[np.float64]:
    """Undo `_whiten`."""
    x = _combined(matrix, x)
    x += center[:, np.newaxis]
    return x


def _combined(matrix: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiply each time step of windows, which it overwrites, by a matrix.

    A missing value stays missing, and counts as 0 in the other channels.
    """
    missing = np.isnan(x)
    x[missing] = 0.0
    combined = matrix @ x
    combined[missing] = np.nan
    return combined
