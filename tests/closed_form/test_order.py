"""Views of windows whose order in their recordings says nothing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter
from sklearn.base import clone

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse._closed_form._order import order_is_random
from sklearn_pulse._closed_form._recording_moments import paired_windows
from sklearn_pulse.corpus import fit_dataset
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.windows import RecordingWindows, sliding_windows

from .literal import mapped_similarities, scaled_features

SMALL = {"num_kernels": 84, "n_components": 40, "embedding_dim": 40, "random_state": 0}


def trials(n_people=8, n_trials=40, n_timesteps=64, seed=0):
    """Oscillations of two rates, in random order, and people who differ in gain, level and rate.

    Returns windows, which of the two rates they have, and who was recorded.
    """
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_people), n_trials)
    y = np.concatenate([rng.permutation(np.arange(n_trials) % 2) for _ in range(n_people)])
    gain, level, rate = rng.normal(size=(3, n_people, 2))
    phase = rng.uniform(0, 2 * np.pi, size=(len(y), 1, 2))
    speed = (np.array([0.35, 0.9])[y][:, None] * np.exp(0.1 * rate[person]))[:, None]
    X = np.exp(gain[person])[:, None] * np.sin(speed * np.arange(n_timesteps)[:, None] + phase)
    return (X + 3 * level[person][:, None] + 0.2 * rng.normal(size=X.shape)), y, person


def in_blocks(y, person, length):
    """Order the windows of each person so that a state lasts for `length` windows."""
    rows = []
    for p in np.unique(person):
        one, other = (np.flatnonzero((person == p) & (y == state)) for state in (0, 1))
        for i in range(0, len(one), length):
            rows += [one[i : i + length], other[i : i + length]]
    return np.concatenate(rows)


def views(X, groups, **known):
    """Return the views that are chosen, which depends on no share of a block."""
    cross = CrossPredictionTransformer(**SMALL, block_weights=(1, 0, 0, 0))
    return cross.fit(X, groups=groups, **known).views_


@pytest.mark.parametrize("seed", range(3))
def test_trials_in_random_order(seed):
    X, y, person = trials(seed=seed)
    assert views(X, person) == "halves"
    for length in (20, 10, 5):
        order = in_blocks(y, person, length)
        assert views(X[order], person[order]) == "adjacent"
        shuffled = np.random.default_rng(seed).permutation(len(X))
        mixed = order[shuffled]  # rows in any order, whose starts are known, are in order
        assert views(X[mixed], person[mixed], start=shuffled) == "adjacent"
        assert views(X[order], person[order], start=shuffled) == "halves"


def test_lazy_windows_and_bags_in_random_order():
    X, y, person = trials()
    stop = X.shape[1] * np.arange(1, 41)
    for order, expected in ((np.arange(len(X)), "halves"), (in_blocks(y, person, 10), "adjacent")):
        of_people = X[order].reshape(8, 40, *X.shape[1:])
        assert views(of_people, None) == expected
        lazy = RecordingWindows(
            of_people.reshape(8, -1, 2), person, np.tile(stop - 64, 8), length=64
        )
        assert views(lazy, None) == expected


def test_a_state_is_found_in_other_people_although_its_order_is_random():
    X, y, person = trials(n_people=16)
    labelled, unknown = person < 2, person >= 8

    def accuracy(**params):
        cross = CrossPredictionTransformer(**SMALL, **params).fit(
            X[~unknown], groups=person[~unknown]
        )
        probe = make_linear_probe().fit(cross.transform(X[labelled]), y[labelled])
        return probe.score(cross.transform(X[unknown]), y[unknown])

    found = accuracy()
    assert found > 0.9
    assert found > accuracy(views="adjacent") + 0.1
    assert found > accuracy(views="halves", alpha=0.0) + 0.02


@pytest.mark.parametrize("seed", range(3))
def test_recordings_of_a_single_state_keep_their_neighbours(seed):
    """What their windows have in common is the constant part, whatever their order."""
    X, y, person = trials(seed=seed)
    assert views(X, 2 * person + y) == "adjacent"
    noise = np.random.default_rng(seed).normal(size=(320, 64, 2))
    assert views(noise, person) == "adjacent"


def test_a_few_windows_or_artefacts_are_no_evidence():
    X, _, person = trials()
    few = np.arange(320) % 40 < 3
    assert views(X[few], person[few]) == "adjacent"  # 16 pairs
    noise = np.random.default_rng(0).normal(size=X.shape)
    noise[[100, 200]] *= 1000.0
    assert views(noise, person) == "adjacent"


def test_windows_that_overlap_are_in_no_random_order():
    """Windows that share steps are not the others to which a neighbour is compared."""
    rng = np.random.default_rng(0)
    level = lfilter([1.0], [1.0, -0.99], rng.normal(size=(8, 4096, 1)), axis=1)
    noise = rng.normal(size=level.shape)
    for x, expected in ((level + noise, "adjacent"), (noise, "adjacent")):
        w = sliding_windows(list(x), 64, 8)
        assert views(w.X, w.recording) == expected
        shuffled = rng.permutation(len(w.X))
        expected = "halves" if x is not noise else "adjacent"
        assert views(w.X[shuffled], w.recording[shuffled]) == expected


def paired(n_recordings, n_windows, span=1.0):
    gap = np.ones(n_recordings * n_windows)
    gap[::n_windows] = np.inf
    return paired_windows(np.repeat(np.arange(n_recordings), n_windows), gap, span)


def test_fewer_than_twenty_pairs_say_nothing():
    state = np.random.default_rng(0).permutation(np.repeat(np.eye(2), 12, axis=0))
    assert order_is_random((state, state), paired(4, 6))
    assert not order_is_random((state[:20], state[:20]), paired(4, 5))


def test_neighbours_are_compared_with_other_windows_of_short_recordings():
    """Two of six windows have the same state, and are neighbours; the recording is known by it."""
    state = np.eye(5)[[0, 0, 1, 2, 3, 4]]
    halves = np.tile(state, (50, 1))
    assert not order_is_random((halves, halves), paired(50, 6))
    halves = np.tile(state[[0, 2, 1, 3, 4, 5]], (50, 1))
    assert order_is_random((halves, halves), paired(50, 6))


def test_windows_that_share_steps_are_no_others():
    """Of windows that overlap by seven eighths, those far away hardly count among the others."""
    innovation = np.random.default_rng(0).normal(size=(100, 40, 20))
    innovation[:, 0] /= np.sqrt(1 - 0.86**2)
    state = lfilter([1.0], [1.0, -0.86], innovation, axis=1).reshape(4000, 20)
    assert not order_is_random((state, state), paired(100, 40, span=8.0))


@pytest.mark.parametrize("people_differ", [True, False])
@pytest.mark.parametrize("alpha", ["auto", 0.0, 0.7])
def test_halves_without_the_constant_part_literally(alpha, people_differ, monkeypatch):
    monkeypatch.setattr("sklearn_pulse._cross_prediction._DECIMALS", 12)
    X, _, person = trials(n_people=4, n_trials=12)
    person = person if people_differ else np.random.default_rng(1).permutation(person)
    X = X.astype(np.float32)
    f, *halves = (
        phi - phi.mean(0)
        for phi in (scaled_features(StatisticsTransformer(), x) for x in (X, X[:, :32], X[:, 32:]))
    )
    n, r = f.shape
    V, B, S = f.T @ f / n, np.zeros((r, r)), np.zeros((r, r))
    for i in range(n):
        others = [j for j in range(n) if j != i and person[j] == person[i]]
        for j in others:
            B += np.outer(f[i], f[j]) / len(others) / n
    for psi in halves:
        ridge = 0.01 * np.sum(psi**2) * np.eye(psi.shape[1])
        S += f.T @ psi @ np.linalg.solve(psi.T @ psi + ridge, psi.T @ f) / n / 2
    kappa = 1 - np.trace(B) / np.trace(S)
    assert people_differ == (kappa < 0.5)
    removed = min(0.5, np.sqrt(max(kappa, 0))) if alpha == "auto" else alpha
    shared = (1 - removed) * (S + B) / 2 + removed * (S - B)
    expected = 64 * mapped_similarities(f, shared, V - removed * B, 0.01)
    cross = CrossPredictionTransformer(
        alpha,
        views="halves",
        block_weights=(1, 0, 0, 0),
        embedding_dim=64,
        rho=0.01,
        nearest=0.0,
        random_state=0,
    ).fit(X, groups=person)
    assert cross.kappa_ == pytest.approx(kappa, abs=1e-4)
    assert cross.alpha_ == pytest.approx(removed, abs=1e-4)
    Z = cross.transform(X).astype(np.float64)
    assert_allclose(Z @ Z.T, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("per_chunk", [False, True])
def test_moments_of_many_windows_are_those_of_a_few(per_chunk, monkeypatch):
    X, _, person = trials(n_trials=60)
    cross = CrossPredictionTransformer(
        **SMALL | {"n_components": 12, "block_weights": (1, 0, 0, 0), "rho": 0.01}
    )
    whole = clone(cross).fit(X, groups=person)
    monkeypatch.setattr("sklearn_pulse._closed_form._pieces._PIECE", 100)
    if per_chunk:  # the moments come from a pass over the windows
        monkeypatch.setattr("sklearn_pulse._closed_form._sample._SAMPLE", len(X) - 1)
    pieces = clone(cross).fit(X, groups=person)
    assert whole.views_ == pieces.views_ == "halves"
    assert pieces.kappa_ == pytest.approx(whole.kappa_, abs=0.02)
    Z, expected = pieces.transform(X).astype(float), whole.transform(X).astype(float)
    assert_allclose(Z @ Z.T, expected @ expected.T, atol=0.1 * np.abs(expected @ expected.T).max())


@pytest.mark.xdist_group("workers")
def test_workers_give_the_bits_of_one_process(monkeypatch):
    pytest.importorskip("dask")
    monkeypatch.setattr("sklearn_pulse._closed_form._sample._SAMPLE", 200)
    monkeypatch.setattr("sklearn_pulse._closed_form._pieces._PIECE", 100)
    X, _, person = trials()
    cross = CrossPredictionTransformer(**SMALL, num_threads=1)
    alone = clone(cross).fit(X, groups=person)
    assert alone.views_ == "halves" and alone.n_pairs_ == len(X)
    for n_jobs in (1, 2):
        beside = fit_dataset(clone(cross), X, groups=person, n_jobs=n_jobs)
        assert (beside.views_, beside.kappa_) == (alone.views_, alone.kappa_)
        assert_array_equal(beside.transform(X), alone.transform(X))


def test_halves_of_windows_alone_in_their_recordings_have_no_constant_part():
    X, _, _ = trials(n_people=2)
    cross = CrossPredictionTransformer(**SMALL)
    alone = clone(cross).fit(X, groups=np.arange(len(X)))
    assert alone.views_ == "halves" and alone.alpha_ == 0.0 and np.isnan(alone.kappa_)
    assert_array_equal(alone.transform(X), clone(cross).fit(X).transform(X))


def test_halves_count_copies_once():
    """As a bootstrap draws them; a copy would pass for another window of the recording."""
    X, _, person = trials()
    start = np.tile(np.arange(40), 8)
    cross = CrossPredictionTransformer(views="halves", **SMALL)
    one = clone(cross).fit(X, groups=person, start=start)
    rows = np.repeat(np.arange(len(X)), 3)
    three = clone(cross).fit(X[rows], groups=person[rows], start=start[rows])
    assert three.n_pairs_ == one.n_pairs_ == len(X)
    assert three.kappa_ == pytest.approx(one.kappa_, abs=0.02)


def test_windows_of_which_a_half_is_missing():
    X, _, person = trials()
    X[::7, :32] = np.nan
    cross = CrossPredictionTransformer(**SMALL).fit(X, groups=person)
    seen = ~np.isnan(X[:, :32]).any((1, 2))
    expected = CrossPredictionTransformer(**SMALL).fit(X[seen], groups=person[seen])
    assert cross.views_ == expected.views_ == "halves"
    assert cross.n_pairs_ == expected.n_pairs_ == seen.sum()
    assert_array_equal(cross.transform(X[seen]), expected.transform(X[seen]))
