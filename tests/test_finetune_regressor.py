"""Regressors: targets in their own units, and all that a classifier does with labels."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_pulse import FineTuneRegressor, PulseTransformer
from sklearn_pulse.objectives import Regression
from tests.helpers import (
    SMALL_ENCODER,
    SMALL_PULSE,
    BatchSpy,
    callback_of,
    make_windows,
    sklearn_suite,
)
from tests.kills import killed

TINY = {"max_epochs": 2, "batch_size": 8, "lr": 1e-2, "num_threads": 1, "random_state": 0}
STILL = {"max_epochs": 1, "lr": 1e-12, "weight_decay": 0.0, "batch_size": 20}
X = make_windows(n_channels=3)[0]
Y = 60 + 20 * np.random.default_rng(0).normal(size=20)  # heart rates, say
BOTH = np.column_stack([Y, 1e-3 * np.arange(20)])


def scratch(**params):
    return FineTuneRegressor(**SMALL_ENCODER | TINY | params)


@pytest.fixture(scope="module")
def pulse():
    return PulseTransformer(**SMALL_PULSE).fit(make_windows(12, 32, 6, seed=1)[0])


def tuned(pulse, **params):
    return FineTuneRegressor(FrozenEstimator(pulse), **TINY | params)


SUITE = {**SMALL_ENCODER, "encoder_depth": 2, "num_threads": 1, "lr": 3e-2, "batch_size": 30}


@pytest.mark.filterwarnings("ignore:X has more channels")
@sklearn_suite([FineTuneRegressor(**SUITE, max_epochs=8)], forms=False)
def test_sklearn_suite(estimator, check):
    if check.func.__name__ != "check_regressors_train":  # no other asks for a score
        estimator = clone(estimator).set_params(max_epochs=1)
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:X has more channels")
@sklearn_suite([FineTuneRegressor()])
def test_sklearn_suite_at_defaults(estimator, check):
    check(estimator)


# --- targets ---


@pytest.mark.parametrize("y", [Y, BOTH, BOTH[:, :1]], ids=["flat", "two", "column"])
def test_predictions_have_the_units_and_the_shape_of_the_targets(y):
    fitted = scratch(lr=1e-12).fit(X, y)
    predicted = fitted.predict(X)
    assert predicted.shape == y.shape
    np.testing.assert_allclose(fitted.target_mean_, y.mean(axis=0))
    np.testing.assert_allclose(fitted.target_scale_, y.std(axis=0))
    head = fitted.head_(torch.from_numpy(fitted.transform(X))).detach().numpy()
    expected = y.mean(axis=0) + y.std(axis=0) * head.reshape(y.shape)
    np.testing.assert_allclose(predicted, expected, rtol=1e-5)


def test_other_units_are_the_same_training():
    first, second = scratch().fit(X, Y), scratch().fit(X, 1e6 * Y - 3)
    np.testing.assert_allclose(second.predict(X), 1e6 * first.predict(X) - 3, rtol=1e-4)
    tiny = scratch().fit(X, 1e-200 * Y)  # whose squares are no numbers
    np.testing.assert_allclose(tiny.predict(X), 1e-200 * first.predict(X), rtol=1e-4)
    huge = scratch().fit(X, 1e300 * Y)
    np.testing.assert_allclose(huge.predict(X), 1e300 * first.predict(X), rtol=1e-4)


def test_it_learns_from_the_windows(pulse):
    rate = np.random.default_rng(1).uniform(0.3, 1.2, size=60)
    phase = np.random.default_rng(2).uniform(0, 6, size=(60, 1, 1))
    windows = np.sin(rate[:, None, None] * np.arange(16)[:, None] + phase)
    targets = np.column_stack([60 * rate, -rate])
    regressor = tuned(pulse, max_epochs=30, batch_size=20).fit(windows[:40], targets[:40])
    score = regressor.score(windows[40:], targets[40:])
    assert score > 0.5
    assert score == r2_score(targets[40:], regressor.predict(windows[40:]))


def test_a_constant_target_is_predicted_exactly():
    fitted = scratch().fit(X, np.column_stack([Y, np.full(20, 3.7)]))
    assert fitted.target_scale_[1] == 0
    np.testing.assert_array_equal(fitted.predict(X)[:, 1], 3.7)
    assert scratch().fit(X[:1], [5.0]).predict(X[:1]).tolist() == [5.0]


@pytest.mark.parametrize("y", [Y, BOTH], ids=["flat", "two"])
def test_the_loss_is_the_weighted_squared_error(y):
    weight = np.linspace(0.1, 2, 20)
    fitted = scratch(**STILL).fit(X, y, sample_weight=weight)
    mean = np.average(y, axis=0, weights=weight)
    scale = np.sqrt(np.average((y - mean) ** 2, axis=0, weights=weight))
    errors = (((fitted.predict(X) - y) / scale) ** 2).reshape(20, -1).mean(1)
    expected = np.average(errors, weights=weight)
    np.testing.assert_allclose(fitted.history_[0]["train_loss"], expected, rtol=1e-5)


@pytest.mark.parametrize("offset", [0.0, 1e12, 1e15])
def test_mean_and_scale_of_targets_far_from_zero(offset):
    y = np.repeat([0.0, 1.0], 10)
    regressor = scratch(**STILL).fit(X, offset + y)
    assert regressor.target_mean_ == offset + 0.5
    assert regressor.target_scale_ == 0.5


def test_the_objective_is_the_mean_over_targets_and_windows():
    objective = Regression(3, n_targets=2, **SMALL_ENCODER)
    x, y, weight = torch.from_numpy(X), torch.randn(20, 2), torch.rand(20)
    loss = objective(x, y, weight)
    loss.backward()
    output = objective.head(objective.encoder(x))
    slow = sum(
        weight[i] * sum((output[i, j] - y[i, j]) ** 2 for j in range(2)) / 2 for i in range(20)
    )
    torch.testing.assert_close(loss, slow / 20)
    assert all(p.grad is not None for p in objective.parameters())


@pytest.mark.parametrize("params", [{}, {"validation_fraction": 0.3}])
@pytest.mark.parametrize("y", [Y, BOTH], ids=["flat", "two"])
def test_a_weight_is_a_number_of_repeats_and_order_is_nothing(y, params):
    weight = np.random.default_rng(0).integers(0, 4, 20)
    repeats = np.random.default_rng(1).permutation(np.repeat(np.arange(20), weight))
    weighted = scratch(**params).fit(X, y, sample_weight=weight)
    repeated = scratch(**params).fit(X[repeats], y[repeats])
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    assert not np.array_equal(weighted.predict(X), scratch(**params).fit(X, y).predict(X))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        (
            np.where(np.arange(20) < 3, np.nan, Y),
            "y contains NaN or None in 3 of 20.*leave these samples out",
        ),
        ([None, *Y[1:]], "y contains NaN or None in 1 of 20 samples.*FineTuneRegressor"),
        (np.where(BOTH > 0.01, np.nan, BOTH), "y contains NaN or None in 20 of 20 samples"),
        (np.where(np.arange(20) < 3, np.inf, Y), "Input y contains infinity"),
        (["high"] * 20, "y does not hold real numbers.*use a classifier"),
        (np.array(["high"] * 20, dtype=object), "y does not hold real numbers"),
        (Y + 1j, "y does not hold real numbers"),
        (Y[:-1], "X has 20, y has 19. Pass one target per sample"),
        (Y[:, None, None], r"y has shape \(20, 1, 1\): pass one target per sample"),
        (BOTH[:, :0], r"y has shape \(20, 0\)"),
    ],
)
def test_refused_targets(y, message):
    with pytest.raises(ValueError, match=message):
        scratch().fit(X, y)


@pytest.mark.parametrize("weight", [1e-45, 1e-90, 1e-300])
def test_weights_so_uneven_that_targets_lie_too_far_away(weight):
    with pytest.raises(ValueError, match="a target to train on lies .*: sample_weight gives its"):
        scratch().fit(X, Y, sample_weight=np.where(np.arange(20) == 3, 1.0, weight))


@pytest.mark.parametrize("y_val", [1e30, -1e300])
def test_targets_to_validate_on_that_lie_too_far_away(y_val):
    with pytest.raises(ValueError, match="a target to validate on lies .*: check its unit, or"):
        scratch().fit(X, Y, X_val=X[:2], y_val=[60.0, y_val])


@pytest.mark.parametrize("exponent", [1023, -1074])
def test_weights_at_the_ends_of_float64(exponent):
    expected = scratch().fit(X, Y)
    fitted = scratch().fit(X, Y, sample_weight=np.full(20, np.ldexp(1.0, exponent)))
    np.testing.assert_array_equal(fitted.predict(X), expected.predict(X))
    assert fitted.target_scale_ == expected.target_scale_


def test_targets_of_every_kind(pulse):
    expected = scratch().fit(X, np.round(Y)).predict(X)
    for y in (np.round(Y).astype(int), pd.Series(np.round(Y)), list(np.round(Y).astype(object))):
        np.testing.assert_array_equal(scratch().fit(X, y).predict(X), expected)
    frame = pd.DataFrame(BOTH, columns=["rate", "age"])
    np.testing.assert_array_equal(
        tuned(pulse).fit(X, frame).predict(X), tuned(pulse).fit(X, BOTH).predict(X)
    )


# --- which part, which epoch ---


def held_out(regressor, groups=None):
    """Which windows a fit has not trained on."""
    regressor.set_params(callbacks=[BatchSpy()]).fit(X, Y, groups=groups)
    seen = callback_of(regressor, BatchSpy).windows
    return np.array([window.tobytes() not in seen for window in X])


def test_validation_loss_is_the_error_of_the_validation_part():
    regressor = scratch(validation_fraction=0.3, patience=5, select="last")
    rest = held_out(regressor)
    assert rest.sum() == 6
    mean, scale = Y[~rest].mean(), Y[~rest].std()
    np.testing.assert_allclose([regressor.target_mean_, regressor.target_scale_], [mean, scale])
    loss = (((regressor.predict(X) - Y)[rest] / scale) ** 2).mean()
    np.testing.assert_allclose(regressor.history_[-1]["valid_loss"], loss, rtol=1e-5)
    given = scratch().fit(X[~rest], Y[~rest], X_val=X[rest], y_val=Y[rest])
    loss = (((given.predict(X) - Y)[rest] / scale) ** 2).mean()
    np.testing.assert_allclose(given.history_[-1]["valid_loss"], loss, rtol=1e-5)


def test_groups_are_never_in_both_parts():
    groups = np.arange(20) // 2
    rest = held_out(scratch(validation_fraction=0.3), groups)
    assert rest.sum() == 6
    assert not set(groups[rest]) & set(groups[~rest])


def test_refused_validation():
    with pytest.raises(ValueError, match="needs samples to validate on: set validation_frac"):
        scratch(select="min_val").fit(X, Y)
    with pytest.raises(ValueError, match="X_val and y_val come together"):
        scratch().fit(X, Y, X_val=X)
    with pytest.raises(ValueError, match=r"y_val has shape \(20, 2\), y has \(20,\)"):
        scratch().fit(X, Y, X_val=X, y_val=BOTH)
    with pytest.raises(ValueError, match=r"y_val has shape \(20,\), y has \(40, 2\)"):
        scratch().fit(np.tile(X, (2, 1, 1)), np.tile(BOTH, (2, 1)), X_val=X, y_val=Y)
    with pytest.raises(ValueError, match=r"y_val has shape \(20, 1\), y has \(20, 2\)"):
        scratch().fit(X, BOTH, X_val=X, y_val=Y[:, None])
    with pytest.raises(ValueError, match="y_val contains NaN"):
        scratch().fit(X, Y, X_val=X[:2], y_val=[1.0, np.nan])


# --- the encoder, the checkpoint, scikit-learn ---


def test_the_encoder_is_copied_and_trained(pulse):
    before = pulse.encoder_.state_dict()["input.weight"].clone()
    still = tuned(pulse, **STILL).fit(make_windows(n_channels=6)[0], Y)
    torch.testing.assert_close(still.encoder_.state_dict()["input.weight"], before)
    trained = tuned(pulse).fit(X, Y)
    assert not torch.allclose(trained.encoder_.state_dict()["input.weight"], before, atol=1e-3)
    assert torch.equal(pulse.encoder_.state_dict()["input.weight"], before)
    with pytest.raises(TypeError, match="bare PulseTransformer"):
        FineTuneRegressor(pulse).fit(X, Y)


def test_a_killed_run_resumes_to_the_same_bits(pulse, tmp_path):
    expected = tuned(pulse, max_epochs=3).fit(X, Y)
    with killed(2, 2):
        tuned(pulse, max_epochs=3, checkpoint_dir=tmp_path).fit(X, Y)
    resumed = tuned(pulse, max_epochs=3, checkpoint_dir=tmp_path).fit(X, Y)
    np.testing.assert_array_equal(resumed.predict(X), expected.predict(X))
    assert len(list(tmp_path.iterdir())) == 1


def test_in_a_pipeline_a_search_and_a_pickle(pulse):
    pipe = make_pipeline(FunctionTransformer(np.negative), tuned(pulse))
    grid = {"finetuneregressor__pretrained": [None, FrozenEstimator(pulse)]}
    search = GridSearchCV(pipe, grid, cv=2, error_score="raise").fit(X, BOTH)
    best = clone(pipe).set_params(**search.best_params_).fit(X, BOTH)
    np.testing.assert_array_equal(search.predict(X), best.predict(X))
    restored = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(restored.predict(X), search.predict(X))


def test_missing_steps_and_bfloat16():
    gaps = X.copy()
    gaps[::2, 10:] = np.nan
    fitted = scratch(precision="bfloat16").fit(gaps, Y)
    np.testing.assert_array_equal(fitted.predict(gaps[::2]), fitted.predict(gaps)[::2])
    assert np.isfinite(fitted.predict(gaps)).all()
