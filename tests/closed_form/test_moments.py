"""Moments of features over recordings and halves of windows, whatever pieces they are summed in."""

import tracemalloc
from functools import reduce

import numpy as np
import pytest
from scipy.linalg import inv

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse._closed_form._folds import added
from sklearn_pulse._closed_form._half_moments import half_moments, half_sums
from sklearn_pulse._closed_form._pieces import with_neighbours
from sklearn_pulse._closed_form._recording_moments import (
    fold_of_pairs,
    paired_windows,
    recording_moments,
    recording_sums,
)
from tests.helpers import make_windows

SIZES = [3, 1, 40, 7, 9]
RECORDING = np.repeat(np.arange(5), SIZES)
GAP = np.where(np.append(True, np.diff(RECORDING) > 0), np.inf, 1.0)
GAP[20], GAP[30:32], GAP[35] = 22.0, 2.0, 3.0  # windows are missing
TIME = np.concatenate([np.cumsum(np.append(0, gap[1:])) for gap in np.split(GAP, np.cumsum(SIZES))])
F = np.random.default_rng(0).normal(size=(60, 4))


def cut(rows, size):
    return [rows[first : first + size] for first in range(0, len(rows), size)]


def partner(i, lags):
    """The nearest earlier window that shares no step, if it is at most one farther away."""
    lag = lags[RECORDING[i]]
    if lag == 0:  # adjacent windows share none
        return i - 1 if GAP[i] == 1 else None
    far = [j for j in range(i) if RECORDING[j] == RECORDING[i] and TIME[i] - TIME[j] >= lag]
    return far[-1] if far and TIME[i] - TIME[far[-1]] <= lag + 1 else None


def literal_moments(lags):
    """Means of ``f f'`` over windows, pairs of near windows, and all pairs of a recording."""
    n_pairs = sum(partner(i, lags) is not None for i in range(60))
    variance, adjacent, constant = np.zeros((3, 4, 4))
    others_of = [
        [
            j
            for j in range(60)
            if j != i and RECORDING[j] == RECORDING[i]
            if (TIME[i] - TIME[j]) % max(lags[RECORDING[i]], 1) == 0
        ]
        for i in range(60)
    ]
    n_with_others = sum(bool(others) for others in others_of)
    for i in range(60):
        variance += np.outer(F[i], F[i]) / 60
        if partner(i, lags) is not None:
            pair = np.outer(F[partner(i, lags)], F[i])
            adjacent += (pair + pair.T) / 2 / n_pairs
        for j in others_of[i]:
            constant += np.outer(F[i], F[j]) / len(others_of[i]) / n_with_others
    return variance, adjacent, constant


@pytest.mark.parametrize("chunk", [1, 7, 60])
@pytest.mark.parametrize("piece", [2, 16, 60])
@pytest.mark.parametrize("lags", [[0] * 5, [2] * 5, [5] * 5, [2, 0, 5, 0, 2]])
def test_moments_of_recordings_literally(piece, chunk, lags):
    """Windows of a recording that are a lag apart share no step."""
    windows = paired_windows(RECORDING, GAP, np.array(lags)[RECORDING])
    sums = []
    for first in range(0, 60, piece):
        own = slice(first, min(first + piece, 60))
        with_before = F[with_neighbours(own, windows)]
        n_before = len(with_before) - (own.stop - own.start)
        chunks = cut(with_before[n_before:], chunk)
        before = with_before[:n_before] if n_before else None
        sums.append(recording_sums(chunks, windows.part(own), before))
    moments = recording_moments(sums, windows)
    for found, expected in zip(moments, literal_moments(lags), strict=False):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    for number, fold in enumerate(moments.folds):
        linked = [i for i in range(60) if partner(i, lags) is not None]
        linked = [i for i in linked if windows.fold[i] == number]
        assert linked
        g, h = F[[partner(i, lags) for i in linked]], F[linked]
        both = g.T @ g + h.T @ h, g.T @ h + h.T @ g, g.T @ g + h.T @ h
        for found, expected in zip(fold, both, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_phases_of_one_recording_take_no_memory_in_the_others():
    recording = np.append(np.repeat(np.arange(1000), 2), np.full(200, 1000))
    gap = np.where(np.diff(recording, prepend=-1) > 0, np.inf, 1.0)
    windows = paired_windows(recording, gap, np.where(recording < 1000, 0.0, 64.0))
    f = np.random.default_rng(0).normal(size=(len(recording), 40))
    tracemalloc.start()
    recording_sums([f], windows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * f.nbytes  # 64 phases of 1,001 recordings are 29 times as many rows


@pytest.mark.parametrize("chunk", [1, 7, 60])
@pytest.mark.parametrize("piece", [16, 60])
def test_moments_of_halves_literally(piece, chunk):
    rng = np.random.default_rng(1)
    halves = [F[:, :3] + rng.normal(size=(60, 3)), F[:, 1:3] + rng.normal(size=(60, 2))]
    fold = fold_of_pairs(RECORDING, np.ones(60, dtype=bool))
    pieces = zip(*(cut(rows, piece) for rows in (F, *halves, fold)), strict=True)
    sums = [
        half_sums(zip(*(cut(rows, chunk) for rows in views), strict=True), own)
        for *views, own in pieces
    ]
    moments = half_moments(reduce(added, sums), 60, rho=0.1)
    shared = np.zeros((4, 4))
    for psi in halves:
        source = psi.T @ psi
        ridge = 0.1 * np.trace(source) * np.eye(len(source))
        predicted = psi @ inv(source + ridge) @ psi.T @ F
        shared += F.T @ predicted / 60 / 2
    np.testing.assert_allclose(moments.variance, F.T @ F / 60, rtol=1e-10)
    np.testing.assert_allclose(moments.shared, shared, rtol=1e-10, atol=1e-12)
    for psi, folds in zip(halves, moments.predictors, strict=True):
        for number, found in enumerate(folds):
            g, f = psi[fold == number], F[fold == number]
            for sums_of, expected in zip(found, (g.T @ g, g.T @ f, f.T @ f), strict=True):
                np.testing.assert_allclose(sums_of, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("groups", [None, np.arange(600) // 30])
def test_chunks_of_a_fit_change_only_the_rounding(monkeypatch, groups):
    X, _ = make_windows(600, 16)
    monkeypatch.setattr("sklearn_pulse._closed_form._sample._SAMPLE", 590)
    weights = (0.5, 0.5, 0, 0)
    cross = CrossPredictionTransformer(
        block_weights=weights, n_components=20, embedding_dim=20, num_threads=1, random_state=0
    )
    embedding = cross.fit(X, groups=groups).transform(X[:50])
    kappa = cross.kappa_
    monkeypatch.setattr("sklearn_pulse._closed_form._pieces.CHUNK", 7)
    again = cross.fit(X, groups=groups).transform(X[:50])
    products = [theta @ theta.T for theta in (again, embedding)]
    np.testing.assert_allclose(*products, atol=1e-4 * np.abs(products[1]).max())
    np.testing.assert_allclose(cross.kappa_, kappa, rtol=1e-6)
