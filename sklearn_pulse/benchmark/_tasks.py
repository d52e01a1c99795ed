"""The data sets of the benchmark: labelled windows, their parts, and windows to pre-train on."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

from ..datasets import (
    fetch_epilepsy,
    fetch_gesture,
    fetch_har,
    fetch_mitbih_af,
    fetch_sleep_edf,
    fetch_wesad,
)
from ..windows import random_windows

N_FOLDS = 5
_SPLIT_SEED = 1234  # that of the published divisions


@dataclass(frozen=True)
class Task:
    """Labelled windows in parts, and the recordings they were cut from.

    Parameters
    ----------
    name : str
        Key of `TASKS`.
    X : ndarray of shape (n_windows, n_timesteps, n_channels)
        Labelled windows.
    y, groups, split : ndarray of shape (n_windows,)
        Label, recording or subject, and part ("train", "val", "test") of each.
    recordings : list of ndarray of shape (n_timesteps, n_channels), or None
        Before down-sampling; None if X has been scaled since.
    recording_split : ndarray of shape (n_recordings,) or None
        Part of each.
    recording_groups : ndarray of shape (n_recordings,) or None
        Group of each.
    note : str
        What a reader of the table must know.
    group_unit : str
        What a group is.
    """

    name: str
    X: NDArray[Any]
    y: NDArray[Any]
    groups: NDArray[Any]
    split: NDArray[Any]
    recordings: list[NDArray[Any]] | None = None
    recording_split: NDArray[Any] | None = None
    recording_groups: NDArray[Any] | None = None
    note: str = ""
    group_unit: str = "people"

    def rows(self, part: str) -> NDArray[np.intp]:
        """Return the numbers of the windows of a part."""
        return np.flatnonzero(self.split == part)

    def fold(self, number: int) -> Task:
        """Return the task divided anew: fold k is the test, the next one the validation part.

        Folds hold whole groups, which are recordings or, where they are known, people (paper,
        Appendix E).
        """
        part = np.full(len(self.y), "train", dtype="<U5")
        splitter = GroupKFold(N_FOLDS, shuffle=True, random_state=_SPLIT_SEED)
        folds = list(splitter.split(self.X, self.y, self.groups))
        part[folds[number][1]] = "test"
        part[folds[(number + 1) % N_FOLDS][1]] = "val"
        divided = dataclasses.replace(self, split=part, note=f"folds hold whole {self.group_unit}")
        if self.recordings is None:
            return divided
        of_group = dict(zip(self.groups, part, strict=True))
        # A recording without a labelled window belongs to no fold, and trains none.
        recording_split = np.array([of_group.get(g, "none") for g in self.recording_groups])
        return dataclasses.replace(divided, recording_split=recording_split)

    def with_validation(self) -> Task:
        """Return the task with a fifth of its training windows to validate on, if it has none."""
        if np.any(self.split == "val"):
            return self
        train = self.rows("train")
        splitter = StratifiedGroupKFold(N_FOLDS, shuffle=True, random_state=_SPLIT_SEED)
        _, held_out = next(splitter.split(train, self.y[train], self.groups[train]))
        part = self.split.copy()
        part[train[held_out]] = "val"
        note = "a fifth of the training windows is the validation part"
        return dataclasses.replace(self, split=part, note=note)

    def pretraining_windows(
        self, cut: dict[str, Any], part: str, seed: int, n_windows: int | None
    ) -> Any:
        """Return windows to pre-train on, at most `n_windows` of them.

        Parameters
        ----------
        cut : dict
            As of :func:`sklearn_pulse.presets.windows`.
        part : {"train", "val"}
            Whose recordings.
        seed : int
            Of what is drawn.
        n_windows : int or None
            None means all.

        Returns
        -------
        RecordingWindows, or ndarray of shape (n_windows, n_timesteps, n_channels)
            Random windows of the recordings, or those that carry labels.
        """
        if cut["mode"] == "labeled" or self.recordings is None:
            return self.labeled_windows(cut, part, seed, n_windows)[0]
        suffix = "" if part == "train" else "_val"
        of_part = zip(self.recordings, self.recording_split, strict=True)
        windows = random_windows(
            [recording for recording, its_part in of_part if its_part == part],
            cut["length"],
            cut["stride" + suffix],
            cut["fraction" + suffix],
            random_state=seed,
            downsample=cut["downsample"],
            lazy=True,
        ).X
        return windows[_some(len(windows), n_windows, seed)]

    def labeled_windows(
        self, cut: dict[str, Any], part: str, seed: int, n_windows: int | None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return windows that carry labels, and the labels, as `pretraining_windows` draws them."""
        fraction = cut["fraction" if part == "train" else "fraction_val"]
        rows = np.random.RandomState(seed).permutation(self.rows(part))
        rows = rows[: max(1, int(fraction * len(rows)))]
        rows = rows[_some(len(rows), n_windows, seed)]
        return self.X[rows], self.y[rows]


