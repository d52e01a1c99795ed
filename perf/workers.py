"""One and two workers: a search on a Dask cluster, and the embedding of a corpus.

    python -m perf.workers [--turns 3]

Both numbers of workers take turns. Workers are processes with one thread. Each cluster runs a call
once before the clock starts, so that the workers have imported what they need; the data are sent
while it runs.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import numpy as np
from dask.distributed import Client, LocalCluster
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

from perf.options import count
from sklearn_pulse import PulseTransformer, RandomEncoderTransformer
from sklearn_pulse.corpus import dask_workers, embed_dataset

N_TIMESTEPS, N_CHANNELS = 128, 6
# Dask's own settings make a worker return freed memory at once (docs/scaling.md).
MEMORY = {
    "MALLOC_ARENA_MAX": 1,
    "MALLOC_MMAP_THRESHOLD_": 2**28,
    "MALLOC_TRIM_THRESHOLD_": 2**29,
}
GRID = {"pulsetransformer__n_crops": [1, 2], "pulsetransformer__gru_hidden_dim": [16, 32]}


def search(X: np.ndarray, y: np.ndarray) -> None:
    """Run twelve fits of a few seconds on the workers of the active client."""
    pulse = PulseTransformer(
        embedding_dim=64, encoder_depth=7, max_epochs=2, num_threads=1, random_state=0
    )
    folds = list(KFold(3).split(X))
    pipeline = make_pipeline(pulse, LogisticRegression(max_iter=1000))
    with dask_workers(X, y, folds):
        GridSearchCV(pipeline, GRID, cv=folds, refit=False).fit(X, y)


def embed(encoder: Any, folder: Path) -> None:
    """Embed the recordings of a folder on the workers of the active client."""
    with tempfile.TemporaryDirectory() as sink:
        embed_dataset(encoder, folder, f"{sink}/embedding.zarr", length=N_TIMESTEPS)


def timed(call: Callable[[], None], n_workers: int) -> float:
    """Return the seconds of a call beside a cluster of its own."""
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        call()
        start = time.perf_counter()
        call()
        return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=count, default=3)
    turns = parser.parse_args().turns
    dask.config.set({f"distributed.nanny.pre-spawn-environ.{k}": v for k, v in MEMORY.items()})
    rng = np.random.default_rng(0)
    X = rng.normal(size=(192, N_TIMESTEPS, N_CHANNELS)).astype(np.float32)
    y = np.arange(len(X)) % 2
    encoder = RandomEncoderTransformer(num_threads=1, random_state=0).fit(X[:16])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(8):
            recording = rng.normal(size=(1024 * N_TIMESTEPS, N_CHANNELS)).astype(np.float32)
            np.save(folder / f"{number}.npy", recording)
        calls = {
            "search of 4 candidates in 3 folds": lambda: search(X, y),
            "embedding of 8,192 windows by PULSE's encoder": lambda: embed(encoder, folder),
        }
        print("| | one worker, s | two workers, s | ratio (range) |")
        print("|---|---:|---:|---:|")
        for name, call in calls.items():
            seconds = [(timed(call, 1), timed(call, 2)) for _ in range(turns)]
            one, two = (statistics.median(column) for column in zip(*seconds, strict=True))
            ratios = [a / b for a, b in seconds]
            span = f"({min(ratios):.2f} to {max(ratios):.2f})"
            print(f"| {name} | {one:.1f} | {two:.1f} | {statistics.median(ratios):.2f} {span} |")


if __name__ == "__main__":
    main()
