"""Steps in float32 whose products go to oneDNN, to MKL, and the literal published steps.

    python -m perf.products [--size har ecg ...] [--method SimCLR ...] [--rounds 7]

The comparison is for AMD processors with AVX-512; `fit` calls oneDNN on Zen 5 and later. Torch's
own choice is MKL. The three take turns on one thread, with the same weights, and batches of the
preset. The time is that of the processor, so that other processes hardly disturb it. The first two
turns, which compile kernels, are not counted. The second table has the embedding of 256 windows,
or of a batch.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from perf import baselines
from perf.methods import NAMES as METHODS
from perf.methods import MethodSize
from perf.options import count
from perf.report import span, summary
from perf.sizes import NAMES as SIZES
from perf.sizes import Size
from perf.step import make_step
from sklearn_pulse import CrossPredictionTransformer, _products
from sklearn_pulse.objectives import Objective

WARM_UP = 2  # turns
Step = Callable[[], Any]


def pulse_steps(dataset: str) -> tuple[str, int, Step, Step]:
    """Return the name of a size, the windows of a batch, our step and the literal one."""
    size = Size(dataset)
    x, starts = size.batch(torch.device("cpu"))
    steps = (make_step(make(), x, starts) for make in (size.objective, size.literal))
    return f"PULSE, {SIZES[dataset]}", len(x), *steps


def method_steps(name: str) -> tuple[str, int, Step, Step]:
    """Return the name of a method, the windows of a batch, our step and the literal one."""
    size = MethodSize(name)
    batch, ours = size.batch(), size.objective()
    steps = (baselines.make_step(loss.train(), batch) for loss in (ours, size.literal(ours)))
    return name, len(batch["x"]), *steps


def embeddings() -> Iterator[tuple[str, int, Step]]:
    """Yield the names of encoders, the windows of a batch and a call that embeds it."""
    for dataset in ("har", "ecg"):
        size = Size(dataset)
        x, _ = size.batch(torch.device("cpu"))
        yield f"PULSE, {SIZES[dataset]}", len(x), partial(embed, size.objective(), x)
    for name in ("PatchTST", "TimeMAE"):
        size = MethodSize(name, 256)
        yield name, 256, partial(embed, size.objective(), size.batch()["x"])
    yield "cross-prediction", 256, closed_form(256)


def closed_form(n_windows: int) -> Step:
    """Return a call that embeds windows of HAR's size by cross-prediction."""
    size = Size("har")
    shape = 1200, size.n_timesteps, size.n_channels
    X = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    cross = CrossPredictionTransformer(random_state=0, device="cpu").fit(X)
    return partial(cross.transform, X[:n_windows])


@torch.inference_mode()
def embed(objective: Objective, x: Tensor) -> None:
    """Embed windows."""
    objective.eval().encode(x)


def measure(name: str, n_windows: int, ours: Step, literal: Step | None, rounds: int) -> str:
    """Time both libraries, and the literal step if any, in turns; return a row of the table."""
    turns = []
    for _ in range(WARM_UP + rounds):
        turn: list[float] = []
        for by_onednn in (True, False):
            _products._IS_FASTER = by_onednn
            turn.append(baselines.seconds(ours))
        turns.append(turn if literal is None else [*turn, baselines.seconds(literal)])
    columns = list(zip(*turns[WARM_UP:], strict=True))
    times = [f"{1e3 * statistics.median(column) / n_windows:.1f}" for column in columns]
    ratios = []
    for slower in columns[1:]:
        of_turns = [other / own for other, own in zip(slower, columns[0], strict=True)]
        ratios.append(span(summary(of_turns)))
    return f"| {' | '.join([name, str(n_windows), *times, *ratios])} |"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", nargs="*", action="extend", choices=SIZES)
    parser.add_argument("--method", nargs="*", action="extend", choices=METHODS)
    parser.add_argument("--rounds", type=count, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| step | windows | ms per window, oneDNN | MKL | literal | MKL / oneDNN | literal |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    steps = ((pulse_steps, options.size, SIZES), (method_steps, options.method, METHODS))
    for make, names, default in steps:
        for name in dict.fromkeys(default if names is None else names):  # none after a bare option
            print(measure(*make(name), options.rounds), flush=True)
    print("\n| embedding | windows | ms per window, oneDNN | MKL | MKL / oneDNN |")
    print("|---|---:|---:|---:|---:|")
    for name, n_windows, call in embeddings():
        print(measure(name, n_windows, call, None, options.rounds), flush=True)


if __name__ == "__main__":
    main()
