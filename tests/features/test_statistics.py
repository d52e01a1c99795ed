"""Moments and band powers of each channel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kurtosis, skew
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from sklearn_pulse.benchmark._methods import StatisticsControl
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.features import StatisticsTransformer
from tests.helpers import make_windows


def periodogram_bands(x, n_bands):
    """Power in octave bands by a literal Fourier sum, for a window of one segment."""
    n = len(x)
    time = np.arange(n)
    taper = 0.5 - 0.5 * np.cos(2 * np.pi * time / n)
    tapered = (x - x.mean()) * taper
    bands = np.zeros(n_bands)
    for k in range(1, n // 2 + 1):
        power = abs(np.sum(tapered * np.exp(-2j * np.pi * k * time / n))) ** 2 / taper.sum() ** 2
        power *= 1 if 2 * k == n else 2  # both signs of the frequency
        for band in range(n_bands):
            if 2.0 ** -(band + 2) < k / n <= 2.0 ** -(band + 1):
                bands[band] += power
    return bands


@pytest.mark.parametrize("n_timesteps", [2, 5, 16, 37, 128])
def test_features_literally(n_timesteps):
    X = np.random.default_rng(0).gamma(2.0, size=(4, n_timesteps, 2)).astype(np.float32)
    statistics = StatisticsControl().fit(X)  # the same in float64
    n_bands = min(6, int(np.log2(n_timesteps)))
    assert statistics.n_bands_ == n_bands
    features = statistics.transform(X).reshape(4, 2, -1)
    assert features.shape[2] == 6 + n_bands
    for i in range(4):
        for c in range(2):
            x = X[i, :, c].astype(np.float64)
            expected = [x.mean(), x.std(), skew(x), kurtosis(x), x.min(), x.max()]
            np.testing.assert_allclose(features[i, c, :6], expected, rtol=1e-9, atol=1e-9)
            bands = periodogram_bands(x, n_bands)
            np.testing.assert_allclose(np.exp(features[i, c, 6:]), bands, rtol=1e-6, atol=1e-18)
    single = StatisticsTransformer().fit(X).transform(X)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, features.reshape(4, -1).astype(np.float32))


@pytest.mark.parametrize(("n_timesteps", "n_segments"), [(257, 1), (383, 1), (384, 2), (600, 3)])
def test_the_spectrum_of_a_long_window_is_the_mean_of_its_segments(n_timesteps, n_segments):
    X = np.random.default_rng(0).normal(size=(2, n_timesteps, 1)).cumsum(1)
    bands = StatisticsControl().fit(X).transform(X)[:, 6:]
    starts = range(0, n_timesteps - 255, 128)
    assert len(starts) == n_segments
    for x, row in zip(X[:, :, 0].astype(np.float32).astype(np.float64), bands, strict=True):
        segments = [periodogram_bands(x[start : start + 256], 6) for start in starts]
        np.testing.assert_allclose(np.exp(row), np.mean(segments, axis=0), rtol=1e-6)


@pytest.mark.parametrize("period", [3.0, 6.0, 12.0, 24.0])
def test_a_sine_is_strongest_in_its_octave(period):
    time = np.arange(512)
    X = np.sin(2 * np.pi * time / period)[None, :, None]
    statistics = StatisticsTransformer().fit(X)
    bands = statistics.transform(X)[0, 6:]
    assert bands.argmax() == int(np.floor(np.log2(period / 2)))
    assert np.exp(bands.max()) == pytest.approx(0.5 * 1.5, rel=0.05)  # 1.5: the taper's leakage


@pytest.mark.filterwarnings("ignore:Channel 0 of X is")
@pytest.mark.parametrize("unit", [1e-13, 1e-6, 1e3])
def test_the_unit_of_a_signal_shifts_its_spectrum(unit):
    """Magnetoencephalograms come in tesla, of 1e-13."""
    X = np.random.default_rng(0).normal(size=(4, 128, 2)).cumsum(1)
    expected = StatisticsTransformer().fit(X).transform(X).reshape(4, 2, -1)[..., 6:]
    bands = StatisticsTransformer().fit(X).transform(X * unit).reshape(4, 2, -1)[..., 6:]
    np.testing.assert_allclose(bands, expected + 2 * np.log(unit), atol=1e-4)


def test_names_follow_the_columns():
    X = np.zeros((3, 16, 2))
    X[:, :, 1] = np.arange(16)
    statistics = StatisticsTransformer(max_bands=2).fit(X)
    names = statistics.get_feature_names_out().tolist()
    assert names[:8] == [
        *("channel0_mean", "channel0_std", "channel0_skewness", "channel0_kurtosis"),
        *("channel0_min", "channel0_max", "channel0_octave0", "channel0_octave1"),
    ]
    row = dict(zip(names, statistics.transform(X)[0].tolist(), strict=True))
    assert row["channel1_mean"] == 7.5 and row["channel1_max"] == 15.0
    assert row["channel0_mean"] == row["channel0_max"] == 0.0
    frame = statistics.set_output(transform="pandas").transform(X)
    assert frame.columns.tolist() == names


def test_missing_values():
    """Moments are those of what is left; the spectrum that of straight lines between."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(3, 20, 2)) + 5).astype(np.float32)
    holes = X.copy()
    holes[0, 4:7] = np.nan
    holes[1, 15:] = np.nan
    before = holes.copy()
    statistics = StatisticsControl().fit(holes)
    features = statistics.transform(holes).reshape(3, 2, -1)
    np.testing.assert_array_equal(holes, before)
    left = np.delete(X[0, :, 1], [4, 5, 6]).astype(np.float64)
    expected = [left.mean(), left.std(), skew(left), kurtosis(left), left.min(), left.max()]
    np.testing.assert_allclose(features[0, 1, :6], expected)
    bridged = X[0, :, 1].astype(np.float64)
    bridged[3:8] = np.linspace(bridged[3], bridged[7], 5)
    np.testing.assert_allclose(np.exp(features[0, 1, 6:]), periodogram_bands(bridged, 4))
    np.testing.assert_allclose(features[1, 0, 0], X[1, :15, 0].mean(dtype=np.float64))
    np.testing.assert_array_equal(features[2], statistics.transform(X).reshape(3, 2, -1)[2])


