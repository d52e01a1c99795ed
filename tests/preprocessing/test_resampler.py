"""Resampler against scipy, and its treatment of gaps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import firwin, resample_poly

from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.preprocessing import Resampler
from sklearn_pulse.windows import RecordingWindows, sliding_windows
from tests.preprocessing.data import quick

KAISER = ("kaiser", 5.0)


def slow_resample(x, up, down):
    """Output steps of one channel: each run of observed steps goes on with its end values."""
    half = 10 * max(up, down)
    taps = np.ones(1) if up == down else firwin(2 * half + 1, 1 / max(up, down), window=KAISER)
    half = len(taps) // 2
    n_out = -(-len(x) * up // down)
    result = np.full(n_out, np.nan)
    for j in range(n_out):
        first = last = j * down // up
        if np.isnan(x[first]):
            continue
        while first > 0 and not np.isnan(x[first - 1]):
            first -= 1
        while last < len(x) - 1 and not np.isnan(x[last + 1]):
            last += 1
        run = x[first : last + 1]
        # Distances on the grid of up-sampled steps at which there is an input step.
        read = [k for k in range(-half, half + 1) if (j * down - k) % up == 0]
        places = [min(max((j * down - k) // up - first, 0), len(run) - 1) for k in read]
        weights = [taps[half + k] for k in read]
        result[j] = np.average(run[places], weights=weights)
    return result


@quick
@given(
    x=st.lists(st.floats(-10, 10) | st.just(np.nan), min_size=1, max_size=16),
    rates=st.sampled_from([(64, 80), (3, 2), (2, 3), (1, 1), (5, 1), (1, 4)]),
)
def test_equals_the_formula(x, rates):
    x = np.array(x)
    fitted = Resampler(*rates).fit(x[np.newaxis])
    result = fitted.transform(x[np.newaxis])[0]
    expected = slow_resample(x, fitted.up_, fitted.down_)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def test_without_gaps_it_is_scipy():
    """But for 1e-3: coefficients of scipy's filter add up to 1 in the mean over output steps."""
    X = np.random.default_rng(0).normal(size=(3, 90, 2))
    expected = resample_poly(X, 25, 16, axis=1, padtype="edge")
    np.testing.assert_allclose(Resampler(64, 100).fit_transform(X), expected, atol=3e-3)
    fewer = resample_poly(X, 1, 3, axis=1, padtype="edge")
    np.testing.assert_allclose(Resampler(300, 100).fit_transform(X), fewer, atol=1e-6)


def test_sines_keep_their_times_and_high_frequencies_do_not_fold():
    def signal(rate, *frequencies):
        time = np.arange(10 * rate) / rate
        return sum(np.sin(2 * np.pi * f * time) for f in frequencies)

    result = Resampler(256, 100).fit_transform(signal(256, 3.0, 90.0)[np.newaxis])[0]
    expected = signal(100, 3.0)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result[100:-100], expected[100:-100], atol=0.01)


@pytest.mark.parametrize("level", [1e6, -3e7])
def test_an_offset_makes_no_ripple(level):
    X = np.full((1, 60), level)
    X[0, 20:25] = np.nan
    result = Resampler(64, 100).fit_transform(X)
    assert set(result[~np.isnan(result)]) == {np.float32(level)}


@pytest.mark.parametrize("rates", [(50, 100), (100, 64), (256, 100), (256, 173.61), (100, 50)])
def test_a_step_of_the_level_reaches_ten_steps_of_the_lower_rate(rates):
    signal = np.sin(np.arange(3000) / 7)
    shifted = signal + 1000 * (np.arange(3000) >= 1500)
    result = Resampler(*rates).fit_transform([signal[:, np.newaxis], shifted[:, np.newaxis]])
    time = np.arange(len(result[0])) / rates[1]
    reach = 10 / min(rates)
    before, after = time < 1500 / rates[0] - reach, time > 1500 / rates[0] + reach
    np.testing.assert_allclose(result[1][before], result[0][before], atol=1e-6)
    np.testing.assert_allclose(result[1][after] - 1000, result[0][after], atol=1e-4)


def test_windows_whose_steps_are_lost_are_not_observed():
    recording = np.full((12, 1), np.nan)
    recording[[0, 7]] = 1.0  # the second lies between two output steps
    lazy = RecordingWindows([recording], [0, 0], [0, 6], length=6)
    assert lazy.observed_windows().tolist() == [True, True]
    resampled = Resampler(2, 1).fit_transform(lazy)
    assert resampled.observed_windows().tolist() == [True, False]


def test_a_run_between_two_output_steps_is_lost():
    X = np.array([[0.0, np.nan, 1.0, np.nan, 2.0, 2.0, 2.0, 2.0]])
    result = Resampler(4, 1).fit_transform(X)[0]
    np.testing.assert_allclose(result, [0.0, 2.0])


