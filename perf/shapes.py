"""Training by oneDNN with products of recurring shapes, and with a new shape for every batch.

    python -m perf.shapes [--precision bfloat16] [--rounds 2] [--epochs 8] [--threads 1]

In float32, only some processors give products to oneDNN; on the others both sides are alike. Each
run is a separate process on the same windows of HAR's size, and draws its crops anew in each batch.
The runs take turns. The time is that of the processor, a median over epochs without the first two;
the memory is what the process holds at the end.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np
import torch
from skorch.callbacks import Callback

from perf.options import at_least, count
from sklearn_pulse import PulseTransformer, presets
from sklearn_pulse.networks import _row_pieces

N_WINDOWS = 640
WARM_UP = 2  # epochs, in which most shapes are new in either way
SIDES = ("recurring", "new")
ENDS: list[float] = []  # the processor's time after each epoch


class Clock(Callback):
    """Note the processor's time after each epoch."""

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Note the time."""
        ENDS.append(time.process_time())


def measure(side: str, precision: str, theta_dropout: str, epochs: int, threads: int) -> None:
    """Train, and print the seconds per epoch and the memory in MiB."""
    torch.set_num_threads(threads)
    if side == "new":
        _row_pieces._is_compiled = lambda x: False
    X = np.random.default_rng(0).normal(size=(N_WINDOWS, 128, 6)).astype(np.float32)
    settings = presets.get("pulse", "har", published=True) | {"max_epochs": epochs}
    pulse = PulseTransformer(
        **settings,
        precision=precision,
        theta_dropout=theta_dropout,
        num_threads=threads,
        callbacks=[("clock", Clock())],
        random_state=0,
    )
    pulse.fit(X)
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[1])
    seconds = statistics.median(np.diff(ENDS)[WARM_UP - 1 :])
    print(json.dumps([seconds, pages * 4096 / 2**20]))


def main() -> None:
    """Compare both ways for each kind of dropout."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--precision", choices=("bfloat16", "float32"), default="bfloat16")
    parser.add_argument("--rounds", type=count, default=2)
    parser.add_argument("--epochs", type=at_least(WARM_UP + 1), default=8)
    parser.add_argument("--threads", type=count, default=1)
    options = parser.parse_args()
    for theta_dropout in ("step", "sequence"):
        runs: dict[str, list[list[float]]] = {side: [] for side in SIDES}
        for _ in range(options.rounds):
            for side in SIDES:
                words = [side, options.precision, theta_dropout]
                words += [str(options.epochs), str(options.threads)]
                command = [sys.executable, "-m", "perf.shapes", *words]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                runs[side].append(json.loads(done.stdout.splitlines()[-1]))
        pairs = zip(runs["recurring"], runs["new"], strict=True)
        ratios = ", ".join(f"{ours[0] / theirs[0]:.2f}" for ours, theirs in pairs)
        memory = [statistics.median(run[1] for run in runs[side]) for side in SIDES]
        print(
            f"theta_dropout={theta_dropout!r}: {ratios} of the time,"
            f" {memory[0]:,.0f} MiB instead of {memory[1]:,.0f}",
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) == 6 and sys.argv[1] in SIDES:
        measure(*sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5]))
    else:
        main()
