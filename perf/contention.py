"""Training step with a busy neighbour, and with more threads than processors.

    python -m perf.contention [--size har] [--rounds 5]

Two ways of sharing the work among threads take turns: parts of the batch (ours), and torch's own,
which shares every operation. A child process that counts plays the neighbour. The program prints
the table, and each way's speed relative to its speed on a quiet machine.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import statistics
from collections.abc import Iterator
from unittest import mock

import torch

from perf.duel import timed
from perf.options import count
from perf.sizes import NAMES, Size
from perf.step import make_step

CPU = torch.device("cpu")


def keep_busy() -> None:
    """Keep a processor busy."""
    while True:
        pass


@contextlib.contextmanager
def neighbours(number: int) -> Iterator[None]:
    """Run busy processes beside the context."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=keep_busy) for _ in range(number)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


@contextlib.contextmanager
def operations_only() -> Iterator[None]:
    """Share operations among torch's threads rather than parts of the batch."""
    rooms = "_parts", "_encoder", "_decoder"
    with contextlib.ExitStack() as stack:
        for room in rooms:
            stack.enter_context(mock.patch(f"sklearn_pulse.networks.{room}.n_workers", lambda: 1))
        whole = "perf.step.workers_only", contextlib.nullcontext
        stack.enter_context(mock.patch(*whole))
        yield


def speeds(size: Size, n_threads: int, rounds: int) -> dict[str, float]:
    """Return the windows/s of both ways, which take turns, after a turn that warms up."""
    torch.set_num_threads(n_threads)
    x, starts = size.batch(CPU)
    step = make_step(size.objective(), x, starts)
    ways = {"parts": contextlib.nullcontext, "operations": operations_only}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, way in ways.items():
            with way():
                seconds[name].append(timed(step, CPU))
    return {name: len(x) / statistics.median(turns[1:]) for name, turns in seconds.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=NAMES, default="har")
    parser.add_argument("--rounds", type=count, default=5)
    options = parser.parse_args()
    n_cores = len(os.sched_getaffinity(0))
    settings = {
        "one thread": (1, 0),
        f"{n_cores} threads": (n_cores, 0),
        f"{n_cores} threads beside a busy process": (n_cores, 1),
        f"{4 * n_cores} threads": (4 * n_cores, 0),
    }
    best: dict[str, float] = {}
    print(f"| {n_cores} processors | parts, windows/s | operations, windows/s | ratio |")
    print("|---|---:|---:|---:|")
    for label, (n_threads, n_busy) in settings.items():
        with neighbours(n_busy):
            found = speeds(Size(options.size), n_threads, options.rounds)
        best = {name: max(speed, best.get(name, 0.0)) for name, speed in found.items()}
        cells = [f"{found[name]:,.0f} ({found[name] / best[name]:.0%})" for name in found]
        print(f"| {label} | {' | '.join(cells)} | {found['parts'] / found['operations']:.2f} |")


if __name__ == "__main__":
    main()
