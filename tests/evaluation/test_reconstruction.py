"""Scores of a reconstruction, of the part that is scored."""

import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_pulse import PulseTransformer
from sklearn_pulse.baselines import RandomEncoderTransformer, SimMTMTransformer
from sklearn_pulse.evaluation import RECONSTRUCTION_SCORERS, drift_scores, reconstruction_scores
from sklearn_pulse.plotting import ReconstructionDisplay
from tests.helpers import SMALL_PULSE, make_windows, small

X, y = make_windows(24)


@pytest.fixture(scope="module")
def fitted():
    return PulseTransformer(**SMALL_PULSE).fit(X)


def literal_scores(windows, predictions):
    """Go through every value; sum in float64."""
    pairs = [
        (float(x), float(p))
        for x, p in zip(windows.ravel(), predictions.ravel(), strict=True)
        if np.isfinite(x) and np.isfinite(p)
    ]
    mean = sum(x for x, _ in pairs) / len(pairs)
    squared = sum((x - p) ** 2 for x, p in pairs)
    return {
        "mse": squared / len(pairs),
        "mae": sum(abs(x - p) for x, p in pairs) / len(pairs),
        "r2": 1 - squared / sum((x - mean) ** 2 for x, _ in pairs),
    }


def test_scores_literally(fitted):
    expected = literal_scores(X, fitted.reconstruct(X))
    assert reconstruction_scores(fitted, X) == pytest.approx(expected)
    assert reconstruction_scores(fitted, X, y) == pytest.approx(expected)
    assert reconstruction_scores(FrozenEstimator(fitted), X) == pytest.approx(expected)


def test_missing_values_do_not_count(fitted):
    holes = X.copy()
    holes[3, 5:9] = np.nan
    holes[4, 2, 1] = np.nan
    expected = literal_scores(holes, fitted.reconstruct(holes))
    assert reconstruction_scores(fitted, holes) == pytest.approx(expected)
    masked = np.ma.masked_invalid(holes)
    masked.data[masked.mask] = 1e4  # what lies under a mask is not read
    assert reconstruction_scores(fitted, masked) == reconstruction_scores(fitted, holes)


def test_layout_and_table():
    first = PulseTransformer(**SMALL_PULSE, input_layout="nct").fit(X.swapaxes(1, 2))
    last = PulseTransformer(**SMALL_PULSE).fit(X)
    assert reconstruction_scores(first, X.swapaxes(1, 2)) == reconstruction_scores(last, X)
    table = PulseTransformer(**SMALL_PULSE).fit(X[..., 0])
    expected = literal_scores(X[..., 0], table.reconstruct(X[..., 0]))
    assert reconstruction_scores(table, X[..., 0]) == pytest.approx(expected)


def half(X):
    return X / 2


def test_steps_before_the_transformer_are_the_units_of_the_scores(fitted):
    halved = make_pipeline(FunctionTransformer(half), fitted)
    assert reconstruction_scores(halved, X) == reconstruction_scores(fitted, X / 2)


def test_cross_validation_scores_the_test_part():
    cv = KFold(3, shuffle=True, random_state=0)
    pulse = PulseTransformer(**SMALL_PULSE)
    result = cross_validate(
        pulse, X, cv=cv, scoring=RECONSTRUCTION_SCORERS, return_train_score=True
    )
    together = cross_validate(pulse, X, cv=cv, scoring=reconstruction_scores)
    for k, (train, test) in enumerate(cv.split(X)):
        fold = PulseTransformer(**SMALL_PULSE).fit(X[train])
        expected = literal_scores(X[test], fold.reconstruct(X[test]))
        on_train = literal_scores(X[train], fold.reconstruct(X[train]))
        assert result["test_neg_mean_squared_error"][k] == pytest.approx(-expected["mse"])
        assert result["test_neg_mean_absolute_error"][k] == pytest.approx(-expected["mae"])
        assert result["test_r2"][k] == pytest.approx(expected["r2"])
        assert result["train_r2"][k] == pytest.approx(on_train["r2"])
        assert abs(expected["r2"] - on_train["r2"]) > 1e-4
        for name, value in expected.items():
            assert together[f"test_{name}"][k] == pytest.approx(value)


class Constant(TransformerMixin, BaseEstimator):
    """Reconstructs everything as one value."""

    def __init__(self, value=0.0):
        self.value = value

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return X

    def reconstruct(self, X):
        return np.full(X.shape, self.value)


@pytest.mark.parametrize("seed", range(20))
def test_scores_of_the_same_values_have_the_same_bits_in_every_layout(seed):
    windows = np.random.default_rng(seed).normal(size=(24, 16, 2))
    expected = reconstruction_scores(Constant(0.5), windows)
    assert reconstruction_scores(Constant(0.5), np.asfortranarray(windows)) == expected
    channels_first = Constant(0.5)
    channels_first.input_layout = "nct"
    for swapped in (windows.swapaxes(1, 2), np.ascontiguousarray(windows.swapaxes(1, 2))):
        assert reconstruction_scores(channels_first, swapped) == expected


@pytest.mark.parametrize("name", RECONSTRUCTION_SCORERS)
def test_search_without_labels_takes_the_better_one(name):
    scorer = RECONSTRUCTION_SCORERS[name]
    search = GridSearchCV(Constant(), {"value": [9.0, 0.0, 5.0]}, scoring=scorer, cv=3).fit(X)
    assert search.best_params_ == {"value": 0.0}
    assert pickle.loads(pickle.dumps(scorer))(search.best_estimator_, X) == scorer(
        search.best_estimator_, X
    )


def test_perfect_and_mean():
    perfect = Constant().fit(X)
    perfect.reconstruct = lambda X: X
    assert reconstruction_scores(perfect, X) == {"mse": 0.0, "mae": 0.0, "r2": 1.0}
    mean = Constant(X.mean(dtype=np.float64)).fit(X)
    assert reconstruction_scores(mean, X)["r2"] == pytest.approx(0.0)


def test_windows_of_one_observed_step(fitted):
    gaps = X[:3].copy()
    gaps[:, 1:] = np.nan
    with pytest.raises(ValueError, match="X has no step to score: a window needs two time steps"):
        reconstruction_scores(fitted, gaps)


def test_what_reconstructs_nothing():
    encoder = RandomEncoderTransformer(embedding_dim=8, encoder_depth=2, random_state=0).fit(X)
    with pytest.raises(TypeError, match="RandomEncoderTransformer has no method reconstruct"):
        reconstruction_scores(encoder, X)


def test_a_parameter_named_reconstruct_is_no_method():
    simmtm = small(SimMTMTransformer, max_epochs=1).fit(X)
    with pytest.raises(TypeError, match="SimMTMTransformer has no method reconstruct"):
        reconstruction_scores(simmtm, X)
    with pytest.raises(TypeError, match="SimMTMTransformer has no reconstruct: pass a"):
        ReconstructionDisplay.from_estimator(simmtm, X)
    assert drift_scores(simmtm, X, X, n_permutations=10).scores is None
