"""Data sets of the benchmark, and the transfers between them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..datasets import (
    fetch_epilepsy,
    fetch_gesture,
    fetch_har,
    fetch_mitbih_af,
    fetch_sleep_edf,
    fetch_wesad,
)
from ._task import Task


@dataclass(frozen=True)
class TaskSource:
    """Source of a task.

    Parameters
    ----------
    load : callable
        Function of the keyword arguments `data_home` and `download_if_missing` that returns a
        `Task`.
    preset : str
        Name of the data set in :mod:`sklearn_pulse.presets`.
    title : str
        Name in tables; if the paper has the data set, its name there.
    """

    load: Callable[..., Task]
    preset: str
    title: str


@dataclass(frozen=True)
class Scenario:
    """Transfer: pre-training on one data set, fine-tuning on another.

    Parameters
    ----------
    source : callable
        Function of the keyword arguments `data_home` and `download_if_missing` that returns the
        `Task` of pre-training.
    target : callable
        Function of the same keyword arguments that returns the `Task` of fine-tuning.
    preset : str
        Name of the data set in :mod:`sklearn_pulse.presets`.
    title : str
        Name in tables.
    batch_size : int
        Batch size of fine-tuning.
    train_fraction : float
        Share of the target's training windows that fine-tuning sees, 0 to 1.
    n_timesteps : int or None
        Number of time steps of each target window that are embedded; None means all.
    """

    source: Callable[..., Task]
    target: Callable[..., Task]
    preset: str
    title: str
    batch_size: int
    train_fraction: float
    n_timesteps: int | None


@functools.lru_cache(maxsize=2)
def load_once(
    load: Callable[..., Task], arguments: tuple[Any, ...], data_home: str | None, download: bool
) -> Task:
    """Load a task; it is cached, since a process runs many trials on it."""
    return load(*arguments, data_home=data_home, download_if_missing=download)


def task_of(name: str, data: Any, note: str = "", **changes: Any) -> Task:
    """Return a task of a loaded data set, with changed fields."""
    content = {
        "X": data.X,
        "y": data.y,
        "groups": data.groups,
        "split": data.split,
        "recordings": data.recordings,
        "recording_split": data.recording_split,
        "recording_groups": data.recording_subject,
        "recording": data.recording,
        "start": data.start,
    }
    return Task(name, note=note, **(content | changes))


def _har(**home: Any) -> Task:
    return task_of(
        "har", fetch_har(**home), note="parts share people: new recordings, not new people"
    )


def _ppg(**home: Any) -> Task:
    return task_of("ppg", fetch_wesad(**home))


def _ecg(**home: Any) -> Task:
    data: Any = fetch_mitbih_af(**home)
    note = f"{len(data.recordings)} records of the MIT-BIH Arrhythmia Database stand in"
    return task_of("ecg", data, note=note if data.stands_in else "")


def _eeg(**home: Any) -> Task:
    return task_of("eeg", fetch_sleep_edf(**home, stages="published"))


def _eeg_one_channel(**home: Any) -> Task:
    data: Any = fetch_sleep_edf(**home, stages="published", downsample=1)
    recordings = [recording[:, :1] for recording in data.recordings]
    return task_of("eeg", data, X=data.X[..., :1], recordings=recordings)


def _epilepsy_segments(**home: Any) -> Task:
    known: Any = fetch_epilepsy(**home)
    if known.recordings is None:
        raise OSError(
            "the text files of the Bonn EEG are missing, and only they tell which segment a window"
            " is from: put the folders Z, O, N, F and S into the data folder"
        )
    data = fetch_epilepsy(**home, split="segment")
    note = "segments are kept whole"
    return task_of("epilepsy", data, note=note, recordings=None, group_unit="segments")


def _epilepsy(**home: Any) -> Task:
    return task_of("epilepsy", fetch_epilepsy(**home), recordings=None)


def _gesture(**home: Any) -> Task:
    return task_of("gesture", fetch_gesture(**home), recordings=None)


TASKS = {
    "har": TaskSource(_har, "har", "HAR"),
    "ecg": TaskSource(_ecg, "ecg", "ECG"),
    "ppg": TaskSource(_ppg, "ppg", "PPG"),
    "eeg": TaskSource(_eeg, "eeg", "EEG"),
    "epilepsy": TaskSource(_epilepsy_segments, "eeg-transfer", "Epilepsy"),
}

SCENARIOS = {
    "har-gesture": Scenario(_har, _gesture, "har-transfer", "HAR->Gesture", 100, 0.25, 206),
    "eeg-epilepsy": Scenario(
        _eeg_one_channel, _epilepsy, "eeg-transfer", "EEG->Epilepsy", 30, 1.0, None
    ),
}
