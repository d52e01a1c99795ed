"""Moments of features over the windows of recordings, and the maps that follow from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, solve

Matrix = NDArray[np.float64]


class Moments(NamedTuple):
    """Second moments of centred features.

    Parameters
    ----------
    variance : ndarray of shape (r, r)
        Mean of ``f f'`` over the windows.
    adjacent : ndarray of shape (r, r)
        Symmetric part of the mean of ``f_t f_{t+1}'`` over adjacent windows.
    constant : ndarray of shape (r, r)
        Mean of ``f_i f_j'`` over windows i and all other windows j of their recording.
    paired : ndarray of shape (r, r)
        Mean of ``f f'`` over both windows of all adjacent pairs.
    """

    variance: Matrix
    adjacent: Matrix
    constant: Matrix
    paired: Matrix


def recording_moments(
    chunks: Iterable[Matrix], recording: NDArray[np.intp], follows: NDArray[np.bool_]
) -> Moments:
    """Compute the moments in one pass that keeps one row and one sum of a recording.

    Parameters
    ----------
    chunks : iterable of ndarray of shape (n_chunk, r)
        Features of the windows, ordered by recording and time.
    recording : ndarray of int of shape (n,)
        Recording of each window, numbered from 0 in this order.
    follows : ndarray of bool of shape (n,)
        Whether a window is adjacent to the window before it.

    Returns
    -------
    Moments
        The four matrices.

    Examples
    --------
    >>> f = np.array([[1.0], [2.0], [3.0]])
    >>> moments = recording_moments([f[:2], f[2:]], np.zeros(3, int), np.array([False, True, True]))
    >>> [round(m.item(), 3) for m in moments]
    [4.667, 4.0, 3.667, 4.5]
    """
    sizes = np.bincount(recording)
    # A recording of one window has no pair.
    weights = np.divide(1.0, sizes - 1, out=np.zeros(len(sizes)), where=sizes > 1)
    n_pairs = max(int(follows.sum()), 1)
    n_partners = follows + np.append(follows[1:], False).astype(float)
    first, total = 0, 0.0
    last: Matrix | None = None
    variance = adjacent = constant = paired = np.zeros(())
    for f in chunks:
        own = recording[first : first + len(f)]
        variance = variance + f.T @ f
        before = np.vstack([f[:1] if last is None else last, f[:-1]])
        linked = follows[first : first + len(f)]
        adjacent = adjacent + before[linked].T @ f[linked]
        paired = paired + (f * n_partners[first : first + len(f), None]).T @ f
        constant = constant - (f * weights[own, None]).T @ f
        # Sums of the recordings of this chunk; those that end here are complete.
        sums = np.zeros((own[-1] - own[0] + 1, f.shape[1]))
        np.add.at(sums, own - own[0], f)
        if last is not None and own[0] == recording[first - 1]:
            sums[0] += total
        first += len(f)
        last, total = f[-1:], sums[-1]
        n_complete = len(sums) - (first < len(recording) and recording[first] == own[-1])
        complete = sums[:n_complete]
        constant = constant + (complete * weights[own[0] :][:n_complete, None]).T @ complete
    adjacent = (adjacent + adjacent.T) / (2 * n_pairs)
    return Moments(variance / first, adjacent, constant / first, paired / (2 * n_pairs))


def ridge_inverse(variance: Matrix, rho: float, right: Matrix) -> Matrix:
    """Return ``(V + rho tr(V) I)^-1 A``; zeros where nothing varies."""
    total = np.trace(variance)
    if total <= 0:
        return np.zeros_like(right)
    return solve(variance + rho * total * np.eye(len(variance)), right, assume_a="pos")


def predictive_map(
    variance: Matrix, shared: Matrix, kept: Matrix, rho: float, n_directions: int
) -> Matrix:
    """Map features to what predicts the other view, without whitening.

    Parameters
    ----------
    variance : ndarray of shape (r, r)
        Mean of ``f f'``.
    shared : ndarray of shape (r, r)
        Covariance S with the other view.
    kept : ndarray of shape (r, r)
        Variance without what is removed of a recording's constant part.
    rho : float
        Ridge, as a share of the total variance.
    n_directions : int
        Largest number of directions.

    Returns
    -------
    ndarray of shape (r, n_directions)
        R with ``R R' = 0.9 M M' + 0.1 N N'``, leading directions first, where M and N are the
        regressions of `shared` and `kept` on the features, each scaled to total variance 1.
    """
    gram = np.zeros_like(variance)
    for share, target in ((0.9, shared), (0.1, kept)):
        regression = ridge_inverse(variance, rho, target)
        total = np.sum(regression * (variance @ regression))
        if total > 0:
            gram += share / total * regression @ regression.T
    values, vectors = eigh(gram)
    order = np.argsort(-values, kind="stable")[:n_directions]
    return vectors[:, order] * np.sqrt(np.maximum(values[order], 0.0))
