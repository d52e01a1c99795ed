"""The embedding is what the formulas say."""

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.features import (
    CovarianceTransformer,
    EnvelopeCovarianceTransformer,
    RhythmTransformer,
    StatisticsTransformer,
)
from tests.helpers import make_windows

from .hearts import hearts
from .literal import SMALL, literal_similarities, scaled_features, similarities_of_halves


@pytest.mark.usefixtures("unrounded")
@pytest.mark.parametrize(
    ("alpha", "whitening", "nearest", "unpredicted"),
    [
        ("auto", "auto", "auto", 0.1),
        (0.0, 0.0, 0.0, 0.0),
        (0.5, "auto", 0.0, 1.0),
        (1.0, 0.0, 0.3, 0.1),
        ("auto", 0.5, 1.0, 0.4),
        (0.5, 1.0, 0.5, 0.1),
    ],
)
def test_embedding_literally(alpha, whitening, nearest, unpredicted):
    """Scalar products of the embedding, which no rotation changes, for one block of features."""
    X = np.random.default_rng(0).normal(size=(40, 32, 2)).cumsum(1).astype(np.float32)
    recording = np.array([0] * 9 + [1] + [2] * 14 + [3] * 16)
    follows = np.concatenate([[False], np.diff(recording) == 0])
    follows[15] = False  # a gap in time
    start = np.arange(40) + 5 * (np.arange(40) >= 15)
    phi = scaled_features(StatisticsTransformer(), X)
    cross = CrossPredictionTransformer(
        alpha,
        views="adjacent",
        block_weights=(1, 0, 0, 0),
        embedding_dim=64,
        rho=0.01,
        whitening=whitening,
        nearest=nearest,
        unpredicted=unpredicted,
        random_state=0,
    ).fit(X, groups=recording, start=start)
    assert cross.whitening_ == (0.0 if whitening == "auto" else whitening)
    assert cross.nearest_ == (0.0 if nearest == "auto" else nearest)
    kappa, expected_alpha, expected = literal_similarities(
        phi, recording, follows, alpha, 0.01, 64, cross.whitening_, cross.nearest_, unpredicted
    )
    assert cross.n_pairs_ == follows.sum() and list(cross.blocks_) == ["statistics"]
    assert cross.kappa_ == pytest.approx(kappa, abs=1e-5)
    assert cross.alpha_ == pytest.approx(expected_alpha, abs=1e-5)
    embedding = cross.transform(X).astype(np.float64)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(embedding @ embedding.T, expected, atol=2e-5 * scale)
    # The order of the rows says nothing where the start of each window is known.
    order = np.random.default_rng(1).permutation(40)
    shuffled = clone(cross).fit(X[order], groups=recording[order], start=start[order])
    assert shuffled.n_pairs_ == cross.n_pairs_
    assert shuffled.kappa_ == pytest.approx(cross.kappa_, abs=1e-4)


