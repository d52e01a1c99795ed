"""What every estimator promises: parameters, rows, units and searches."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import ThreadpoolController

from sklearn_pulse import CrossPredictionTransformer, _blas
from sklearn_pulse._closed_form import _predictive_map, _stack
from sklearn_pulse.evaluation import LabeledSubsetClassifier
from sklearn_pulse.plotting import EmbeddingDisplay
from tests.helpers import make_windows

from .literal import SMALL


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
        ({"channels": "both"}, "channels must be one of 'auto', 'recorded', 'whitened'"),
        ({"block_weights": (1, 1)}, "block_weights must be 'auto' or four to nine numbers"),
        ({"block_weights": (0, 0, 0, 0)}, "must not all be 0"),
        ({"block_weights": "equal"}, "block_weights must be"),
        ({"block_weights": (1, -1, 0, 0)}, "each of block_weights must be"),
        ({"block_weights": (1, 1, 1e38, 1)}, "each of block_weights must be .* 1e.06\\]"),
        ({"block_weights": (0, 0, 1e-30, 0)}, "largest of block_weights must be at least 1e-06"),
        ({"rho": 0.0}, "rho must be"),
        ({"whitening": 1.5}, "whitening must be 'auto' or a number in .0, 1., got 1.5"),
        ({"nearest": -0.1}, "nearest must be 'auto' or a number in .0, 1., got -0.1"),
        ({"unpredicted": 1.1}, "unpredicted must be a number in .0, 1., got 1.1; pass for example"),
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


def test_nothing_predicts_a_window():
    X, _ = make_windows(6, 16)
    with pytest.warns(UserWarning, match="No window of X has an observed time step in both"):
        assert CrossPredictionTransformer(**SMALL).fit(X[:, :1, :1]).n_pairs_ == 0
    X[:, :8] = np.nan
    with pytest.warns(UserWarning, match="No window of X has an observed time step in both"):
        cross = CrossPredictionTransformer(**SMALL).fit(X)
    assert np.isfinite(cross.transform(X)).all()


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
        monkeypatch.setattr("sklearn_pulse._closed_form._sample._SAMPLE", n_sampled)
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


@pytest.mark.parametrize(("least", "expected"), [(2**23, {1}), (1, {2})])
def test_small_matrices_are_solved_by_one_thread(least, expected, monkeypatch):
    """Threads that wait for one another took ten times as long beside other processes."""
    found = set()

    def spied(function, *args, **kwargs):
        libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        found.update(library.num_threads for library in libraries)
        return function(*args, **kwargs)

    solvers = (_stack, "eigh"), (_predictive_map, "eigh"), (_predictive_map, "cho_solve")
    for module, name in solvers:
        monkeypatch.setattr(module, name, partial(spied, getattr(module, name)))
    monkeypatch.setattr(_blas, "_WORTH_SHARING", least)
    X = make_windows(40, 48)[0]
    CrossPredictionTransformer(**SMALL, num_threads=2, whitening=0.5).fit(X)
    assert found == expected
