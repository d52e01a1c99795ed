"""What the other view predicts, on recordings that are held out."""

import numpy as np
import pytest
from scipy.linalg import inv

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse.features import StatisticsTransformer
from tests.helpers import make_windows

from .literal import SMALL, scaled_features


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
    # The embedding is linear in f: its principal axes follow from it.
    theta = cross.transform(X).astype(np.float64)
    theta -= theta.mean(0)
    coefficients = np.linalg.lstsq(f, theta, rcond=None)[0]
    directions = coefficients @ np.linalg.svd(theta, full_matrices=False)[2].T
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
