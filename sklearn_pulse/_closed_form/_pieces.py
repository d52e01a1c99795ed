"""Sums over pieces of windows, which any process may compute."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._data._windows import CheckedWindows
from .._threads import limited_threads
from ..features._base import CHUNK, check_features, overflow_is_found
from ._half_moments import HalfSums, half_sums
from ._recording_moments import PairedWindows, RecordingSums, recording_sums
from ._stack import FeatureStack, PartOfWindows

_PIECE = 16 * CHUNK  # least number of windows in a piece
_MOST_PIECES = 1024  # the sums of a piece are larger than the windows of a small piece

Sums = TypeVar("Sums")
Views = tuple[NDArray[np.float64], ...]
Results = Generator[Any, None, None]
# From a function, its shared arguments and its calls to the results, in the order of the calls.
Run = Callable[[Callable[..., Any], Sequence[Any], Sequence[tuple[Any, ...]]], Results]


def in_turn(
    function: Callable[..., Sums], shared: Sequence[Any], calls: Sequence[tuple[Any, ...]]
) -> Results:
    """Call a function in this process, each time with the shared arguments first."""
    for call in calls:
        yield function(*shared, *call)


def pieces_of(n: int) -> list[slice]:
    """Divide the numbers 0 to n - 1 into pieces that depend on n alone.

    Sums over the pieces, added in order, have the same bits whoever computes them.

    Examples
    --------
    >>> pieces_of(5000)
    [slice(0, 4096, None), slice(4096, 5000, None)]
    """
    size = _PIECE * max(1, -(-n // (_PIECE * _MOST_PIECES)))
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]


def with_neighbours(piece: slice, windows: PairedWindows) -> slice:
    """Extend a piece by the windows before it that are paired with windows of the piece."""
    partner = np.arange(piece.start, piece.stop) - windows.back[piece]
    return slice(min(int(partner.min()), piece.start), piece.stop)


@dataclass(frozen=True)
class FeaturesOfViews:
    """Principal components of views of windows, computed a few windows at a time.

    Parameters
    ----------
    stacks : sequence of FeatureStack
        Fitted stack of each view.
    parts : sequence of CheckedWindows and PartOfWindows
        The views, the whole windows first.
    num_threads : int or None
        Number of threads to compute on.
    """

    stacks: Sequence[FeatureStack]
    parts: Sequence[CheckedWindows | PartOfWindows]
    num_threads: int | None

    def of(self, index: NDArray[np.intp]) -> Iterator[Views]:
        """Yield the features of windows, chunk by chunk."""
        projections = [stack.projection() for stack in self.stacks]
        for first in range(0, len(index), CHUNK):
            rows = index[first : first + CHUNK]
            whole = self.parts[0].take(rows)  # read once, and cut into its halves
            features = []
            for project, part in zip(projections, self.parts, strict=True):
                block = part.cut(whole) if isinstance(part, PartOfWindows) else whole
                features.append(project(block))
                check_features(features[-1], part, rows)
            yield tuple(part.astype(np.float64) for part in features)


class FeaturesOfSample:
    """Principal components of views of windows that were computed before.

    Parameters
    ----------
    sample : ndarray of int of shape (n,)
        Numbers of the windows.
    rows : sequence of ndarray of shape (n, r)
        Features of each view.
    num_threads : int or None
        Number of threads to compute on.
    """

    def __init__(
        self,
        sample: NDArray[np.intp],
        rows: Sequence[NDArray[np.float32]],
        num_threads: int | None,
    ) -> None:
        self.rows, self.num_threads = rows, num_threads
        self.place = np.zeros(sample.max() + 1, dtype=np.intp)
        self.place[sample] = np.arange(len(sample))

    def of(self, index: NDArray[np.intp]) -> Iterator[Views]:
        """Yield the features of windows as one chunk."""
        yield tuple(rows[self.place[index]].astype(np.float64) for rows in self.rows)


def sums_of_recordings(
    views: FeaturesOfViews | FeaturesOfSample, index: NDArray[np.intp], windows: PairedWindows
) -> RecordingSums:
    """Sum over a piece of windows in the order of their recordings.

    `index` numbers the windows; those before the piece come first if they are needed.
    """
    n_before = len(index) - len(windows.recording)
    with limited_threads(views.num_threads), overflow_is_found():
        before = np.vstack([f for (f,) in views.of(index[:n_before])]) if n_before else None
        return recording_sums((f for (f,) in views.of(index[n_before:])), windows, before)


def sums_of_halves(
    views: FeaturesOfViews | FeaturesOfSample,
    index: NDArray[np.intp],
    fold: NDArray[np.intp],
    windows: PairedWindows | None,
) -> tuple[HalfSums, RecordingSums | None]:
    """Sum over a piece of windows and their halves, and over recordings where these are known.

    Parameters
    ----------
    views : FeaturesOfViews or FeaturesOfSample
        The features of the windows and of their halves.
    index : ndarray of int of shape (n,)
        Numbers of the windows.
    fold : ndarray of int of shape (n,)
        Fold of each window.
    windows : PairedWindows or None
        Recordings of the windows; None if they are not known.

    Returns
    -------
    of_halves : HalfSums
        The sums over windows and their halves.
    of_recordings : RecordingSums or None
        The sums over recordings.
    """
    whole = []

    def kept() -> Iterator[Views]:
        for f, *halves in views.of(index):
            whole.append(f)  # of one piece
            yield f, *halves

    with limited_threads(views.num_threads), overflow_is_found():
        if windows is None:
            return half_sums(views.of(index), fold), None
        of_halves = half_sums(kept(), fold)
        return of_halves, recording_sums(whole, windows)
