"""A data set of sines, small enough for whole benchmarks."""

import numpy as np

from sklearn_pulse.benchmark._task import Task
from sklearn_pulse.benchmark._tasks import TaskSource

N_RECORDINGS = 10
LENGTH = 200
WINDOW = 20
SMALL_SETTINGS = {
    "embedding_dim": 8,
    "encoder_hidden_dim": 8,
    "encoder_depth": 3,
    "init_hidden_dim": 8,
    "gru_hidden_dim": 8,
    "min_crop_length": 10,
}


def load_toy(data_home=None, download_if_missing=False):
    """Two frequencies in each recording; two recordings validate and two test."""
    rng = np.random.default_rng(0)
    time = np.arange(LENGTH)
    fast = time // WINDOW % 2
    recordings, X, y, groups = [], [], [], []
    for i in range(N_RECORDINGS):
        steps = np.sin((0.3 + 0.5 * fast) * time + rng.uniform(0, 6))[:, None]
        recording = np.repeat(steps, 6, axis=1) + 0.3 * rng.normal(size=(LENGTH, 6))
        recordings.append(recording.astype(np.float32))
        X.append(recordings[-1].reshape(-1, WINDOW, 6))
        y += fast[::WINDOW].tolist()
        groups += [i] * len(X[-1])
    part = np.array(["train"] * 6 + ["val"] * 2 + ["test"] * 2)
    return Task(
        "toy",
        np.concatenate(X),
        np.array(y),
        np.array(groups),
        part[groups],
        recordings,
        part,
        np.arange(N_RECORDINGS),
        note="made of sines",
    )


def load_nothing(data_home=None, download_if_missing=False):
    raise OSError("the toy is not there: set data_home")


TOY = TaskSource(load_toy, "har", "HAR")
ABSENT = TaskSource(load_nothing, "har", "Absent")
