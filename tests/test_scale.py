"""Fits warn of channels whose scale a network learns badly from, and of no others."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_pulse import (
    CrossPredictionTransformer,
    FineTuneClassifier,
    FineTuneRegressor,
    PulseOracleTransformer,
    PulseTransformer,
    RandomEncoderTransformer,
)
from sklearn_pulse.baselines import MiniRocketTransformer, SupervisedClassifier
from sklearn_pulse.datasets import (
    make_fitzhugh_nagumo,
    make_hindmarsh_rose,
    make_lorenz,
    make_thomas,
)
from sklearn_pulse.preprocessing import WindowScaler
from sklearn_pulse.windows import LazyWindows
from tests.helpers import SMALL_ENCODER, make_windows, small

X, y = make_windows(8)
NETWORKS = [
    PulseTransformer,
    PulseOracleTransformer,
    RandomEncoderTransformer,
    FineTuneClassifier,
    FineTuneRegressor,
    SupervisedClassifier,
]


def warning_of(X):
    """Text of the warning at the fit of an untrained encoder, or None."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        RandomEncoderTransformer(**SMALL_ENCODER, random_state=0).fit(X)
    return str(caught[0].message) if caught else None


@pytest.mark.parametrize("cls", NETWORKS, ids=lambda cls: cls.__name__)
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_raw_counts_warn_and_scaled_ones_do_not(cls):
    counts = 1e6 + X
    bags = np.stack([counts, counts], axis=1)
    for given_as in (counts, bags):
        with pytest.warns(UserWarning, match=r"scale of X is extreme in 2 of 2 .*WindowScaler"):
            small(cls, max_epochs=1).fit(given_as, y)
        small(cls, max_epochs=1).fit(WindowScaler().fit_transform(given_as), y)


@pytest.mark.parametrize("cls", [CrossPredictionTransformer, MiniRocketTransformer])
def test_methods_that_no_scale_changes_are_silent(cls):
    if cls is MiniRocketTransformer:
        pytest.importorskip("sktime")
    small(cls, max_epochs=1).fit(1e5 * X)


@settings(deadline=None, max_examples=30)
@given(spread=st.floats(-6, 6), offset=st.floats(-6, 8), sign=st.sampled_from([-1, 1]))
def test_an_extreme_scale_is_warned_of_by_the_literal_rule(spread, offset, sign):
    noise = np.random.default_rng(0).normal(size=(4, 50, 1))
    noise = (noise - noise.mean()) / noise.std()
    windows = (sign * 10**offset + 10**spread * noise).astype(np.float32)
    mean, std = windows.mean(dtype=np.float64), windows.std(dtype=np.float64)
    if std < 1e-6 * abs(mean):
        return  # float32 does not hold the noise
    far = abs(mean) > (10 if abs(mean) > 500 else 1e3) * std
    extreme = std > 1e3 or std < 1e-3 or far
    assert (warning_of(windows) is not None) == extreme


@pytest.mark.parametrize("level", [0.0, 0.1, 1e6, -1e30])
def test_constant_channels_have_no_scale(level):
    windows = np.full((4, 100, 2), level)
    windows[:, :, 1] = np.random.default_rng(0).normal(size=(4, 100))
    assert warning_of(windows) is None
    windows[:, ::7] = np.nan
    windows[1, 50:, 0] = np.nan
    assert warning_of(windows) is None


def test_the_message_names_a_channel_and_its_numbers():
    windows = make_windows(30)[0].copy()
    windows[:, :, 1] *= 5e4
    windows[3, 2:5] = np.nan
    text = warning_of(windows)
    assert "extreme in 1 of 2 channels: the mean of channel 1 is" in text
    assert warning_of(windows[:, :, :1]) is None


@pytest.mark.parametrize(
    "make", [make_lorenz, make_thomas, make_hindmarsh_rose, make_fitzhugh_nagumo]
)
def test_the_simulated_systems_are_silent(make):
    assert warning_of(make(n_trials=3, n_timesteps=64, random_state=0)) is None


def test_raw_counts_of_the_guide_warn():
    counts = 1000 + 50 * np.random.default_rng(0).normal(size=(8, 100, 1))
    assert "the mean of channel 0 is 999, its standard deviation 50" in warning_of(counts)


def test_few_windows_are_read():
    class Counted(LazyWindows):
        shape = (5000, 8, 1)
        n_read = 0

        def observed_windows(self):
            return np.ones(5000, dtype=bool)

        def take(self, indices):
            type(self).n_read += len(indices)
            return np.full((len(indices), 8, 1), 1.0, np.float32)

    assert warning_of(Counted()) is None
    assert 0 < Counted.n_read <= 256 + 64  # and the amplitude of 64


def test_windows_that_end_early_are_an_error():
    class Ends(LazyWindows):
        shape = (4, 8, 1)

        def observed_windows(self):
            return np.ones(4, dtype=bool)

        def take(self, indices):
            raise StopIteration

    with pytest.raises(RuntimeError, match="StopIteration"):
        warning_of(Ends())
