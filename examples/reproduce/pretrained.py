"""
Models that come with the package
=================================

This script makes a model of `sklearn_pulse.pretrained` again, with its card: it compares candidate
settings on validation recordings, fits the best on all recordings but the held-out ones, and scores
it on those once, beside its controls. The folder is written only if the model is above each of
them. `SKLEARN_PULSE_DATA` names the folder of the recordings.

    python examples/reproduce/pretrained.py eeg-174hz --output output/pretrained

Scores are stored as they are computed: a run that was interrupted goes on. The same machine gives
the same bits. On others sums round differently, and directions may be mirrored: the numbers of a
window are then others, but inner products of embeddings agree to about 1e-5.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
import torch
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedGroupKFold

from sklearn_pulse import CrossPredictionTransformer, RandomEncoderTransformer, __version__
from sklearn_pulse.baselines import MiniRocketTransformer
from sklearn_pulse.datasets import fetch_epilepsy
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.model_selection import LabelFractionSplit
from sklearn_pulse.windows import sliding_windows

N_FOLDS, N_DRAWS, SEED = 5, 5, 0
FOLD_SEED = 1234  # of the benchmark's divisions, whose first test part is held out here
AMOUNTS = {"1 %": 0.01, "5 %": 0.05, "all labels": None}
CS = (0.01, 0.1, 1.0)
FIXED_C = 1.0
MODEL, TWIN = "this model", "its features, untrained"
Scores = dict[
    str, list[list[float]]
]  # by row and amount of labels: draws of accuracies by recording


@dataclass(frozen=True)
class Windows:
    """Windows X with their labels, and the recording and first step of each."""

    X: np.ndarray
    y: np.ndarray
    recording: np.ndarray
    start: np.ndarray

    def some(self, rows: np.ndarray) -> Windows:
        """Return some of the windows."""
        return Windows(self.X[rows], self.y[rows], self.recording[rows], self.start[rows])


@dataclass(frozen=True)
class Source:
    """What a model is fitted on, and the settings that are compared."""

    load: Callable[[], Windows]
    sampling_rate: float
    candidates: dict[str, dict[str, Any]]


def bonn() -> Windows:
    """Return the EEG of Bonn in the units of its files, with the sets of the segments as labels."""
    data = fetch_epilepsy()
    if data.recordings is None:
        raise OSError(
            "the text files of the Bonn EEG are missing, and only they hold its recordings: put the"
            " folders Z, O, N, F and S into the data folder"
        )
    windows = sliding_windows(data.recordings, length=178, stride=178)
    in_set = np.array(["ZONFS".index(name[0]) for name in data.recording_name])
    recording = np.asarray(windows.recording)
    X = np.asarray(windows.X, dtype=np.float32)
    return Windows(X, in_set[recording], recording, np.asarray(windows.start))


SOURCES = {
    "eeg-174hz": Source(
        bonn,
        173.61,
        {
            "four blocks": {"block_weights": (0.1, 0.05, 0.6, 0.25)},
            "more statistics": {"block_weights": (0.3, 0.1, 0.35, 0.25)},
            "nothing removed": {"block_weights": (0.1, 0.05, 0.6, 0.25), "alpha": 0.0},
        },
    )
}
SMALL = {"num_kernels": 700, "n_components": 480, "embedding_dim": 480}


def candidate(source: Source, name: str) -> CrossPredictionTransformer:
    """Return the unfitted model of a candidate."""
    settings = SMALL | source.candidates[name]
    return CrossPredictionTransformer(
        **settings, sampling_rate=source.sampling_rate, random_state=SEED, num_threads=1
    )


def fitted(model: CrossPredictionTransformer, windows: Windows) -> CrossPredictionTransformer:
    """Fit a model without labels."""
    return model.fit(windows.X, groups=windows.recording, start=windows.start)


def folds_of(windows: Windows) -> list[np.ndarray]:
    """Return the rows of each fold of whole recordings; the first fold is held out."""
    splitter = StratifiedGroupKFold(N_FOLDS, shuffle=True, random_state=FOLD_SEED)
    return [rows for _, rows in splitter.split(windows.y, windows.y, windows.recording)]


def draws(y: np.ndarray, amount: str) -> Iterator[np.ndarray]:
    """Yield the labelled rows of each draw."""
    everything = np.arange(len(y))
    if AMOUNTS[amount] is None:
        yield everything
        return
    splitter = LabelFractionSplit(
        AMOUNTS[amount], n_draws=N_DRAWS, cv=[(everything, everything)], random_state=SEED
    )
    yield from (rows for rows, _ in splitter.split(y, y))


def hits(
    Z: np.ndarray, y: np.ndarray, of: np.ndarray, truth: np.ndarray, amount: str, C: float | None
) -> np.ndarray:
    """Return which predictions are right, shape (n_draws, n_scored); C None is the majority."""
    right = []
    for rows in draws(y, amount):
        probe = DummyClassifier() if C is None else make_linear_probe(C)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            right.append(probe.fit(Z[rows], y[rows]).predict(of) == truth)
    return np.array(right)


def controls(model: CrossPredictionTransformer, train: Windows) -> dict[str, Callable[..., Any]]:
    """Return what each control computes of windows, fitted on the windows of the model."""

    def untrained_features(X: np.ndarray) -> np.ndarray:
        return np.hstack([block.transform(X) for block in model.blocks_.values()])

    rocket = MiniRocketTransformer(random_state=SEED).fit(train.X)
    encoder = RandomEncoderTransformer(random_state=SEED, num_threads=1).fit(train.X / 100)
    return {
        TWIN: untrained_features,
        "MiniRocket, 10,000 kernels": rocket.transform,
        "untrained encoder": lambda X: encoder.transform(X / 100),
        "channel statistics": StatisticsTransformer().fit(train.X).transform,
        "majority": lambda X: np.zeros((len(X), 1)),
    }


class Cells:
    """Scores in a file, each computed once for the same settings."""

    def __init__(self, path: Path, candidates: dict[str, dict[str, Any]]) -> None:
        self.path = path
        settings = json.dumps([__version__, SMALL, candidates], sort_keys=True)
        self.of = hashlib.blake2b(settings.encode(), digest_size=4).hexdigest()
        self.known = json.loads(path.read_text()) if path.exists() else {}

    def get(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return a score that is known, or compute and store it."""
        key = f"{self.of}: {key}"
        if key not in self.known:
            start = time.perf_counter()
            self.known[key] = compute()
            part = self.path.with_name(f"{self.path.name}.partial")  # which a killed run leaves
            part.write_text(json.dumps(self.known))
            part.replace(self.path)
            print(f"{key}: {time.perf_counter() - start:.0f} s", flush=True)
        return self.known[key]


