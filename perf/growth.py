"""Growth of time and memory with the windows, their length, their channels and the batch.

    python -m perf.growth [--figure output/growth.png] [--page docs/performance.md]

Each point is a fit in a process of its own, on one thread: one epoch of a method, or the closed
form. Time is that of the processor, so that other processes hardly disturb it; memory is the peak
beyond that of the process before the fit. The slope is that of the last three points, on
logarithmic axes: 1 means that twice the size takes twice the time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from perf.options import new_file, page
from perf.report import PAGE, replace_section, table
from sklearn_pulse import CrossPredictionTransformer, PulseTransformer
from sklearn_pulse.baselines import REBARTransformer

BASE = {"windows": 64, "length": 64, "channels": 4, "batch": 16}
SIZES = {
    "windows": [32, 64, 128, 256],
    "length": [32, 64, 128, 256],
    "channels": [2, 4, 8, 16],
    "batch": [8, 16, 32, 64],
}
N_RECORDINGS = 4
MIN_MEMORY = 4.0  # MiB that a fit must add, twice, before its growth can be told from noise
MIB = 2**20
Point = tuple[float, float]  # seconds, MiB


def pulse(batch: int) -> PulseTransformer:
    """Return PULSE with an epoch of training."""
    return PulseTransformer(max_epochs=1, batch_size=batch, validation_fraction=0, num_threads=1)


def rebar(batch: int) -> REBARTransformer:
    """Return REBAR, the slowest baseline, with an epoch of each stage."""
    return REBARTransformer(
        max_epochs=1, attention_epochs=1, batch_size=batch, validation_fraction=0, num_threads=1
    )


def cross_prediction(batch: int) -> CrossPredictionTransformer:
    """Return the closed form, which has no batches."""
    return CrossPredictionTransformer()


METHODS: dict[str, Callable[[int], Any]] = {
    "PULSE": pulse,
    "CrossPredictionTransformer": cross_prediction,
    "REBAR": rebar,
}


def axes_of(method: str) -> list[str]:
    """Return the sizes that a method's cost may grow with."""
    return [axis for axis in SIZES if axis != "batch" or METHODS[method] is not cross_prediction]


def fit(method: str, windows: int, length: int, channels: int, batch: int) -> Point:
    """Fit once; return the seconds of the processor, and the MiB of memory that were added."""
    torch.set_num_threads(1)
    X = np.random.default_rng(0).normal(size=(windows, length, channels)).astype(np.float32)
    groups = np.arange(windows) * N_RECORDINGS // windows
    estimator = METHODS[method](batch).set_params(random_state=0)
    METHODS[method](batch).set_params(random_state=0).fit(X[:8], groups=groups[:8])  # loads code
    before, start = _peak_memory(), time.process_time()
    estimator.fit(X, groups=groups)
    return time.process_time() - start, _peak_memory() - before


def _peak_memory() -> float:
    """Return the largest memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB


def measure() -> dict[tuple[str, str], list[Point]]:
    """Fit every method at all sizes, each fit in a fresh process."""
    points = {}
    # Processes that are started anew would load the package once more for each point.
    context = multiprocessing.get_context("fork")
    for method in METHODS:
        for axis in axes_of(method):
            row = []
            for size in SIZES[axis]:
                with context.Pool(1) as pool:
                    row.append(pool.apply(fit, (method,), BASE | {axis: size}))
            points[method, axis] = row
            print(method, axis, [(round(s, 2), round(m)) for s, m in row], flush=True)
    return points


def slope(sizes: list[int], values: list[float]) -> float:
    """Return the exponent of the growth over the last three sizes."""
    logs = np.log(sizes[-3:]), np.log(np.maximum(values[-3:], 1e-9))
    return float(np.polyfit(*logs, 1)[0])


def slopes(points: dict[tuple[str, str], list[Point]]) -> str:
    """Return the slopes of time and memory as a table."""
    lines = []
    for method in METHODS:
        cells = []
        for axis in SIZES:
            row = points.get((method, axis))
            if row is None:
                cells.append("")
                continue
            seconds, memory = zip(*row, strict=True)
            grown = memory[-1] >= 2 * MIN_MEMORY
            exponent = f"{slope(SIZES[axis], list(memory)):.1f}" if grown else "none"
            cells.append(f"{slope(SIZES[axis], list(seconds)):.1f}, {exponent}")
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return table("| | " + " | ".join(SIZES) + " |", lines)


def draw(points: dict[tuple[str, str], list[Point]], path: Path) -> None:
    """Draw time and memory against every size, on logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(SIZES), figsize=(12, 6), sharey="row", layout="constrained")
    for column, axis in enumerate(SIZES):
        for row, unit in enumerate(("seconds", "MiB")):
            panel = axes[row, column]
            for i, method in enumerate(METHODS):
                if (method, axis) in points:
                    values = [max(point[row], 0.1) for point in points[method, axis]]
                    panel.loglog(SIZES[axis], values, marker="o", color=f"C{i}", label=method)
            panel.set_xticks(SIZES[axis], [str(size) for size in SIZES[axis]], minor=False)
            panel.minorticks_off()
            if column == 0:
                panel.set_ylabel(unit)
        axes[1, column].set_xlabel(axis)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measure, print the slopes, draw the figure and fill the section of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", type=new_file, default=Path("output/growth.png"))
    parser.add_argument("--page", type=page, default=PAGE)
    options = parser.parse_args()
    points = measure()
    found = slopes(points)
    print(found)
    draw(points, options.figure)
    options.page.write_text(
        replace_section(options.page.read_text(encoding="utf-8"), "growth", found), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
