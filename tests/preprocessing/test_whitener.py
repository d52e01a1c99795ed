"""ChannelWhitener against its formula."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from scipy.linalg import fractional_matrix_power
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_pulse.features import RandomConvolutionTransformer, StatisticsTransformer
from sklearn_pulse.preprocessing import ChannelWhitener, WindowScaler, _source
from tests.preprocessing.data import as_lazy, make_gaps, quick, windows


def correlated(n=30, seed=0):
    """Windows of four channels that share much, in units of their own."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n, 50, 1))
    return (3 * common + rng.normal(size=(n, 50, 4))) * [1.0, 1e-3, 50.0, 1.0] + [0, 5, 1e4, -2]


def slow_whiten(fitted_on, X, shrinkage):
    """The formula, by loops over channels; the correlation is that of pairs of observed values."""
    values = fitted_on.reshape(-1, fitted_on.shape[2])
    n_channels = values.shape[1]
    center, scale, P = np.zeros(n_channels), np.ones(n_channels), np.eye(n_channels)
    for c in range(n_channels):
        own = values[~np.isnan(values[:, c]), c]
        if len(own):
            center[c] = own.mean()
            scale[c] = own.std() if np.ptp(own) > 0 else 1.0
    for i, j in itertools.permutations(range(n_channels), 2):
        pair = values[:, [i, j]]
        pair = pair[~np.isnan(pair).any(1)]
        if len(pair) and (np.ptp(pair, axis=0) > 0).all():
            P[i, j] = np.corrcoef(pair.T)[0, 1]
    values, vectors = np.linalg.eigh(P)
    P = vectors @ np.diag(np.maximum(values, 0)) @ vectors.T
    shrunk = (1 - shrinkage) * P + shrinkage * np.eye(n_channels)
    W = fractional_matrix_power(shrunk, -0.5) @ np.diag(1 / scale)
    result = np.full(X.shape, np.nan)
    for window, out in zip(X, result, strict=True):
        for x, y in zip(window, out, strict=True):
            known = np.where(np.isnan(x), 0.0, x - center)
            y[:] = np.where(np.isnan(x), np.nan, W @ known)
    return result


