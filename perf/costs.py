"""Cost of every method at the size of HAR's windows: parameters and windows/s, in one run.

    python -m perf.costs [--windows 256] [--rounds 3] [--threads 2] [--output docs/costs.md]
    python -m perf.costs --device cuda --windows 4096 --output output/costs.md
    python -m perf.costs --method rebar cross-prediction --output output/costs.md

The methods take turns, so that changes in the machine's speed affect all of them.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from perf.options import count, new_file
from sklearn_pulse.baselines import SupervisedClassifier
from sklearn_pulse.benchmark._methods import (
    Method,
    controls,
    cross_prediction,
    supervised,
    trained,
)
from sklearn_pulse.windows import RecordingWindows, sliding_windows

N_CHANNELS, N_TIMESTEPS = 6, 128  # size of HAR's windows
WINDOWS_PER_RECORDING = 16
PRESET = "har"
N_EPOCHS = 2  # the first epoch warms up


@dataclass
class Cost:
    """Counts and timings of a method, or of one stage of a method."""

    n_trained: int = 0
    n_encoder: int = 0
    training: list[float] = field(default_factory=list)  # windows/s, one entry per round
    embedding: list[float] = field(default_factory=list)


def make_windows(n_windows: int) -> RecordingWindows:
    """Return about `n_windows` windows of noise that know their recordings, all of each."""
    n_recordings = max(2, n_windows // WINDOWS_PER_RECORDING)
    shape = (n_recordings, (WINDOWS_PER_RECORDING + 1) * N_TIMESTEPS, N_CHANNELS)
    recordings = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    return sliding_windows(list(recordings), N_TIMESTEPS, N_TIMESTEPS, lazy=True).X


def n_parameters(module: torch.nn.Module) -> int:
    """Return the number of weights of a module."""
    return sum(parameter.numel() for parameter in module.parameters())


def n_trained(module: torch.nn.Module) -> int:
    """Return the number of weights that training changes."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def epoch_rate(net: Any, n_windows: int) -> float:
    """Return the windows/s of the last epoch."""
    return n_windows / net.history[-1, "dur"]


def run_once(
    method: Method, X: RecordingWindows, execution: dict[str, Any], costs: dict[str, Cost]
) -> None:
    """Train a method for two epochs, unless it has nothing to train, then embed."""
    settings = method.settings(PRESET)
    epochs = dict.fromkeys(("max_epochs", "attention_epochs"), N_EPOCHS)
    estimator = method.build(settings, 0, **execution, **epochs, validation_fraction=0)
    cost = costs[method.title]
    if isinstance(estimator, SupervisedClassifier):
        estimator.fit(np.asarray(X), np.arange(len(X)) % N_CHANNELS)
    else:
        estimator.fit(X)
    net = getattr(estimator, "net_", None)
    if net is not None:
        cost.n_encoder = n_parameters(estimator.encoder_)
    if method.is_trained or method.is_classifier:
        cost.n_trained = n_trained(net.module_)
        cost.training.append(epoch_rate(net, len(X)))
    earlier = [value for name, value in vars(estimator).items() if name.endswith("_net_")]
    for first in earlier:
        stage = costs[f"{method.title}, first stage"]
        stage.n_trained = n_trained(first.module_)
        stage.training.append(epoch_rate(first, len(X)))
    windows = np.asarray(X)
    start = time.perf_counter()
    estimator.transform(windows)
    cost.embedding.append(len(X) / (time.perf_counter() - start))


def measure(
    methods: list[Method], n_windows: int, rounds: int, execution: dict[str, Any]
) -> dict[str, Cost]:
    """Run all methods in turns and return their costs by title."""
    X, costs = make_windows(n_windows), defaultdict(Cost)
    with threadpool_limits(execution["num_threads"]):
        for _ in range(rounds):
            for method in methods:
                run_once(method, X, execution, costs)
                print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return dict(costs)


def _rate(rates: list[float], base: list[float]) -> list[str]:
    """Return the median of `rates`, and the median of its ratios to `base`, round by round."""
    if not rates:
        return ["", ""]
    ratios = [rate / other for rate, other in zip(rates, base, strict=True)]
    return [f"{statistics.median(rates):,.0f}", f"{statistics.median(ratios):.2f}"]


def _count(number: int) -> str:
    """Format a number; zero becomes an empty cell."""
    return f"{number:,}" if number else ""


def table(costs: dict[str, Cost], base: str = "PULSE") -> str:
    """Return the costs as Markdown."""
    lines = [
        "| | trained parameters | in the encoder | training, windows/s | relative to PULSE"
        " | embedding, windows/s | relative to PULSE |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for title, cost in costs.items():
        columns = [title, _count(cost.n_trained), _count(cost.n_encoder)]
        columns += _rate(cost.training, costs[base].training)
        columns += _rate(cost.embedding, costs[base].embedding)
        lines.append("| " + " | ".join(columns) + " |")
    return "\n".join(lines)


def _page(costs: dict[str, Cost], n_windows: int, rounds: int, execution: dict[str, Any]) -> str:
    """Return the page that `make bench` writes."""
    n_threads, name = execution["num_threads"], execution["device"]
    device = "a CPU" if name == "cpu" else torch.cuda.get_device_name(name)
    return f"""# What each method costs

`make bench` writes this page: {n_windows} windows of {N_TIMESTEPS} steps and {N_CHANNELS} channels
(the size of HAR), the settings of `presets.get(method, "har")`, float32 on {device}. Medians of
{rounds} rounds in which the methods take turns; a ratio is the median of the rounds' ratios.
Training times the second epoch of the estimator itself (batches, loss, gradient, optimiser,
callbacks), without validation. A method that trains in two stages has two rows. Absolute figures
depend on the machine; ratios depend on it less.

{table(costs)}

{platform.machine()}, {os.cpu_count()} cores, {n_threads} threads, torch {torch.__version__},
Python {platform.python_version()}.

An epoch is not the same amount of work in every method: the published settings differ in epochs,
strides and windows (`presets.windows`), and REBAR reconstructs every anchor from each of its
candidates. Cross-prediction has no epochs; what its fit takes is on
[its own page](cross_prediction.md).
"""


def all_methods() -> list[Method]:
    """Return the methods in the order of the table."""
    fixed = [m for m in controls() if m.make is not None]
    return [*trained(), supervised(), cross_prediction(), *fixed]


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=count, default=256)
    parser.add_argument("--rounds", type=count, default=3)
    parser.add_argument("--threads", type=count, default=torch.get_num_threads())
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument(
        "--method",
        nargs="+",
        action="extend",
        choices=[method.name for method in all_methods()],
        metavar="NAME",
        help="methods beside PULSE, to which each is related; default: all",
    )
    parser.add_argument("--output", type=new_file, default=Path("docs/costs.md"))
    return parser


def main() -> None:
    """Measure, print the table and write the page."""
    args = make_parser().parse_args()
    wanted = args.method and {"pulse", *args.method}
    methods = [method for method in all_methods() if wanted is None or method.name in wanted]
    n_windows = len(make_windows(args.windows))
    execution = {"num_threads": args.threads, "device": args.device}
    costs = measure(methods, args.windows, args.rounds, execution)
    page = _page(costs, n_windows, args.rounds, execution)
    args.output.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
