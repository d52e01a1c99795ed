"""Autocorrelation of each channel and of its speed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sklearn_pulse.features import AutocorrelationTransformer
from tests.helpers import make_windows


def literal(x, edges):
    """Autocorrelation of a signal whose missing steps are NaN, by sums over pairs."""
    centred = x - np.nanmean(x) if np.isfinite(x).any() else x
    seen = np.flatnonzero(np.isfinite(x))
    within = centred[seen[0] : seen[-1] + 1] if len(seen) else centred[:0]
    energy = np.nansum(within**2) / max(len(seen), 1) * len(within)
    values = np.zeros(edges[-1])
    for lag in range(1, edges[-1]):
        products = [within[t] * within[t + lag] for t in range(len(within) - lag)]
        observed = [product for product in products if np.isfinite(product)]
        if observed:
            values[lag] = sum(observed) / len(observed) * len(products)
    values = np.clip(values / (energy if energy > 0 else 1.0), -1, 1)
    return [values[a:b].mean() for a, b in zip(edges[:-1], edges[1:], strict=True)]


@pytest.mark.filterwarnings("ignore:X has more channels")  # windows of one step
@pytest.mark.parametrize("n_timesteps", [1, 2, 3, 7, 20, 100])
def test_features_literally(n_timesteps):
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(5, n_timesteps, 2)).astype(np.float32)
    if n_timesteps > 6:
        X[1, 2:4] = np.nan
        X[2, 5:] = np.nan
        X[3, ::2] = np.nan  # without a speed
    autocorrelation = AutocorrelationTransformer().fit(X)
    edges = autocorrelation.bin_edges_
    longest = max(1, 2 * n_timesteps // 3)
    assert edges[0] == 1 and edges[-1] == longest + 1
    assert len(edges) - 1 == min(40, longest)
    assert np.ptp(np.diff(edges)) <= 1
    features = autocorrelation.transform(X).reshape(5, 2, 2, -1)
    for i in range(5):
        for c in range(2):
            x = X[i, :, c].astype(np.float64)
            for part, values in enumerate((x, np.abs(np.diff(x)))):
                expected = literal(values, edges)
                np.testing.assert_allclose(features[i, c, part], expected, rtol=1e-6, atol=1e-6)


def test_names_follow_the_columns():
    time = np.arange(30)
    X = np.stack([np.sin(2 * np.pi * time / 10), np.zeros(30)], axis=-1)[None]
    autocorrelation = AutocorrelationTransformer(max_bins=20).fit(X)
    names = autocorrelation.get_feature_names_out().tolist()
    assert names[:2] == ["channel0_lag1", "channel0_lag2"]
    assert names[20] == "channel0_speed_lag1" and names[40] == "channel1_lag1"
    row = dict(zip(names, autocorrelation.transform(X)[0].tolist(), strict=True))
    channel = [row[f"channel0_lag{lag}"] for lag in range(6, 15)]
    assert np.argmax(channel) == 4  # the period
    # The speed of a sine has half the period.
    assert np.argmax([row[f"channel0_speed_lag{lag}"] for lag in range(3, 8)]) == 2
    assert all(row[name] == 0.0 for name in names if name.startswith("channel1"))
    frame = autocorrelation.set_output(transform="pandas").transform(X)
    assert frame.columns.tolist() == names


@pytest.mark.parametrize("gain", [1e-3, 1e3])
def test_neither_level_nor_gain_matters(gain):
    X, _ = make_windows(4, 40, 2)
    autocorrelation = AutocorrelationTransformer().fit(X)
    np.testing.assert_allclose(
        autocorrelation.transform(gain * (X.astype(np.float64) + 3.0)),
        autocorrelation.transform(X),
        atol=1e-5,
    )


@pytest.mark.parametrize("level", [0.0, 0.1, 1e6, -1e-6])
def test_constant_channels(level):
    X = np.full((2, 50, 1), level, dtype=np.float32)
    assert not AutocorrelationTransformer().fit(X).transform(X).any()


@pytest.mark.parametrize("slope", [1e-3, -0.1, 1.0, 1e30])
def test_the_speed_of_a_straight_line_is_constant(slope):
    """What float32 rounds of the line is no signal."""
    X = slope * (50 + np.arange(100.0)).reshape(1, 100, 1)
    X = np.concatenate([X, X])
    X[1, 20:30] = np.nan
    features = AutocorrelationTransformer().fit(X).transform(X)
    assert features[:, :40].any(1).all()
    assert not features[:, 40:].any()


@given(arrays(np.float32, (3, 9, 2), elements=st.floats(-1e6, 1e6, width=32) | st.just(np.nan)))
@settings(max_examples=50, deadline=None)
def test_always_finite_and_bounded(X):
    X[:, 0] = np.nan_to_num(X[:, 0])  # one observed step at least
    features = AutocorrelationTransformer().fit(X).transform(X)
    assert (np.abs(features) <= 1 + 1e-6).all()


def test_rows_do_not_depend_on_one_another():
    X = np.random.default_rng(0).normal(size=(1100, 1280, 3)).astype(np.float32)  # two blocks
    autocorrelation = AutocorrelationTransformer().fit(X)
    whole = autocorrelation.transform(X)
    for rows in (slice(0, 1), slice(1099, None), slice(3, 7), slice(None, None, -400)):
        np.testing.assert_array_equal(autocorrelation.transform(X[rows]), whole[rows])


def test_padding_with_missing_steps_changes_nothing():
    X, _ = make_windows(5, 30, 2)
    autocorrelation = AutocorrelationTransformer().fit(X)
    padded = np.concatenate([X, np.full((5, 11, 2), np.nan, np.float32)], axis=1)
    np.testing.assert_allclose(
        autocorrelation.transform(padded), autocorrelation.transform(X), atol=1e-6
    )


@pytest.mark.parametrize("missing", ["here and there", "in a row"])
def test_gaps_do_not_shrink_the_values(missing):
    rng = np.random.default_rng(0)
    X = np.sin(2 * np.pi * np.arange(200) / 25 + rng.uniform(0, 6, (50, 1)))[:, :, None]
    X += 0.1 * rng.normal(size=X.shape)
    gaps = X.copy()
    if missing == "in a row":
        gaps[:, 60:120] = np.nan
    else:
        gaps[rng.random((50, 200)) < 0.3] = np.nan
    autocorrelation = AutocorrelationTransformer().fit(X)
    whole, found = (autocorrelation.transform(x).reshape(50, 2, 40) for x in (X, gaps))
    for part in range(2):  # of the signal, and of its speed
        slope = np.vdot(whole[:, part], found[:, part]) / np.vdot(whole[:, part], whole[:, part])
        assert slope == pytest.approx(1, abs=0.1)


def test_a_single_pair_stays_in_range():
    """The pair of two peaks stands for all pairs of its lag."""
    X = np.full((1, 30, 1), np.nan)
    X[0, [0, 7, 8, 18, 29], 0] = 0.0, 5.0, 5.0, 0.0, 0.0
    fitted = AutocorrelationTransformer().fit(np.random.default_rng(0).normal(size=(2, 30, 1)))
    features = fitted.transform(X)[0, :20]
    assert features[0] == 1.0 and (np.abs(features) <= 1).all()
    assert features[4] == 0.0  # no two steps are five apart


def test_windows_shorter_than_the_lags_are_refused():
    X, _ = make_windows(6, 40, 2)
    autocorrelation = AutocorrelationTransformer().fit(X)
    assert autocorrelation.transform(X[:, :27]).shape == autocorrelation.transform(X).shape
    with pytest.raises(ValueError, match="of 26 time steps, but the lags of fit reach up to 26"):
        autocorrelation.transform(X[:, :26])


def test_parameters():
    X, _ = make_windows(6, 16, 2)
    assert AutocorrelationTransformer(max_bins=np.int64(3)).fit_transform(X).shape == (6, 12)
    with pytest.raises(ValueError, match="max_bins must be an integer of at least 1"):
        AutocorrelationTransformer(max_bins=0).fit(X)