@pytest.mark.parametrize("shrinkage", [1e-6, 0.01, 0.5])
def test_the_formula(shrinkage):
    X = correlated()
    whitener = ChannelWhitener(shrinkage).fit(X)
    np.testing.assert_allclose(
        whitener.transform(X[:5]), slow_whiten(X, X[:5], shrinkage), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("n_read", [2**20, 90])
def test_the_formula_with_missing_values(n_read, monkeypatch):
    monkeypatch.setattr(_source, "_BLOCK_VALUES", n_read)  # several pieces, or one
    X = make_gaps(n_channels=3)
    X[:, :, 1] += X[:, :, 0]
    expected = slow_whiten(X, X, 0.1)
    np.testing.assert_allclose(
        ChannelWhitener(0.1).fit_transform(X), expected, rtol=1e-4, atol=1e-5
    )


@quick
@given(X=windows)
@pytest.mark.filterwarnings("ignore:X has more channels:UserWarning")
def test_any_windows_with_gaps(X):
    X = np.round(X, 1)  # a spread near rounding is a matter of rounding
    expected = slow_whiten(X, X, 0.2)
    found = ChannelWhitener(0.2).fit_transform(X)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_the_channels_correlate_no_longer_and_keep_their_place():
    X = correlated()
    whitener = ChannelWhitener(1e-6)
    whitened = whitener.fit_transform(X).reshape(-1, 4)
    np.testing.assert_allclose(whitener.correlation_, np.corrcoef(X.reshape(-1, 4).T))
    np.testing.assert_allclose(np.cov(whitened.T), np.eye(4), atol=1e-3)
    scaled = WindowScaler().fit_transform(X).reshape(-1, 4)
    near = np.corrcoef(whitened.T, scaled.T)[:4, 4:]
    assert (near.argmax(1) == np.arange(4)).all()


def test_units_offsets_and_a_full_shrinkage():
    X = correlated()
    in_other_units = X * [1e6, -1.0, 1e-3, 7.0] + [0.0, 3.0, 100.0, 1e9]
    np.testing.assert_allclose(
        ChannelWhitener().fit_transform(in_other_units) * [1, -1, 1, 1],
        ChannelWhitener().fit_transform(X),
        rtol=1e-3,
        atol=1e-3,
    )
    np.testing.assert_allclose(
        ChannelWhitener(shrinkage=1.0).fit_transform(X),
        WindowScaler().fit_transform(X),
        rtol=1e-5,
        atol=1e-6,
    )


def test_an_average_reference_leaves_no_noise_of_rounding():
    """The sum of all channels is zero up to rounding, which is enlarged tenfold at most."""
    X = correlated() / [1.0, 1e-3, 50.0, 1.0]
    X = np.float32(X - X.mean(2, keepdims=True))
    whitened = ChannelWhitener().fit_transform(X)
    values = np.linalg.eigvalsh(np.cov(whitened.reshape(-1, 4).T))
    assert values[0] < 1e-6 and values[1] > 0.1


@pytest.mark.parametrize("value", [3.0, 0.1, np.nan])  # the mean of many 0.1 is rounded
def test_a_channel_that_does_not_vary_is_left_alone(value):
    X = correlated()
    later = X[:3].copy()
    X[:, :, 1] = value
    whitened = ChannelWhitener().fit_transform(X)
    others = ChannelWhitener().fit_transform(X[:, :, [0, 2, 3]])
    np.testing.assert_allclose(whitened[:, :, [0, 2, 3]], others, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(whitened[:, :, 1], 0 * X[:, :, 1], atol=1e-12)
    center = np.nan_to_num(value)
    later[:, :, 1] = np.arange(50.0)
    found = ChannelWhitener().fit(X).transform(later)[:, :, 1]
    np.testing.assert_allclose(found, later[:, :, 1] - center, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_rounding_is_no_correlation(seed):
    """Two channels are observed together only where neither of them varies."""
    rng = np.random.default_rng(seed)
    X = np.full((3, 40, 2), np.nan)
    X[0, :, 0], X[1, :, 1] = rng.normal(size=(2, 40))
    X[2] = rng.normal(size=2)
    whitening = ChannelWhitener().fit(X).whitening_
    assert np.abs(whitening[~np.eye(2, dtype=bool)]).max() < 1e-12


def test_correlations_that_no_windows_could_have_together():
    """Of three channels, two are observed at a time, and their correlations contradict."""
    x = np.random.default_rng(0).normal(size=(3, 40))
    X = np.full((3, 40, 3), np.nan)
    for window, (i, j, sign) in enumerate([(0, 1, 1), (1, 2, 1), (0, 2, -1)]):
        X[window, :, i], X[window, :, j] = x[window], sign * x[window]
    expected = slow_whiten(X, X, 0.01)
    np.testing.assert_allclose(ChannelWhitener().fit_transform(X), expected, rtol=1e-4, atol=1e-5)


def test_the_inverse_gives_the_windows_back():
    X = correlated()
    whitener = ChannelWhitener().fit(X)
    again = whitener.inverse_transform(whitener.transform(X))
    np.testing.assert_allclose((again - X) / X.std((0, 1)), 0, atol=1e-4)
    lazy = whitener.inverse_transform(whitener.transform(as_lazy(X)))
    np.testing.assert_allclose((lazy - X) / X.std((0, 1)), 0, atol=1e-4)
    frame = pd.DataFrame(X[0], columns=list("abcd"))
    (of_frame,) = clone(whitener).fit([frame]).transform([frame])
    assert list(of_frame) == list("abcd")


@pytest.mark.parametrize("shrinkage", [0.0, -0.1, 1.1, np.nan, "auto", None])
def test_the_shrinkage_is_checked(shrinkage):
    with pytest.raises(
        (TypeError, ValueError), match=r"shrinkage must be .*; pass .* shrinkage=0.01"
    ):
        ChannelWhitener(shrinkage).fit(correlated())


def test_other_channels_are_refused():
    whitener = ChannelWhitener().fit(correlated())
    with pytest.raises(ValueError, match="3 channels"):
        whitener.transform(correlated()[:, :, :3])


def test_what_channels_share_no_longer_hides_a_class():
    """A difference of two electrodes tells the class, beside a hundred times its power."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    common = 10 * rng.normal(size=(120, 64, 1)).cumsum(1)
    X = common + rng.normal(size=(120, 64, 4))
    X[:, :, 0] += 3 * y[:, np.newaxis] * np.sin(np.arange(64))
    kernels = RandomConvolutionTransformer(168, random_state=0)
    chain = make_pipeline(ChannelWhitener(), kernels, LogisticRegression())
    search = GridSearchCV(
        chain, {"channelwhitener": [ChannelWhitener(0.001), "passthrough"]}, cv=4
    ).fit(X, y)
    whitened, raw = search.cv_results_["mean_test_score"]
    assert whitened > raw + 0.15, (whitened, raw)
    StatisticsTransformer().fit(ChannelWhitener().fit_transform(as_lazy(X)))