def test_padding_with_missing_steps_changes_nothing():
    X = np.random.default_rng(0).normal(size=(6, 40, 2)).cumsum(1)
    statistics = StatisticsTransformer().fit(X)
    padded = X.copy()
    padded[0, 33:], padded[1, :7], padded[2, :3], padded[2, 36:] = [np.nan] * 4
    padded[3, 32:], padded[4, 12:] = np.nan, np.nan
    features = statistics.transform(padded)
    parts = {0: slice(33), 1: slice(7, None), 2: slice(3, 36), 3: slice(32), 5: slice(None)}
    for row, part in parts.items():
        np.testing.assert_array_equal(features[row], statistics.transform(X[[row], part])[0])
    held = X[[4], :32].copy()  # the octaves need 32 steps: the last observed value goes on
    held[:, 12:] = held[:, 11:12]
    octaves = slice(6, 11)  # of the first channel
    np.testing.assert_array_equal(features[4, octaves], statistics.transform(held)[0, octaves])


@pytest.mark.filterwarnings("ignore:Channel . of X is")
@given(arrays(np.float32, (3, 9, 2), elements=st.floats(-1e6, 1e6, width=32) | st.just(np.nan)))
@settings(max_examples=50, deadline=None)
def test_features_are_finite_whatever_is_missing(X):
    X[:, 0] = np.nan_to_num(X[:, 0])  # one observed step at least
    features = StatisticsTransformer().fit(X).transform(X)
    assert np.isfinite(features).all()


def test_constant_channels():
    X = np.full((2, 32, 1), 0.1, dtype=np.float32)
    row = StatisticsTransformer().fit(X).transform(X)[0]
    np.testing.assert_allclose(row[:6], [0.1, 0, 0, 0, 0.1, 0.1], rtol=1e-6, atol=1e-12)
    assert (row[6:] < -40).all()


@pytest.mark.parametrize("n_channels", [1, 2])
def test_rows_do_not_depend_on_one_another(n_channels):
    shape = (4000 // n_channels, 1280, n_channels)  # two batches
    X = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    statistics = StatisticsControl().fit(X)  # the same in float64
    whole = statistics.transform(X)
    for rows in (slice(0, 1), slice(-1, None), slice(None, None, -400)):
        np.testing.assert_array_equal(statistics.transform(X[rows]), whole[rows])


def test_windows_shorter_than_the_octaves_are_refused():
    X, _ = make_windows(6, 40, 2)
    statistics = StatisticsTransformer().fit(X)
    assert statistics.transform(X[:, :32]).shape == statistics.transform(X).shape
    with pytest.raises(ValueError, match="windows of 31 time steps, too short for the 5 octaves"):
        statistics.transform(X[:, :31])


def test_probe_on_statistics():
    X, y = make_windows(60, 64)
    pipeline = make_pipeline(StatisticsTransformer(), make_linear_probe())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.95


def test_a_long_bag_of_equal_windows_has_the_features_of_one():
    X, _ = make_windows(4, 16, 2)
    statistics = StatisticsTransformer().fit(X)
    bags = np.broadcast_to(X[:1, None], (1, 20_000, 16, 2))
    np.testing.assert_allclose(statistics.transform(bags), statistics.transform(X[:1]), rtol=1e-6)


def test_parameters():
    X, _ = make_windows(6, 16, 2)
    assert StatisticsTransformer(max_bands=np.int64(0)).fit_transform(X).shape == (6, 12)
    with pytest.raises(ValueError, match="max_bands must be an integer of at least 0"):
        StatisticsTransformer(max_bands=-1).fit(X)


def test_octaves_end_below_the_length_of_a_segment():
    X = np.random.default_rng(0).normal(size=(3, 1024, 1))
    assert StatisticsTransformer(max_bands=12).fit(X).n_bands_ == 8  # of segments of 256 steps


def test_few_observed_steps_at_the_end_are_continued_backwards():
    X = np.random.default_rng(0).normal(size=(2, 64, 1)).astype(np.float32)
    statistics = StatisticsTransformer().fit(X)
    late, filled = X.copy(), X.copy()
    late[:, :61], filled[:, :61] = np.nan, X[:, 61:62]
    found, expected = (statistics.transform(windows)[:, 6:] for windows in (late, filled))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
