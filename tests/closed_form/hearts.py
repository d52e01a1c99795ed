"""Simulated beats, whose rhythm lasts."""

import numpy as np


def hearts(n_people=6, n_windows=12, n_timesteps=800):
    """Recordings of regular and irregular beats in turn, six windows of each."""
    rng = np.random.default_rng(0)
    windows = []
    for number in range(n_people * n_windows):
        usual = rng.uniform(55, 65)
        spread = 0.4 * usual if number // 6 % 2 else 0.5
        beats = np.cumsum(rng.uniform(usual - spread, usual + spread, size=40))
        time = np.arange(n_timesteps)[:, None]
        windows.append(np.exp(-((time - beats) ** 2) / 4).sum(1))
    X = np.stack(windows)[:, :, None] + 0.02 * rng.normal(size=(len(windows), n_timesteps, 1))
    return X.astype(np.float32), np.arange(len(windows)) // n_windows