def validated(source: Source, name: str, train: Windows, valid: Windows) -> dict[str, float]:
    """Return the accuracy of a candidate on validation windows, for each amount of labels."""
    model = fitted(candidate(source, name), train)
    Z, of = model.transform(train.X), model.transform(valid.X)
    return {a: hits(Z, train.y, of, valid.y, a, FIXED_C).mean().item() for a in AMOUNTS}


def select(source: Source, windows: Windows, folds: list[np.ndarray], cells: Cells) -> Any:
    """Return the best candidate, and the mean scores of all over the validation divisions."""
    means = {}
    for name in source.candidates:
        scores = []
        for number, valid in enumerate(folds):
            train = np.concatenate([rows for i, rows in enumerate(folds) if i != number])
            parts = windows.some(train), windows.some(valid)
            scores.append(cells.get(f"{name}, {number}", partial(validated, source, name, *parts)))
        means[name] = {a: float(np.mean([score[a] for score in scores])) for a in AMOUNTS}
    return max(means, key=lambda name: np.mean(list(means[name].values()))), means


def choose_C(
    best: str, rows: dict[str, Any], train: Windows, valid: Windows, cells: Cells
) -> dict[str, float]:
    """Return the best C of each row and amount of labels on a validation part."""
    chosen = {}
    for row in [row for row in rows if row != "majority"]:
        embedded = once(rows[row], train, valid)
        for amount in AMOUNTS:
            scores = [
                cells.get(f"{best}: {row}, {amount}, C={C}", partial(accuracy, embedded, amount, C))
                for C in CS
            ]
            chosen[f"{row}, {amount}"] = CS[int(np.argmax(scores))]
    return chosen


