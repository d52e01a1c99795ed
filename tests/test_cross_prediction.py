"""Cross-prediction in closed form."""

import pickle
import sys
import tracemalloc
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from scipy.linalg import fractional_matrix_power, inv
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse._closed_form._fit import ClosedFormFit
from sklearn_pulse._data._windows import CheckedWindows
from sklearn_pulse.evaluation import LabeledSubsetClassifier, make_linear_probe
from sklearn_pulse.features import (
    CovarianceTransformer,
    EnvelopeCovarianceTransformer,
    RhythmTransformer,
    StatisticsTransformer,
)
from sklearn_pulse.plotting import EmbeddingDisplay
from sklearn_pulse.windows import RecordingWindows, SlidingWindows, sliding_windows
from tests.helpers import make_windows

SMALL = {"num_kernels": 84, "n_components": 12, "embedding_dim": 16, "random_state": 0}


@pytest.fixture
def unrounded(monkeypatch):
    """Keep all digits of the embedding."""
    monkeypatch.setattr("sklearn_pulse._cross_prediction._DECIMALS", 12)


def literal_similarities(phi, recording, follows, alpha, rho, ceiling, whitening=0.0):
    """Scalar products of embeddings, by loops over windows and pairs."""
    f = phi - phi.mean(0)
    n, r = f.shape
    V, C, B, n_pairs = np.zeros((r, r)), np.zeros((r, r)), np.zeros((r, r)), 0
    n_with_others = sum(list(recording).count(i) > 1 for i in recording)
    for i in range(n):
        V += np.outer(f[i], f[i]) / n
        others = [j for j in range(n) if j != i and recording[j] == recording[i]]
        for j in others:
            B += np.outer(f[i], f[j]) / len(others) / n_with_others
        if follows[i]:
            C += (np.outer(f[i - 1], f[i]) + np.outer(f[i], f[i - 1])) / 2
            n_pairs += 1
    C /= n_pairs
    kappa = 1 - np.trace(B) / np.trace(C)
    if alpha == "auto":
        alpha = 0.5 if kappa > 0.25 else np.sqrt(max(kappa, 0))
    S = (1 - alpha) * (C + B) / 2 + alpha * (C - B)
    return kappa, alpha, ceiling * mapped_similarities(f, S, V - alpha * B, rho, whitening)


def mapped_similarities(f, S, kept, rho, whitening=0.0):
    """Scalar products of ``f R``, of what predicts the other view."""
    V = f.T @ f / len(f)
    inverse = inv(V + rho * np.trace(V) * np.eye(len(V)))
    maps = [inverse @ S @ fractional_matrix_power(inverse, whitening / 2), inverse @ kept]
    maps = [m / np.sqrt(np.mean(np.sum((f @ m) ** 2, axis=1))) for m in maps]
    return f @ (0.9 * maps[0] @ maps[0].T + 0.1 * maps[1] @ maps[1].T) @ f.T


