"""
Small data sets that no choice was made on
==========================================

Seven data sets of the UCR and UEA archives are part of the package aeon, so that nothing is
downloaded: three of motion, and power demand, appliances, arrow heads and leaves. No method and no
setting of this package was chosen on them. They have no recordings, so that
`CrossPredictionTransformer` predicts halves of windows from one another.

Recordings and trials that are part of other packages (`packaged.py`) are read too. Most were first
read after all methods had been chosen; docs/comparison.md says what was changed since:

    python examples/reproduce/archives.py --dataset driving exercise-tests rewards night \
        --output output/unread
    python examples/reproduce/archives.py --dataset Blink EyesOpenShut FingerMovements \
        HandMovementDirection SelfRegulationSCP1 SelfRegulationSCP2 PigCVP --output output/trials

`night` is one night of Sleep-EDF, as `fetch_sleep_edf` reads it, of which twenty epochs make a
part of their own. Trials of bodies are sixteen further data sets of the UCR archive, which aeon
downloads into the data folder:

    python examples/reproduce/archives.py --dataset bodies --seeds 2 --output output/bodies

No choice was made on the recordings that `unseen.py` simulates either. They are read if they are
asked for:

    python examples/reproduce/archives.py --dataset ecg-alone ecg-three eeg-imagery emg-gestures \
        eeg-seizures --seeds 3 --output output/unseen

Nor was any choice made on the questions that `questions.py` asks of real recordings:

    python examples/reproduce/archives.py --dataset conditions transitions beats --seeds 3 \
        --output output/questions

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
from pathlib import Path
from typing import Any

import numpy as np
import packaged
import questions
import unseen
from sklearn.pipeline import make_pipeline

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse.benchmark import __main__ as benchmark
from sklearn_pulse.benchmark import compare
from sklearn_pulse.benchmark._methods import all_methods
from sklearn_pulse.datasets import fetch_sleep_edf, get_data_home
from sklearn_pulse.preprocessing import ChannelWhitener

NAMES = (
    "BasicMotions",
    "PickupGestureWiimoteZ",
    "GunPoint",
    "ItalyPowerDemand",
    "ArrowHead",
    "OSULeaf",
    "ACSF1",
    "ShoulderExercises",
)
BODIES = (
    "CinCECGTorso",
    *(f"Cricket{axis}" for axis in "XYZ"),
    "ECG200",
    "ECG5000",
    "ECGFiveDays",
    "EOGHorizontalSignal",
    "EOGVerticalSignal",
    *(f"GunPoint{question}" for question in ("AgeSpan", "MaleVersusFemale", "OldVersusYoung")),
    "Haptics",
    "InlineSkate",
    "PigAirwayPressure",
    "PigArtPressure",
)
PART_OF_NIGHT = 20  # epochs, 10 minutes
METHODS = (
    "cross-prediction",
    "minirocket",
    "multirocket-hydra",
    "quant",
    "statistics",
    "untrained",
    "majority",
)


def night() -> dict[str, np.ndarray]:
    """Return the epochs of the first night of Sleep-EDF at hand, in parts of ten minutes."""
    data = fetch_sleep_edf()
    first = data.recording == data.recording[0]
    start = data.start[first]
    part = np.arange(first.sum()) // PART_OF_NIGHT
    stage = np.array(data.target_names)[data.y[first]]
    arrays = {"X": data.X[first], "y": stage, "groups": part}
    return arrays | {"recording": data.recording[first], "start": start}


def of_simulation(name: str) -> dict[str, np.ndarray]:
    """Return simulated windows, with the person, recording and start of each."""
    return {part: array for part, array in unseen.SOURCES[name]().items() if array is not None}


def arrays_of(name: str) -> dict[str, np.ndarray]:
    """Return the windows of a data set, and what is known of them."""
    if name in unseen.SOURCES:
        return of_simulation(name)
    if name in questions.SOURCES:
        return questions.SOURCES[name]()
    if name in packaged.OF_BRAINS:
        return packaged.of_brain(name)
    if name in packaged.SOURCES:
        return packaged.SOURCES[name]()
    if name == "night":
        return night()
    folder = Path(get_data_home()) / "archives" if name in BODIES else None
    return packaged.of_archive(name, folder)


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
    of_packages = [*packaged.OF_BRAINS, *packaged.SOURCES, "night", "bodies", *BODIES]
    known = [*NAMES, *of_packages, *unseen.SOURCES, *questions.SOURCES]
    parser.add_argument("--dataset", **several, choices=dict.fromkeys(known))
    parser.add_argument("--method", **several)
    parser.add_argument("--seeds", type=int, default=5, help="divisions, up to five")
    parser.add_argument("--whitened", action="store_true", help="behind a ChannelWhitener")
    parser.add_argument("--recorded", action="store_true", help="cross-prediction of raw channels")
    options = parser.parse_args()
    asked_for = [
        name
        for given in options.dataset or NAMES
        for name in (BODIES if given == "bodies" else [given])
    ]
    files = [store(name, options.output / "windows") for name in asked_for]
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
