"""Training in two processes of one thread, against one process of one thread and of two.

``python -m perf.processes`` runs the three in turns, at HAR's size, and prints a table. Time by the
clock depends on what else the machine does; time of the processors, summed over the processes, does
not: it says what dividing a batch costs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from skorch.callbacks import Callback

from perf.report import span, summary
from perf.sizes import Size
from sklearn_pulse import PulseTransformer, presets

STEPS, WARM_UP, TURNS = 5, 1, 3
SETTINGS = {  # processes and threads of each
    "one process of one thread": (1, 1),
    "two processes of one thread": (2, 1),
    "one process of two threads": (1, 2),
}


class Clock(Callback):
    """Note the time at the start of every step."""

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        """Forget an earlier training."""
        self.times_: list[tuple[float, float]] = []

    def on_batch_begin(self, net: Any, **kwargs: Any) -> None:
        """Read both clocks."""
        self.times_.append((time.perf_counter(), time.process_time()))


def measure(n_processes: int, n_threads: int, folder: Path) -> None:
    """Train for a few steps and print the time of each, by the clock and of the processors."""
    size, clock = Size("har"), Clock()
    n = size.batch_size * (STEPS + WARM_UP + 1)
    X = np.random.default_rng(0).normal(size=(n, size.n_timesteps, size.n_channels))
    settings = presets.get("pulse", "har") | {
        "max_epochs": 1,
        "validation_fraction": 0.0,
        "callbacks": [clock],
        "device": "cpu",
        "num_threads": n_threads,
        "distributed": n_processes > 1,
        "random_state": 0,
    }
    fitted = PulseTransformer(**settings).fit(X.astype(np.float32))
    times = np.array(dict(fitted.net_.callbacks_)["Clock"].times_)
    path = folder / f"{os.environ.get('RANK', '0')}.json"
    path.write_text(json.dumps(np.diff(times, axis=0)[WARM_UP:].T.tolist()))


def run(n_processes: int, n_threads: int) -> tuple[float, float]:
    """Return the median time of a step in new processes: by the clock, and of all processors."""
    launcher = [sys.executable]
    if n_processes > 1:
        launcher += ["-m", "torch.distributed.run", "--standalone"]
        launcher += ["--nproc-per-node", str(n_processes)]
    with tempfile.TemporaryDirectory() as folder:
        command = ["-m", "perf.processes", str(n_processes), str(n_threads), folder]
        subprocess.run([*launcher, *command], check=True, stdout=subprocess.DEVNULL)
        results = [json.loads(path.read_text()) for path in sorted(Path(folder).iterdir())]
    clocks, processors = zip(*results, strict=True)
    return statistics.median(clocks[0]), sum(map(statistics.median, processors))


def main() -> None:
    """Take turns and print the table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    turns: dict[str, list[tuple[float, float]]] = {name: [] for name in SETTINGS}
    for _ in range(TURNS):
        for name, setting in SETTINGS.items():
            turns[name].append(run(*setting))
            print(name, turns[name][-1], file=sys.stderr, flush=True)
    base = next(iter(SETTINGS))
    print("| setting | seconds per step | speed, by the clock | processor time |")
    print("|---|---:|---:|---:|")
    for name, times in turns.items():
        pairs = list(zip(times, turns[base], strict=True))
        speed = [theirs[0] / ours[0] for ours, theirs in pairs]
        work = [ours[1] / theirs[1] for ours, theirs in pairs]
        print(
            f"| {name} | {statistics.median(ours[0] for ours in times):.2f}"
            f" | {span(summary(speed))}"
            f" | {statistics.median(work):.2f} ({min(work):.2f} to {max(work):.2f}) |"
        )


if __name__ == "__main__":
    if len(sys.argv) == 4:
        measure(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
