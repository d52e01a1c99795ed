"""Views of windows that predict each other: adjacent windows, or the halves of each window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data._windows import CheckedWindows
from ..features._base import CHUNK, BaseFeatureTransformer
from ._neighbours import Ordered
from ._overlap import spans_without_overlap
from ._recording_moments import PairedWindows, paired_windows
from ._stack import PartOfWindows
from ._types import Index, Matrix


def pairs_of(windows: CheckedWindows, order: Ordered) -> tuple[Index, PairedWindows]:
    """Return ordered windows, of copies the first alone, and their pairs."""
    first = order.gap > 0
    rows, recording, gap = order.rows[first], order.recording[first], order.gap[first]
    span = spans_without_overlap(windows, rows, recording, gap)
    return rows, paired_windows(recording, gap, span, order.person[first])


class Halves(NamedTuple):
    """First and last half of windows.

    Parameters
    ----------
    parts : list of PartOfWindows
        The two halves; none if no window has an observed step in both.
    rows : ndarray of int of shape (n,)
        Numbers of the windows that have both, in order; of all windows if none has.
    recording : ndarray of int of shape (n,)
        Their recordings.
    paired : PairedWindows or None
        The same recordings, with neighbours; None where they are not known.
    """

    parts: list[PartOfWindows]
    rows: Index
    recording: Index
    paired: PairedWindows | None


def halves_of(windows: CheckedWindows, order: Ordered, *, recordings_known: bool) -> Halves:
    """Return the halves of ordered windows; of copies in known recordings, those of the first."""
    n_timesteps = windows.n_timesteps
    middle = n_timesteps // 2
    ranges = ((0, middle), (n_timesteps - middle, n_timesteps)) if middle else ()
    parts = [PartOfWindows(windows, first, last) for first, last in ranges]
    seen = _have_steps(windows, parts, order.rows)
    if not seen.any():
        return Halves([], order.rows, order.recording, None)
    if not recordings_known:
        return Halves(parts, order.rows[seen], order.recording[seen], None)
    rows, paired = pairs_of(windows, order.some(seen))
    return Halves(parts, rows, paired.recording, paired)


def features_of_halves(
    halves: Halves, transformers: Sequence[BaseFeatureTransformer]
) -> tuple[Matrix, Matrix]:
    """Return features of both halves in the same columns, each transformer with a variance of 1."""
    of_first, of_last = [], []
    for transformer in transformers:
        transformer._fit_part(halves.parts[0], halves.rows)
        first, last = (_features(transformer, part, halves.rows) for part in halves.parts)
        spread = np.vstack([first, last]).std(0)
        varies = spread > 0
        scale = 1.0 / (spread[varies] * np.sqrt(max(varies.sum(), 1)))
        of_first.append(first[:, varies] * scale)
        of_last.append(last[:, varies] * scale)
    return np.hstack(of_first), np.hstack(of_last)


def _have_steps(
    windows: CheckedWindows, parts: list[PartOfWindows], index: Index
) -> NDArray[np.bool_]:
    """Return which windows have an observed step in each part."""
    seen = np.full(len(index), bool(parts))
    for first in range(0, len(index), CHUNK):
        rows = slice(first, first + CHUNK)
        observed = windows.take(index[rows]).observed
        if observed is not None:
            for part in parts:
                seen[rows] &= observed[:, part.first : part.last].any(1)
    return seen


def _features(transformer: BaseFeatureTransformer, part: PartOfWindows, rows: Index) -> Matrix:
    """Return the features of a part of windows."""
    chunks = np.split(rows, range(CHUNK, len(rows), CHUNK))
    return np.vstack([transformer._features(part.take(own)) for own in chunks]).astype(np.float64)
