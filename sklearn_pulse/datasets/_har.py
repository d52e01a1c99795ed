"""HAR: reader of smartphone acceleration and rotation during activities (UCI data set HAPT).

Source: paper, Appendix D (HAR). The authors describe the files in Reyes-Ortiz, Anguita, Oneto and
Parra (2015), UCI Machine Learning Repository, data set 341.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from ..windows import segment_windows
from ._groups import check_group, window_groups
from ._home import resolve_data_home
from ._remote import check_flags, ensure, find
from ._split import shuffled_split

WINDOW_LENGTH = 128
SAMPLING_RATE = 50.0
CHANNEL_NAMES = ["acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z"]
# Activities 1 to 6 of the label file. Activities 7 to 12 are short postural transitions.
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
_N_ACTIVITIES = 12
_LABEL_COLUMNS = 5  # experiment, user, activity, start, end

_DESCR = """\
Human activity recognition from smartphone sensors (HAR)
--------------------------------------------------------

:Source: UCI Machine Learning Repository, data set 341, "Smartphone-Based Recognition of Human
    Activities and Postural Transitions" (HAPT), folder RawData
:Recordings: 59 of 15,038 time steps (about 5 minutes), 30 subjects
:Channels: 6; acceleration x, y, z in g (gravity included), angular velocity x, y, z in rad/s
:Sampling rate: 50 Hz
:Windows: 4,600 of 128 time steps (2.56 s), 3,178 train, 712 validation, 710 test
:Classes: 6; walking, walking_upstairs, walking_downstairs, sitting, standing, laying

Thirty volunteers wore a smartphone on the waist and followed a protocol of basic activities,
each of them twice.

Processing, as in the PULSE publication: the recordings are cut to the third smallest length, and
the two shorter recordings (experiments 20 and 21) are dropped. The signals are neither normalised
nor filtered. Windows are cut without overlap from the start of each labelled activity; the
postural transitions between activities are left out. The label file counts steps from 1, but its
starts are used as 0-based indices. The last step of a recording is never used.

Split: the recordings are shuffled with seed 1234 and divided 41 / 9 / 9. **This split measures
new recordings, not new people:** eight of the nine test subjects also occur in the training
part, and the ninth (subject 13) occurs in the validation part.

Groups: with ``group="subject"``, ``sklearn.model_selection.GroupKFold`` on ``groups`` estimates
the score on new people and leaks nothing. With ``group="recording"``, no recording is divided
between folds. But every subject except one has two recordings, so subjects of a test fold also
occur in the training folds. Without groups, neighbouring windows of one activity are in both
training and test folds.

Licence: the data set's own readme prohibits commercial use and asks for a citation.

.. rubric:: References

Reyes-Ortiz, J., Anguita, D., Oneto, L. and Parra, X. (2015). Smartphone-Based Recognition of
Human Activities and Postural Transitions [Data set]. UCI Machine Learning Repository.
"""


class Recording(NamedTuple):
    """Recording of one experiment.

    Attributes
    ----------
    experiment : int
        Number of the experiment.
    subject : int
        Number of the subject.
    signals : ndarray of shape (n_timesteps, 6), dtype float32
        Acceleration x, y, z in g, then angular velocity x, y, z in rad/s.
    """

    experiment: int
    subject: int
    signals: NDArray[np.float32]


def fetch_har(
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    *,
    group: Literal["subject", "recording"] = "subject",
    return_X_y: bool = False,
) -> Bunch | tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Load the smartphone activity recordings (HAR) with their published windows and split.

    Reading takes a few seconds. ``DESCR`` of the result describes the processing and names the
    subjects that the published split shares between its parts.

    ==============   =====================
    Classes                              6
    Windows            3,178 / 712 / 710
    Window             128 steps, 6 channels
    Recordings         41 / 9 / 9, 50 Hz
    ==============   =====================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder with the folder ``RawData``, or a folder whose subfolder ``har`` or ``hapt`` holds
        it. None means the default of :func:`get_data_home`.
    download_if_missing : bool, default=True
        Whether to download the data set if it is missing. If False, a missing data set raises an
        OSError.
    group : {"subject", "recording"}, default="subject"
        Meaning of ``groups``: use "subject" for folds of new people, "recording" for folds of new
        recordings only.
    return_X_y : bool, default=False
        If True, return ``(X, y)`` of all windows instead of a Bunch.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object with the attributes

        recordings : list of ndarray of shape (n_timesteps, 6), dtype float32
            Acceleration x, y, z (g) and angular velocity x, y, z (rad/s), in the published
            shuffled order: training, then validation, then test recordings.
        segments : ndarray of shape (n_segments, 4), dtype int64
            Recording index, start, end (exclusive) and label (0 to 5) of each activity: input
            for :func:`~sklearn_pulse.windows.segment_windows`.
        X : ndarray of shape (n_windows, 128, 6), dtype float32
            The windows, in the order of ``recordings`` and chronological within each recording.
        y : ndarray of shape (n_windows,)
            Label of each window, 0 to 5.
        groups : ndarray of shape (n_windows,)
            Group of each window: its subject, or the index of its recording.
        recording : ndarray of shape (n_windows,)
            Index into ``recordings`` of each window.
        start : ndarray of shape (n_windows,)
            First time step of each window in its recording.
        split : ndarray of shape (n_windows,)
            "train", "val" or "test" for each window.
        recording_split : ndarray of shape (n_recordings,)
            "train", "val" or "test" for each recording.
        recording_subject : ndarray of shape (n_recordings,)
            Subject of each recording.
        recording_experiment : ndarray of shape (n_recordings,)
            Number of the experiment of each recording.
        channel_names : list of str
            Names of the 6 channels.
        target_names : list of str
            Names of the 6 classes.
        sampling_rate : float
            Sampling rate in Hz, 50.0.
        DESCR : str
            Description of the data set.
    (X, y) : tuple of ndarray
        Windows and labels. Returned only if ``return_X_y`` is True.

    Raises
    ------
    OSError
        If the data set or one of its files is missing and is not downloaded.
    ImportError
        If the data set has to be downloaded and pooch is not installed.
    ValueError
        If a parameter is invalid or a file is damaged.
    TypeError
        If a parameter has a wrong type.

    Examples
    --------
    >>> from sklearn_pulse.datasets import fetch_har
    >>> har = fetch_har()  # doctest: +SKIP
    >>> har.X[har.split == "train"].shape  # doctest: +SKIP
    (3178, 128, 6)
    """
    check_group(group)
    check_flags(download_if_missing, return_X_y=return_X_y)
    home = resolve_data_home(data_home)
    folder = find("har", home, ("RawData/labels.txt",)) or ensure("har", home, download_if_missing)
    data = _load(folder / "RawData", group)
    return (data.X, data.y) if return_X_y else data


