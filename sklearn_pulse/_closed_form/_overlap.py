"""Overlap of adjacent windows, found from their values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from .._data._windows import CheckedWindows, evenly
from ._neighbours import adjacent
from ._recording_moments import rows_to_partner
from ._types import Matrix

_PAIRS = 32  # pairs of windows that are compared
_PAIRS_OF_RECORDING = 8  # of each recording, where the pairs of all do not agree
_ALIKE = 0.25  # share by which strides that agree may differ: times may be rounded
_MOST = 0.5  # share of the pairs of windows, at least, of which a stride must be true
_SHARE = 8  # an overlap of less than an eighth of a window is not looked for
_STEPS = 8  # nor one of fewer steps, which other steps resemble by chance
_SAME = 1e-8  # 1 - correlation of the same steps in float32, also if each window was scaled
_FLAT = 1e-4  # share of the variance of a window below which steps tell nothing


def spans_without_overlap(
    windows: CheckedWindows,
    index: NDArray[np.intp],
    recording: NDArray[np.intp],
    gap: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the time between windows that share no step; others predict each other trivially.

    Parameters
    ----------
    windows : CheckedWindows
        The windows.
    index, recording : ndarray of int of shape (n,)
        Numbers of the windows, ordered by recording and time, and their recordings.
    gap : ndarray of float of shape (n,)
        Time since the window before, of :class:`~._neighbours.Ordered`.

    Returns
    -------
    ndarray of float of shape (n,)
        For each window, 0 if adjacent windows of its recording share no step. Else the length of a
        window, in units of the usual time from one window to the next, or less, so that half of
        all pairs remain where recordings are short. It is below 1 where windows lie anywhere, so
        that few of them overlap.
    """
    follows = adjacent(gap)
    pairs = np.flatnonzero(follows)
    found = _overlaps(windows, index, gap, _spread(pairs, _PAIRS))
    usual = found.stride()
    strides = np.full(recording[-1] + 1, usual)
    if found.share_of(usual) < 1:
        for own in np.split(pairs, np.flatnonzero(np.diff(recording[pairs])) + 1):
            found = _overlaps(windows, index, gap, _spread(own, _PAIRS_OF_RECORDING))
            if found.share_of(usual) < _MOST:
                strides[recording[own[0]]] = found.stride()
    span = np.where(strides > 0, windows.n_timesteps / np.maximum(strides, 1e-9), 0.0)[recording]
    while span.max() > 1 and 2 * np.count_nonzero(rows_to_partner(gap, span)) < follows.sum():
        span = np.minimum(span, np.ceil(span.max()) - 1)
    return span


