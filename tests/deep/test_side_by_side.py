"""Many fits at once give the bits of one; many fits in a row leave nothing behind."""

import os
import threading
from pathlib import Path

import joblib
import numpy as np
import pytest

from sklearn_pulse import CrossPredictionTransformer, PulseTransformer
from sklearn_pulse.baselines import TS2VecTransformer
from tests.helpers import make_windows, small

pytestmark = pytest.mark.slow
X = make_windows()[0]


def jobs():
    classes = (PulseTransformer, TS2VecTransformer, CrossPredictionTransformer)
    return [small(cls, random_state=seed) for seed in range(8) for cls in classes]


@pytest.mark.parametrize(("backend", "n_jobs"), [("threading", 8), ("loky", 4)])
def test_eight_threads_and_four_processes_give_the_bits_of_one(backend, n_jobs):
    alone = [job.fit_transform(X) for job in jobs()]
    run = joblib.Parallel(n_jobs=n_jobs, backend=backend)
    together = run(joblib.delayed(job.fit_transform)(X) for job in jobs())
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


def held():
    """Memory in MiB that no file backs, open files, and threads, of this process."""
    status = Path("/proc/self/status").read_text()
    memory = int(status.split("RssAnon:")[1].split()[0]) // 1024
    return memory, len(os.listdir("/proc/self/fd")), threading.active_count()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_five_hundred_fits_leave_nothing_behind():
    seen = []
    for number in range(500):
        small(PulseTransformer, random_state=number).fit(X).transform(X)
        if number % 50 == 49:
            seen.append(held())
    memory, files, n_threads = np.array(seen).T
    print("MiB, files and threads after every 50 fits:", seen)
    assert memory[-1] - memory[1] < 30
    assert files[-1] <= files[1] and n_threads[-1] <= n_threads[1]