def test_the_embedding_is_rounded_to_hundredths(monkeypatch):
    X, _ = make_windows(60, 32, 2)
    cross = CrossPredictionTransformer(**SMALL).fit(X, groups=np.arange(60) // 20)
    embedding = cross.transform(X)
    np.testing.assert_allclose(embedding.var(0).mean(), 1.0, rtol=0.1)
    monkeypatch.setattr("sklearn_pulse._cross_prediction._DECIMALS", 12)
    exact = cross.transform(X)
    np.testing.assert_array_equal(embedding, np.round(exact.astype(float), 2).astype("float32"))
    assert not np.array_equal(embedding, exact)


def test_rounding_helps_a_probe_of_two_labelled_windows(monkeypatch):
    """A scaler of two rows divides by their differences, which may be as small as rounding."""
    rng = np.random.default_rng(0)
    y = np.arange(200) // 10 % 2
    X = rng.normal(size=(200, 64, 1)).cumsum(1)
    X[y == 1] += rng.normal(size=(100, 64, 1))
    cross = CrossPredictionTransformer(
        views="adjacent", num_kernels=840, n_components=100, embedding_dim=2048, random_state=0
    ).fit(X, groups=np.arange(200) // 10)
    labeled = [[rng.choice(np.flatnonzero(y == label)) for label in (0, 1)] for _ in range(60)]
    accuracy = []
    for decimals in (2, 12):
        monkeypatch.setattr("sklearn_pulse._cross_prediction._DECIMALS", decimals)
        Z = cross.transform(X)
        probes = [make_linear_probe().fit(Z[rows], y[rows]) for rows in labeled]
        accuracy.append(np.mean([probe.score(Z, y) for probe in probes]))
    assert accuracy[0] > accuracy[1] + 0.15, accuracy


@pytest.mark.parametrize(
    ("kappa", "alpha"),
    [(-0.2, 0.0), (0.0, 0.0), (0.04, 0.2), (0.25, 0.5), (0.7, 0.5), (1.3, 0.5)],
)
def test_automatic_alpha(monkeypatch, kappa, alpha):
    monkeypatch.setattr(
        "sklearn_pulse._closed_form._map_fit.share_of_change", lambda *traces: kappa
    )
    X, _ = make_windows(12, 16)
    cross = CrossPredictionTransformer(**SMALL).fit(X, groups=np.arange(12) // 6)
    assert cross.alpha_ == pytest.approx(alpha)


def test_automatic_alpha_of_a_few_windows():
    """From a few windows kappa is no share; alpha stays a share, and embeddings finite."""
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = (
            rng.normal(size=(8, 32, 2))
            * np.exp(0.7 * rng.normal(size=(2, 2))).repeat(4, 0)[:, None]
        )
        params = SMALL | {"block_weights": (1, 1, 0, 0)}
        cross = CrossPredictionTransformer(**params).fit(X, groups=np.arange(8) // 4)
        assert cross.views_ == "adjacent" and 0 <= cross.alpha_ <= 0.5
        assert np.isfinite(cross.transform(X)).all()
        if not 0 <= cross.kappa_ <= 1:
            assert cross.alpha_ == (0.5 if cross.kappa_ > 1 else 0.0)
        found.append(cross.kappa_)
    assert min(found) < 0


def test_what_stays_constant_is_removed():
    """The level tells the recording, the frequency the state: alpha decides which is kept."""
    rng = np.random.default_rng(0)
    n = 240
    recording = np.arange(n) // 40
    state = np.arange(n) // 8 % 2
    t = np.arange(64)
    X = np.sin((0.3 + 0.5 * state[:, None]) * t + rng.uniform(0, 6, (n, 1)))
    X = X + 0.3 * rng.normal(size=X.shape) + 2.0 * rng.normal(size=6)[recording, None]
    X = X[..., None].astype(np.float32)

    def spread(alpha, label):
        cross = CrossPredictionTransformer(alpha, **SMALL).fit(X, groups=recording)
        theta = cross.transform(X)
        means = np.stack([theta[label == value].mean(0) for value in np.unique(label)])
        return means.var(0).sum() / theta.var(0).sum()

    assert spread(1.0, recording) < 0.5 * spread(0.0, recording)
    assert spread(1.0, state) > spread(0.0, state)


def test_total_variance_is_the_width():
    X, _ = make_windows(60, 64)
    cross = CrossPredictionTransformer(**SMALL | {"embedding_dim": 400, "n_components": 100})
    total = cross.fit(X, groups=np.arange(60) // 20).transform(X).var(0).sum()
    assert total == pytest.approx(400, rel=1e-3)


@pytest.mark.usefixtures("unrounded")
@pytest.mark.parametrize("alpha", ["auto", 1.0])
@pytest.mark.parametrize(
    ("block", "weights"),
    [
        (RhythmTransformer(), (7, 0, 0, 0, 0, 0, 3)),
        (CovarianceTransformer(), (7, 0, 0, 0, 0, 0, 0, 3)),
        (EnvelopeCovarianceTransformer(), (7, 0, 0, 0, 0, 0, 0, 0, 3)),
    ],
)
def test_some_blocks_have_maps_and_shares_of_their_own(block, weights, alpha):
    """Its own second moments, and a share that no other block changes; alpha is that of all."""
    X, groups = hearts(n_people=4, n_windows=10, n_timesteps=300)
    follows = np.append(False, np.diff(groups) == 0)
    others = scaled_features(StatisticsTransformer(), X)
    apart = scaled_features(block, X)
    both = np.hstack([np.sqrt(0.7) * others, np.sqrt(0.3) * apart])
    kappa, expected_alpha, _ = literal_similarities(both, groups, follows, alpha, 0.01, 1)
    known = (groups, follows, expected_alpha, 0.01, 64)
    (_, _, of_others), (_, _, of_block) = (
        literal_similarities(phi, *known, is_apart=phi is apart) for phi in (others, apart)
    )
    cross = CrossPredictionTransformer(
        alpha, block_weights=weights, embedding_dim=64, rho=0.01, nearest=0.0, random_state=0
    ).fit(X, groups=groups)
    assert cross.kappa_ == pytest.approx(kappa, abs=1e-4)
    assert cross.alpha_ == pytest.approx(expected_alpha, abs=1e-4)
    embedding = cross.transform(X).astype(np.float64)
    expected = 0.7 * of_others + 0.3 * of_block
    scale = np.abs(expected).max()
    np.testing.assert_allclose(embedding @ embedding.T, expected, atol=1e-4 * scale)
    halves = clone(cross).set_params(views="halves").fit(X).transform(X)
    expected = 64 * (
        0.7 * similarities_of_halves(StatisticsTransformer(), X, 0.01)
        + 0.3 * similarities_of_halves(block, X, 0.01)
    )
    halves = halves.astype(np.float64)
    np.testing.assert_allclose(halves @ halves.T, expected, atol=1e-4 * np.abs(expected).max())
    # A narrow embedding has the largest axes of both maps together.
    narrow = clone(cross).set_params(embedding_dim=5).fit(X, groups=groups).transform(X)
    variances = [np.linalg.eigvalsh(0.7 * of_others), np.linalg.eigvalsh(0.3 * of_block)]
    largest = np.sort(np.concatenate(variances))[-5:]
    assert narrow.var(0).sum() == pytest.approx(5 * largest.sum() / 64 / len(X), rel=1e-3)


def test_a_narrow_embedding_keeps_the_state():
    """One state that halves share, and features of noise, which hardly vary."""
    rng = np.random.default_rng(0)
    state = rng.integers(0, 2, 200)
    X = rng.normal(size=(200, 64, 1)) * (1 + 3 * state[:, None, None])
    cross = CrossPredictionTransformer(num_kernels=84, embedding_dim=4, random_state=0)
    embedding = cross.fit_transform(X, groups=np.arange(200) // 20)
    apart = embedding[state == 1].mean(0) - embedding[state == 0].mean(0)
    assert (apart**2).sum() > 0.5 * embedding.var(0).sum()
    assert cross.predictability_["directions"][0] > 0.9


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_columns_have_a_variance_of_one_if_nothing_is_predicted(alpha):
    """In recordings of two windows, adjacent windows share what all windows do: C - B is zero."""
    X = np.random.default_rng(0).normal(size=(60, 32, 2))
    cross = CrossPredictionTransformer(**SMALL | {"embedding_dim": 64}, alpha=alpha)
    embedding = cross.fit_transform(X, groups=np.repeat(np.arange(30), 2))
    assert embedding.var(0).mean() == pytest.approx(1.0, abs=0.05)


def test_columns_of_proportions_have_a_floor():
    """Proportions that hardly vary would otherwise count as much as those that do."""
    X, groups = np.random.default_rng(0).normal(size=(60, 64, 1)), np.arange(60) // 20
    settings = {"num_kernels": 84, "n_components": 100, "embedding_dim": 100, "random_state": 0}
    cross = CrossPredictionTransformer(block_weights=(0, 0, 1, 0), **settings).fit(X, groups=groups)
    variance = cross.blocks_["minirocket"].transform(X).astype(float).var(0)
    expected = 1 / np.sqrt(variance + 0.05**2)
    expected /= np.sqrt((variance * expected**2).sum())
    np.testing.assert_allclose(cross._stack.scale, expected, rtol=1e-3)