def _spread(pairs: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return some of the pairs, from the first to the last."""
    return pairs[evenly(len(pairs), most)]


class _Overlaps(NamedTuple):
    """Strides of pairs of windows that tell whether they overlap.

    Parameters
    ----------
    strides : ndarray of shape (n_pairs,)
        Steps from one window to the next, per unit of time; 0 if they share no step.
    gap : ndarray of shape (n_pairs,)
        Time between them.
    n_timesteps : int
        Length of a window.
    """

    strides: NDArray[np.float64]
    gap: NDArray[np.float64]
    n_timesteps: int

    def stride(self) -> float:
        """Return the usual stride, 0 unless most pairs overlap where windows of it do."""
        overlap = self.strides > 0
        if not overlap.any():
            return 0.0
        usual = float(np.median(self.strides[overlap]))
        is_told = overlap == self._reach(usual)
        return usual if is_told.mean() >= _MOST else 0.0

    def share_of(self, stride: float) -> float:
        """Return the share of the pairs that have a stride, or are too far apart to tell."""
        if not len(self.strides):
            return 1.0
        is_alike = np.abs(self.strides - stride) <= _ALIKE * stride
        return float(np.mean(np.where(self.strides > 0, is_alike, ~self._reach(stride))))

    def _reach(self, stride: float) -> NDArray[np.bool_]:
        """Tell which pairs overlap if this is their stride."""
        return (stride > 0) & (self.gap * stride < self.n_timesteps)


def _overlaps(
    windows: CheckedWindows,
    index: NDArray[np.intp],
    gap: NDArray[np.float64],
    pairs: NDArray[np.intp],
) -> _Overlaps:
    """Compare the windows of some pairs, which are the later ones' places in `index`."""
    rows, place = np.unique(index[np.stack([pairs - 1, pairs])], return_inverse=True)
    block = windows.take(rows)
    x = block.x.astype(np.float64)
    lacking = np.zeros(len(x)) if block.observed is None else (~block.observed).sum(1)
    shifts = np.full(len(pairs), np.nan)
    for number, (i, j) in enumerate(place.reshape(2, -1).T):
        shift = shift_of(x[i], x[j])
        if shift or (shift == 0 and not lacking[[i, j]].any()):  # missing steps may hide an overlap
            shifts[number] = shift
    known = ~np.isnan(shifts)
    gap = gap[pairs][known]
    return _Overlaps(shifts[known] / gap, gap, windows.n_timesteps)


def shift_of(x: Matrix, y: Matrix) -> int | None:
    """Find the number of steps by which a window lies later than another that it overlaps.

    Parameters
    ----------
    x, y : ndarray of shape (n_timesteps, n_channels)
        The earlier and the later window. Each may have been shifted and scaled.

    Returns
    -------
    int or None
        The number of steps, 0 if no step is shared. None if the windows do not tell, since they are
        flat, or resemble each other at several places, as a straight line does.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> shift_of(x[:64], x[16:80]), shift_of(x[:50], 3 * x[10:60] + 1), shift_of(x[:50], x[50:])
    (16, 10, 0)
    """
    correlation = _correlations(x, y)
    if np.isnan(correlation).all():
        return None
    same = np.flatnonzero(correlation > 1 - _SAME)
    if not len(same):
        return 0
    if same[-1] - same[0] > len(x) // _SHARE:
        return None
    return int(np.nanargmax(correlation)) + 1


def _correlations(x: Matrix, y: Matrix) -> NDArray[np.float64]:
    """Return the correlation of the last steps of x and the first of y, for each shift from 1.

    It is the least of the channels that are not flat there, and NaN where all are.
    """
    n = len(x)
    x, y = _standardised(x), _standardised(y)
    size = scipy.fft.next_fast_len(2 * n, real=True)
    products = scipy.fft.rfft(x, size, axis=0) * scipy.fft.rfft(y, size, axis=0).conj()
    cross = scipy.fft.irfft(products, size, axis=0)[:n]  # sum of x[s:] * y[: n - s]
    shared = np.arange(n, 0, -1)[:, None]
    x_sum, x_square = (np.cumsum(values[::-1], axis=0)[::-1] for values in (x, x**2))
    y_sum, y_square = (np.cumsum(values, axis=0)[::-1] for values in (y, y**2))
    variance = (
        np.maximum(x_square - x_sum**2 / shared, 0),
        np.maximum(y_square - y_sum**2 / shared, 0),
    )
    flat = np.maximum(*variance) <= _FLAT * shared
    scale = np.sqrt(variance[0] * variance[1])
    correlation = np.divide(
        cross - x_sum * y_sum / shared, scale, out=np.full_like(cross, -1.0), where=scale > 0
    )
    least = np.where(flat, np.inf, correlation).min(1)
    least[np.isinf(least)] = np.nan
    last = n - max(_STEPS, n // _SHARE)
    return np.asarray(least[1 : max(last + 1, 1)])


def _standardised(x: Matrix) -> Matrix:
    """Return each channel without its mean and with a variance of 1, or of 0 if it is flat."""
    x = x - x.mean(0)
    scale = x.std(0)
    return np.divide(x, scale, out=np.zeros_like(x), where=scale > 0)
