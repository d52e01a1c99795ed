"""Quantiles on dyadic intervals, against their definition."""

import numpy as np
import pytest

from sklearn_pulse.features import IntervalQuantileTransformer

X = np.random.default_rng(0).normal(size=(6, 50, 2)).astype(np.float32)


def literal(channel, depth, n_fitted):
    """Features of one channel of one window, one quantile after the other."""
    series = {
        "signal": (channel, n_fitted),
        "difference": (np.diff(channel), n_fitted - 1),
        "second difference": (np.diff(channel, 2), n_fitted - 2),
        "amplitude": (
            np.sqrt(n_fitted / len(channel)) * np.abs(np.fft.rfft(channel)),
            n_fitted // 2 + 1,
        ),
    }
    found = []
    for values, fitted in series.values():
        for level in range(depth):
            n_intervals = 2**level
            if fitted // n_intervals == 0:
                break
            number = 1 + (fitted // n_intervals - 1) // 4
            starts = [*range(n_intervals), *(i + 0.5 for i in range(n_intervals - 1))]
            for start in starts:
                first = int(start * len(values) / n_intervals)
                part = values[first : int((start + 1) * len(values) / n_intervals)]
                shares = np.linspace(0, 1, number) if number > 1 else [0.5]
                for place, share in enumerate(shares):
                    quantile = np.quantile(part, share)
                    found.append(quantile - part.mean() if place % 2 else quantile)
    return found


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("length", [50, 64])
def test_features_are_quantiles_of_intervals(depth, length):
    fitted = IntervalQuantileTransformer(depth).fit(X)
    new = np.random.default_rng(1).normal(size=(3, length, 2))
    expected = [
        [value for c in range(2) for value in literal(window[:, c], depth, 50)]
        for window in new.astype(np.float32).astype(float)
    ]
    np.testing.assert_allclose(fitted.transform(new), expected, rtol=1e-6, atol=1e-6)


def test_padding_and_gaps():
    fitted = IntervalQuantileTransformer().fit(X)
    padded = np.full((6, 70, 2), np.nan, dtype=np.float32)
    padded[:, 10:60] = X
    np.testing.assert_array_equal(fitted.transform(padded), fitted.transform(X))
    line = np.tile(np.linspace(0.0, 1.0, 50)[:, None], (1, 2))
    gaps = line.copy()
    gaps[20:30] = np.nan  # which a straight line bridges
    np.testing.assert_allclose(fitted.transform([gaps]), fitted.transform([line]), atol=1e-6)


@pytest.mark.parametrize("n_missing", [0, 37])
@pytest.mark.parametrize("length", [50, 100, 400])
def test_amplitudes_of_noise_do_not_depend_on_the_length(length, n_missing):
    rng = np.random.default_rng(2)
    fitted = IntervalQuantileTransformer(1).fit(rng.normal(size=(6, 200, 1)))
    amplitudes = slice(-fitted.n_quantiles_["amplitude"][0], None, 2)  # quantiles, not relative

    def means(n_timesteps):
        noise = rng.normal(size=(400, n_timesteps, 1))
        noise[:, n_timesteps - n_missing :] = np.nan
        return fitted.transform(noise).astype(np.float64).mean(0)[amplitudes]

    # The extremes depend on the number of amplitudes; the middle half does not.
    middle = slice(4, -4)
    expected = means(200 + n_missing)[middle]
    np.testing.assert_allclose(means(length + n_missing)[middle], expected, rtol=0.12)


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_features_of_a_few_steps_are_finite(length):
    short = IntervalQuantileTransformer().fit_transform(X[:, :length, :1])
    assert np.isfinite(short).all()
    assert np.isfinite(IntervalQuantileTransformer().fit(X).transform(X[:, :length])).all()


@pytest.mark.parametrize(("depth", "error"), [(0, ValueError), (1.5, TypeError)])
def test_depth_must_count_levels(depth, error):
    with pytest.raises(error, match="depth must be an integer"):
        IntervalQuantileTransformer(depth).fit(X)


def test_a_large_depth_means_all_levels():
    quantiles = IntervalQuantileTransformer(2**31 - 1).fit(X[:, :9])
    assert quantiles.n_quantiles_["signal"] == [3, 1, 1, 1]  # intervals of 9, 4, 2 and 1 steps


def test_an_interval_of_one_quantile_has_its_median():
    x = np.array([1.0, 2.0, 3.0, 10.0]).reshape(1, 4, 1)
    assert IntervalQuantileTransformer(depth=1, standardize=False).fit_transform(x)[0, 0] == 2.5