def read_recordings(raw_folder: Path, rows: NDArray[np.int64]) -> list[Recording]:
    """Read every recording and cut all of them to one common length.

    The common length T is the third smallest length. Shorter recordings (two of the published
    data) are dropped; the other recordings keep their first T steps (paper, Appendix D).

    Parameters
    ----------
    raw_folder : pathlib.Path
        Folder ``RawData`` with ``acc_expEE_userUU.txt`` and ``gyro_expEE_userUU.txt``.
    rows : ndarray of shape (n_rows, 5)
        Rows of :func:`read_labels`. A recording that ends before one of its activities is cut off,
        and would shorten all others.

    Returns
    -------
    recordings : list of Recording
        The recordings, T steps long, in order of file name. Values are as stored, not normalised.

    Raises
    ------
    OSError
        If a gyroscope file is missing.
    ValueError
        If the folder holds fewer than three recordings, or a file is damaged.
    """
    names = sorted(path.name for path in raw_folder.iterdir())
    matches = [match for name in names if (match := _ACC_NAME.fullmatch(name))]
    if len(matches) < 3:
        raise ValueError(
            f"{raw_folder} holds {len(matches)} file(s) named acc_expEE_userUU.txt, but at least 3 "
            "are needed; unpack the complete data set again."
        )
    pairs = [_read_pair(raw_folder, match.string) for match in matches]
    for match, (acc, _) in zip(matches, pairs, strict=True):
        labelled = rows[rows[:, 0] == int(match[1]), 4].max(initial=0)
        if labelled > len(acc):
            raise ValueError(
                f"{raw_folder / match.string} has {len(acc)} rows, but labels.txt names steps up to"
                f" {labelled} of it: it is cut off, unpack the data set again."
            )
    length = sorted(len(acc) for acc, _ in pairs)[2]
    recordings = []
    for match, (acc, gyro) in zip(matches, pairs, strict=True):
        if len(acc) >= length:
            experiment, subject = map(int, match.groups())
            signals = np.hstack([acc[:length], gyro[:length]])
            recordings.append(Recording(experiment, subject, signals))
    return recordings


def read_labels(path: Path) -> NDArray[np.int64]:
    """Read ``labels.txt``.

    Parameters
    ----------
    path : pathlib.Path
        The label file: one row per activity, five integers per row.

    Returns
    -------
    rows : ndarray of shape (n_rows, 5), dtype int64
        Experiment, subject, activity (1 to 12), start and end in samples, in file order.

    Raises
    ------
    ValueError
        If the file does not hold rows of five integers, or an activity or a start does not exist.
    """
    rows = _load_table(path, _LABEL_COLUMNS, np.int64)
    is_wrong = (rows[:, 2] < 1) | (rows[:, 2] > _N_ACTIVITIES) | (rows[:, 3] < 0)
    if is_wrong.any():
        raise ValueError(
            f"{path} has a row {rows[is_wrong][0].tolist()}, but activities are 1 to "
            f"{_N_ACTIVITIES} and no start is negative; unpack the data set again."
        )
    return rows