def similarities_of_halves(transformer, X, rho):
    """Scalar products where the halves of a window predict the window."""
    f, *halves = (
        phi - phi.mean(0)
        for phi in (
            scaled_features(transformer, part)
            for part in (X, X[:, : X.shape[1] // 2], X[:, X.shape[1] // 2 :])
        )
    )
    S = np.zeros((f.shape[1], f.shape[1]))
    for psi in halves:
        ridge = rho * np.sum(psi**2) * np.eye(psi.shape[1])
        S += f.T @ psi @ inv(psi.T @ psi + ridge) @ psi.T @ f / len(f) / 2
    return mapped_similarities(f, S, f.T @ f / len(f), rho)


def scaled_features(transformer, X):
    """Features, scaled as a block that has the whole variance."""
    phi = transformer.fit_transform(X).astype(np.float64)
    deviation = phi.std(0)
    varies = deviation > 0
    names = transformer.get_feature_names_out()
    has_unit = np.array([name.split("_")[1] in ("mean", "std", "min", "max") for name in names])
    for same in filter(np.any, (has_unit & varies, ~has_unit & varies)):
        deviation[same] = np.maximum(deviation[same], 0.01 * np.median(deviation[same]))
    phi = phi[:, varies] / deviation[varies]
    return phi / np.sqrt(phi.var(0).sum())


@pytest.mark.usefixtures("unrounded")
@pytest.mark.parametrize(
    ("alpha", "whitening"),
    [("auto", "auto"), (0.0, 0.0), (0.5, "auto"), (1.0, 0.0), ("auto", 0.5), (0.5, 1.0)],
)
def test_embedding_literally(alpha, whitening):
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
        random_state=0,
    ).fit(X, groups=recording, start=start)
    assert cross.whitening_ == (0.0 if whitening == "auto" else whitening)
    kappa, expected_alpha, expected = literal_similarities(
        phi, recording, follows, alpha, 0.01, 64, cross.whitening_
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
    monkeypatch.setattr("sklearn_pulse._closed_form._fit.share_of_change", lambda *traces: kappa)
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


def test_views_and_recordings():
    X, y = make_windows(60, 64)
    groups = np.arange(60) // 20
    order = np.lexsort((y, groups))  # a state lasts for some windows
    X, y = X[order], y[order]
    adjacent = CrossPredictionTransformer(**SMALL).fit(X, groups=groups)
    assert (adjacent.views_, adjacent.n_pairs_) == ("adjacent", 57)
    assert 0 <= adjacent.alpha_ <= 1
    halves = CrossPredictionTransformer(**SMALL).fit(X)
    assert (halves.views_, halves.n_pairs_, halves.alpha_) == ("halves", 60, 0.0)
    assert np.isnan(halves.kappa_)
    one = CrossPredictionTransformer(views="adjacent", **SMALL).fit(X)  # a single recording
    assert one.n_pairs_ == 59
    for fitted in (adjacent, halves, one):
        assert list(fitted.predictability_["blocks"]) == [
            *("statistics", "autocorrelation", "minirocket", "multirocket", "quantiles", "hydra"),
            "covariance",
        ]
        assert fitted.predictability_["directions"].shape == (16,)
        shares = [*fitted.predictability_["blocks"].values()]
        shares += fitted.predictability_["directions"].tolist()
        assert all(share <= 1 + 1e-6 for share in shares)
    probe = make_linear_probe().fit(halves.transform(X[:40]), y[:40])
    assert probe.score(halves.transform(X[40:]), y[40:]) > 0.95
    lazy = RecordingWindows(X.reshape(3, -1, 2), groups, 64 * (np.arange(60) % 20), length=64)
    own = CrossPredictionTransformer(**SMALL).fit(lazy)
    np.testing.assert_array_equal(own.transform(X), adjacent.transform(X))
    bags = CrossPredictionTransformer(**SMALL).fit(X.reshape(3, 20, 64, 2))
    np.testing.assert_array_equal(bags.transform(X), adjacent.transform(X))


def test_lazy_windows_and_bags_know_better_than_groups():
    X, _ = make_windows(24, 32)
    lazy = sliding_windows(list(X.reshape(3, -1, 2)), 32, lazy=True).X
    for given_as in (lazy, X.reshape(3, 8, 32, 2)):
        cross = CrossPredictionTransformer(**SMALL, views="adjacent")
        expected = clone(cross).fit(given_as)
        wrong = np.arange(len(given_as)) % 2
        misled = clone(cross).fit(given_as, groups=wrong)
        assert misled.n_pairs_ == expected.n_pairs_ == 21
        np.testing.assert_array_equal(misled.transform(X), expected.transform(X))


def r2_literally(f, pairs, folds, rho, directions):
    """R2 of directions, predicted from the neighbour by a ridge on the other fold of pairs."""
    source = np.array([f[i] for i, j in pairs] + [f[j] for i, j in pairs])
    target = np.array([f[j] for i, j in pairs] + [f[i] for i, j in pairs])
    folds = np.concatenate([folds, folds])
    errors, totals = np.zeros(directions.shape[1]), np.zeros(directions.shape[1])
    for fold in (0, 1):
        g, h = source[folds != fold], target[folds != fold]
        V = g.T @ g
        weights = inv(V + rho * np.trace(V) * np.eye(len(V))) @ g.T @ h
        missed = (target[folds == fold] - source[folds == fold] @ weights) @ directions
        errors += np.sum(missed**2, axis=0)
        totals += np.sum((target[folds == fold] @ directions) ** 2, axis=0)
    return 1 - errors / totals, 1 - errors.sum() / totals.sum()


@pytest.mark.usefixtures("unrounded")
@pytest.mark.parametrize("n_recordings", [1, 4])
def test_predictability_literally(n_recordings):
    """R2 on held-out recordings; a single recording is cut in the middle."""
    X = np.random.default_rng(0).normal(size=(40, 32, 2)).cumsum(1).astype(np.float32)
    recording = np.arange(40) * n_recordings // 40
    settings = {"views": "adjacent", "block_weights": (1, 0, 0, 0), "rho": 0.01, "random_state": 0}
    settings |= {"n_components": 5, "embedding_dim": 5}
    cross = CrossPredictionTransformer(0.5, **settings).fit(X, groups=recording)
    phi = scaled_features(StatisticsTransformer(), X)
    f = phi - phi.mean(0)
    f = f @ np.linalg.svd(f, full_matrices=False)[2][:5].T
    pairs = [(i, i + 1) for i in range(39) if recording[i] == recording[i + 1]]
    folds = np.array([recording[i] % 2 if n_recordings > 1 else i >= 19 for i, _ in pairs], int)
    # The embedding is linear in f: its leading directions, up to a rotation, follow from it.
    theta = cross.transform(X).astype(np.float64)
    theta -= theta.mean(0)
    coefficients = np.linalg.lstsq(f, theta, rcond=None)[0]
    directions = np.linalg.svd(coefficients, full_matrices=False)
    directions = directions[0] * directions[1]
    shares, _ = r2_literally(f, pairs, folds, 0.01, directions)
    np.testing.assert_allclose(cross.predictability_["directions"], shares, atol=1e-5)
    _, whole = r2_literally(f, pairs, folds, 0.01, np.eye(5))
    # All columns of the block lie in the five components.
    assert cross.predictability_["blocks"]["statistics"] == pytest.approx(whole, abs=1e-5)


def test_halves_are_predicted_from_other_recordings():
    """Two recordings are the two folds, whatever their order and size."""
    X = np.random.default_rng(0).normal(size=(40, 32, 2)).cumsum(1).astype(np.float32)
    recording = np.arange(40) // 30
    settings = {"views": "halves", "block_weights": (1, 0, 0, 0), "rho": 0.01, "random_state": 0}
    settings |= {"n_components": 5, "embedding_dim": 5}
    first, last = (
        CrossPredictionTransformer(**settings).fit(X, groups=named).predictability_
        for named in (recording, 1 - recording)
    )
    np.testing.assert_allclose(first["directions"], last["directions"], atol=1e-5)
    assert first["blocks"]["statistics"] == pytest.approx(last["blocks"]["statistics"], abs=1e-5)


def test_predictability_of_one_pair_is_unknown():
    X, _ = make_windows(3, 16)
    cross = CrossPredictionTransformer(**SMALL).fit(X, groups=[0, 0, 1])
    assert cross.n_pairs_ == 1
    assert np.isnan(cross.predictability_["directions"]).all()


def test_total_variance_is_the_width():
    X, _ = make_windows(60, 64)
    cross = CrossPredictionTransformer(**SMALL | {"embedding_dim": 400, "n_components": 100})
    total = cross.fit(X, groups=np.arange(60) // 20).transform(X).var(0).sum()
    assert total == pytest.approx(400, rel=1e-3)


def test_pickle_and_seed():
    X, _ = make_windows(30, 32)
    cross = CrossPredictionTransformer(**SMALL).fit(X)
    embedding = cross.transform(X)
    np.testing.assert_array_equal(clone(cross).fit_transform(X), embedding)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(cross)).transform(X), embedding)
    other = clone(cross).set_params(random_state=1).fit_transform(X)
    assert not np.array_equal(other, embedding)
    assert cross.set_output(transform="pandas").transform(X).shape == (30, 16)


def test_longer_windows_are_embedded_and_too_short_ones_refused():
    X, _ = make_windows(30, 40)
    cross = CrossPredictionTransformer(**SMALL).fit(X)
    assert cross.transform(np.concatenate([X, X], axis=1)).shape == (30, 16)
    with pytest.raises(ValueError, match="of 12 time steps"):
        cross.transform(X[:, :12])


def test_a_row_of_wide_features_does_not_depend_on_its_place():
    X, _ = make_windows(40, 64, 2)
    cross = CrossPredictionTransformer(n_components=30, embedding_dim=50, random_state=0).fit(X)
    embedding = cross.transform(X)
    for row in range(1, 13):  # libraries multiply rows by four to sixteen at a time
        np.testing.assert_array_equal(cross.transform(X[[row]])[0], embedding[row])
    np.testing.assert_array_equal(cross.transform(X[::-1])[::-1], embedding)


@pytest.mark.parametrize("part", [slice(36), slice(5, None), slice(2, 39)])
def test_a_padded_window_is_the_shorter_window(part):
    X, _ = make_windows(30, 40)
    cross = CrossPredictionTransformer(**SMALL).fit(X)
    padded = np.full_like(X, np.nan)
    padded[:, part] = X[:, part]
    expected = cross.transform(X[:, part])
    np.testing.assert_allclose(cross.transform(padded), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alpha": 1.5}, "alpha must be 'auto' or a number"),
        ({"alpha": "half"}, "alpha must be 'auto' or a number"),
        ({"views": "both"}, "views must be"),
        ({"block_weights": (1, 1)}, "block_weights must be 'auto' or four to nine numbers"),
        ({"block_weights": (0, 0, 0, 0)}, "must not all be 0"),
        ({"block_weights": "equal"}, "block_weights must be"),
        ({"block_weights": (1, -1, 0, 0)}, "each of block_weights must be"),
        ({"block_weights": (1, 1, 1e38, 1)}, "each of block_weights must be .* 1e.06\\]"),
        ({"block_weights": (0, 0, 1e-30, 0)}, "largest of block_weights must be at least 1e-06"),
        ({"rho": 0.0}, "rho must be"),
        ({"whitening": 1.5}, "whitening must be 'auto' or a number in .0, 1., got 1.5"),
        ({"whitening": "half"}, "whitening must be 'auto' or a number in .0, 1., got 'half'"),
        ({"rho": 1e300}, "rho must be a number in .*pass for example rho=0.00015"),
        ({"num_kernels": 83}, "num_kernels must be an integer of at least 84"),
    ],
)
def test_parameters(params, message):
    X, _ = make_windows(6, 16, 2)
    with pytest.raises(ValueError, match=message):
        CrossPredictionTransformer(**params).fit(X)


