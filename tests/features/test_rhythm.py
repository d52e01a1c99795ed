"""Regularity of the rhythm, against its definition."""

import numpy as np
import pytest
from scipy.ndimage import uniform_filter1d
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pulse.features import RhythmTransformer


def beats(intervals, n_timesteps=400, amplitude=1.0):
    """A channel with a peak after each interval."""
    at = np.cumsum(intervals)
    time = np.arange(n_timesteps)[:, None]
    return amplitude * np.exp(-((time - at[at < n_timesteps]) ** 2) / 8).sum(1)


def irregular(n, seed):
    rng = np.random.default_rng(seed)
    return [beats(rng.uniform(18, 60, size=30)) for _ in range(n)]


X = np.stack([irregular(5, 0), irregular(5, 1)], axis=2) + 0.01 * np.random.default_rng(2).normal(
    size=(5, 400, 2)
)
X = X.astype(np.float32)


def literal(channel, radius, observed):
    """Features of one channel of one window on one scale, one event after the other."""
    speed = np.abs(np.diff(channel))
    width = max(1, radius // 2)
    speed = uniform_filter1d(uniform_filter1d(speed, width), width)
    n = len(speed)
    ordered = np.sort(speed)
    usual, largest = ordered[(n - 1) // 2], ordered[int(0.98 * (n - 1))]
    at = [
        t
        for t in range(n)
        if speed[t] == speed[max(0, t - radius) : t + radius + 1].max()
        and speed[t] > usual + 0.4 * (largest - usual)
        and observed[t]
        and observed[t + 1]
    ]
    d, pairs, last = [], [], None
    for first, second in zip(at, at[1:], strict=False):
        interval = second - first if all(observed[first : second + 1]) else None
        if interval is not None:
            d.append(interval)
            if last is not None:
                pairs.append((last, interval))
        last = interval
    if not pairs:
        return [np.log(0.3)] * 4 + [0.0, np.log(0.3)]
    mean, variance = np.mean(d), np.var(d)
    q10, q25, median, q75, q90 = np.quantile(d, [0.1, 0.25, 0.5, 0.75, 0.9])
    covariance = np.mean([(a - mean) * (b - mean) for a, b in pairs])
    values = [
        np.log(q90 / q10),
        np.log(q75 / q25),
        np.median([abs(a - b) for a, b in pairs]) / median,
        np.sqrt(variance) / mean,
    ]
    heights = speed[at]
    return [
        *np.log(0.02 + np.array(values)),
        covariance / (variance + 1e-3 * mean**2),
        np.log(0.02 + np.std(heights) / np.mean(heights)),
    ]


def expected(windows, radii, observed=None):
    observed = np.ones(windows.shape[:2], bool) if observed is None else observed
    return [
        [
            value
            for c in range(windows.shape[2])
            for radius in radii
            for value in literal(window[:, c].astype(float), radius, seen)
        ]
        for window, seen in zip(windows, observed, strict=True)
    ]


def test_features_are_those_of_the_intervals():
    fitted = RhythmTransformer().fit(X)
    assert fitted.radii_.tolist() == [25, 12, 6, 3]
    np.testing.assert_allclose(fitted.transform(X), expected(X, fitted.radii_), rtol=1e-5)
    other = np.concatenate([X, X[::-1]], axis=1)[:, :530]  # of another length
    np.testing.assert_allclose(fitted.transform(other), expected(other, [25, 12, 6, 3]), rtol=1e-5)


def test_intervals_across_a_gap_do_not_count():
    fitted = RhythmTransformer(2).fit(X)
    observed = np.ones(X.shape[:2], bool)
    observed[0, 100:130] = observed[1, ::97] = observed[2, 200] = False
    bridged = X.astype(float)
    for window, seen in zip(bridged, observed, strict=True):
        time = np.arange(len(seen))
        for c in range(2):
            window[:, c] = np.interp(time, time[seen], window[seen, c])
    given = np.where(observed[:, :, None], X, np.nan)
    first, stop = 1, 400  # the first step of window 1 is missing
    features = expected(bridged, [25, 12], observed)
    features[1] = expected(bridged[[1], first:stop], [25, 12], observed[[1], first:stop])[0]
    np.testing.assert_allclose(fitted.transform(given), features, rtol=1e-5)


def test_padding_changes_nothing():
    fitted = RhythmTransformer().fit(X)
    padded = np.full((5, 450, 2), np.nan, dtype=np.float32)
    padded[:, 20:420] = X
    np.testing.assert_array_equal(fitted.transform(padded), fitted.transform(X))


def test_amplitude_offset_and_other_rows_change_nothing():
    fitted = RhythmTransformer().fit(X)
    np.testing.assert_array_equal(fitted.transform(8 * X + 0), fitted.transform(X))
    np.testing.assert_array_equal(fitted.transform(X[[3]]), fitted.transform(X)[[3]])


@pytest.mark.parametrize(
    "window",
    [
        np.zeros(60),
        np.full(60, 1e30),
        np.linspace(0, 1, 60),
        np.eye(60)[20],
        np.eye(60)[[5, 40]].sum(0),
    ],
    ids=["zero", "constant", "line", "one event", "two events"],
)
def test_without_a_rhythm_the_features_are_those_of_an_unknown_one(window):
    features = RhythmTransformer(1).fit_transform(window[None, :, None])
    np.testing.assert_allclose(features, [[np.log(0.3)] * 4 + [0.0, np.log(0.3)]], rtol=1e-6)


@pytest.mark.filterwarnings("ignore:X has more channels")
@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_features_of_a_few_steps_are_finite(length):
    assert np.isfinite(RhythmTransformer().fit_transform(X[:, :length])).all()
    assert np.isfinite(RhythmTransformer().fit(X).transform(X[:, :length])).all()


@pytest.mark.parametrize("scale", [1, 2])
def test_of_steps_that_are_as_fast_the_first_within_the_radius_is_an_event(scale):
    pulses = np.zeros((1, 1600, 1))
    for start in range(30, 1600, 100):
        pulses[0, start : start + 20] = 1.0  # rises and falls as fast, 20 steps apart
    rhythm = RhythmTransformer().fit(pulses)
    assert rhythm.radii_[scale] > 20
    spread = np.exp(rhythm.transform(pulses).reshape(4, 6)[scale, 0]) - 0.02
    assert abs(spread) < 1e-6


@pytest.mark.parametrize("unit", [0.1, 1e-3, 1 / 7])
def test_rounding_does_not_decide_between_steps_that_are_as_fast(unit):
    """On the grid of a recorder steps are often as fast as others, or as the threshold."""
    rng = np.random.default_rng(0)
    shape = [1, 5, 9, 5, 1, -2, -2, -1]
    grid = np.stack([np.convolve(rng.random(400) < 0.04, shape)[:400] for _ in range(20)])
    grid[10:] = np.round(rng.normal(size=(10, 400)).cumsum(1) / 3)
    rhythm = RhythmTransformer()
    counts = rhythm.fit_transform(grid)
    np.testing.assert_allclose(rhythm.transform(grid * unit), counts, rtol=1e-3, atol=1e-4)


def test_irregular_beats_are_told_from_regular_ones():
    rng = np.random.default_rng(3)
    kinds = [rng.uniform(18, 60, size=30), rng.uniform(18, 60) + rng.normal(size=30)]
    windows = [
        beats(rng.permutation(kinds[k]) if k == 0 else rng.uniform(20, 50) + rng.normal(size=30))
        * rng.uniform(0.5, 5)
        for k in (0, 1)
        for _ in range(40)
    ]
    probe = make_pipeline(RhythmTransformer(), StandardScaler(), LogisticRegression())
    assert (
        cross_val_score(probe, np.stack(windows)[:, :, None], np.repeat([0, 1], 40)).mean() > 0.95
    )


@pytest.mark.parametrize(("n_scales", "error"), [(0, ValueError), (1.5, TypeError)])
def test_scales_are_counted(n_scales, error):
    with pytest.raises(error, match="n_scales must be an integer"):
        RhythmTransformer(n_scales).fit(X)


@pytest.mark.parametrize(("n_scales", "radii"), [(2, [25, 12]), (2**31 - 1, [25, 12, 6, 3, 1])])
def test_a_large_number_of_scales_means_all(n_scales, radii):
    assert RhythmTransformer(n_scales).fit(X).radii_.tolist() == radii


def test_three_events_are_known():
    x = np.zeros((1, 400, 1))
    x[0, [100, 200, 300], 0] = 1.0
    unknown = RhythmTransformer(n_scales=1).fit_transform(np.zeros((1, 400, 1)))[0, 0]
    found = RhythmTransformer(n_scales=1).fit_transform(x)[0, 0]
    assert found == pytest.approx(np.log(0.02), abs=1e-3)  # that of equal intervals
    assert unknown != pytest.approx(found)
