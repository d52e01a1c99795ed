"""Controls whose features come from aeon."""

import builtins

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from sklearn_pulse.benchmark._aeon import MultiRocketHydraTransformer, QuantTransformer
from sklearn_pulse.evaluation import make_linear_probe
from tests.helpers import make_windows

CONTROLS = (MultiRocketHydraTransformer, QuantTransformer)


@pytest.fixture
def aeon():
    return pytest.importorskip("aeon")


@pytest.mark.parametrize("n_channels", [1, 3])
@pytest.mark.parametrize("make", CONTROLS)
def test_features_are_aeons_and_change_no_global_state(aeon, make, n_channels):
    X, y = make_windows(30, 24, n_channels)
    ours = make(random_state=0)
    of_numpy, of_torch = np.random.get_state()[1].copy(), torch.random.get_rng_state()
    features = ours.fit(X).transform(X)
    np.testing.assert_array_equal(np.random.get_state()[1], of_numpy)
    assert torch.equal(torch.random.get_rng_state(), of_torch)
    assert features.dtype == np.float32 and np.isfinite(features).all()
    assert len(ours.get_feature_names_out()) == features.shape[1]
    np.testing.assert_array_equal(clone(ours).fit_transform(X), features)
    np.testing.assert_allclose(ours.transform(X[4:7]), features[4:7], rtol=1e-4, atol=1e-5)
    first = np.ascontiguousarray(X.swapaxes(1, 2))
    if make is QuantTransformer:
        expected = ours.quant_.transform(first)
    else:
        scaler = pytest.importorskip("aeon.classification.convolution_based._hydra")._SparseScaler()
        counts = scaler.fit_transform(torch.tensor(ours.hydra_.transform(first))).numpy()
        expected = np.hstack([counts, ours.multirocket_.transform(first)])
        other = make(random_state=1).fit_transform(X)
        assert not np.array_equal(other, features)
    np.testing.assert_allclose(features, expected, rtol=1e-4, atol=1e-5)
    assert cross_val_score(make_pipeline(ours, make_linear_probe()), X, y, cv=3).mean() > 0.8


@pytest.mark.parametrize(("make", "shortest"), list(zip(CONTROLS, (10, 3), strict=True)))
def test_windows_that_do_not_fit_are_refused(aeon, make, shortest):
    X, _ = make_windows(12, 24, 2)
    assert make(random_state=0).fit_transform(X[:1, :shortest]).shape[0] == 1
    with pytest.raises(ValueError, match=f"of {shortest - 1} time steps.*at least {shortest}"):
        make().fit(X[:, : shortest - 1, :1])
    with pytest.raises(ValueError, match="was fitted on windows of 24"):
        make(random_state=0).fit(X).transform(X[:, :20])
    X[3, 5] = np.nan
    with pytest.raises(ValueError, match=f"NaN, and {make.__name__} knows no missing values"):
        make().fit(X)


@pytest.mark.parametrize("make", CONTROLS)
def test_without_aeon_the_error_names_the_extra(monkeypatch, make):
    load = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("aeon"):
            raise ImportError(name)
        return load(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"sklearn-pulse\[controls\]"):
        make().fit(np.zeros((3, 20, 1)))
