"""Windows in every form that a step takes, and slow formulas."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sklearn_pulse.preprocessing import (
    BandpassFilter,
    ChannelWhitener,
    Resampler,
    WindowScaler,
)
from sklearn_pulse.windows import RecordingWindows

quick = settings(deadline=None, max_examples=30)
STEPS = [
    WindowScaler(),
    WindowScaler(robust=True),
    WindowScaler(per="window"),
    ChannelWhitener(),
    BandpassFilter(high=20, sampling_rate=64),
    Resampler(64, 100),
    Resampler(100, 64),
]
IDS = ["channel", "robust", "window", "whitener", "filter", "up", "down"]

# Windows with gaps: a value is missing by itself, and whole windows may be.
windows = st.tuples(st.integers(1, 4), st.integers(1, 12), st.integers(1, 3)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(-100, 100) | st.just(np.nan))
)


def make_gaps(n=6, n_timesteps=40, n_channels=2, seed=0):
    """Noise with missing values: single ones, runs, a channel, and all of a window."""
    rng = np.random.default_rng(seed)
    X = rng.normal(3.0, 2.0, size=(max(n, 6), n_timesteps, n_channels))
    X[0, 5:9, 0] = X[1, -7:, :] = X[2, :, -1] = np.nan
    X[3, ::5, 0] = X[4] = np.nan
    return X[:n]


def hidden(X):
    """The same windows as a masked array, with numbers under the mask."""
    return np.ma.masked_array(np.where(np.isnan(X), 1e4, X), np.isnan(X))


def as_lazy(X):
    """The same windows, cut from one recording per two windows."""
    n, n_timesteps, _ = X.shape
    recordings = [X[i : i + 2].reshape(-1, X.shape[2]) for i in range(0, n, 2)]
    start = n_timesteps * (np.arange(n) % 2)
    return RecordingWindows(recordings, np.arange(n) // 2, start, n_timesteps)


def one_by_one(step, X):
    """Each channel of each window by itself, as a univariate table of one row."""
    channels = [[step(x[:, c]) for c in range(x.shape[1])] for x in X]
    return np.array(channels).swapaxes(1, 2)