@pytest.mark.parametrize("weights", [1.0, np.array(1.0), {"hydra": 1.0}])
def test_block_weights_are_a_sequence(weights):
    X, _ = make_windows(6, 16, 2)
    with pytest.raises(TypeError, match="block_weights must be 'auto' or four to nine numbers"):
        CrossPredictionTransformer(block_weights=weights).fit(X)


@pytest.mark.parametrize("groups", [None, np.arange(40) // 10])
@pytest.mark.parametrize("rho", [1e-16, 1e-17])
def test_a_rho_near_rounding_is_an_error(groups, rho):
    """Fewer windows than components: SciPy warns, or finds a singular matrix."""
    X = np.random.default_rng(0).normal(size=(40, 32, 2)).cumsum(1)
    params = SMALL | {"n_components": 40, "rho": rho}
    with pytest.raises(ValueError, match=f"rho={rho} is too small .* pass a larger rho"):
        CrossPredictionTransformer(**params).fit(X, groups=groups)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ([0, 1], "start must hold one number or time per window, shape \\(6,\\)"),
        (list("abcdef"), "start must hold one number or time per window"),
        ([0, 1, 2, np.nan, 4, np.inf], "start is unknown or infinite for 2 windows"),
        (np.array(["2026-01-01"] * 5 + ["NaT"], "datetime64[s]"), "unknown or infinite for 1 win"),
        (list(pd.date_range("2026", periods=6, tz="UTC")), "pass numbers, or datetime64 \\(of"),
        ([[0], [1, 2]] * 3, "start must hold one number .* lists of different lengths: pass num"),
    ],
)
def test_starts_that_do_not_fit(start, message):
    X, _ = make_windows(6, 16, 2)
    with pytest.raises(ValueError, match=message):
        CrossPredictionTransformer(**SMALL).fit(X, start=start)


def _pairs(start, groups):
    X = np.random.default_rng(0).normal(size=(len(start), 32, 2))
    return CrossPredictionTransformer(**SMALL).fit(X, groups=groups, start=start).n_pairs_


def test_each_recording_has_its_own_usual_distance():
    """Recorders count their starts in steps of their own rate."""
    slow, fast = 64 * np.arange(16), 256 * np.arange(8)
    assert _pairs(np.r_[slow, fast], [0] * 16 + [1] * 8) == 15 + 7
    gapped = slow[:8] + 4 * 64 * (np.arange(8) > 3)
    assert _pairs(np.r_[gapped, 256 * np.arange(16)], [0] * 8 + [1] * 16) == 6 + 15
    # a single step is compared with those of the others
    assert _pairs(np.r_[slow, 0, 64, 0, 128], [0] * 16 + [1] * 2 + [2] * 2) == 15 + 1


@pytest.mark.parametrize("as_series", [False, True])
def test_a_change_of_clocks_is_no_gap(as_series):
    times = pd.date_range("2026-10-25 00:30", periods=24, freq="15min", tz="Europe/Berlin")
    assert _pairs(pd.Series(times) if as_series else times, np.zeros(24)) == 23


@pytest.mark.parametrize("as_series", [False, True])
def test_the_time_may_be_a_period(as_series):
    times = pd.period_range("2026-10-25", periods=24, freq="15min").delete(7)
    assert _pairs(pd.Series(times) if as_series else times, np.zeros(23)) == 21


def test_startsas_times_and_of_bags():
    X, _ = make_windows(12, 16)
    groups, steps = np.arange(12) // 6, np.array([0, 2, 4, 8, 10, 13] * 2)
    numbers = CrossPredictionTransformer(**SMALL).fit(X, groups=groups, start=steps)
    assert numbers.n_pairs_ == 8
    times = np.datetime64("2026-01-01") + 10 * steps.astype("timedelta64[s]")
    dated = CrossPredictionTransformer(**SMALL).fit(X, groups=groups, start=times)
    bags = CrossPredictionTransformer(**SMALL).fit(
        X.reshape(2, 6, 16, 2), start=steps.reshape(2, 6)
    )
    for other in (dated, bags):
        np.testing.assert_array_equal(other.transform(X), numbers.transform(X))


def test_recordings_whose_rows_take_turns():
    X, _ = make_windows(12, 16)
    groups = np.array([0, 0, 1, 0, 1, 1, 2, 0, 2, 1, 2, 2])
    order = np.argsort(groups, kind="stable")
    params = SMALL | {"block_weights": (1, 0, 0, 0)}
    mixed = CrossPredictionTransformer(**params).fit(X, groups=groups)
    one_by_one = CrossPredictionTransformer(**params).fit(X[order], groups=groups[order])
    assert mixed.n_pairs_ == one_by_one.n_pairs_ == 9
    np.testing.assert_array_equal(mixed.transform(X), one_by_one.transform(X))


def test_copies_are_no_neighbours():
    X, _ = make_windows(6, 16)
    twice = np.concatenate([X, X])
    cross = CrossPredictionTransformer(**SMALL)
    one = np.concatenate([X[:1]] * 12)
    with pytest.warns(UserWarning, match="All windows of X have the same features"):
        assert cross.fit(one, groups=np.zeros(12), start=[0] * 12).views_ == "halves"
    assert cross.fit(twice, groups=np.zeros(12), start=[*range(6), *range(6)]).n_pairs_ == 5
    twice[:, 0] = np.nan
    assert cross.fit(twice, groups=np.zeros(12), start=[*range(6), *range(6)]).n_pairs_ == 5


def test_copies_count_once():
    """As a bootstrap draws them; a copy would say that a window predicts itself."""
    X, _ = make_windows(24, 32)
    recording, start = np.repeat([0, 1, 2], 8), np.tile(np.arange(8), 3)
    cross = CrossPredictionTransformer(**SMALL | {"block_weights": (1, 0, 0, 0)})
    one = cross.fit(X, groups=recording, start=start).transform(X)
    twice = cross.fit(np.tile(X, (2, 1, 1)), groups=np.tile(recording, 2), start=np.tile(start, 2))
    two = twice.transform(X)
    np.testing.assert_allclose(two @ two.T, one @ one.T, atol=0.1)


def test_recordings_of_one_group_are_named_apart():
    """Otherwise each window of a recording would be paired with one of another."""
    recordings = list(np.random.default_rng(0).normal(size=(4, 64, 2)))
    w = sliding_windows(recordings, 16, groups=["anna", "anna", "ben", "ben"])
    cross = CrossPredictionTransformer(**SMALL)
    with pytest.warns(UserWarning, match=r"start repeats within groups .*the windows 0 and 4\)"):
        cross.fit(w.X, groups=w.groups, start=w.start)
    assert cross.fit(w.X, groups=w.recording, start=w.start).n_pairs_ == 12
    assert cross.fit(w.X, groups=w.groups).n_pairs_ == 14  # without starts nothing is known


