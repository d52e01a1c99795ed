"""What windows have in common with the nearest windows of other people."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, vstack

from ._types import Index, Matrix

_SHARE_NEAR = 0.05  # of the windows, that are near one
_FEWEST = 3  # windows that are near one
_AROUND = 2  # windows before and after, since a state outlasts a window
# Share of the reach of a window in which weights fall from one to zero, so that rounding moves the
# moment by no more than rounding.
_EDGE = 0.05
_ROUNDING = 1e-5  # smallest reach, as a share of the mean square: copies are at distance zero
_ROWS = 512  # of distances that are searched at a time


def chains(back: Index) -> Index:
    """Return the number of each window's run, in which all but the first have a partner before.

    Examples
    --------
    >>> chains(np.array([0, 1, 1, 0, 1]))
    array([1, 1, 1, 2, 2])
    """
    return np.cumsum(back == 0)


def local_means(rows: Matrix, chain: Index) -> Matrix:
    """Return the mean of each row and of up to two rows before and after it in its chain.

    Parameters
    ----------
    rows : ndarray of shape (n, r)
        Rows in the order of their chains.
    chain : ndarray of int of shape (n,)
        Chain of each row, in ascending order.

    Returns
    -------
    ndarray of shape (n, r)
        The means.

    Examples
    --------
    >>> rows = np.array([[0.0], [3.0], [6.0], [9.0]])
    >>> local_means(rows, np.array([1, 1, 1, 2])).ravel()
    array([3., 3., 3., 9.])
    """
    total, count = rows.copy(), np.ones(len(rows))
    for step in range(1, min(_AROUND, len(rows) - 1) + 1):
        same = chain[step:] == chain[:-step]
        for here, there in ((slice(step, None), slice(-step)), (slice(-step), slice(step, None))):
            total[here] += rows[there] * same[:, None]
            count[here] += same
    return total / count[:, None]


def nearness(states: Matrix, person: Index) -> csr_array:
    """Weigh pairs of windows of different people each of which is among the nearest of both.

    Parameters
    ----------
    states : ndarray of shape (n, r)
        States of the windows.
    person : ndarray of int of shape (n,)
        Person of each window, or its recording, in ascending order.

    Returns
    -------
    sparse array of shape (n, n)
        Weights from 0 to 1, symmetric up to rounding.

    Examples
    --------
    >>> states = np.array([[0.0], [9.0], [0.1], [9.1], [0.2], [9.2], [0.3], [9.3]])
    >>> nearness(states, np.arange(8)).toarray()[0].nonzero()[0].tolist()
    [2]
    """
    n = len(states)
    distance = _squared_distances(states, person)
    n_near = min(max(_FEWEST, round(_SHARE_NEAR * n)), n)
    pieces = [slice(first, first + _ROWS) for first in range(0, n, _ROWS)]
    reach = np.concatenate(
        [np.partition(distance[own], n_near - 1, axis=1)[:, n_near - 1] for own in pieces]
    )
    mean_square = np.mean(np.sum(np.square(states), axis=1))
    reach = np.maximum(reach, _ROUNDING * mean_square or 1.0)
    return csr_array(vstack([_weights(distance[own], reach[own], reach) for own in pieces]))


def moment_of_nearest(rows: Matrix, weights: csr_array) -> Matrix:
    """Return the weighted mean of ``f_i f_j'`` over pairs of rows (n, r), zero where there is none.

    Examples
    --------
    >>> weights = csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> moment_of_nearest(np.array([[2.0], [3.0]]), weights)
    array([[6.]])
    """
    moment = rows.T @ (weights @ rows) / (weights.sum() or 1.0)
    return np.asarray((moment + moment.T) / 2)


def _weights(distance: Matrix, own_reach: Matrix, reach: Matrix) -> csr_array:
    """Return the weights of pairs of some windows with all, from how far each of them reaches."""
    is_far = ~np.isfinite(distance)
    share = np.where(is_far, 0.0, distance) / np.minimum(own_reach[:, None], reach)
    weight = np.clip((1.0 - share) / _EDGE, 0.0, 1.0)
    return csr_array(np.where(is_far, 0.0, weight).astype(np.float32))


def _squared_distances(states: Matrix, person: Index) -> Matrix:
    """Return the squared distances of windows, infinite between those of one person."""
    squares = np.sum(np.square(states), axis=1)
    distance = states @ states.T
    distance *= -2.0
    distance += squares
    distance += squares[:, None]
    np.maximum(distance, 0.0, out=distance)
    edges = np.flatnonzero(np.diff(person, prepend=-1, append=person[-1] + 1))
    for first, last in zip(edges[:-1], edges[1:], strict=True):
        distance[first:last, first:last] = np.inf
    return distance
