"""What windows share with the nearest windows of other recordings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse._closed_form._nearest import nearness
from sklearn_pulse.features import CovarianceTransformer, StatisticsTransformer
from tests.helpers import make_windows

from .hearts import hearts
from .literal import SMALL, literal_moment, literal_nearness, mapped_similarities, scaled_features

STATISTICS = {"block_weights": (1, 0, 0, 0), "embedding_dim": 64, "rho": 0.01, "random_state": 0}


def visits(n_people=6, n_windows=24, seed=0):
    """People, each with a level of their own, who visit four states of six windows each."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_people), n_windows)
    state = np.tile(np.arange(n_windows) // 6 % 4, n_people)
    t = np.arange(48)
    X = np.sin((0.2 + 0.25 * state[:, None]) * t + rng.uniform(0, 6, (len(state), 1)))
    X = X + rng.normal(size=X.shape) + rng.normal(size=n_people)[person, None]
    return X[..., None].astype(np.float32), person, state


@pytest.mark.usefixtures("unrounded")
@pytest.mark.parametrize("nearest", [0.4, 1.0])
@pytest.mark.parametrize("known", [False, True])
def test_halves_literally(nearest, known):
    """The order of windows says nothing; a window of no known recording is one by itself."""
    X, person, _ = visits(3, 16)
    f, *halves = (
        phi - phi.mean(0)
        for phi in (scaled_features(StatisticsTransformer(), x) for x in (X, X[:, :24], X[:, 24:]))
    )
    n, r = f.shape
    V, S = f.T @ f / n, np.zeros((r, r))
    for psi in halves:
        ridge = 0.01 * np.sum(psi**2) * np.eye(psi.shape[1])
        S += f.T @ psi @ np.linalg.solve(psi.T @ psi + ridge, psi.T @ f) / n / 2
    kept = V
    if known:
        B = np.zeros((r, r))
        for i in range(n):
            others = [j for j in range(n) if j != i and person[j] == person[i]]
            for j in others:
                B += np.outer(f[i], f[j]) / len(others) / n
        S, kept = 0.7 * (S + B) / 2 + 0.3 * (S - B), V - 0.3 * B
    weights = literal_nearness(
        mapped_similarities(f, S, kept, 0.01), person if known else np.arange(n), np.arange(n)
    )
    mixed = (1 - nearest) * S + nearest * literal_moment(f, weights)
    cross = CrossPredictionTransformer(0.3, views="halves", nearest=nearest, **STATISTICS)
    Z = cross.fit_transform(X, groups=person if known else None).astype(np.float64)
    expected = 64 * mapped_similarities(f, mixed, kept, 0.01)
    assert_allclose(Z @ Z.T, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.usefixtures("unrounded")
def test_parts_have_moments_of_their_own_and_the_same_neighbours():
    X, groups = hearts(n_people=4, n_windows=10, n_timesteps=300)
    chain = np.arange(40) // 10
    weights = (7, 0, 0, 0, 0, 0, 0, 3)
    params = STATISTICS | {"block_weights": weights, "alpha": 0.0}
    of_map = CrossPredictionTransformer(**params, nearest=0.0)
    states = of_map.fit_transform(X, groups=groups).astype(np.float64)
    near = literal_nearness(states @ states.T, groups, chain)
    of_parts = []
    known = of_map.small_directions_
    for share, block, small in (
        (0.7, StatisticsTransformer(), known),
        (0.3, CovarianceTransformer(), 0.0),
    ):
        f = scaled_features(block, X)
        f -= f.mean(0)
        pairs = [(i - 1, i) for i in range(40) if i % 10]
        C = sum(np.outer(f[i], f[j]) + np.outer(f[j], f[i]) for i, j in pairs) / 2 / len(pairs)
        B = sum(
            np.outer(f[i], f[j]) / 9 / 40
            for i in range(40)
            for j in range(40)
            if i != j and chain[i] == chain[j]
        )
        S = 0.5 * (C + B) / 2 + 0.5 * literal_moment(f, near)
        own = mapped_similarities(f, S, f.T @ f / 40, 0.01, small=small)
        of_parts.append(64 * share * own)
    expected = sum(of_parts)
    cross = CrossPredictionTransformer(**params, nearest=0.5)
    Z = cross.fit_transform(X, groups=groups).astype(np.float64)
    assert_allclose(Z @ Z.T, expected, atol=1e-4 * np.abs(expected).max())
    narrow = clone(cross).set_params(embedding_dim=3).fit(X, groups=groups).transform(X)
    largest = np.sort(np.concatenate([np.linalg.eigvalsh(part) for part in of_parts]))[-3:]
    assert narrow.var(0).sum() == pytest.approx(3 * largest.sum() / 64 / len(X), rel=1e-3)


def test_the_weight_that_is_chosen(tmp_path):
    """Of several channels, where no recording of two windows is known."""
    X, _ = make_windows(24, 64, 2)
    pairs, alone = np.arange(24) // 2, np.arange(24)
    for windows, groups, views, nearest, expected in (
        (X, None, "auto", "auto", 0.5),
        (X, alone, "auto", "auto", 0.5),
        (X, pairs, "auto", "auto", 0.0),
        (X, pairs, "halves", "auto", 0.0),
        (X, None, "adjacent", "auto", 0.0),
        (X[:, :, :1], None, "auto", "auto", 0.0),
        (X, pairs, "auto", 0.2, 0.2),
    ):
        cross = CrossPredictionTransformer(**SMALL, nearest=nearest, views=views)
        assert cross.fit(windows, groups=groups).nearest_ == expected
        cross.save_pretrained(tmp_path / "model")
        loaded = CrossPredictionTransformer.from_pretrained(tmp_path / "model")
        assert loaded.nearest_ == expected
        assert_array_equal(loaded.transform(windows[:4]), cross.transform(windows[:4]))
    X, _ = hearts()
    assert CrossPredictionTransformer(**SMALL).fit(np.tile(X, 2)).nearest_ == 0.0  # the rhythm


@pytest.mark.parametrize("views", ["adjacent", "halves"])
def test_states_of_several_people_become_one(views):
    """More of the variance of the embedding lies between the states."""
    X, person, state = visits()

    def between_states(Z):
        means = np.stack([Z[state == value].mean(0) for value in range(4)])
        return means.var(0).sum() / Z.var(0).sum()

    params = SMALL | {"num_kernels": 840, "n_components": 60, "views": views}
    without, beside = (
        CrossPredictionTransformer(**params, nearest=nearest).fit_transform(X, groups=person)
        for nearest in (0.0, 0.5)
    )
    assert between_states(beside) > 1.1 * between_states(without)


def test_one_recording_has_no_other():
    X, _ = make_windows(30, 32)
    of_one, without = (
        CrossPredictionTransformer(**SMALL, views="adjacent", nearest=nearest).fit_transform(X)
        for nearest in (1.0, 0.0)
    )
    assert_array_equal(of_one, without)


def test_copies_of_windows():
    """Windows that all recordings hold have no distance, and a distance of zero is near."""
    X, _ = make_windows(6, 32)
    X, groups = np.tile(X, (5, 1, 1)), np.repeat(np.arange(5), 6)
    for windows in (X, np.ones_like(X) + 1e-3 * X[0]):
        with np.errstate(all="raise"):
            cross = CrossPredictionTransformer(**SMALL, nearest=0.5)
            if windows is X:
                assert np.isfinite(cross.fit_transform(windows, groups=groups)).all()
            else:
                with pytest.warns(UserWarning, match="same features"):
                    assert not cross.fit_transform(windows, groups=groups).any()


def test_the_nearest_of_many_windows_come_from_whole_recordings(monkeypatch):
    """A sample has other windows than the next, whose mean would say nothing of the state."""
    X, person, _ = visits(12)
    params = SMALL | {"block_weights": (1, 0, 0, 0), "alpha": 0.0, "nearest": 0.5}
    whole = CrossPredictionTransformer(**params).fit(X, groups=person)
    monkeypatch.setattr("sklearn_pulse._closed_form._sample._SAMPLE", 150)
    found = []

    def kept(states, recording):
        found.append(recording)
        return nearness(states, recording)

    monkeypatch.setattr("sklearn_pulse._closed_form._map_fit.nearness", kept)
    some = CrossPredictionTransformer(**params).fit(X, groups=person)
    sizes = np.bincount(found[0])
    assert len(found[0]) == 150 and (np.sort(sizes[sizes > 0])[1:] == 24).all()
    ours, theirs = (fitted.transform(X).astype(np.float64) for fitted in (some, whole))
    products = [Z @ Z.T / np.trace(Z @ Z.T) for Z in (ours, theirs)]
    assert np.corrcoef(*(p.ravel() for p in products))[0, 1] > 0.9


@settings(deadline=None, max_examples=30)
@given(
    st.integers(1, 40), st.integers(1, 5), st.integers(1, 4), st.booleans(), st.integers(0, 2**31)
)
def test_weights_of_pairs(n, n_recordings, width, is_coarse, seed):
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(n, width))
    if is_coarse:
        states = np.round(states)
    recording = np.sort(rng.integers(n_recordings, size=n))
    weights = nearness(states, recording).toarray()
    assert_allclose(weights, weights.T, atol=1e-3)
    assert weights.min() >= 0 and weights.max() <= 1
    assert not weights[recording[:, None] == recording].any()
    distance = np.sum(np.square(states[:, None] - states), axis=2)
    distance[recording[:, None] == recording] = np.inf
    for i, j in np.argwhere(weights == 1):  # fewer than three others are nearer to either
        nearer = (distance[[i, j]] < 0.9 * distance[i, j] - 1e-6).sum(axis=1)
        assert nearer.max() < 3