@pytest.mark.parametrize(
    ("rates", "ratio"),
    [
        ((64, 100), (25, 16)),
        ((360, 100.0), (5, 18)),
        ((31.25, 250), (8, 1)),
        ((100 / 3, 50), (3, 2)),
        ((0.1, 0.3), (3, 1)),
        ((1000, 1), (1, 1000)),
        ((1, 1000), (1000, 1)),
        ((np.float32(128), np.int64(64)), (1, 2)),
    ],
)
def test_ratio_of_rates(rates, ratio):
    fitted = Resampler(*rates).fit(np.zeros((1, 4)))
    assert (fitted.up_, fitted.down_) == ratio


@pytest.mark.parametrize(
    ("rates", "error", "message"),
    [
        ((None, 100), TypeError, "from_rate must be .*a sampling rate in Hz.*from_rate=64"),
        ((64, None), TypeError, "to_rate must be"),
        ((64, True), TypeError, "to_rate must be"),
        ((0, 100), ValueError, "from_rate must be"),
        ((64, -1), ValueError, "to_rate must be"),
        ((64, np.nan), ValueError, "to_rate must be"),
        ((64, np.inf), ValueError, "to_rate must be"),
        ((64, 64001), ValueError, "differ by a factor of more than 1000: check their units"),
        ((1e-320, 1e300), ValueError, "differ by a factor"),
        ((100, 33.33), ValueError, r"integers up to 1000: .* to_rate=33\.33333333 \(1 to 3\)"),
        ((33.33, 100), ValueError, r"integers up to 1000: .* to_rate=99\.99 \(3 to 1\)"),
    ],
)
def test_rates_are_checked(rates, error, message):
    with pytest.raises(error, match=message):
        Resampler(*rates).fit(np.zeros((1, 4)))


@pytest.mark.parametrize("from_rate", [250, 256, 360, 512, 1000])
def test_the_rate_that_it_gives_counts_as_the_rate_that_was_asked_for(from_rate):
    step = Resampler(from_rate=from_rate, to_rate=173.61).fit(np.zeros((1, from_rate, 1)))
    features = StatisticsTransformer(sampling_rate=173.61).fit(np.zeros((2, 100, 1)))
    X = np.ones((1, 100, 1))
    features.transform(X, sampling_rate=from_rate * step.up_ / step.down_)
    with pytest.raises(ValueError, match="173.6 Hz"):
        features.transform(X, sampling_rate=173.6)


def timed(rate, n_timesteps):
    times = pd.date_range("2026-01-01", periods=n_timesteps, freq=pd.Timedelta(seconds=1 / rate))
    return pd.DataFrame({"ecg": np.arange(n_timesteps, dtype=float)}, times)


def test_times_go_on_at_the_new_rate_even_if_there_are_as_many_steps():
    frame = timed(100, 30)
    (result,) = Resampler(100, 97).fit_transform([frame])
    passed = (result.index - frame.index[0]).total_seconds()
    np.testing.assert_allclose(passed, np.arange(30) / 97, atol=1e-9)
    (same,) = Resampler(100, 100).fit_transform([frame])
    assert same.index.equals(frame.index)


def test_lazy_windows_leave_the_rate_of_the_index_even_if_they_are_as_long():
    X = sliding_windows([timed(100, 90)], 30, lazy=True).X
    resampled = Resampler(100, 97).fit_transform(X)
    assert resampled.shape == X.shape
    StatisticsTransformer(sampling_rate=97).fit(resampled)
    same = Resampler(100, 100).fit_transform(X)
    with pytest.raises(ValueError, match="the time index of X has 100 steps"):
        StatisticsTransformer(sampling_rate=97).fit(same)
    assert same.index_rate == X.index_rate


START = pd.Timestamp("2026-03-29 00:30")
AHEAD = {hours: START.tz_localize(f"+0{hours}:00") for hours in (1, 2)}
INDEXES = {
    "text": (lambda s: [(START + t).isoformat() for t in s], START),
    "text with a zone": (lambda s: [(AHEAD[2] + t).isoformat() for t in s], AHEAD[2]),
    "objects": (lambda s: pd.Index([START + t for t in s], dtype=object), START),
    "objects with a zone": (
        lambda s: pd.Index([AHEAD[1] + t for t in s], dtype=object),
        AHEAD[1],
    ),
    "zone": (lambda s: START.tz_localize("Europe/Berlin") + s, START.tz_localize("Europe/Berlin")),
    "periods": (lambda s: pd.PeriodIndex(START + s, freq="s"), START),
    "durations": (lambda s: s + pd.Timedelta("1h"), pd.Timedelta("1h")),
}


