"""Labelled windows in parts, which protocols divide anew and draw windows from."""

from __future__ import annotations

import dataclasses
import hashlib
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

from ..datasets._split import SPLIT_SEED
from ..windows import random_windows

N_FOLDS = 5
_N_SHUFFLES = 50  # divisions among which that with most classes per fold is chosen


@dataclass(frozen=True)
class Task:
    """Labelled windows in parts, and the recordings from which they were cut.

    Parameters
    ----------
    name : str
        Name of the data set, a key of `TASKS`.
    X : ndarray of shape (n_windows, n_timesteps, n_channels)
        Labelled windows.
    y : ndarray of shape (n_windows,)
        Label of each window.
    groups : ndarray of shape (n_windows,)
        Recording or subject of each window.
    split : ndarray of shape (n_windows,)
        Part of each window: "train", "val" or "test".
    recordings : list of ndarray of shape (n_timesteps, n_channels), or None, default=None
        Recordings before down-sampling; None if X was scaled after it was cut.
    recording_split : ndarray of shape (n_recordings,) or None, default=None
        Part of each recording; None without recordings.
    recording_groups : ndarray of shape (n_recordings,) or None, default=None
        Group of each recording; None without recordings.
    note : str, default=""
        Note for the reader of the table.
    group_unit : str, default="people"
        Name of the unit that forms a group, in the plural.
    recording : ndarray of shape (n_windows,) or None, default=None
        Number of the recording of each window; None if it is not known.
    start : ndarray of shape (n_windows,) or None, default=None
        First time step of each window in its recording; None if it is not known.
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
    recording: NDArray[Any] | None = None
    start: NDArray[Any] | None = None

    def rows(self, part: str) -> NDArray[np.intp]:
        """Return the numbers of the windows of a part."""
        return np.flatnonzero(self.split == part)

    def digest(self, labels: bool) -> str:
        """Return a digest of the windows and their parts, and of the labels where these matter."""
        digest = hashlib.blake2b(repr(self.X.shape).encode(), digest_size=8)
        for values in (self.X, self.split.astype("U5"), *([self.y] if labels else [])):
            digest.update(np.ascontiguousarray(values).view(np.uint8).data)
        return digest.hexdigest()

    def fold(self, number: int) -> Task:
        """Return the task with fold `number` as its test part, and the next fold for validation.

        Folds hold whole groups. Groups are people if these are known, else recordings (paper,
        Appendix E).
        """
        splitter = GroupKFold(N_FOLDS, shuffle=True, random_state=SPLIT_SEED)
        folds = [held_out for _, held_out in splitter.split(self.X, self.y, self.groups)]
        return self._divided(folds, number, f"folds hold whole {self.group_unit}")

    def stratified_fold(self, number: int, n_folds: int = N_FOLDS) -> Task:
        """Return the task with one of `n_folds` stratified folds as its test part.

        The next fold is the validation part. Folds hold whole groups, and every class as far as
        the groups allow; the note names the classes that a part lacks.
        """
        folds = _stratified_folds(self.y, self.groups, n_folds)
        note = f"folds hold whole {self.group_unit}"
        divided = self._divided(folds, number, note)
        lacking = {
            part: sorted(set(self.y.tolist()) - set(self.y[divided.rows(part)].tolist()))
            for part in ("train", "val", "test")
        }
        note += "".join(f"; {part} lacks {labels}" for part, labels in lacking.items() if labels)
        return dataclasses.replace(divided, note=note)

    def _divided(self, folds: list[NDArray[np.intp]], number: int, note: str) -> Task:
        """Return the task with fold `number` as its test part, and the next for validation."""
        part = np.full(len(self.y), "train", dtype="<U5")
        part[folds[number]] = "test"
        part[folds[(number + 1) % len(folds)]] = "val"
        divided = dataclasses.replace(self, split=part, note=note)
        if self.recordings is None or self.recording_groups is None:
            return divided
        of_group = dict(zip(self.groups, part, strict=True))
        # A recording without a labelled window belongs to no fold, and is not used for training.
        recording_split = np.array([of_group.get(g, "none") for g in self.recording_groups])
        return dataclasses.replace(divided, recording_split=recording_split)

    def with_validation(self, number: int = 0) -> Task:
        """Return the task with a validation part, which may be a fold of the training windows."""
        if np.any(self.split == "val"):
            return self
        train = self.rows("train")
        splitter = StratifiedGroupKFold(N_FOLDS, shuffle=True, random_state=SPLIT_SEED)
        _, held_out = list(splitter.split(train, self.y[train], self.groups[train]))[number]
        part = self.split.copy()
        part[train[held_out]] = "val"
        note = "a fifth of the training windows is the validation part"
        return dataclasses.replace(self, split=part, note=note)

    def pretraining_windows(
        self, cut: dict[str, Any], part: str, seed: int, n_windows: int | None
    ) -> Any:
        """Return at most `n_windows` windows for pre-training.

        Parameters
        ----------
        cut : dict
            Settings of the windows, as returned by :func:`sklearn_pulse.presets.windows`.
        part : {"train", "val"}
            Part of the recordings.
        seed : int
            Seed of the draws.
        n_windows : int or None
            Maximum number of windows; None means all.

        Returns
        -------
        RecordingWindows, or ndarray of shape (n_windows, n_timesteps, n_channels)
            Random windows of the recordings, or the windows that carry labels.
        """
        if cut["mode"] == "labeled" or self.recordings is None or self.recording_split is None:
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
        """Return labelled windows and their labels, drawn as by `pretraining_windows`."""
        fraction = cut["fraction" if part == "train" else "fraction_val"]
        rows = np.random.RandomState(seed).permutation(self.rows(part))
        rows = rows[: max(1, int(fraction * len(rows)))]
        rows = rows[_some(len(rows), n_windows, seed)]
        return self.X[rows], self.y[rows]


def _stratified_folds(
    y: NDArray[Any], groups: NDArray[Any], n_folds: int
) -> list[NDArray[np.intp]]:
    """Return folds of whole groups, from the shuffle whose folds show the most classes.

    Folds that scikit-learn stratifies may be empty, and it refuses classes that all have fewer
    windows than there are folds. Where no shuffle fills every fold, folds are of similar sizes.
    """
    best: list[NDArray[np.intp]] = []
    most = 0
    _, codes, n_windows = np.unique(y, return_inverse=True, return_counts=True)
    shown = np.unique([codes, np.unique(groups, return_inverse=True)[1]], axis=1)[0]
    highest = np.minimum(np.bincount(shown), n_folds).sum()  # a class of two groups is in two folds
    seeds = range(SPLIT_SEED, SPLIT_SEED + _N_SHUFFLES) if n_windows.max() >= n_folds else ()
    for seed in seeds:
        splitter = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
        with warnings.catch_warnings():  # the note of the table names the classes that a part lacks
            warnings.filterwarnings("ignore", message="The least populated class")
            folds = [held_out for _, held_out in splitter.split(y, y, groups)]
        n_shown = sum(len(np.unique(y[fold])) for fold in folds)
        if n_shown > most and all(map(len, folds)):
            best, most = folds, n_shown
        if most == highest:
            break
    return best or [held_out for _, held_out in GroupKFold(n_folds).split(y, y, groups)]


def _some(n: int, n_kept: int | None, seed: int) -> NDArray[np.intp]:
    """Return the numbers, in ascending order, of at most `n_kept` of n items, drawn at random."""
    if n_kept is None or n_kept >= n:
        return np.arange(n)
    return np.sort(np.random.RandomState(seed).permutation(n)[:n_kept])