def activity_segments(rows: NDArray[np.int64], length: int) -> list[tuple[int, int, int]]:
    """Turn the label rows of one recording into segments that windows are cut from.

    The rows are read in file order. A postural transition (activity 7 and above) is skipped. A
    row of a basic activity that starts at or after ``length`` ends the recording, and later rows
    are not read. As in the published code (paper, Appendix D), ``start`` is used as a 0-based
    index although the file counts from 1, and a window must end strictly before ``length``.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, 5)
        Rows of :func:`read_labels` that belong to one experiment.
    length : int
        Number of time steps of the recording.

    Returns
    -------
    segments : list of (start, end, label)
        The segments. ``end`` is exclusive and at most ``length - 1``; ``label`` is 0 to 5.
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


def _load(raw_folder: Path, group: str) -> Bunch:
    """Read, shuffle, split and window the recordings."""
    rows = read_labels(raw_folder / "labels.txt")
    by_name = read_recordings(raw_folder, rows)
    _refuse_incomplete(raw_folder, rows, by_name)
    order, recording_split = shuffled_split(len(by_name))
    recordings = [by_name[i] for i in order]
    segments = _all_segments(recordings, rows)
    subjects = np.array([r.subject for r in recordings])
    signals = [r.signals for r in recordings]
    windows = segment_windows(signals, segments, WINDOW_LENGTH)
    return Bunch(
        recordings=signals,
        segments=segments,
        X=windows.X,
        y=windows.y,
        groups=window_groups(group, windows.recording, subjects),
        recording=windows.recording,
        start=windows.start,
        split=recording_split[windows.recording],
        recording_split=recording_split,
        recording_subject=subjects,
        recording_experiment=np.array([r.experiment for r in recordings]),
        channel_names=list(CHANNEL_NAMES),
        target_names=list(TARGET_NAMES),
        sampling_rate=SAMPLING_RATE,
        DESCR=_DESCR,
    )


def _refuse_incomplete(
    raw_folder: Path, rows: NDArray[np.int64], recordings: list[Recording]
) -> None:
    """Raise if a recording that the labels name is missing: the split of the others would change.

    Raise also if the labels do not name a recording, whose windows would be missing.
    """
    there = [match for path in raw_folder.iterdir() if (match := _ACC_NAME.fullmatch(path.name))]
    named = {(experiment, subject) for experiment, subject, *_ in rows.tolist()}
    missing = sorted(named - {(int(match[1]), int(match[2])) for match in there})
    if missing:
        experiment, subject = missing[0]
        path = raw_folder / f"acc_exp{experiment:02d}_user{subject:02d}.txt"
        raise FileNotFoundError(
            f"{path} is missing, one of {len(missing)} missing recordings that labels.txt names;"
            " unpack the complete data set again."
        )
    for recording in recordings:
        if (recording.experiment, recording.subject) not in named:
            raise ValueError(
                f"{raw_folder / 'labels.txt'} has no row of experiment {recording.experiment} with "
                f"user {recording.subject}, whose recording is there; unpack the data set again."
            )


def _all_segments(recordings: list[Recording], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the segments of all recordings as rows (recording, start, end, label)."""
    segments = [
        (index, *segment)
        for index, recording in enumerate(recordings)
        for segment in activity_segments(
            rows[rows[:, 0] == recording.experiment], len(recording.signals)
        )
    ]
    return np.array(segments, dtype=np.int64).reshape(-1, 4)


def _read_pair(raw_folder: Path, acc_name: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Read the accelerometer file and the gyroscope file of one experiment."""
    acc_path = raw_folder / acc_name
    gyro_path = raw_folder / acc_name.replace("acc_", "gyro_", 1)
    acc = _load_table(acc_path, _AXES_PER_SENSOR, np.float32)
    gyro = _load_table(gyro_path, _AXES_PER_SENSOR, np.float32)
    if len(acc) != len(gyro):
        raise ValueError(
            f"{acc_path} has {len(acc)} rows and {gyro_path} has {len(gyro)} rows, but both "
            "sensors are sampled together; one file is damaged, unpack the data set again."
        )
    return acc, gyro


def _load_table(path: Path, n_columns: int, dtype: type) -> NDArray[Any]:
    """Read a text table of numbers with a fixed number of columns."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; unpack the complete data set again.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty; unpack the data set again.")
    try:
        table: NDArray[Any] = np.loadtxt(path, dtype=dtype, ndmin=2, encoding="utf-8")
    except ValueError as error:
        raise ValueError(f"{path} is not a table of numbers; unpack the data set again.") from error
    if not np.isfinite(table).all():
        raise ValueError(f"{path} holds a value that is not finite; unpack the data set again.")
    if table.shape[1] != n_columns:
        raise ValueError(
            f"{path} has {table.shape[1]} columns instead of {n_columns}; "
            "unpack the data set again."
        )
    return table
