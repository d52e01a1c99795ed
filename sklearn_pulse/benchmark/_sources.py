"""Sources of the comparison, and how each is divided."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..datasets import fetch_gesture
from ._execution import Condition
from ._synthetic import SYNTHETIC
from ._task import N_FOLDS, Task
from ._tasks import TASKS, task_of
from ._trial import Trial


@dataclass(frozen=True)
class ComparisonSource:
    """Column of the comparison: a data set, and how it is divided.

    Parameters
    ----------
    load : callable
        Function of the keyword arguments `data_home` and `download_if_missing` that returns a
        `Task`; of a seed before them if it is drawn.
    preset : str
        Name of the data set in :mod:`sklearn_pulse.presets`.
    column : str
        Name of the column. Sources of one column are averaged.
    n_runs : int
        Number of divisions or repetitions.
    divide : callable
        Function of a `Task` and the number of the run that returns the divided `Task`.
    relabel : callable or None, default=None
        Function from the labels to those that are scored; None keeps them.
    is_drawn : bool, default=False
        Whether each run has windows of its own, which a seed draws.
    """

    load: Callable[..., Task]
    preset: str
    column: str
    n_runs: int
    divide: Callable[[Task, int], Task]
    relabel: Callable[[NDArray[Any]], NDArray[Any]] | None = None
    is_drawn: bool = False

    @property
    def title(self) -> str:
        """Name in tables."""
        return self.column


def _bonn(**home: Any) -> Task:
    """Return the Bonn windows with five classes, the sets of the segments."""
    task = TASKS["epilepsy"].load(**home)
    recording: Any = task.recording
    n_segments = recording.max() + 1  # in order of set, the same number of each
    return dataclasses.replace(task, name="bonn", y=recording * 5 // n_segments)


def _is_seizure(y: NDArray[Any]) -> NDArray[np.intp]:
    """Return 1 for the set of seizures, which is the last, and 0 for the others."""
    return (y == 4).astype(np.intp)


def _gesture(**home: Any) -> Task:
    """Return the gestures with the archive's split."""
    data = fetch_gesture(**home, split="archive")
    return task_of("gesture-archive", data, recordings=None, group_unit="gestures")


def _published(task: Task, number: int) -> Task:
    """Keep the published division."""
    return task


SOURCES = {
    "har": ComparisonSource(TASKS["har"].load, "har", "HAR, recordings", 3, _published),
    "har-people": ComparisonSource(
        TASKS["har"].load, "har", "HAR, people", N_FOLDS, Task.stratified_fold
    ),
    "wesad": ComparisonSource(TASKS["ppg"].load, "ppg", "WESAD", N_FOLDS, Task.stratified_fold),
    "mitbih": ComparisonSource(
        TASKS["ecg"].load, "ecg", "MIT-BIH rhythm", N_FOLDS, Task.stratified_fold
    ),
    "bonn-2": ComparisonSource(
        _bonn, "eeg-transfer", "Bonn, 2 classes", N_FOLDS, Task.stratified_fold, _is_seizure
    ),
    "bonn-5": ComparisonSource(
        _bonn, "eeg-transfer", "Bonn, 5 classes", N_FOLDS, Task.stratified_fold
    ),
    "gesture": ComparisonSource(_gesture, "har-transfer", "UWave", N_FOLDS, Task.with_validation),
    **{
        name: ComparisonSource(
            source.load, source.preset, f"chaos, {source.column}", 1, _published, is_drawn=True
        )
        for name, source in SYNTHETIC.items()
        if source.noise in (3, 5)
    },
}
COLUMNS = tuple(dict.fromkeys(source.column for source in SOURCES.values()))


def on_division(condition: Condition) -> Trial:
    """Return a trial on the division whose number is the seed."""
    source, seed = SOURCES[condition.dataset], condition.seed
    drawn_by = (seed,) if source.is_drawn else ()
    task = condition.execution.load(source.load, *drawn_by)
    division = f"{source.column} {seed}"
    if condition.scored == "test" and source.divide is Task.with_validation:
        division += ", undivided"  # all training windows train
    else:
        task = source.divide(task, seed)
    if source.relabel is not None:
        task = dataclasses.replace(task, y=source.relabel(task.y))
        division = division.replace("2 classes", "5 classes")  # the encoder is the same
    return Trial(condition, task, source.preset, division=division)
