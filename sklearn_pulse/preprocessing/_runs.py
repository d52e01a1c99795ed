"""Runs of observed steps, and the gaps between them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_PIECE_VALUES = 2**20  # values of channels that are yielded together


def observed_runs(x: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Yield the first step of each run of steps that are not NaN, and the step after its last.

    Examples
    --------
    >>> import numpy as np
    >>> list(observed_runs(np.array([np.nan, 1.0, 2.0, np.nan, 3.0])))
    [(1, 3), (4, 5)]
    """
    observed = np.concatenate([[False], ~np.isnan(x), [False]])
    edges = np.flatnonzero(np.diff(observed))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def bridge_gaps(x: NDArray[np.float64], longest: float) -> None:
    """Fill short gaps in place, each by the straight line between its observed neighbours.

    Steps before the first observed step of a channel, and after its last, stay missing.

    Parameters
    ----------
    x : ndarray of shape (n, n_channels, n_timesteps)
        Windows.
    longest : float
        Length of the longest gap that is filled, in steps.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[[0.0, np.nan, 2.0, np.nan, np.nan, 5.0]]])
    >>> bridge_gaps(x, longest=1)
    >>> x[0, 0]
    array([ 0.,  1.,  2., nan, nan,  5.])
    """
    for window, channel in np.argwhere(np.isnan(x).any(-1)).tolist():
        signal = x[window, channel]
        observed = np.flatnonzero(~np.isnan(signal))
        if not observed.size:
            continue
        missing = np.flatnonzero(np.isnan(signal))
        inside = missing[(missing > observed[0]) & (missing < observed[-1])]
        lengths = np.diff(observed) - 1  # of the gap behind each observed step
        filled = inside[np.repeat(lengths, lengths) <= longest]
        signal[filled] = np.interp(filled, observed, signal[observed])


def runs_alike(
    x: NDArray[np.float64],
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], int, int]]:
    """Yield the runs of observed steps, together for channels that lack the same steps.

    Long channels are yielded one by one, since a computation holds several copies of a channel.

    Parameters
    ----------
    x : ndarray of shape (n, n_channels, n_timesteps)
        Windows.

    Yields
    ------
    windows, channels : ndarray of int of shape (n_alike,)
        Where the channels are.
    first, end : int
        The steps first, ..., end - 1 are observed in each of these channels.
    """
    alike: dict[bytes, list[tuple[int, int]]] = {}
    has_gaps = np.isnan(x).any(-1)
    for window, channel in np.argwhere(has_gaps).tolist():
        gaps = np.packbits(np.isnan(x[window, channel])).tobytes()
        alike.setdefault(gaps, []).append((window, channel))
    size = max(1, _PIECE_VALUES // x.shape[2])
    for places in (np.argwhere(~has_gaps), *map(np.array, alike.values())):
        for piece in (places[i : i + size] for i in range(0, len(places), size)):
            windows, channels = piece.T
            for first, end in observed_runs(x[windows[0], channels[0]]):
                yield windows, channels, first, end