def held_out(
    best: str,
    rows: dict[str, Any],
    train: Windows,
    test: Windows,
    chosen: dict[str, float],
    cells: Cells,
) -> dict[str, Scores]:
    """Return the accuracy on each held-out recording: by probe, row and amount, one per draw."""
    scores: dict[str, Any] = {"fixed": {}, "chosen": {}}
    for row, embed in rows.items():
        embedded = once(embed, train, test)
        for amount in AMOUNTS:
            name = f"{row}, {amount}"
            for probe, C in (("fixed", FIXED_C), ("chosen", chosen.get(name))):
                C = None if row == "majority" else C
                key = f"{best}: held out, {name}, C={C}"
                scores[probe][name] = cells.get(key, partial(by_recording, embedded, amount, C))
    return scores


def once(embed: Callable[..., Any], *parts: Windows) -> Callable[[], Any]:
    """Return a function that embeds parts when it is first called, and returns them with labels."""
    return cache(lambda: [(embed(part.X), part.y, part.recording) for part in parts])


def accuracy(embedded: Callable[[], Any], amount: str, C: float) -> float:
    """Return the mean accuracy over the draws of labels."""
    (Z, y, _), (of, truth, _) = embedded()
    return hits(Z, y, of, truth, amount, C).mean().item()


def by_recording(embedded: Callable[[], Any], amount: str, C: float | None) -> list[list[float]]:
    """Return the accuracy on each scored recording, for each draw of labels."""
    (Z, y, _), (of, truth, recording) = embedded()
    right = hits(Z, y, of, truth, amount, C)
    return [[draw[recording == r].mean().item() for r in np.unique(recording)] for draw in right]


def gain(scores: Scores, row: str, amount: str) -> tuple[float, float, float]:
    """Return the points that the model is above a row, and the 95 % interval over recordings."""
    own, other = (np.mean(scores[f"{name}, {amount}"], axis=0) for name in (MODEL, row))
    points = 100 * (own - other)
    drawn = np.random.RandomState(SEED).randint(len(points), size=(2000, len(points)))
    low, high = np.percentile(points[drawn].mean(1), [2.5, 97.5])
    return points.mean(), low, high


def table(scores: Scores, rows: list[str]) -> str:
    """Return a table in Markdown: accuracy, spread over draws, and the gain with its interval."""
    lines = [" | ".join(["| ", *AMOUNTS]) + " |", "|---" * (len(AMOUNTS) + 1) + "|"]
    for row in rows:
        cells = []
        for amount in AMOUNTS:
            values = 100 * np.mean(scores[f"{row}, {amount}"], axis=1)
            text = f"{values.mean():.1f}"
            if len(values) > 1:
                text += f" ± {values.std():.1f}"
            if row == MODEL:
                text = f"**{text}**"
            else:
                text += " [{:+.1f}: {:+.1f} to {:+.1f}]".format(*gain(scores, row, amount))
            cells.append(text)
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def not_above(scores: Scores, rows: list[str], bound: int) -> list[str]:
    """Return the cells whose gain (`bound` 0), or its lower bound (1), is not positive."""
    others = [row for row in rows if row != MODEL]
    cells = [(row, amount) for row in others for amount in AMOUNTS]
    return [f"{row}, {amount}" for row, amount in cells if gain(scores, row, amount)[bound] <= 0]