def _some(n: int, n_kept: int | None, seed: int) -> NDArray[np.intp]:
    """Return which of n to keep, in their order."""
    if n_kept is None or n_kept >= n:
        return np.arange(n)
    return np.sort(np.random.RandomState(seed).permutation(n)[:n_kept])


@dataclass(frozen=True)
class TaskSource:
    """Where a task comes from.

    Parameters
    ----------
    load : callable
        From keyword arguments `data_home` and `download_if_missing` to a `Task`.
    preset : str
        Name of its settings in :mod:`sklearn_pulse.presets`.
    title : str
        Name in tables; that of the paper where it has one.
    """

    load: Callable[..., Task]
    preset: str
    title: str


@dataclass(frozen=True)
class Scenario:
    """A transfer: pre-training on one data set, fine-tuning on another.

    Parameters
    ----------
    source, target : callable
        As `TaskSource.load`.
    preset, title : str
        As there.
    batch_size : int
        Of fine-tuning.
    train_fraction : float
        Part of the target's training windows that fine-tuning sees.
    n_timesteps : int or None
        Steps of each target window that are embedded for the probe; None means all.
    """

    source: Callable[..., Task]
    target: Callable[..., Task]
    preset: str
    title: str
    batch_size: int
    train_fraction: float
    n_timesteps: int | None


@functools.lru_cache(maxsize=2)
def load_once(load: Callable[..., Task], data_home: str | None, download: bool) -> Task:
    """Load a task; a process runs many trials on it."""
    return load(data_home=data_home, download_if_missing=download)


def _task(name: str, data: Any, note: str = "", **changes: Any) -> Task:
    groups = data.recording_subject
    if groups is None or name == "epilepsy":
        groups = np.arange(len(data.recordings))
    content = {
        "X": data.X,
        "y": data.y,
        "groups": data.groups,
        "split": data.split,
        "recordings": data.recordings,
        "recording_split": data.recording_split,
        "recording_groups": groups,
    }
    return Task(name, note=note, **(content | changes))


def _har(**home: Any) -> Task:
    return _task(
        "har", fetch_har(**home), note="parts share people: new recordings, not new people"
    )


def _ppg(**home: Any) -> Task:
    return _task("ppg", fetch_wesad(**home))


def _ecg(**home: Any) -> Task:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = fetch_mitbih_af(**home)
    stands_in = any("is read instead" in str(warning.message) for warning in caught)
    note = f"{len(data.recordings)} records of the MIT-BIH Arrhythmia Database stand in"
    return _task("ecg", data, note=note if stands_in else "")


def _eeg(**home: Any) -> Task:
    return _task("eeg", fetch_sleep_edf(**home, stages="published"))


def _eeg_one_channel(**home: Any) -> Task:
    data = fetch_sleep_edf(**home, stages="published", downsample=1)
    recordings = [recording[:, :1] for recording in data.recordings]
    return _task("eeg", data, X=data.X[..., :1], recordings=recordings)


def _epilepsy_segments(**home: Any) -> Task:
    data = fetch_epilepsy(**home, split="segment")
    note = "segments are kept whole"
    return _task("epilepsy", data, note=note, recordings=None, group_unit="segments")


def _epilepsy(**home: Any) -> Task:
    return _task("epilepsy", fetch_epilepsy(**home), recordings=None)


def _gesture(**home: Any) -> Task:
    return _task("gesture", fetch_gesture(**home), recordings=None)


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