def test_a_start_that_repeats_in_bags_or_lazy_windows_is_warned_of():
    """Whole seconds, for example, of windows that begin every half of a second."""
    recordings = list(np.random.default_rng(0).normal(size=(3, 96, 2)))
    bags = SlidingWindows(16).fit_transform(recordings).copy()
    cross = CrossPredictionTransformer(**SMALL)
    seconds = np.tile(np.arange(6) * 0.5, (3, 1))
    with pytest.warns(UserWarning, match=r"within bags \(first in the windows 0 and 1 of bag 0\)"):
        cross.fit(bags, start=np.floor(seconds))
    w = sliding_windows(recordings, 16, lazy=True)
    with pytest.warns(
        UserWarning, match=r"within recordings \(first .* 0 and 1\).* leave start out"
    ):
        cross.fit(w.X, start=np.floor(seconds).ravel())
    bags[1:, 4:] = np.nan  # bags of fewer windows, whose other starts say nothing
    seconds[1:, 4:] = 0.0
    assert cross.fit(bags, start=seconds).n_pairs_ == 5 + 3 + 3
    bags[2, 3], seconds[2, 3] = bags[2, 2], seconds[2, 2]  # a copy
    assert cross.fit(bags, start=seconds).n_pairs_ == 5 + 3 + 2


def test_windows_that_a_bag_lacks_need_no_time():
    recordings = [np.random.default_rng(n).normal(size=(n, 2)) for n in (96, 64)]
    bags = SlidingWindows(16).fit_transform(recordings)
    start = np.tile(np.arange(6.0), (2, 1))
    known = CrossPredictionTransformer(**SMALL).fit(bags, start=start)
    start[1, 4:] = np.nan
    dates = pd.to_datetime(start.ravel(), unit="s").to_numpy().reshape(start.shape)
    for times in (start, np.ma.masked_invalid(start), dates):
        some = CrossPredictionTransformer(**SMALL).fit(bags, start=times)
        assert some.n_pairs_ == 5 + 3
        np.testing.assert_array_equal(some.transform(bags), known.transform(bags))
    start[0, 5] = np.nan
    with pytest.raises(ValueError, match="start is unknown or infinite for 1 windows"):
        CrossPredictionTransformer(**SMALL).fit(bags, start=start)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_starts_of_few_bits_do_not_overflow(dtype):
    start = np.array([np.iinfo(dtype).min, 0, np.iinfo(dtype).max], dtype=dtype)
    assert _pairs(start, np.zeros(3)) == 2


def test_adjacent_views_need_adjacent_windows():
    X, _ = make_windows(6, 16)
    with pytest.raises(ValueError, match="views='adjacent' finds no two adjacent windows"):
        CrossPredictionTransformer(views="adjacent", **SMALL).fit(X, groups=np.arange(6))


def test_nothing_predicts_a_window():
    X, _ = make_windows(6, 16)
    with pytest.warns(UserWarning, match="No window of X has an observed time step in both"):
        assert CrossPredictionTransformer(**SMALL).fit(X[:, :1, :1]).n_pairs_ == 0
    X[:, :8] = np.nan
    with pytest.warns(UserWarning, match="No window of X has an observed time step in both"):
        cross = CrossPredictionTransformer(**SMALL).fit(X)
    assert np.isfinite(cross.transform(X)).all()


@pytest.fixture
def streaming(monkeypatch):
    """Let a sample of ten windows stand for the 5,000."""
    monkeypatch.setattr("sklearn_pulse._closed_form._fit._SAMPLE", 10)


def test_progress_bar(capsys, streaming):
    X, _ = make_windows(20, 16, 2)
    CrossPredictionTransformer(verbose=1, **SMALL).fit(X)
    assert "20.0/20.0" in capsys.readouterr().err
    CrossPredictionTransformer(**SMALL).fit(X)
    assert not capsys.readouterr().err


