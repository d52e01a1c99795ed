"""Comparison of methods with an untrained encoder where noise drowns random features.

    python -m perf.hidden_dynamics [--seeds 3] [--method simclr dsvae ...] [--output FILE]

The windows hold the Thomas system at five parameters, beside channels of pure noise. A random
encoder mixes all channels; an encoder that has learnt what is predictable can ignore the noise.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin

from perf.options import count, new_file
from sklearn_pulse import PulseTransformer
from sklearn_pulse.baselines import (
    DSVAETransformer,
    LFADSTransformer,
    MiniRocketTransformer,
    PatchTSTTransformer,
    RandomEncoderTransformer,
    REBARTransformer,
    SimCLRTransformer,
    SimMTMTransformer,
    TimeMAETransformer,
    TS2VecTransformer,
)
from sklearn_pulse.benchmark._methods import StatisticsControl, method_name
from sklearn_pulse.datasets import make_system_classification
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.windows import RecordingWindows

N_NOISE_CHANNELS = 5
LENGTH = 100
ENCODER = {"embedding_dim": 64, "encoder_hidden_dim": 32, "encoder_depth": 6}
# Settings that take at most a minute on one core, three minutes for REBAR and PatchTST.
SETTINGS: dict[type, dict[str, Any]] = {
    PulseTransformer: ENCODER | {"gru_hidden_dim": 32, "init_hidden_dim": 32, "max_epochs": 15},
    SimCLRTransformer: ENCODER | {"max_shift": 1.0, "max_epochs": 15},
    TS2VecTransformer: ENCODER | {"max_epochs": 20},
    REBARTransformer: ENCODER
    | {
        "attention_hidden_dim": 32,
        "attention_bottleneck_dim": 8,
        "attention_depth": 2,
        "attention_epochs": 10,
        "n_candidates": 8,
        "alpha": 0.5,
        "temperature": 0.1,
        "max_epochs": 10,
    },
    PatchTSTTransformer: {
        "embedding_dim": 64,
        "patch_length": 10,
        "patch_stride": 1.0,
        "pooling": "mean",
        "max_epochs": 40,
        "lr": 2e-3,
    },
    TimeMAETransformer: {"embedding_dim": 64, "patch_length": 5, "max_epochs": 30},
    LFADSTransformer: ENCODER | {"max_epochs": 15},
    DSVAETransformer: ENCODER | {"max_epochs": 15},
    SimMTMTransformer: {"max_epochs": 20},
}
METHODS = {method_name(cls): cls for cls in SETTINGS}
# Methods that are not trained, from the seed.
CONTROLS: dict[str, Callable[[int], TransformerMixin]] = {
    "untrained encoder": lambda seed: RandomEncoderTransformer(
        **ENCODER, random_state=seed, num_threads=1
    ),
    "MiniRocket": lambda seed: MiniRocketTransformer(random_state=seed),
    "channel statistics": lambda seed: StatisticsControl(),
}


class HiddenDynamics(NamedTuple):
    """Training windows by recording, and test windows of other recordings."""

    train: RecordingWindows
    y_train: NDArray[Any]
    groups: NDArray[Any]
    X_test: NDArray[np.float32]
    y_test: NDArray[Any]


@cache
def make_task() -> HiddenDynamics:
    """Return 1,400 windows of 70 trials for training, and all 1,500 windows of 15 other trials."""
    data = make_system_classification("thomas", noise=0.0, random_state=0)
    rng = np.random.default_rng(0)
    scale = data.X.std((0, 1))
    recordings = [
        np.hstack([signal / scale, rng.normal(size=(len(signal), N_NOISE_CHANNELS))])
        for signal in data.recordings
    ]
    recordings = [recording.astype(np.float32) for recording in recordings]
    train = (data.split == "train") & (data.start // LENGTH % 5 == 0)
    test = data.split == "test"
    parts = [
        RecordingWindows(recordings, data.recording[part], data.start[part], LENGTH)
        for part in (train, test)
    ]
    return HiddenDynamics(
        parts[0], data.y[train], data.groups[train], np.asarray(parts[1]), data.y[test]
    )


def probe(transformer: TransformerMixin, task: HiddenDynamics) -> float:
    """Return the accuracy of a linear probe on the embeddings of a fitted transformer."""
    Z = transformer.transform(np.asarray(task.train))
    return (
        make_linear_probe()
        .fit(Z, task.y_train)
        .score(transformer.transform(task.X_test), task.y_test)
    )


def control_accuracy(name: str, seed: int) -> float:
    """Return the accuracy of a control."""
    task = make_task()
    return probe(CONTROLS[name](seed).fit(np.asarray(task.train)), task)


def accuracy(name: str, seed: int) -> float:
    """Return the accuracy of a method after training."""
    task, cls = make_task(), METHODS[name]
    transformer = cls(**SETTINGS[cls], batch_size=64, random_state=seed, num_threads=1)
    return probe(transformer.fit(task.train, groups=task.groups), task)


def main() -> None:
    """Train every method with several seeds and print the accuracies."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=count, default=3)
    parser.add_argument("--method", nargs="+", action="extend", choices=list(METHODS))
    parser.add_argument("--output", type=new_file)
    args = parser.parse_args()
    lines = ["| | accuracy, % | by seed | CPU seconds |", "|---|---:|---|---:|"]
    print("\n".join(lines), flush=True)
    for name in dict.fromkeys([*CONTROLS, *(args.method or METHODS)]):
        score = control_accuracy if name in CONTROLS else accuracy
        start = time.process_time()
        scores = [score(name, seed) for seed in range(args.seeds)]
        lines.append(_line(name, scores, (time.process_time() - start) / args.seeds))
        print(lines[-1], flush=True)
    if args.output is not None:
        args.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _line(name: str, scores: list[float], seconds: float) -> str:
    """Format a row of the table."""
    by_seed = " / ".join(f"{100 * score:.1f}" for score in scores)
    return f"| {name} | {100 * np.mean(scores):.1f} | {by_seed} | {seconds:.0f} |"


if __name__ == "__main__":
    main()
