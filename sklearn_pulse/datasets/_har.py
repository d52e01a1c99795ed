"""Reader of the raw files of the UCI HAPT data set (smartphone inertial signals).

Source: paper, Appendix D (HAR); the files are described by their authors in
Reyes-Ortiz, Anguita, Oneto and Parra (2015), UCI Machine Learning Repository, data set 341.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

WINDOW_LENGTH = 128
SAMPLING_RATE = 50.0
SPLIT_SEED = 1234
FEATURE_NAMES = ["acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z"]
# Activities 1 to 6 of the label file; 7 to 12 are the short postural transitions.
TARGET_NAMES = [
    "walking",
    "walking_upstairs",
    "walking_downstairs",
    "sitting",
    "standing",
    "laying",
]

_ACC_NAME = re.compile(r"acc_exp(\d+)_user(\d+)\.txt")
_AXES_PER_SENSOR = 3
_LABEL_COLUMNS = 5  # experiment, user, activity, start, end


class Recording(NamedTuple):
    """One experiment: its number, its subject and its signals of shape (n_timesteps, 6)."""

    experiment: int
    subject: int
    signals: np.ndarray


def read_recordings(raw_folder: Path) -> list[Recording]:
    """Read every recording and cut all of them to one common length.

    The common length T is the third smallest one; what is shorter (two recordings of the
    published data) is dropped, the rest keeps its first T steps (paper, Appendix D).

    Parameters
    ----------
    raw_folder : pathlib.Path
        The folder ``RawData`` with ``acc_expEE_userUU.txt`` and ``gyro_expEE_userUU.txt``.

    Returns
    -------
    recordings : list of Recording
        In order of file name. ``signals`` is float32 of shape (T, 6): acceleration x, y, z
        in g, then angular velocity x, y, z in rad/s. Values are as stored, not normalised.

    Raises
    ------
    OSError
        If a gyroscope file is missing.
    ValueError
        If fewer than three recordings are there or a file is damaged.
    """
    names = sorted(path.name for path in raw_folder.iterdir())
    matches = [match for name in names if (match := _ACC_NAME.fullmatch(name))]
    if len(matches) < 3:
        raise ValueError(
            f"{raw_folder} holds {len(matches)} file(s) named acc_expEE_userUU.txt, but at least 3 "
            "are needed; unpack the complete data set again."
        )
    pairs = [_read_pair(raw_folder, match.string) for match in matches]
    length = sorted(len(acc) for acc, _ in pairs)[2]
    recordings = []
    for match, (acc, gyro) in zip(matches, pairs, strict=True):
        if len(acc) >= length:
            experiment, subject = map(int, match.groups())
            signals = np.hstack([acc[:length], gyro[:length]])
            recordings.append(Recording(experiment, subject, signals))
    return recordings


def read_labels(path: Path) -> np.ndarray:
    """Read ``labels.txt``.

    Parameters
    ----------
    path : pathlib.Path
        The label file: one row an activity, five integers a row.

    Returns
    -------
    rows : ndarray of shape (n_rows, 5), dtype int64
        Experiment, subject, activity (1 to 12), start and end in samples, in file order.

    Raises
    ------
    ValueError
        If the file does not hold rows of five integers.
    """
    return _load_table(path, _LABEL_COLUMNS, np.int64)


def activity_segments(rows: np.ndarray, length: int) -> list[tuple[int, int, int]]:
    """Turn the label rows of one recording into segments that windows are cut from.

    Per row, in file order: a postural transition (activity 7 and above) is skipped; a row that
    starts at or after ``length`` ends the recording, later rows are not looked at. ``start`` is
    used as a 0-based index although the file counts from 1, and a window must end strictly
    before ``length``; both are so in the published code (paper, Appendix D).

    Parameters
    ----------
    rows : ndarray of shape (n_rows, 5)
        Rows of :func:`read_labels` that belong to one experiment.
    length : int
        Number of time steps of the recording.

    Returns
    -------
    segments : list of (start, end, label)
        ``end`` is exclusive and at most ``length - 1``; ``label`` is 0 to 5.
    """
    segments = []
    for _, _, activity, start, end in rows.tolist():
        if activity > len(TARGET_NAMES):
            continue
        if start >= length:
            break
        # The last step is never used: the published loop runs while start + 128 < length.
        end = min(end, length - 1)
        if end > start:
            segments.append((start, end, activity - 1))
    return segments


def shuffled_split(n_recordings: int) -> tuple[np.ndarray, np.ndarray]:
    """Order and split of the recordings as published.

    The recordings are shuffled with seed 1234; the first 70 % are for training, the next 15 %
    for validation, the rest for testing (paper, Appendix D).

    Parameters
    ----------
    n_recordings : int
        Number of recordings.

    Returns
    -------
    order : ndarray of shape (n_recordings,), dtype int64
        Index of the recording at each place of the shuffled order.
    split : ndarray of shape (n_recordings,), dtype str
        "train", "val" or "test" for each place of the shuffled order.
    """
    order = np.arange(n_recordings)
    np.random.RandomState(SPLIT_SEED).shuffle(order)
    split = np.full(n_recordings, "train", dtype="<U5")
    split[int(0.7 * n_recordings) :] = "val"
    split[int(0.85 * n_recordings) :] = "test"
    return order, split


def _read_pair(raw_folder: Path, acc_name: str) -> tuple[np.ndarray, np.ndarray]:
    """Read the accelerometer file and the gyroscope file of one experiment."""
    acc_path = raw_folder / acc_name
    gyro_path = raw_folder / acc_name.replace("acc_", "gyro_", 1)
    acc = _load_table(acc_path, _AXES_PER_SENSOR, np.float32)
    gyro = _load_table(gyro_path, _AXES_PER_SENSOR, np.float32)
    if len(acc) != len(gyro):
        raise ValueError(
            f"{acc_path} has {len(acc)} rows and {gyro_path} has {len(gyro)}, but both sensors "
            "are sampled together; one file is damaged, unpack the data set again."
        )
    return acc, gyro


def _load_table(path: Path, n_columns: int, dtype: type) -> np.ndarray:
    """Read a text table of numbers with a fixed number of columns."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; unpack the complete data set again.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty; unpack the data set again.")
    try:
        table = np.loadtxt(path, dtype=dtype, ndmin=2)
    except ValueError as error:
        raise ValueError(f"{path} is no table of numbers; unpack the data set again.") from error
    if table.shape[1] != n_columns:
        raise ValueError(
            f"{path} has {table.shape[1]} columns instead of {n_columns}; "
            "unpack the data set again."
        )
    return table