def test_progress_without_tqdm(capsys, streaming, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    X, _ = make_windows(20, 16, 2)
    CrossPredictionTransformer(verbose=1, **SMALL).fit(X)
    shown = capsys.readouterr().out
    assert "cross-prediction: 100 %" in shown


@pytest.mark.parametrize("groups", [None, np.arange(600) // 30])
def test_moments_stream_over_all_windows(monkeypatch, groups):
    """The components come from a sample, the moments from every window, chunk by chunk."""
    X, _ = make_windows(600, 16)
    params = SMALL | {"embedding_dim": 400, "n_components": 100}
    params["views"] = "halves" if groups is None else "adjacent"
    whole = CrossPredictionTransformer(**params).fit(X, groups=groups)
    monkeypatch.setattr("sklearn_pulse._closed_form._fit._SAMPLE", 590)
    streamed = CrossPredictionTransformer(**params).fit(X, groups=groups)
    assert streamed.n_pairs_ == whole.n_pairs_
    if groups is not None:
        assert streamed.kappa_ == pytest.approx(whole.kappa_, abs=0.02)
    ours, theirs = streamed.transform(X[:50]), whole.transform(X[:50])
    products = [theta @ theta.T / 400 for theta in (ours, theirs)]
    np.testing.assert_allclose(*products, atol=0.05 * np.abs(products[1]).max())


def test_scales_need_no_copy_of_all_columns():
    X, _ = make_windows(5000, 64, 4)
    quantiles = {"block_weights": (0, 0, 0, 0, 1), "n_components": 4, "embedding_dim": 4}
    cross = CrossPredictionTransformer(views="adjacent", random_state=0, **quantiles)
    tracemalloc.start()
    cross.fit(X, groups=np.arange(5000) // 100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    columns = 4 * len(X) * sum(part.get_feature_names_out().size for part in cross.blocks_.values())
    assert peak < 2.5 * columns  # their squares in float64 would make three


def test_saved_and_loaded(tmp_path):
    X, _ = make_windows(30, 40)
    X[3, 5:9] = np.nan
    cross = CrossPredictionTransformer(**SMALL).fit(X, groups=np.arange(30) // 10)
    cross.save_pretrained(tmp_path / "model")
    loaded = CrossPredictionTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X), cross.transform(X))
    assert loaded.get_params() == cross.get_params()
    assert (loaded.kappa_, loaded.alpha_, loaded.n_pairs_) == (
        *(cross.kappa_, cross.alpha_),
        cross.n_pairs_,
    )
    assert loaded.predictability_["blocks"] == cross.predictability_["blocks"]
    for name, block in cross.blocks_.items():
        twin = loaded.blocks_[name]
        assert twin.get_params() == block.get_params()
        np.testing.assert_array_equal(twin.transform(X), block.transform(X))
    loaded.save_pretrained(tmp_path / "again")
    files = [tmp_path / name / "model.safetensors" for name in ("model", "again")]
    assert files[0].read_bytes() == files[1].read_bytes()
    with pytest.raises(ValueError, match="fitted with num_kernels=84, and a file would hold 168"):
        cross.set_params(num_kernels=168).save_pretrained(tmp_path / "other")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("map", lambda w: w[:, :-1]),
        ("components", lambda w: w[:-1]),
        ("scale", lambda w: w * np.nan),
        ("mean", None),
        ("minirocket.banks.0.0.biases", lambda w: w[:-1]),
        ("multirocket.banks.1.0.channels", None),
        ("further", lambda w: np.zeros(1)),
    ],
)
def test_files_of_other_weights_are_refused(tmp_path, monkeypatch, name, change):
    X, _ = make_windows(12, 16)
    cross = CrossPredictionTransformer(**SMALL).fit(X)
    weights = {key: value.numpy() for key, value in cross._weights().items()}
    changed = change(weights.get(name)) if change else None
    weights = {key: value for key, value in weights.items() if key != name}
    if changed is not None:
        weights[name] = np.ascontiguousarray(changed)
    monkeypatch.setattr(
        cross, "_weights", lambda: {key: torch.from_numpy(w) for key, w in weights.items()}
    )
    with pytest.raises(ValueError, match="cannot be saved: .*" + name.split(".", 1)[-1]):
        cross.save_pretrained(tmp_path / "model")


def test_blocks_are_transformers():
    """The fitted blocks compute features on their own, of a table too."""
    X, _ = make_windows(12, 16)
    cross = CrossPredictionTransformer(**SMALL).fit(X[:, :, 0])
    for block in cross.blocks_.values():
        features = block.transform(X[:, :, 0])
        assert features.shape == (12, len(block.get_feature_names_out()))
        np.testing.assert_array_equal(features, block.transform(X[:, :, :1]))
        np.testing.assert_array_equal(features, clone(block).fit_transform(X[:, :, 0]))


def test_blocks_read_what_the_transformer_reads(tmp_path):
    """A block takes X channels first, and bags, as the transformer does, loaded ones too."""
    X, _ = make_windows(12, 16)
    bags = X.reshape(4, 3, *X.shape[1:])
    cross = CrossPredictionTransformer(**SMALL, input_layout="nct", bag_pooling="max")
    cross.fit(bags.swapaxes(2, 3)).save_pretrained(tmp_path / "model")
    loaded = CrossPredictionTransformer.from_pretrained(tmp_path / "model")
    for fitted in (cross, loaded):
        for block in fitted.blocks_.values():
            features = block.transform(X.swapaxes(1, 2))
            pooled = features.reshape(4, 3, -1).max(1)
            np.testing.assert_array_equal(block.transform(bags.swapaxes(2, 3)), pooled)


def test_a_panel_is_embedded_as_its_padded_windows():
    """A panel of series of different lengths, as sktime passes it."""
    pytest.importorskip("sktime")
    from sklearn_pulse.panel import as_panel_transformer

    X, _ = make_windows(12, 40)
    frames = [pd.DataFrame(x[: 40 - i]) for i, x in enumerate(X)]
    panel = as_panel_transformer(CrossPredictionTransformer(**SMALL))
    embedding = panel.fit_transform(frames)
    assert embedding.shape == (12, 16)
    padded = X.copy()
    for i, x in enumerate(padded):
        x[40 - i :] = np.nan
    expected = CrossPredictionTransformer(**SMALL).fit(padded).transform(padded)
    np.testing.assert_array_equal(embedding, expected)


def test_pipelines_and_searches():
    """Recordings are routed to the transformer; unlabelled windows help to fit it."""
    X, y = make_windows(48, 32)
    groups = np.arange(48) // 8
    order = np.lexsort((y, groups))
    X, y = X[order], y[order]
    with config_context(enable_metadata_routing=True):
        cross = CrossPredictionTransformer(**SMALL).set_fit_request(groups=True)
        pipe = make_pipeline(cross, StandardScaler(), LabeledSubsetClassifier(LogisticRegression()))
        grid = {"crosspredictiontransformer__alpha": [0.0, 1.0]}
        search = GridSearchCV(pipe, grid, cv=GroupKFold(3), error_score="raise")
        partly = np.where(np.arange(48) % 2, y, -1)
        search.fit(X, partly, groups=groups)
    best = search.best_estimator_[0]
    assert best.views_ == "adjacent" and best.n_pairs_ == 42
    assert search.best_estimator_.score(X, y) > 0.9
    assert EmbeddingDisplay.from_estimator(best, X, partly).coordinates.shape == (48, 2)


@pytest.mark.parametrize(
    "backend",
    ["threading", pytest.param("loky", marks=pytest.mark.slow)],  # workers import everything
)
@pytest.mark.xdist_group("workers")
def test_two_workers_give_the_bits_of_one(backend):
    X, _ = make_windows(40, 32)
    cross = CrossPredictionTransformer(**SMALL, num_threads=1)
    jobs = [joblib.delayed(clone(cross).fit_transform)(X[i:]) for i in (0, 1)]
    one, two = (joblib.Parallel(n, backend=backend)(jobs) for n in (1, 2))
    for alone, beside in zip(one, two, strict=True):
        np.testing.assert_array_equal(alone, beside)


@pytest.mark.parametrize("unit", [2.0**-70, 2.0**-30, 2.0**30])  # powers of two round alike
def test_the_unit_does_not_matter(unit):
    X, _ = make_windows(60, 64)
    cross = CrossPredictionTransformer(**SMALL)
    groups = np.arange(60) // 20
    embedding = cross.fit(X, groups=groups).transform(X)
    in_unit = clone(cross).fit(X * unit, groups=groups).transform(X * unit)
    np.testing.assert_allclose(in_unit, embedding, atol=1e-3)


def test_the_unit_does_not_matter_on_the_grid_of_a_recorder():
    """Many features are ties there, about which the rounding of a unit must not decide."""
    counts = (5 * np.random.default_rng(0).normal(size=(60, 64, 2)).cumsum(1)).round()
    cross = CrossPredictionTransformer(**SMALL, block_weights=(1, 1, 1, 1, 1, 1, 1))
    groups = np.arange(60) // 20
    embedding = cross.fit(counts, groups=groups).transform(counts)
    volts = counts * 1e-3
    in_volts = clone(cross).fit(volts, groups=groups).transform(volts)
    products = [rows @ rows.T for rows in (in_volts, embedding)]
    assert np.linalg.norm(products[0] - products[1]) < 0.01 * np.linalg.norm(products[1])


@pytest.mark.parametrize("scale", [4e-41, 1e-30, 1e30])
def test_values_near_the_ends_of_float32(scale):
    X, _ = make_windows(12, 16)
    X = (X * np.float64(scale)).astype(np.float32)
    params = SMALL | {"block_weights": (1, 0, 0, 0)}
    assert np.isfinite(CrossPredictionTransformer(**params).fit_transform(X)).all()
    assert np.isfinite(CrossPredictionTransformer(**SMALL).fit_transform(X)).all()


@pytest.mark.parametrize("n_sampled", [None, 4])
def test_windows_whose_features_are_not_finite_are_named(n_sampled, monkeypatch):
    if n_sampled is not None:  # then the other windows are read in the streaming pass
        monkeypatch.setattr("sklearn_pulse._closed_form._fit._SAMPLE", n_sampled)
    X, _ = make_windows(12, 16)
    X[5, 3, 0] = 1e38
    with pytest.raises(ValueError, match=r"not finite: window 5 reaches 1e\+38.*Scale X"):
        CrossPredictionTransformer(**SMALL).fit(X)
    fitted = CrossPredictionTransformer(**SMALL).fit(X[:5])
    with pytest.raises(ValueError, match=r"not finite in 1 sample.*masks their time steps\.$"):
        fitted.transform(X)


def test_a_device_that_is_set_after_fit():
    """A transformer that was fitted on a GPU embeds on a machine without one."""
    X, _ = make_windows(6, 16)
    cross = CrossPredictionTransformer(**SMALL).fit(X).set_params(device="nowhere")
    with pytest.raises(ValueError, match="device must be .*'nowhere'"):
        cross.transform(X)
    assert cross.set_params(device="cpu").transform(X).shape == (6, 16)


class Halves(CrossPredictionTransformer):
    """A user's class, with few parameters of its own."""

    def __init__(self, rho=0.01):
        super().__init__(views="halves", rho=rho, **SMALL)


def test_a_subclass_with_other_parameters_is_saved(tmp_path):
    X, _ = make_windows(6, 16)
    halves = clone(Halves(0.02)).fit(X)
    halves.save_pretrained(tmp_path / "model")
    loaded = Halves.from_pretrained(tmp_path / "model")
    assert loaded.rho == 0.02
    np.testing.assert_array_equal(loaded.transform(X), halves.transform(X))


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize(
    ("name", "n_before"),
    [("quantiles", 0), ("hydra", 1), ("rhythm", 2), ("covariance", 3), ("envelopes", 4)],
)
def test_further_blocks(name, n_before, share, tmp_path):
    X = np.random.default_rng(0).normal(size=(6, 50, 2)).astype(np.float32)
    groups = np.arange(6) // 3
    four = (0.1, 0.05, 0.6, 0.25)
    params = {"num_kernels": 84, "embedding_dim": 16, "random_state": 0}
    cross = CrossPredictionTransformer(block_weights=(*four, *n_before * [0.0], share), **params)
    cross.fit(X, groups=groups)
    assert (name in cross.blocks_) == (name in cross.predictability_["blocks"]) == (share > 0)
    assert len(cross.blocks_) == 4 + (share > 0)
    assert cross.whitening_ == 0  # which "auto" raises only under shares that it chose too
    cross.save_pretrained(tmp_path / "model")
    loaded = CrossPredictionTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X), cross.transform(X))
    without = cross.set_params(block_weights=four).fit(X, groups=groups)
    assert (loaded.transform(X) == without.transform(X)).all() == (share == 0)