def selection_table(means: dict[str, dict[str, float]], best: str, source: Source) -> str:
    """Return the scores of the candidates as a table in Markdown."""
    lines = [" | ".join(["| candidate", "settings", *AMOUNTS]) + " |"]
    lines.append("|---" * (len(AMOUNTS) + 2) + "|")
    for name, of in means.items():
        settings = ", ".join(f"{k}={v}" for k, v in (SMALL | source.candidates[name]).items())
        scores = " | ".join(f"{100 * of[amount]:.1f}" for amount in AMOUNTS)
        title = f"**{name}**" if name == best else name
        lines.append(f"| {title} | {settings} | {scores} |")
    return "\n".join(lines)


def card(name: str, model: CrossPredictionTransformer, folder: Path, facts: dict[str, Any]) -> str:
    """Return the text of the card: the template of the model with its facts."""
    parts = (np, scipy, sklearn, torch)
    versions = [f"sklearn_pulse {__version__}", f"Python {platform.python_version()}"]
    versions += [f"{part.__name__} {part.__version__}" for part in parts]
    template = Path(__file__).parent / "cards" / f"{name}.md"
    return template.read_text(encoding="utf-8").format(
        width=model.embedding_dim,
        alpha=model.alpha_,
        kappa=model.kappa_,
        megabytes=(folder / "model.safetensors").stat().st_size / 1e6,
        versions=", ".join([*versions, f"{platform.system()} {platform.machine()}"]),
        command=f"python examples/reproduce/pretrained.py {name}",
        n_draws=N_DRAWS,
        Cs=", ".join(map(str, CS)),
        twin=TWIN,
        **facts,
    )


def main() -> None:
    """Select, fit, score and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("name", choices=SOURCES)
    parser.add_argument("--output", type=Path, default=Path("output/pretrained"))
    args = parser.parse_args()
    source = SOURCES[args.name]
    folder = args.output / args.name
    if folder.exists():
        raise SystemExit(f"{folder} is there already: move it away.")
    args.output.mkdir(parents=True, exist_ok=True)
    cells = Cells(args.output / f"{args.name}.json", source.candidates)

    windows = source.load()
    test, *others = folds_of(windows)
    best, means = select(source, windows, others, cells)
    print(selection_table(means, best, source), flush=True)

    valid, *rest = others
    train, valid = windows.some(np.concatenate(rest)), windows.some(valid)
    model = fitted(candidate(source, best), train)
    rows = {MODEL: model.transform} | controls(model, train)
    chosen = choose_C(best, rows, train, valid, cells)

    train, test = windows.some(np.concatenate(others)), windows.some(test)
    start = time.perf_counter()
    model = fitted(candidate(source, best), train)
    seconds = time.perf_counter() - start
    rows = {MODEL: model.transform} | controls(model, train)
    scores = held_out(best, rows, train, test, chosen, cells)
    tables = {probe: table(of, list(rows)) for probe, of in scores.items()}
    print(*tables.values(), sep="\n\n", flush=True)
    if missed := not_above(scores["fixed"], list(rows), 0):
        raise SystemExit(f"no gain over: {'; '.join(missed)}. Nothing is written.")

    model.save_pretrained(folder)
    settings = SMALL | source.candidates[best]
    unsure = {probe: "; ".join(not_above(of, list(rows), 1)) for probe, of in scores.items()}
    facts = {
        "n_fitted": len(np.unique(train.recording)),
        "n_held_out": len(np.unique(test.recording)),
        "half": np.median(np.abs(train.X)),
        "settings": ", ".join(f"{name}={value}" for name, value in settings.items()),
        "n_windows": len(train.X),
        "n_scored": len(test.X),
        "seconds": seconds,
        "n_features": rows[TWIN](test.X[:1]).shape[1],
        "unsure_fixed": unsure["fixed"] or "nothing",
        "unsure_chosen": unsure["chosen"] or "nothing",
        "n_candidates": len(means),
        "selection": selection_table(means, best, source),
        **tables,
    }
    (folder / "README.md").write_text(card(args.name, model, folder, facts), encoding="utf-8")
    print(f"{folder} holds the model and its card", flush=True)


if __name__ == "__main__":
    from _command import exit_status

    sys.exit(exit_status(main))
