"""BandpassFilter against scipy, run by run."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import butter, sosfiltfilt

from sklearn_pulse.preprocessing import BandpassFilter
from tests.preprocessing.data import make_gaps, one_by_one, quick

CASES = [(0.5, 8.0, 4), (None, 8.0, 3), (0.5, None, 2), (None, 30.0, 1)]


def slow_filter(x, low, high, order):
    """Filter each run of observed steps of one channel by itself; short gaps end no run."""
    if low is None:
        sos = butter(order, high, "lowpass", fs=64, output="sos")
    elif high is None:
        sos = butter(order, low, "highpass", fs=64, output="sos")
    else:
        sos = butter(order, [low, high], "bandpass", fs=64, output="sos")
    observed = [t for t in range(len(x)) if not np.isnan(x[t])]
    line = list(x)
    for before, after in pairwise(observed):
        n_missing = after - before - 1
        if n_missing < 0.5 * 64 / (high if low is None else low):
            for t in range(before + 1, after):
                line[t] = x[before] + (x[after] - x[before]) * (t - before) / (after - before)
    result = np.full(len(x), np.nan)
    steps = []
    for t in range(len(x) + 1):
        if t < len(x) and not np.isnan(line[t]):
            steps.append(t)
        elif steps:
            signal = np.array([line[s] for s in steps])
            try:
                result[steps] = sosfiltfilt(sos, signal)
            except ValueError:  # the run is no longer than scipy's padding
                result[steps] = sosfiltfilt(sos, signal, padlen=len(steps) - 1)
            steps = []
    result[np.isnan(x)] = np.nan
    return result


@pytest.mark.parametrize(("low", "high", "order"), CASES)
def test_equals_scipy(low, high, order):
    X = make_gaps(n_timesteps=140)
    result = BandpassFilter(low, high, 64, order=order).fit_transform(X)
    expected = one_by_one(lambda x: slow_filter(x, low, high, order), X)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@quick
@given(
    x=st.lists(st.floats(-10, 10) | st.just(np.nan), min_size=1, max_size=30),
    case=st.sampled_from(CASES[1::2]),
)
def test_short_runs_are_filtered(x, case):
    low, high, order = case
    x = np.array(x)
    result = BandpassFilter(low, high, 64, order=order).fit_transform(x[np.newaxis])
    np.testing.assert_allclose(result[0], slow_filter(x, low, high, order), rtol=1e-4, atol=1e-4)


def test_frequencies_in_the_band_stay_in_phase_and_others_go():
    time = np.arange(64 * 30) / 64
    inside, slow, fast = (np.sin(2 * np.pi * f * time) for f in (2.0, 0.02, 25.0))
    X = (1e6 + inside + 10 * slow + fast)[np.newaxis]
    result = BandpassFilter(0.5, 8.0, 64).fit_transform(X)[0]
    middle = slice(640, -640)
    np.testing.assert_allclose(result[middle], inside[middle], atol=0.02)


def test_lost_packets_hardly_change_a_frequency_in_the_band():
    time = np.arange(3000) / 50
    x = np.sin(2 * np.pi * 1.2 * time) + 9.81
    step = BandpassFilter(0.5, 10.0, 50)
    (complete,) = step.fit_transform([x])
    lost = np.random.default_rng(0).random(3000) < 0.03
    (gapped,) = step.transform([np.where(lost, np.nan, x)])
    np.testing.assert_array_equal(np.isnan(gapped), lost)
    error = (gapped - complete)[~lost]
    assert np.std(error) < 0.005 * np.std(complete)


def test_a_level_that_changes_in_a_long_gap_leaves_no_step():
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000)
    step = BandpassFilter(0.5, 10.0, 50)
    (plain,) = step.fit_transform([x])
    x[1500:1550] = np.nan  # half a period is 50 steps
    raised = x + np.where(np.arange(3000) < 1500, 0.0, 100.0)
    (one_level,), (two_levels,) = step.transform([x]), step.transform([raised])
    np.testing.assert_allclose(two_levels, one_level, atol=1e-4)
    x[1549] = 0.0  # a step fewer is bridged
    (bridged,) = step.transform([x])
    assert np.abs((bridged - plain)[1300:1500]).max() < np.abs((one_level - plain)[1300:1500]).max()


def test_windows_shorter_than_a_period_are_refused():
    step = BandpassFilter(0.5, 8.0, 64)
    message = (
        "X has windows of 100 time steps, .* one period of low=0.5 at sampling_rate=64 .128 steps"
    )
    with pytest.raises(ValueError, match=f"{message}.*filter recordings before"):
        step.fit(np.zeros((2, 100, 1)))
    fitted = step.fit(np.zeros((2, 128, 1)))
    with pytest.raises(ValueError, match=r"X\[1\] is a recording of 20 time steps"):
        fitted.transform([np.zeros(200), np.zeros(20)])
    padded = np.full((1, 128, 1), np.nan)
    padded[0, :20] = 1.0
    assert np.isfinite(fitted.transform(padded)[0, :20]).all()


@pytest.mark.parametrize(
    ("low", "rate", "steps"),
    [(0.3, 2.1, 7), (0.7, 4.9, 7), (1.0, 12.4, 13), (1.0, 12.0, 12)],
)
def test_a_period_is_whole_steps(low, rate, steps):
    step = BandpassFilter(low, None, rate)
    step.fit(np.zeros((2, steps, 1)))
    with pytest.raises(ValueError, match=f"{steps - 1} time steps, .* \\({steps} steps\\)"):
        step.fit(np.zeros((2, steps - 1, 1)))


@pytest.mark.parametrize(("low", "high"), [(0.05, None), (0.05, 40.0), (None, 0.05)])
def test_a_large_offset_leaves_nothing_behind(low, high):
    time = np.arange(300_000) / 1e4
    x = np.sin(2 * np.pi * time)[:, np.newaxis]
    gapped = x.copy()
    gapped[1000:1200] = np.nan
    step = BandpassFilter(low, high, 1e4)
    plain = step.fit_transform([x, gapped])
    raised = step.fit_transform([x + 2.0**22, gapped + 2.0**22])  # counts of a converter of 24 bits
    level = 2.0**22 if low is None else 0.0
    for before, after in zip(plain, raised, strict=True):
        np.testing.assert_allclose(after, before + np.float32(level), rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sampling_rate": None}, TypeError, "sampling_rate must be .*in Hz.*sampling_rate=64"),
        ({"sampling_rate": 0}, ValueError, "sampling_rate must be"),
        ({"sampling_rate": np.inf}, ValueError, "sampling_rate must be"),
        (
            {"high": 32.0},
            ValueError,
            r"high must be a number in \(0, 32\).*half of sampling_rate=64",
        ),
        ({"low": 0.0}, ValueError, "low must be"),
        ({"low": "1"}, TypeError, "low must be"),
        ({"low": 8.0}, ValueError, "low=8.0 must be below high=8.0"),
        ({"low": None, "high": None}, ValueError, "low and high are both None"),
        ({"order": 0}, ValueError, "order must be"),
        ({"order": 2.5}, TypeError, "order must be"),
    ],
)
def test_parameters_are_checked(options, error, message):
    step = BandpassFilter(**{"low": 0.5, "high": 8.0, "sampling_rate": 64} | options)
    with pytest.raises(error, match=message):
        step.fit(np.zeros((2, 200, 1)))