def hearts(n_people=8, n_windows=12, n_timesteps=800):
    """Recordings of regular and irregular beats in turn, six windows of each."""
    rng = np.random.default_rng(0)
    windows = []
    for number in range(n_people * n_windows):
        usual = rng.uniform(55, 65)
        spread = 0.4 * usual if number // 6 % 2 else 0.5
        beats = np.cumsum(rng.uniform(usual - spread, usual + spread, size=40))
        time = np.arange(n_timesteps)[:, None]
        windows.append(np.exp(-((time - beats) ** 2) / 4).sum(1))
    X = np.stack(windows)[:, :, None] + 0.02 * rng.normal(size=(len(windows), n_timesteps, 1))
    return X.astype(np.float32), np.arange(len(windows)) // n_windows


@pytest.mark.parametrize("views", ["adjacent", "halves"])
@pytest.mark.parametrize("is_heart", [True, False])
def test_the_rhythm_is_taken_where_it_lasts(views, is_heart, tmp_path):
    X, groups = hearts()
    if not is_heart:
        X = np.random.default_rng(0).normal(size=X.shape).astype(np.float32)
    params = SMALL | {"views": views}
    known = groups if views == "adjacent" else None
    cross = CrossPredictionTransformer(**params).fit(X, groups=known)
    alone = CrossPredictionTransformer(
        **params | {"views": "halves"}, block_weights=(0, 0, 0, 0, 0, 0, 1), rho=0.03
    )
    predicted = alone.fit(X, groups=groups).predictability_["blocks"]["rhythm"]
    assert (predicted > 0.3) == is_heart
    assert ("rhythm" in cross.blocks_) == is_heart
    six = np.array([0.06, 0.03, 0.36, 0.15, 0.15, 0.25])
    expected = [*(0.85 * six), 0.15, 0, 0] if is_heart else [*six, 0, 0, 0]
    np.testing.assert_allclose(cross.block_weights_, expected)
    assert cross.whitening_ == (0.5 if is_heart else 0.0)
    used = {"block_weights": cross.block_weights_, "whitening": cross.whitening_}
    stated = CrossPredictionTransformer(**params | used)
    some = X[::12]  # one window of each person tells a difference too
    embedding = cross.transform(some)
    np.testing.assert_array_equal(stated.fit(X, groups=known).transform(some), embedding)
    for number, fitted in enumerate((cross, stated)):
        fitted.save_pretrained(tmp_path / str(number))
        loaded = CrossPredictionTransformer.from_pretrained(tmp_path / str(number))
        np.testing.assert_array_equal(loaded.transform(some), embedding)
        np.testing.assert_array_equal(loaded.block_weights_, cross.block_weights_)
        assert loaded.whitening_ == cross.whitening_


@pytest.mark.parametrize("views", ["auto", "halves"])
def test_statistics_have_most_of_several_channels_of_recordings(views, tmp_path):
    """Windows of recordings may start anywhere, trials without recordings may not."""
    X = np.random.default_rng(0).normal(size=(40, 64, 2)).astype(np.float32)
    params = SMALL | {"num_kernels": 84, "views": views}
    cross = CrossPredictionTransformer(**params).fit(X, groups=np.arange(40) // 10)
    of_recordings, usual = (
        (0.6, 0.01, 0.15, 0.065, 0.065, 0.11),
        (0.06, 0.03, 0.36, 0.15, 0.15, 0.25),
    )
    six = np.array(of_recordings if views == "auto" else usual)
    np.testing.assert_allclose(cross.block_weights_, [*(0.85 * six), 0, 0.15, 0])
    np.testing.assert_allclose(cross.block_weights_.sum(), 1)
    cross.save_pretrained(tmp_path / "model")
    loaded = CrossPredictionTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X[:6]), cross.transform(X[:6]))
    without = CrossPredictionTransformer(**params).fit(X)
    np.testing.assert_allclose(without.block_weights_[0], 0.85 * 0.06)  # no recordings are known