@pytest.mark.parametrize("kind", INDEXES)
@pytest.mark.parametrize("to_rate", [0.5, 3])
def test_times_in_any_form_go_on(kind, to_rate):
    make, start = INDEXES[kind]
    index = pd.Index(make(pd.to_timedelta(np.arange(60), unit="s")), name="time")
    (result,) = Resampler(1, to_rate).fit_transform([pd.Series(np.arange(60.0), index)])
    assert result.index[0] == start  # raises for times with and without a zone
    zones = [str(getattr(times, "tz", None)) for times in (result.index, start)]
    assert zones[0] == zones[1]  # objects of pytz differ with the time of the year
    passed = (result.index - start).total_seconds()
    np.testing.assert_allclose(passed, np.arange(60 * to_rate) / to_rate, atol=1e-8)
    assert result.index.name == "time"


def test_numbers_go_on_in_their_unit():
    indexes = (
        5 + np.arange(60) / 100,  # seconds
        10 * np.arange(60),  # milliseconds
        1000 + np.arange(60),  # ticks of a clock
        pd.RangeIndex(100, 160),
    )
    expected = (5 + np.arange(30) / 50, 20 * np.arange(30), 1000 + 2 * np.arange(30), np.arange(30))
    for index, halved in zip(indexes, expected, strict=True):
        (result,) = Resampler(100, 50).fit_transform([pd.Series(np.zeros(60), index)])
        np.testing.assert_allclose(result.index, halved, rtol=1e-12)
        (one,) = Resampler(100, 200).fit_transform([pd.Series([1.0], index[:1])])
        assert list(one.index) == [0, 1]  # a unit cannot be told from one number
    names = [f"step {i}" for i in range(60)]
    (result,) = Resampler(100, 50).fit_transform([pd.Series(np.zeros(60), names)])
    assert list(result.index) == list(range(30))


def test_nanoseconds_since_1970_are_not_rounded():
    index = 1_700_000_000_123_456_789 + 500 * np.arange(60)  # 2 MHz; a float is rounded to 256
    (result,) = Resampler(2e6, 1e6).fit_transform([pd.Series(np.zeros(60), index)])
    assert list(result.index) == list(index[::2])
    (again,) = Resampler(1e6, 2e6).fit_transform([result])
    assert list(again.index) == list(index)


def test_nanoseconds_are_whole_where_the_new_step_is_not():
    index = 1_700_000_000_123_456_789 + 500 * np.arange(60)
    recording = pd.DataFrame({"ecg": np.arange(60.0)}, index)
    times = Resampler(2e6, 3e5).fit_transform([recording])[0].index
    expected = [int(index[0]) + round(step * 10_000 / 3) for step in range(len(times))]
    assert times.tolist() == expected


@pytest.mark.parametrize("unit", ["s", "us"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_times_beyond_nanoseconds_go_on(unit, zone):
    """Dates that were moved far away, so that nobody is known by them."""
    seconds = np.datetime64("2300-01-01", unit) + np.arange(40) * np.timedelta64(1, "s")
    index = pd.DatetimeIndex(seconds).tz_localize(zone)
    (result,) = Resampler(1, 2).fit_transform([pd.Series(np.zeros(40), index)])
    half = pd.TimedeltaIndex(np.arange(80) * np.timedelta64(500, "ms"))
    assert (result.index == index[0].as_unit("us") + half).all()


def test_times_do_not_drift():
    (result,) = Resampler(100, 300).fit_transform([timed(100, 50_000)])
    expected = result.index[0] + pd.Timedelta(149_999 * 10**9 // 300, unit="ns")
    assert abs(result.index[149_999] - expected) <= pd.Timedelta(1, unit="ns")


@pytest.mark.parametrize("kind", ["text", "zone", "periods", "durations"])
@pytest.mark.parametrize("clock", [49.9, 50.1])
def test_times_keep_the_pace_of_the_clock_of_a_recorder(kind, clock):
    """Else an event is found minutes away from its time in a recording of a day."""
    make, start = INDEXES[kind]
    seconds = np.arange(20_000) / clock
    times = pd.to_timedelta(seconds, unit="s").round("us")
    index = pd.PeriodIndex(START + times, freq="us") if kind == "periods" else make(times)
    (result,) = Resampler(50, 20).fit_transform([pd.Series(np.zeros(20_000), index)])
    passed = (result.index - start).total_seconds()
    np.testing.assert_allclose(passed, np.arange(8_000) * 2.5 / clock, atol=2e-6)


def test_a_ratio_above_one_of_large_numbers_is_refused():
    with pytest.raises(ValueError, match="not in a ratio"):
        Resampler(from_rate=1, to_rate=999.5).fit(np.zeros((2, 20, 1)))
