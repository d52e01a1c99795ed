"""Data sets of the user: from arrays or files into the results folder, and from there to a task."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._closed_form._neighbours import first_repeat
from .._data._precision import lost_variation
from .._data._windows import CheckedWindows
from .._groups import check_groups, missing_mask
from .._inputs._numbers import as_real_array
from .._parameters import as_path
from .._warnings import warn_user
from ..datasets._arrays import map_array
from ._execution import Condition, Execution
from ._own_files import PARTS, read_windows
from ._task import N_FOLDS, Task
from ._trial import Trial

PREFIX = "own-"  # of the names of these data sets
PRESET = ""  # name of their preset: the defaults of each class
_MAX_TITLE = 60  # bytes of a title, since names of files that hold it have a limit
_KINDS = {"X": np.floating, "y": np.generic} | dict.fromkeys(
    ("groups", "recording", "start"), np.integer
)


class OwnSource:
    """Data set of the user, as protocols see it.

    Parameters
    ----------
    dataset : str
        Name of the data set, which `add_arrays` returned.
    """

    preset = PRESET

    def __init__(self, dataset: str) -> None:
        self.title, _, ending = dataset.removeprefix(PREFIX).rpartition("-")
        self.digest = ending.partition(".")[0]
        self.n_runs = n_folds_of(dataset)


def is_own(dataset: str) -> bool:
    """Return whether a data set is one of the user."""
    return dataset.startswith(PREFIX)


def title_of_dataset(dataset: str) -> str:
    """Return the name that the user gave to a data set; the name itself of a known data set."""
    return OwnSource(dataset).title if is_own(dataset) else dataset


def add_files(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> str:
    """Add the windows of a folder or file to a results folder.

    Parameters
    ----------
    path : path-like
        Folder of ``X.npy``, ``y.npy`` and so on, or of ``.npz`` or ``.parquet`` files, which are
        read in the order of their names; or one such file. Each holds the arrays, or columns, of
        `add_arrays`. A Parquet column ``X`` holds one window per row, as a list of time steps
        that are numbers, or lists of one number per channel. If two files use the same number of a
        recording, each file holds a recording of its own if there are no groups, or if both files
        hold a window of it with the same start; else the recording continues from file to file.
    folder : path-like
        Results folder.

    Returns
    -------
    str
        Name of the data set.

    Raises
    ------
    OSError
        If the path does not exist.
    ValueError
        If it holds no windows, or they are of the wrong kind; the message names the file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sklearn_pulse.benchmark import add_files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     home = Path(folder)
    ...     rng = np.random.default_rng(0)
    ...     arrays = {"X": rng.normal(size=(12, 8, 2)), "y": np.arange(12) % 2}
    ...     np.savez(home / "steps.npz", **arrays, groups=np.arange(12) // 2)
    ...     add_files(home / "steps.npz", home / "results").startswith("own-steps")
    True
    """
    path, folder = as_path("path", path), as_path("folder", folder)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: pass the folder or file of your windows.")
    whole = Path(os.path.abspath(path))  # "." has no name
    try:
        name = whole.stem if path.is_file() else whole.name
        return add_arrays(folder, name, **read_windows(path))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def add_arrays(
    folder: Path,
    name: str,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    recording: ArrayLike | None = None,
    start: ArrayLike | None = None,
    file: NDArray[np.int64] | None = None,
) -> str:
    """Add windows to a results folder, unless they are there.

    Parameters
    ----------
    folder : Path
        Results folder, which is created if it does not exist.
    name : str
        Name in tables.
    X : array-like of shape (n_samples, n_timesteps, n_channels) or (n_samples, n_timesteps)
        Windows.
    y : array-like of shape (n_samples,)
        Label of each window.
    groups : array-like of shape (n_samples,), default=None
        Person of each window, or another unit that no two parts may share.
    recording : array-like of shape (n_samples,), default=None
        Recording of each window; None takes the groups. If several groups use the same number, each
        group has a recording of its own.
    start : array-like of shape (n_samples,), default=None
        First time step of each window in its recording.
    file : ndarray of int of shape (n_samples,), default=None
        Number of the file of each window, by which recordings of the same number may be told apart,
        as `add_files` describes.

    Returns
    -------
    str
        Name of the data set, which ends in a digest of the arrays, and then in the number of folds
        where the groups allow fewer than five.

    Raises
    ------
    ValueError
        If an array is missing, of the wrong shape or of the wrong kind; or if `start` repeats
        within groups, and `recording` is missing.
    """
    arrays = _checked(X, y, groups, recording, start)
    if "recording" in arrays:
        if groups is not None:
            arrays["recording"] = _apart(arrays["recording"], arrays["groups"])
        if file is not None and (groups is None or _overlap(arrays, file)):
            arrays["recording"] = _apart(arrays["recording"], file)
    if recording is None and groups is not None:
        _check_places(arrays)
    title = re.sub(r"[^\w]+", "-", name).encode()[:_MAX_TITLE].decode(errors="ignore")
    title = title.strip("-") or "data"
    n_folds = min(N_FOLDS, len(np.unique(arrays["groups"])))
    dataset = f"{PREFIX}{title}-{_digest(arrays)}" + (f".{n_folds}" if n_folds < N_FOLDS else "")
    target = folder / "data" / dataset
    if not all((target / f"{part}.npy").exists() for part in arrays):  # a damaged one was deleted
        _store(arrays, target)
    return dataset


def on_own_fold(condition: Condition) -> Trial:
    """Return a trial on the fold of a data set of the user whose number is the seed."""
    task = own_task(condition.dataset, condition.seed, condition.execution)
    learnt = np.unique(task.y[task.rows("train")]).tolist()
    if len(learnt) < 2:  # said before a training of hours, after which no probe could learn
        raise ValueError(
            f"y and groups: the training part of run {condition.seed} holds the class {learnt[0]!r}"
            " alone: pass windows of more groups that show the other classes."
        )
    return Trial(condition, task, PRESET, division=f"fold {condition.seed}")


def own_task(dataset: str, fold: int, execution: Execution) -> Task:
    """Return the windows of a data set of the user, with a fold as its test part.

    The next fold is the validation part. There are `N_FOLDS` folds, or as many as groups.
    """
    task = execution.load(_load, execution.folder / "data" / dataset)
    n_folds = n_folds_of(dataset)
    task = task.stratified_fold(fold % n_folds, n_folds)
    if fold < n_folds:
        return task
    note = f"run {n_folds} and further runs repeat the {n_folds} folds with other seeds"
    return dataclasses.replace(task, note=f"{task.note}; {note}")


def n_folds_of(dataset: str) -> int:
    """Return the number of folds of a data set of the user."""
    return int(dataset.partition(".")[2] or N_FOLDS)


def _load(folder: Path, **home: Any) -> Task:
    """Return the windows of a folder of the results; no data home holds them."""
    arrays = dict(_stored(folder))
    if _digest(arrays) != OwnSource(folder.name).digest:
        raise ValueError(
            f"{folder} does not hold the windows that were stored in it: delete the folder, and"
            " add the windows again."
        )
    return Task(
        folder.name,
        arrays["X"],
        np.asarray(arrays["y"]),
        np.asarray(arrays["groups"]),
        np.full(len(arrays["y"]), "train", dtype="<U5"),
        group_unit=_unit(arrays),
        recording=arrays.get("recording"),
        start=arrays.get("start"),
    )


def _unit(arrays: dict[str, NDArray[Any]]) -> str:
    """Return what a fold holds whole."""
    groups, recording = arrays["groups"], arrays.get("recording")
    if len(np.unique(groups)) == len(groups):  # as without groups
        return "windows, each a group of its own"
    if recording is not None and np.array_equal(recording, groups):
        return "groups, each of which counts as one recording"
    return "groups"


def _stored(folder: Path) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the arrays of a data set by name, mapped into memory."""
    for part in PARTS:
        path = folder / f"{part}.npy"
        if path.exists() or part in ("X", "y", "groups"):
            yield part, map_array(path, _KINDS[part], (None,) * (3 if part == "X" else 1))


def _digest(arrays: dict[str, NDArray[Any]]) -> str:
    """Return the digest of arrays that stands in the name of their data set."""
    digest = hashlib.blake2b(digest_size=6)
    for part, array in arrays.items():
        digest.update(f"{part} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _checked(X: Any, y: Any, groups: Any, recording: Any, start: Any) -> dict[str, NDArray[Any]]:
    """Return the arrays that are there, in the types of their files."""
    if X is None or y is None:
        raise ValueError(f"{'X' if X is None else 'y'} is missing: pass windows and their labels.")
    X, given, y = as_real_array(X), y, np.asarray(y)
    X = X[..., None] if X.ndim == 2 else X
    if X.ndim != 3 or X.dtype.kind not in "fiu":
        raise ValueError(
            f"X has shape {X.shape} and type {X.dtype}: pass real numbers of shape (n_samples,"
            " n_timesteps, n_channels), or (n_samples, n_timesteps) for one channel."
        )
    if y.shape != X.shape[:1]:
        raise ValueError(f"y has shape {y.shape} for {len(X)} windows: pass one label per window.")
    y = _classes(y, given)
    if groups is None:
        warn_user(
            "Without groups, neighbouring windows of one recording fall into different parts, and"
            " scores are too high: pass the person or the recording of each window as groups."
        )
    numbers = np.arange(len(X)) if groups is None else _numbered(groups, len(X))
    n_groups = len(np.unique(numbers))
    if n_groups < 3:
        raise ValueError(
            f"{n_groups} groups are too few for a training, a validation and a test part: pass"
            " windows of at least 3 groups."
        )
    keeps = lost_variation(CheckedWindows(X)) is None  # else each method warns, or scales first
    with np.errstate(over="ignore"):  # the methods refuse an infinity, and name its window
        X = X.astype(np.float32 if keeps else np.result_type(X, np.float32), copy=False)
    arrays = {"X": X, "y": y, "groups": numbers}
    if recording is not None:
        arrays["recording"] = _numbered(recording, len(X), "recording")
    elif groups is not None:
        arrays["recording"] = numbers
    if start is not None:
        arrays["start"] = _steps(start, len(X))
    return arrays


def _classes(y: NDArray[Any], given: Any) -> NDArray[Any]:
    """Return integer or text labels; raise for other labels, and for marks of unlabelled windows.

    `given` holds the labels before NumPy made text of a missing label, or of a -1, beside text.
    """
    missing = missing_mask(given)
    if missing.any():
        raise ValueError(
            f"y lacks the label of {missing.sum()} windows (first window {missing.argmax()}): pass"
            " the labelled windows."
        )
    objects = np.asarray(given, dtype=object)
    unlabeled = (objects == -1) | (objects == "-1")  # which NumPy makes of a -1 beside text
    y = y.astype(object) if y.dtype.kind == "T" else y  # NumPy's StringDType
    if y.dtype == object and all(isinstance(label, str) for label in y):
        y = y.astype(str)
    if y.dtype.kind not in "iubU":
        raise ValueError(
            f"y has type {y.dtype}, and only classification is compared: pass classes, as integers"
            " or text; divide the values of a continuous target into ranges first."
        )
    if unlabeled.any():
        raise ValueError(
            "y marks unlabelled windows by -1, and a score needs labels: pass the labelled windows,"
            " or give the class another name if -1 is one."
        )
    y = y.astype(y.dtype.newbyteorder("="), copy=False)  # files hold the order of the processor
    n_classes = len(np.unique(y))
    if n_classes < 2:
        raise ValueError(f"y holds {n_classes} class: pass windows of at least 2 classes.")
    return y


def _numbered(groups: Any, n_windows: int, name: str = "groups") -> NDArray[np.int64]:
    """Return the number of the group, or the recording, of each window."""
    checked = np.asarray(check_groups(groups, n_windows, unit="window", name=name))
    return np.unique(checked, return_inverse=True)[1].astype(np.int64)


def _steps(start: Any, n_windows: int) -> NDArray[np.int64]:
    """Return the first time step of each window; raise unless all are integers."""
    steps = np.asarray(start)
    if steps.shape != (n_windows,) or steps.dtype.kind not in "iu":
        raise ValueError(
            f"start has shape {steps.shape} and type {steps.dtype} for {n_windows} windows: pass"
            " the first time step of each window, an integer."
        )
    masked = missing_mask(start)
    if masked.any():
        raise ValueError(
            f"start is masked for {masked.sum()} windows (first window {masked.argmax()}): pass"
            " the first time step of every window."
        )
    return steps.astype(np.int64)


def _apart(recording: NDArray[np.int64], owner: NDArray[np.int64]) -> NDArray[np.int64]:
    """Renumber recordings so that no two owners share one: labs count each person's from 0.

    Numbers that only one owner uses keep their order.
    """
    pairs = recording * (owner.max() + 1) + owner
    return np.unique(pairs, return_inverse=True)[1].astype(np.int64)


def _overlap(arrays: dict[str, NDArray[Any]], file: NDArray[np.int64]) -> bool:
    """Return whether two files hold windows of one recording with the same start."""
    if "start" not in arrays:
        return False
    places = np.stack([arrays["recording"], arrays["start"]])
    in_files = np.vstack([places, file])
    return np.unique(places, axis=1).shape[1] < np.unique(in_files, axis=1).shape[1]


def _check_places(arrays: dict[str, NDArray[Any]]) -> None:
    """Raise if groups stand for recordings, and two windows of a group have the same start."""
    if "start" not in arrays:
        return
    X = arrays["X"]
    repeat = first_repeat(arrays["recording"], arrays["start"], lambda index: X[index])
    if repeat is not None:
        raise ValueError(
            f"start repeats within groups (first in the windows {repeat[0]} and {repeat[1]}), so"
            " that a group holds several recordings: pass the recording of each window as"
            " recording."
        )


def _store(arrays: dict[str, NDArray[Any]], target: Path) -> None:
    """Store arrays in a folder, which is complete as soon as it exists."""
    partial = target.with_name(f".partial-{uuid.uuid4().hex}")  # readable as any new folder
    partial.mkdir(parents=True)
    try:
        for part, array in arrays.items():
            np.save(partial / f"{part}.npy", array)
        _rename(partial, target)
    except OSError as error:
        raise OSError(
            error.errno,
            f"the windows cannot be stored in {target.parent} ({error}): make room there, or name"
            " another folder for the results (--out, or out)",
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # gone already, unless an error occurred


def _rename(partial: Path, target: Path) -> None:
    """Put a complete folder in its place, or the files that the folder there lacks."""
    try:
        partial.rename(target)
    except OSError:
        if not target.exists():
            raise
        for file in partial.iterdir():
            if not (target / file.name).exists():
                file.replace(target / file.name)