def swells(states_change, n_people=8, n_windows=40, n_timesteps=160):
    """Noise whose power swells slowly or fast, in turn or in recordings of their own."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(n_people), n_windows)
    is_fast = np.arange(n_people * n_windows) // 5 % 2 if states_change else person % 2
    period = np.where(is_fast == 1, 40.0, 120.0)[:, None]
    phase = 2 * np.pi * (np.arange(n_timesteps) / period + rng.random((len(person), 1)))
    X = (1.2 + np.sin(phase)) * rng.normal(size=phase.shape)
    return X[..., None].astype(np.float32), person


@pytest.mark.parametrize("views", ["auto", "halves"])
@pytest.mark.parametrize("states_change", [True, False])
def test_envelopes_of_one_channel_are_taken_where_states_change(states_change, views, tmp_path):
    X, person = swells(states_change)
    params = SMALL | {"num_kernels": 84, "views": views}
    cross = CrossPredictionTransformer(**params).fit(X, groups=person)
    assert ("envelopes" in cross.blocks_) == states_change and "covariance" not in cross.blocks_
    six = np.array([0.06, 0.03, 0.36, 0.15, 0.15, 0.25])
    expected = [*(0.85 * six), 0, 0, 0.15] if states_change else [*six, 0, 0, 0]
    np.testing.assert_allclose(cross.block_weights_, expected)
    alone = CrossPredictionTransformer(**params, block_weights=(0,) * 8 + (1,))
    assert (alone.fit(X, groups=person).kappa_ > 0.5) == states_change
    if views == "halves":  # whether they change cannot be told of recordings that are not known
        assert "envelopes" not in CrossPredictionTransformer(**params).fit(X).blocks_
    cross.save_pretrained(tmp_path / "model")
    loaded = CrossPredictionTransformer.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X[:6]), cross.transform(X[:6]))


def test_the_choice_of_envelopes_reads_whole_recordings_of_a_sample(monkeypatch):
    """Of a random sample of windows, hardly any would be adjacent."""
    monkeypatch.setattr("sklearn_pulse._closed_form._fit._SAMPLE", 100)
    X, person = swells(True)
    sizes, fit = [], ClosedFormFit.adjacent

    def spy(self, run, windows, index, paired):
        sizes.append(sorted(np.unique(person[index], return_counts=True)[1].tolist()))
        return fit(self, run, windows, index, paired)

    monkeypatch.setattr(ClosedFormFit, "adjacent", spy)
    params = SMALL | {"num_kernels": 84}
    cross = CrossPredictionTransformer(**params).fit(X, groups=person)
    assert sizes == [[20, 40, 40], [40] * 8] and "envelopes" in cross.blocks_
    sizes.clear()
    person = np.zeros_like(person)
    CrossPredictionTransformer(**params, views="adjacent").fit(X)
    assert sizes == [[100], [320]]
    # The recordings that are drawn may have no adjacent windows.
    monkeypatch.setattr("sklearn_pulse._closed_form._fit._SAMPLE", 3)
    sizes.clear()
    cross = CrossPredictionTransformer(**params).fit(X[:22], groups=[*range(21), 20])
    assert len(sizes) == 1 and cross.n_pairs_ == 1 and "envelopes" not in cross.blocks_


@pytest.mark.parametrize("kappa", [0.49, 0.51])
def test_envelopes_are_taken_if_kappa_is_above_one_half(kappa, monkeypatch):
    X, person = swells(True, n_people=2, n_windows=10)
    fit = ClosedFormFit.adjacent
    monkeypatch.setattr(ClosedFormFit, "adjacent", lambda *args: fit(*args)._replace(kappa=kappa))
    cross = CrossPredictionTransformer(**SMALL | {"num_kernels": 84}).fit(X, groups=person)
    assert ("envelopes" in cross.blocks_) == (kappa > 0.5)


@pytest.mark.parametrize("sizes", [[310, 10], [10, 310], [40] * 8, [30]])
def test_recordings_are_drawn_until_they_fill_a_sample(sizes, monkeypatch):
    monkeypatch.setattr("sklearn_pulse._closed_form._fit._SAMPLE", 100)
    recording = np.repeat(np.arange(len(sizes)), sizes)
    cross = CrossPredictionTransformer(**SMALL)
    drawn = set()
    for cross._seed in range(6):
        places = cross._closed_form(np.ones(9), 0.0).sample_of_recordings(recording)
        assert len(places) == min(100, len(recording)) and (np.diff(places) > 0).all()
        drawn.add(tuple(np.unique(recording[places])))
    assert len(sizes) < 8 or len(drawn) > 1


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
        literal_similarities(phi, *known) for phi in (others, apart)
    )
    cross = CrossPredictionTransformer(
        alpha, block_weights=weights, embedding_dim=64, rho=0.01, random_state=0
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
    # A narrow embedding has the leading directions of both maps together.
    narrow = clone(cross).set_params(embedding_dim=5).fit(X, groups=groups)
    lengths = [
        np.linalg.svd(fitted._map, compute_uv=False)[:5] / np.sqrt(fitted.embedding_dim)
        for fitted in (cross, narrow)
    ]
    np.testing.assert_allclose(lengths[1], lengths[0], rtol=1e-4)


@pytest.mark.parametrize("views", ["adjacent", "halves"])
@pytest.mark.parametrize("share", [0.15, 1000])
def test_a_rhythm_that_does_not_vary_leaves_its_share_to_the_others(views, share):
    """One smooth beat in each window has no interval."""
    rng = np.random.default_rng(0)
    place, width, height = rng.uniform([28, 8, 0.5], [36, 16, 2], size=(40, 3)).T[..., None]
    X = (height * np.exp(-((np.arange(64) - place) ** 2) / width))[..., None]
    weights = (0.1, 0.05, 0.6, 0.25, 0, 0, share)
    params = {"num_kernels": 84, "embedding_dim": 100, "random_state": 0, "views": views}
    cross = CrossPredictionTransformer(block_weights=weights, **params)
    Z = cross.fit(X, groups=np.arange(40) // 10).transform(X)
    assert np.isnan(cross.predictability_["blocks"]["rhythm"])
    assert Z.var(0).mean() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("n_channels", [1, 4])
@pytest.mark.parametrize("rho", [1.5e-4, 1.0])
def test_the_choice_of_the_rhythm_depends_on_no_number_of_windows_and_no_ridge(n_channels, rho):
    X, groups = hearts()
    rng = np.random.default_rng(0)
    X = X + 0.02 * rng.normal(size=(*X.shape[:2], n_channels)).astype(np.float32)
    few = np.sort(rng.permutation(len(X))[:30])
    params = SMALL | {"rho": rho}
    assert "rhythm" in CrossPredictionTransformer(**params).fit(X[few], groups=groups[few]).blocks_
    noise = rng.normal(size=X.shape).astype(np.float32)
    for index in (few, slice(None)):
        fitted = CrossPredictionTransformer(**params).fit(noise[index], groups=groups[index])
        assert "rhythm" not in fitted.blocks_


def test_a_start_that_repeats_everywhere_is_warned_of():
    """The start of the recording, for example, in place of that of the window."""
    X = np.random.default_rng(0).normal(size=(24, 40, 1))
    groups, start = np.repeat([0, 1], 12), np.repeat([0.0, 500.0], 12)
    cross = CrossPredictionTransformer(**SMALL)
    with pytest.warns(UserWarning, match="start repeats within groups .*that neighbours are not"):
        assert cross.fit(X, groups=groups, start=start).views_ == "halves"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CrossPredictionTransformer(**SMALL, views="halves").fit(X, groups=groups, start=start)


@pytest.mark.parametrize(("views", "n_passes"), [("adjacent", 2), ("halves", 3), ("auto", 2)])
@pytest.mark.parametrize("bags", [False, True])
def test_the_choice_of_blocks_needs_no_further_pass(views, n_passes, bags, monkeypatch):
    """Windows are read to be checked, to find gaps in halves or overlap, and for the moments."""
    monkeypatch.setattr("sklearn_pulse._closed_form._fit._SAMPLE", 20)
    X, groups = make_windows(600)[0], np.arange(600) // 30
    X = X.reshape(20, 30, *X.shape[1:]) if bags else X
    read, take = [], CheckedWindows.take

    def spy(self, index):
        read.append(len(index))
        return take(self, index)

    monkeypatch.setattr(CheckedWindows, "take", spy)
    cross = CrossPredictionTransformer(**SMALL, views=views)
    cross.fit(X, groups=None if bags else groups)
    n_of_sample = sum(n for n in read if n == 20)
    n_of_kernels = 3 * 84 * (3 if views == "halves" else 1)  # three banks of each view
    n_of_scale = 256 * (3 if views == "halves" else 1)  # of the channels, in each view
    n_of_overlap = 64  # pairs that are compared
    assert sum(read) - n_of_sample == n_passes * 600 + n_of_kernels + n_of_scale + n_of_overlap
    assert n_of_sample <= 20 * 12


@pytest.mark.parametrize("n_timesteps", [40, 200])
@pytest.mark.parametrize("overlap", [0, 2, 4])
def test_overlap_is_no_rhythm(n_timesteps, overlap):
    noise = list(np.random.default_rng(0).normal(size=(6, 6000, 1)))
    stride = n_timesteps // max(1, overlap)
    w = sliding_windows(noise, n_timesteps, stride)
    cross = CrossPredictionTransformer(**SMALL).fit(w.X[:1500], groups=w.recording[:1500])
    assert "rhythm" not in cross.blocks_


@pytest.mark.parametrize(("num_kernels", "sizes"), [(84, (84, 84, 2)), (1000, (1000, 125, 6))])
def test_all_convolutions_grow_with_the_number_of_kernels(num_kernels, sizes):
    X = np.random.default_rng(0).normal(size=(6, 50, 1))
    blocks = CrossPredictionTransformer(num_kernels=num_kernels, n_components=4).fit(X).blocks_
    assert (
        blocks["minirocket"].num_kernels,
        blocks["multirocket"].num_kernels,
        blocks["hydra"].num_groups,
    ) == sizes


def test_rounding_is_not_kept_as_a_signal():
    """Where each recording has two windows, nothing outlasts its constant: C - B is rounding."""
    rng = np.random.default_rng(0)
    windows, groups = rng.normal(size=(40, 32, 2)).astype(np.float32), np.repeat(np.arange(20), 2)
    settings = {"alpha": 1.0, "num_kernels": 84, "embedding_dim": 16, "random_state": 0}
    first, second = (
        CrossPredictionTransformer(**settings).fit(x, groups=groups).transform(windows)
        for x in (windows, windows * np.float32(1 + 1e-6))
    )
    np.testing.assert_allclose(first @ first.T, second @ second.T, rtol=0, atol=0.1)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_columns_have_a_variance_of_one_if_nothing_is_predicted(alpha):
    """In recordings of two windows, adjacent windows share what all windows do: C - B is zero."""
    X = np.random.default_rng(0).normal(size=(60, 32, 2))
    cross = CrossPredictionTransformer(**SMALL | {"embedding_dim": 64}, alpha=alpha)
    embedding = cross.fit_transform(X, groups=np.repeat(np.arange(30), 2))
    assert embedding.var(0).mean() == pytest.approx(1.0, abs=0.05)


def test_a_handful_of_windows_has_no_rhythm():
    for n in (2, 3, 4, 9):
        X = np.random.default_rng(n).normal(size=(n, 256, 1))
        assert "rhythm" not in CrossPredictionTransformer(**SMALL).fit(X).blocks_


def test_windows_of_which_one_half_is_missing_take_no_part():
    X = np.random.default_rng(0).normal(size=(40, 32, 2))
    X[30:, :16] = np.nan
    X[30:, 16:] *= 100
    settings = SMALL | {"block_weights": (1, 0, 0, 0)}
    fits = [CrossPredictionTransformer(**settings).fit(windows) for windows in (X, X[:30])]
    assert fits[0].n_pairs_ == 30
    np.testing.assert_array_equal(*(cross.transform(X[:30]) for cross in fits))


def test_the_middle_of_an_odd_window_is_in_no_half():
    X = np.random.default_rng(0).normal(size=(20, 33, 1))
    X[:, 17:] = np.nan
    with pytest.warns(UserWarning, match="both halves"):
        assert CrossPredictionTransformer(**SMALL).fit(X).n_pairs_ == 0


def test_predictability_of_halves_is_that_of_other_recordings():
    rng = np.random.default_rng(0)
    recordings = np.repeat(rng.normal(size=(12, 64, 2)), 8, axis=0)
    X = recordings + 0.01 * rng.normal(size=(96, 64, 2))  # windows of a recording are nearly equal
    cross = CrossPredictionTransformer(**SMALL | {"block_weights": (1, 0, 0, 0)}, views="halves")
    cross.fit(X, groups=np.repeat(np.arange(12), 8))
    assert cross.predictability_["blocks"]["statistics"] < 0.5


def test_three_windows_of_one_recording_have_two_folds():
    X = np.random.default_rng(0).normal(size=(3, 64, 2))
    cross = CrossPredictionTransformer(**SMALL | {"block_weights": (1, 0, 0, 0)})
    cross.fit(X, groups=[0] * 3)
    assert np.isfinite(cross.predictability_["blocks"]["statistics"])


def test_columns_of_proportions_have_a_floor():
    """Proportions that hardly vary would otherwise count as much as those that do."""
    X, groups = np.random.default_rng(0).normal(size=(60, 64, 1)), np.arange(60) // 20
    settings = {"num_kernels": 84, "n_components": 100, "embedding_dim": 100, "random_state": 0}
    cross = CrossPredictionTransformer(block_weights=(0, 0, 1, 0), **settings).fit(X, groups=groups)
    variance = cross.blocks_["minirocket"].transform(X).astype(float).var(0)
    expected = 1 / np.sqrt(variance + 0.05**2)
    expected /= np.sqrt((variance * expected**2).sum())
    np.testing.assert_allclose(cross._stack.scale, expected, rtol=1e-3)


@pytest.mark.parametrize(
    ("start", "groups", "n_pairs"),
    [
        ([0, 10, 20, 30, 46, 56], [0] * 6, 4),  # 16 is more than one and a half of 10
        ([0, 10, 20, 30, 45, 55], [0] * 6, 5),
        ([*range(16), 0, 9, 18], [0] * 16 + [1] * 3, 15 + 2),  # two steps have their own median
        ([0, 1, 5], [0] * 3, 1),  # the median of 1 and 4 is 2.5
    ],
)
def test_adjacent_windows_are_one_and_a_half_usual_steps_apart_at_most(start, groups, n_pairs):
    assert _pairs(np.array(start), np.array(groups)) == n_pairs
