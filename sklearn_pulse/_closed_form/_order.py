"""Whether the order of windows in their recordings says anything about them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._recording_moments import PairedWindows
from ._types import Matrix

_FEWEST = 5  # windows of a recording from which on neighbours are told from the other windows
_FEWEST_PAIRS = 20  # of fewer, a mean says nothing
# Share of the variance within recordings that halves of windows have in common, below which it is
# noise and a recording is a single state. It is at most 0.02 on Bonn, and at least 0.08 on gestures
# and where recordings visit several states.
_NOISE = 0.05
# Share of the state of a window that its neighbour has. It is 0.5 to 1 in recordings that visit
# several states (0.15 on some simulated ECGs), and below 0.1 where their windows are shuffled.
_SHARED = 0.12


def order_is_random(halves: tuple[Matrix, Matrix], paired: PairedWindows) -> bool:
    """Tell whether neighbours share nothing but the constant part, though halves share a state.

    That is so if trials of a person come in random order, or if windows were shuffled.

    Parameters
    ----------
    halves : tuple of two ndarrays of shape (n, r)
        Features of the first and of the last half of each window, in the same columns.
    paired : PairedWindows
        The recordings and pairs of the windows.

    Returns
    -------
    bool
        True if the order is random; False if it is not, or if there are too few windows to tell.

    Examples
    --------
    >>> from sklearn_pulse._closed_form._recording_moments import paired_windows
    >>> gap = np.ones(200)
    >>> gap[::100] = np.inf  # two recordings
    >>> paired = paired_windows(np.arange(200) // 100, gap)
    >>> state = np.repeat(np.eye(2), 10, axis=0)[np.arange(200) % 20]  # ten windows each
    >>> order_is_random((state, state), paired)
    False
    >>> state = np.random.default_rng(0).permutation(state)
    >>> order_is_random((state, state), paired)
    True
    """
    # Windows of a phase share no step.
    group = np.unique(paired.recording * paired.n_phases + paired.phase, return_inverse=True)[1]
    size = np.bincount(group)[group]
    first, last = (half - _means(half, group) for half in halves)
    alike = np.sum(first * last, axis=1)
    # Mean product of halves of two windows of a group, which are centred, in a random order.
    by_chance = -_means(alike[:, None], group)[:, 0] / np.maximum(size - 1, 1)
    counted = size >= _FEWEST
    later = np.flatnonzero(paired.back)
    earlier = later - paired.back[later]
    inside = counted[later] & (group[later] == group[earlier])
    later, earlier = later[inside], earlier[inside]
    if len(later) < _FEWEST_PAIRS:
        return False
    both = np.sum(first[earlier] * last[later] + last[earlier] * first[later], axis=1) / 2
    passed_on = np.mean(both - by_chance[later])
    state = (alike - by_chance)[counted]
    at_least = state.mean() - 2 * state.std() / np.sqrt(len(state))
    spread = np.sum(first**2 + last**2, axis=1) / 2 * size / np.maximum(size - 1, 1)
    is_state = at_least > _NOISE * spread[counted].mean()
    return bool(is_state and passed_on < _SHARED * state.mean())


def _means(rows: Matrix, group: NDArray[np.intp]) -> Matrix:
    """Return the mean of the rows of each row's group."""
    size = np.bincount(group)
    sums = np.zeros((len(size), rows.shape[1]))
    np.add.at(sums, group, rows)
    return (sums / size[:, None])[group]
