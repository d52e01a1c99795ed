"""Fit of cross-prediction on all processors, alone and beside a busy process.

    python -m perf.closed_form_threads [--rounds 3]

Two ways take turns: small matrices and the biases of kernels on one thread (ours), and every
product shared among the threads. A child process that counts plays the neighbour. The program
prints the median seconds of a fit.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import time
from collections.abc import Iterator
from unittest import mock

import numpy as np

from perf.contention import neighbours
from perf.options import count
from sklearn_pulse import CrossPredictionTransformer

ALL = len(os.sched_getaffinity(0))
FITS = {  # number of windows, and parameters
    "200 windows, num_kernels=840": (200, {"num_kernels": 840}),
    "1,000 windows, the default": (1000, {}),
}


@contextlib.contextmanager
def all_shared() -> Iterator[None]:
    """Share every product among the threads."""
    biases = "sklearn_pulse.features._random_convolution.threads"
    with (
        mock.patch("sklearn_pulse._blas._WORTH_SHARING", 0),
        mock.patch(biases, lambda number: contextlib.nullcontext()),
    ):
        yield


WAYS = {"ours": contextlib.nullcontext, "shared": all_shared}


def seconds(n_windows: int, params: dict[str, int], rounds: int) -> dict[str, float]:
    """Return the median seconds of a fit in each way."""
    X = np.random.default_rng(0).normal(size=(n_windows, 128, 6)).cumsum(1)
    recording = np.arange(n_windows) // 20
    found: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name, way in WAYS.items():
            cross = CrossPredictionTransformer(**params, num_threads=ALL, random_state=0)
            with way():
                begun = time.perf_counter()
                cross.fit(X, groups=recording)
                found[name].append(time.perf_counter() - begun)
    return {name: statistics.median(turns) for name, turns in found.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=count, default=3)
    options = parser.parse_args()
    print(f"| {ALL} threads | neighbours | ours, s | shared, s | ratio |")
    print("|---|---:|---:|---:|---:|")
    for label, (n_windows, params) in FITS.items():
        for n_busy in (0, 1):
            with neighbours(n_busy):
                found = seconds(n_windows, params, options.rounds)
            cells = " | ".join(f"{value:.1f}" for value in found.values())
            print(f"| {label} | {n_busy} | {cells} | {found['shared'] / found['ours']:.2f} |")


if __name__ == "__main__":
    main()
