"""Overlap of adjacent windows, found from their values."""

from __future__ import annotations

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from .._data._windows import CheckedWindows
from ._neighbours import adjacent
from ._recording_moments import rows_to_partner

_PAIRS = 32  # pairs of windows that are compared
_PAIRS_OF_RECORDING = 8  # of each recording, where the pairs of all do not agree
_ALIKE = 1.25  # ratio of strides that agree: times may be rounded
_SHARE = 8  # an overlap of less than an eighth of a window is not looked for
_STEPS = 8  # nor one of fewer steps, which other steps resemble by chance
_SAME = 1e-8  # 1 - correlation of the same steps in float32, also if each window was scaled
_FLAT = 1e-4  # share of the variance of a window below which steps tell nothing

Array = NDArray[np.float64]


def spans_without_overlap(
    windows: CheckedWindows,
    index: NDArray[np.intp],
    recording: NDArray[np.intp],
    gap: Array,
) -> Array:
    """Return the time between windows that share no step; others predict each other trivially.

    Parameters
    ----------
    windows : CheckedWindows
        The windows.
    index, recording : ndarray of int of shape (n,)
        Numbers of the windows, ordered by recording and time, and their recordings.
    gap : ndarray of float of shape (n,)
        Time since the window before, from :func:`~._neighbours.in_order`.

    Returns
    -------
    ndarray of float of shape (n,)
        For each window, 1 if adjacent windows of its recording share no step. Else the length of a
        window, in units of the usual time from one window to the next, or less, so that half of
        all pairs remain where recordings are short.
    """
    follows = adjacent(gap)
    pairs = np.flatnonzero(follows)
    strides = _strides(windows, index, gap, _spread(pairs, _PAIRS))
    spans = np.full(recording[-1] + 1, _span(strides, windows.n_timesteps))
    if _differ(strides):
        for own in np.split(pairs, np.flatnonzero(np.diff(recording[pairs])) + 1):
            strides = _strides(windows, index, gap, _spread(own, _PAIRS_OF_RECORDING))
            if not np.isnan(strides).all():
                spans[recording[own[0]]] = _span(strides, windows.n_timesteps)
    span = spans[recording]
    while span.max() > 1 and 2 * np.count_nonzero(rows_to_partner(gap, span)) < follows.sum():
        span = np.minimum(span, np.ceil(span.max()) - 1)
    return np.maximum(span, 1.0)


def _spread(pairs: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return some of the pairs, from the first to the last."""
    return pairs[np.linspace(0, len(pairs) - 1, min(most, len(pairs))).astype(np.intp)]


def _strides(
    windows: CheckedWindows, index: NDArray[np.intp], gap: Array, pairs: NDArray[np.intp]
) -> Array:
    """Return the number of steps per unit of time by which the later windows of pairs lie later.

    0 where a pair shares no step, and NaN where its windows do not tell.
    """
    rows, place = np.unique(index[np.stack([pairs - 1, pairs])], return_inverse=True)
    block = windows.take(rows)
    x = block.x.astype(np.float64)
    lacking = np.zeros(len(x)) if block.observed is None else (~block.observed).sum(1)
    shifts = np.full(len(pairs), np.nan)
    for number, (i, j) in enumerate(place.reshape(2, -1).T):
        shift = shift_of(x[i], x[j])
        if shift or (shift == 0 and not lacking[[i, j]].any()):  # missing steps may hide an overlap
            shifts[number] = shift
    return shifts / gap[pairs]


def _span(strides: Array, n_timesteps: int) -> float:
    """Return the time between windows that share no step, 1 unless half of the pairs overlap."""
    known = strides[~np.isnan(strides)]
    overlapping = known[known > 0]
    if not len(overlapping) or 2 * len(overlapping) < len(known):
        return 1.0
    return float(n_timesteps / np.median(overlapping))


def _differ(strides: Array) -> bool:
    """Tell whether some pairs overlap less than others, or not at all."""
    known = strides[~np.isnan(strides)]
    return bool(known.any() and known.max() > _ALIKE * known.min())


def shift_of(x: Array, y: Array) -> int | None:
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


def _correlations(x: Array, y: Array) -> Array:
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


def _standardised(x: Array) -> Array:
    """Return each channel without its mean and with a variance of 1, or of 0 if it is flat."""
    x = x - x.mean(0)
    scale = x.std(0)
    return np.divide(x, scale, out=np.zeros_like(x), where=scale > 0)
