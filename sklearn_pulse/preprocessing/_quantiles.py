"""Exact quartiles of more values than fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from ._statistics import Statistics, from_quartiles, robust_of_windows

_DIGITS = ((51, 13), (38, 13), (25, 13), (12, 13), (0, 12))  # shift and width in bits, of 64
_SIGN = np.uint64(1) << np.uint64(63)
_SMALL = 2**19  # values; smaller pieces are joined
_QUARTILES = (0.25, 0.5, 0.75)


def robust_of_pieces(
    pieces: Callable[[], Iterable[NDArray[np.float64]]], n_channels: int
) -> Statistics:
    """Return median and scaled interquartile range of each channel.

    Few values are sorted. More are read in five passes, one per digit: the floats are taken as
    integers of the same order, and a pass counts the values of the next digit among the numbers
    whose first digits are those of a quartile. The counts tell this digit of the quartile. The
    memory does not grow with the number of values, and the quartiles are exact.

    Parameters
    ----------
    pieces : callable
        Returns an iterable of arrays of shape (n, n_channels, n_timesteps), NaN where missing.
        Each call returns the same arrays.
    n_channels : int
        Number of channels.

    Returns
    -------
    Statistics
        Arrays of shape (n_channels,).
    """
    blocks = _blocks(pieces())
    first = list(islice(blocks, 2))
    if len(first) == 1:
        return robust_of_windows(first[0].reshape(n_channels, -1))
    searches = [_Search() for _ in range(n_channels)]
    more = (_blocks(pieces()) for _ in _DIGITS[1:])
    for (shift, width), values_of_pass in zip(_DIGITS, (chain(first, blocks), *more), strict=True):
        for search in searches:
            search.begin(shift, width)
        for x in values_of_pass:
            for values, search in zip(x, searches, strict=True):
                search.count(values)
        for search in searches:
            search.learn_digit()
    quartiles = np.array([search.quartiles() for search in searches]).reshape(-1, 3)
    counts = np.array([search.n_values for search in searches])
    return from_quartiles(counts, *quartiles.T)


def _blocks(pieces: Iterable[NDArray[np.float64]]) -> Iterator[NDArray[np.float64]]:
    """Yield the values in arrays of shape (n_channels, ...); small pieces are joined."""
    held: list[NDArray[np.float64]] = []
    size = 0
    for x in pieces:
        if x.size > _SMALL:
            yield x.swapaxes(0, 1)
            continue
        held.append(x.swapaxes(0, 1).reshape(x.shape[1], -1))
        size += x.size
        if size > _SMALL:
            yield np.concatenate(held, axis=1)
            held, size = [], 0
    if held:
        yield np.concatenate(held, axis=1)


class _Search:
    """Search for the numbers around three quartiles, digit by digit."""

    def __init__(self) -> None:
        self.n_values: int = -1  # not known yet
        self.prefixes = [0] * 6  # of the numbers below and above each quartile
        self.ranks = [0] * 6  # among the numbers that begin with the prefix

    def begin(self, shift: int, width: int) -> None:
        self.shift, self.width = np.uint64(shift), np.uint64(width)
        size = 2**width
        self.histograms = {prefix: np.zeros(size, np.int64) for prefix in self.prefixes}

    def count(self, values: NDArray[np.float64]) -> None:
        keys = _as_keys(values[~np.isnan(values)]) >> self.shift
        digits = (keys & np.uint64(2 ** int(self.width) - 1)).astype(np.intp)
        begin = keys >> self.width
        for prefix, histogram in self.histograms.items():
            counted = digits[begin == np.uint64(prefix)]
            histogram += np.bincount(counted, minlength=len(histogram))

    def learn_digit(self) -> None:
        if self.n_values < 0:
            self.n_values = int(self.histograms[0].sum())
            below = [int(place) for place in self.places()]
            last = max(self.n_values - 1, 0)
            self.ranks = [rank for low in below for rank in (low, min(low + 1, last))]
        if not self.n_values:
            return
        for i, (prefix, rank) in enumerate(zip(self.prefixes, self.ranks, strict=True)):
            up_to = self.histograms[prefix].cumsum()
            digit = int(np.searchsorted(up_to, rank, side="right"))
            self.ranks[i] = rank - (int(up_to[digit - 1]) if digit else 0)
            self.prefixes[i] = (prefix << int(self.width)) | digit

    def places(self) -> list[float]:
        """Return where the quartiles lie among the sorted values, which have the ranks 0, 1, ..."""
        return [max(self.n_values - 1, 0) * q for q in _QUARTILES]

    def quartiles(self) -> list[float]:
        """Return the quartiles between the numbers below and above them; 0 without values."""
        if not self.n_values:
            return [0.0] * 3
        pairs = _as_values(np.array(self.prefixes, dtype=np.uint64)).reshape(3, 2).tolist()
        return [
            low + (place - int(place)) * (high - low)
            for place, (low, high) in zip(self.places(), pairs, strict=True)
        ]


def _as_keys(values: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return integers that have the order of the floats."""
    bits = values.view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _as_values(keys: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Undo :func:`_as_keys`."""
    return np.where(keys & _SIGN, keys & ~_SIGN, ~keys).view(np.float64)
