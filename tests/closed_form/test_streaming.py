"""Moments of many windows, progress and workers."""

import sys
import tracemalloc

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from sklearn_pulse import CrossPredictionTransformer
from tests.helpers import make_windows

from .literal import SMALL


@pytest.fixture
def streaming(monkeypatch):
    """Let a sample of ten windows stand for the 5,000."""
    monkeypatch.setattr("sklearn_pulse._closed_form._sample._SAMPLE", 10)


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
    params = SMALL | {"embedding_dim": 400, "n_components": 100, "nearest": 0.0}
    params["views"] = "halves" if groups is None else "adjacent"
    whole = CrossPredictionTransformer(**params).fit(X, groups=groups)
    monkeypatch.setattr("sklearn_pulse._closed_form._sample._SAMPLE", 590)
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
    cross = CrossPredictionTransformer(views="adjacent", nearest=0.0, random_state=0, **quantiles)
    tracemalloc.start()
    cross.fit(X, groups=np.arange(5000) // 100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    columns = 4 * len(X) * sum(part.get_feature_names_out().size for part in cross.blocks_.values())
    assert peak < 2.5 * columns  # their squares in float64 would make three


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
