"""WESAD: reader of wrist blood volume pulse under stress, amusement and meditation.

Source: paper, Appendix D (PPG). The authors describe the files in Schmidt, Reiss, Duerichen,
Marberger and Van Laerhoven (2018), ICMI.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._parameters import check_option
from ..windows import RecordingWindows
from ..windows._checks import check_downsample
from ._groups import check_group, window_groups
from ._home import resolve_data_home
from ._ppg import SAMPLING_RATE, denoise
from ._remote import check_flags, ensure, find
from ._safe_pickle import read_pickle

WINDOW_LENGTH = 60 * SAMPLING_RATE
TARGET_NAMES = ["baseline", "stress", "amusement", "meditation"]
SPLIT = {
    **dict.fromkeys("S8 S6 S10 S7 S9 S13 S5 S2 S11 S4 S3".split(), "train"),
    **dict.fromkeys("S15 S16".split(), "val"),
    **dict.fromkeys("S17 S14".split(), "test"),
}
_LABEL_RATE = 700  # Hz, sampling rate of the labels in Sx.pkl
_N_RUNS = (1, 1, 1, 2)  # number of stretches of each label that are used
_INTERVALS = "label_intervals_E4time.csv"
_E4_FILES = ("S*/S*_E4_Data/BVP.csv", _INTERVALS)
_E4_HEADER = 2  # header lines of BVP.csv: start time and sampling rate

_DESCR = """\
Wearable stress and affect detection (WESAD), wrist pulse
---------------------------------------------------------

:Source: WESAD, folder Sx of each subject; Empatica E4 wristband, blood volume pulse
:Recordings: 15 of about 87 minutes, one per subject
:Channels: 1; blood volume pulse, no physical unit
:Sampling rate: 64 Hz (``sampling_rate``); windows are down-sampled by 4 by default, to 16 Hz
    (``window_rate``)
:Windows: of one minute
:Classes: 4; baseline, stress, amusement, meditation

Fifteen people sat through a neutral baseline, a public stress test, funny videos and, twice, a
guided meditation.

Processing, as in the PULSE publication: the recordings are cut to the shortest and denoised, by a
band-pass of 0.5 to 10 Hz, by a brick wall filter in the spectrum of 12-second blocks with cut-offs
estimated from each recording, and by a moving average of 3 steps. The signals are not normalised,
and they are down-sampled without a filter. The first stretch of each label is used; of
meditation, the first two.

Windows: the parameter ``windows`` sets where they begin. "published": a stretch has as many
windows as whole minutes; the first window begins at the full minute of the recording in which the
stretch begins. **The first window can therefore hold up to 59 seconds
from before the label's onset.** Every block of the brick wall filter also repeats one step, which
moves the signal by up to 7 seconds towards the end. The publication counts 666 windows. "onset":
the first window begins at the label's onset, recordings are not cut to the shortest, and no step
is repeated.

Split: the publication's split by subject, 11 / 2 / 2. It leaks nobody: a subject has one
recording, so ``group="subject"`` and ``group="recording"`` divide the windows alike. Neighbouring
windows of one stretch are very alike; never divide windows at random.

If ``Sx.pkl`` is missing, the wristband's own files and a table of label intervals in wristband
time are read instead. Recordings then begin when the labels' clock begins and end with the
wristband's recording, somewhat later than those of ``Sx.pkl``.

Licence: academic, non-commercial use; the authors ask for a citation.

.. rubric:: References

Schmidt, P., Reiss, A., Duerichen, R., Marberger, C. and Van Laerhoven, K. (2018). Introducing
WESAD, a Multimodal Dataset for Wearable Stress and Affect Detection. ICMI 2018.

Heo, S., Kwon, S. and Lee, J. (2021). Stress Detection with Single PPG Sensor by Orchestrating
Multiple Denoising and Peak-Detecting Methods. IEEE Access 9.
"""


class Run(NamedTuple):
    """Stretch with one label.

    Attributes
    ----------
    label : int
        Class of the stretch, 0 to 3.
    start : int
        First sample.
    end : int
        Sample after the last.
    rate : int
        Sampling rate of `start` and `end` in Hz.
    """

    label: int
    start: int
    end: int
    rate: int

    @property
    def n_minutes(self) -> int:
        """Number of whole minutes in the stretch."""
        return (self.end - self.start) // (60 * self.rate)


class Subject(NamedTuple):
    """Recording of one subject.

    Attributes
    ----------
    name : str
        Name of the subject, such as "S2".
    pulse : ndarray of shape (n_timesteps,), dtype float64
        Blood volume pulse at 64 Hz.
    runs : list of Run
        Labelled stretches in order of time.
    """

    name: str
    pulse: NDArray[np.float64]
    runs: list[Run]


def fetch_wesad(
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool | None = None,
    *,
    group: Literal["subject", "recording"] = "subject",
    windows: Literal["published", "onset"] = "published",
    downsample: int = 4,
    return_X_y: bool = False,
) -> Bunch | tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Load the wrist pulse of WESAD, denoised, with its published split.

    Denoising takes a few seconds; reading the published files, 1 GB per subject, takes a few
    minutes. The files are pickles, and are read without running any code in them. ``DESCR`` of
    the result describes the processing and the windows.

    ==============   =====================
    Classes                              4
    Window           960 steps (1 minute), 1 channel
    Recordings       11 / 2 / 2, 64 Hz
    ==============   =====================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder with the folders ``S2``, ``S3`` and so on, or a folder whose subfolder ``wesad``
        holds them. None means the default of :func:`get_data_home`.
    download_if_missing : bool or None, default=None
        Whether to download the data set (2.5 GB) if it is missing. Since it is larger than 1 GB, it
        is downloaded only with True; None and False raise an OSError.
    group : {"subject", "recording"}, default="subject"
        Meaning of ``groups``: the subject or the recording of a window. Since every subject has
        one recording, both divide the windows alike.
    windows : {"published", "onset"}, default="published"
        Where windows begin: "published" is the full minute before a label's onset, "onset" is
        the onset.
    downsample : int, default=4
        A window holds every `downsample`-th of its 3,840 steps. No filter is applied.
    return_X_y : bool, default=False
        If True, return ``(X, y)`` of all windows instead of a Bunch.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object with the attributes

        recordings : list of ndarray of shape (n_timesteps, 1), dtype float32
            Denoised pulse at 64 Hz; subjects in order of their names ("S10" before "S2").
        segments : ndarray of shape (n_segments, 4), dtype int64
            Recording index, start, end (exclusive) and label (0 to 3) of the whole minutes of
            each labelled stretch: input for :func:`~sklearn_pulse.windows.segment_windows`.
        X : ndarray of shape (n_windows, ceil(3840 / downsample), 1), dtype float32
            The windows, in the order of ``recordings`` and by label within each recording.
        y : ndarray of shape (n_windows,)
            Label of each window, 0 to 3.
        groups : ndarray of shape (n_windows,)
            Group of each window: its subject (str), or the index of its recording.
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
        downsample : int
            Value of the parameter.
        channel_names : list of str
            Name of the channel.
        target_names : list of str
            Names of the 4 classes.
        sampling_rate : float
            Sampling rate of ``recordings`` in Hz, 64.0.
        window_rate : float
            Sampling rate of ``X`` in Hz, ``sampling_rate / downsample``.
        stands_in : bool
            Whether the wristband's own files were read in place of the published ``Sx.pkl``.
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
        If a parameter is invalid, or a file is damaged or hostile.
    TypeError
        If a parameter has a wrong type.

    Examples
    --------
    >>> from sklearn_pulse.datasets import fetch_wesad
    >>> wesad = fetch_wesad(download_if_missing=True, windows="onset")  # doctest: +SKIP
    >>> wesad.X.shape  # doctest: +SKIP
    (714, 960, 1)
    """
    check_group(group)
    check_flags(download_if_missing, return_X_y=return_X_y)
    check_option("windows", windows, ("published", "onset"))
    downsample = check_downsample(downsample, WINDOW_LENGTH)
    subjects, stands_in = _read_subjects(resolve_data_home(data_home), download_if_missing)
    recordings = _denoise_all(subjects, aligned=windows == "onset")
    rows = [
        (index, *segment)
        for index, subject in enumerate(subjects)
        for segment in minute_segments(subject.runs, len(recordings[index]), windows)
    ]
    segments = np.array(rows, dtype=np.int64).reshape(-1, 4)
    recording, start, y = _minutes(segments)
    n_steps = len(range(0, WINDOW_LENGTH, downsample))
    X = np.asarray(RecordingWindows(recordings, recording, start, n_steps, downsample))
    if return_X_y:
        return X, y
    names = np.array([subject.name for subject in subjects])
    recording_split = np.array([SPLIT[name] for name in names.tolist()])
    return Bunch(
        recordings=recordings,
        segments=segments,
        X=X,
        y=y,
        groups=window_groups(group, recording, names),
        recording=recording,
        start=start,
        split=recording_split[recording],
        recording_split=recording_split,
        recording_subject=names,
        downsample=downsample,
        channel_names=["bvp"],
        target_names=list(TARGET_NAMES),
        sampling_rate=float(SAMPLING_RATE),
        window_rate=SAMPLING_RATE / downsample,
        stands_in=stands_in,
        DESCR=_DESCR,
    )


def label_runs(labels: NDArray[np.int64]) -> list[Run]:
    """Return the stretches of the labels 1 to 4, in order of time.

    Parameters
    ----------
    labels : ndarray of int of shape (n_samples,)
        Label of each sample at 700 Hz. The labels 0 and 5 to 7 are skipped.

    Returns
    -------
    runs : list of Run
        Stretches with the classes 0 to 3. A stretch that lasts to the end of the recording is one
        sample short, as in the published code.
    """
    bounds = np.flatnonzero(np.diff(labels)) + 1
    starts = np.concatenate([[0], bounds]).tolist()
    ends = np.concatenate([bounds, [len(labels) - 1]]).tolist()
    return [
        Run(int(labels[start]) - 1, start, end, _LABEL_RATE)
        for start, end in zip(starts, ends, strict=True)
        if 1 <= labels[start] <= len(TARGET_NAMES)
    ]


def minute_segments(runs: list[Run], n_timesteps: int, windows: str) -> list[tuple[int, int, int]]:
    """Return the whole minutes of each label's first stretch; of meditation, the first two.

    Parameters
    ----------
    runs : list of Run
        Stretches of a recording, in order of time.
    n_timesteps : int
        Length of the denoised recording, in steps at 64 Hz.
    windows : {"published", "onset"}
        Where minutes begin: "published" is the full minute before the onset, "onset" is the
        onset.

    Returns
    -------
    segments : list of (start, end, label)
        Segments in steps at 64 Hz, label by label. Minutes that do not fit into the recording are
        left out. A stretch without a whole minute ends the search for its label.
    """
    segments = []
    for label, n_runs in enumerate(_N_RUNS):
        for run in [run for run in runs if run.label == label][:n_runs]:
            if windows == "published":
                start = run.start // (60 * run.rate) * WINDOW_LENGTH
            else:
                start = round(run.start * SAMPLING_RATE / run.rate)
            n_minutes = min(run.n_minutes, (n_timesteps - start) // WINDOW_LENGTH)
            if n_minutes <= 0:
                break
            segments.append((start, start + n_minutes * WINDOW_LENGTH, label))
    return segments


def read_subject_pickle(path: Path) -> Subject:
    """Read ``Sx.pkl``, whose pulse of the wrist and labels begin at the same time.

    Parameters
    ----------
    path : pathlib.Path
        The file, which is read without running any code in it.

    Returns
    -------
    subject : Subject
        The pulse and the stretches, at 700 Hz.

    Raises
    ------
    ValueError
        If the file is damaged or hostile, is that of another subject, does not hold pulse and
        labels, or holds one of them for a minute less than the other.
    """
    data = read_pickle(path)
    subject = data.get("subject") if isinstance(data, dict) else None
    if isinstance(subject, str) and subject != path.stem:
        raise ValueError(f"{path} is the file of another subject; unpack the data set again.")
    try:
        pulse = np.asarray(data["signal"]["wrist"]["BVP"])
        labels = np.asarray(data["label"])
    except (KeyError, TypeError, IndexError):
        pulse = labels = np.empty(0)
    is_pulse = pulse.dtype.kind in "iuf" and pulse.shape in ((pulse.size,), (pulse.size, 1))
    is_label = labels.dtype.kind in "iu" and labels.ndim == 1
    if not is_pulse or not is_label or 0 in (pulse.size, labels.size):
        raise ValueError(
            f"{path} does not hold signal, wrist, BVP and label as WESAD does; unpack the data "
            "set again."
        )
    of_pulse, of_labels = pulse.size / SAMPLING_RATE, labels.size / _LABEL_RATE
    if abs(of_pulse - of_labels) > 60:  # windows of the rest would be missing without notice
        raise ValueError(
            f"{path} holds {of_pulse:.0f} s of pulse and {of_labels:.0f} s of labels, so that a"
            " part is missing; unpack the data set again."
        )
    return Subject(path.stem, pulse.reshape(-1).astype(np.float64), label_runs(labels))


def read_subject_e4(folder: Path, name: str, rows: list[dict[str, str]]) -> Subject:
    """Read the wristband's own file, from the beginning of the labels' clock on.

    Parameters
    ----------
    folder : pathlib.Path
        Folder of the data set.
    name : str
        Name of the subject.
    rows : list of dict
        The subject's rows of the table of label intervals: label (1 to 4), first sample and
        sample after the last in the wristband's file, and beginning of the labels' clock in
        seconds of wristband time.

    Returns
    -------
    subject : Subject
        The pulse and the stretches, at 64 Hz.

    Raises
    ------
    OSError
        If the wristband's file is missing.
    ValueError
        If the file or a row is damaged, or a stretch lies outside the recording.
    """
    path = folder / name / f"{name}_E4_Data" / "BVP.csv"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; unpack the complete data set again.")
    try:
        pulse = _read_e4(path)
        begin = round(float(rows[0]["label_onset_minus_queststart_in_E4_s"]) * SAMPLING_RATE)
        intervals = sorted(
            (int(row["bvp_start_index"]) - begin, int(row["bvp_end_index"]) - begin, row["label"])
            for row in rows
        )
        runs = [Run(int(label) - 1, start, end, SAMPLING_RATE) for start, end, label in intervals]
        _refuse_outside(runs, begin, len(pulse) - begin)
    except (ValueError, KeyError, OverflowError, TypeError) as error:
        raise ValueError(
            f"{path} or the rows of {name} in {folder / _INTERVALS} are damaged ({error}); unpack "
            "the data set again."
        ) from error
    return Subject(name, pulse[begin:], runs)


def _read_e4(path: Path) -> NDArray[np.float64]:
    """Read the samples of a file of the wristband, whose first lines are its start and rate."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) <= _E4_HEADER:
        raise ValueError("the file is empty")
    pulse = np.loadtxt(lines[_E4_HEADER:], ndmin=1)
    if pulse.ndim != 1:
        raise ValueError(f"a line holds {pulse.shape[1]} numbers instead of one")
    if float(lines[1]) != SAMPLING_RATE:
        raise ValueError(f"its second line is {lines[1]}, not the sampling rate {SAMPLING_RATE}")
    return np.asarray(pulse)


def _refuse_outside(runs: list[Run], begin: int, n_samples: int) -> None:
    """Raise unless stretches have a class and lie in the `n_samples` from sample `begin` on."""
    if begin < 0:
        raise ValueError(f"the labels begin {-begin} samples before the wristband")
    for run in runs:
        # Labels may outlast the pulse by seconds; more is missing from a file that is cut off.
        if not 0 <= run.start <= run.end <= n_samples + WINDOW_LENGTH:
            raise ValueError(
                f"a stretch is from {run.start} to {run.end}, and the file has {n_samples} samples"
                " since the labels begin"
            )
        if not 0 <= run.label < len(TARGET_NAMES):
            raise ValueError(f"a label is {run.label + 1}, not 1 to {len(TARGET_NAMES)}")


def _minutes(
    segments: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the recording, start and label of each minute of the segments."""
    rows = [
        (recording, start, label)
        for recording, begin, end, label in segments.tolist()
        for start in range(begin, end, WINDOW_LENGTH)
    ]
    recording, start, label = np.array(rows, dtype=np.int64).reshape(-1, 3).T.copy()
    return recording, start, label


def _denoise_all(subjects: list[Subject], *, aligned: bool) -> list[NDArray[np.float32]]:
    """Denoise every recording; cut all to the shortest first, as published, unless `aligned`."""
    stop = None if aligned else min(len(subject.pulse) for subject in subjects)
    recordings = []
    for subject in subjects:
        try:
            denoised = denoise(subject.pulse[:stop], aligned=aligned)
        except ValueError as error:
            raise ValueError(f"The pulse of subject {subject.name}: {error}") from error
        recordings.append(denoised.astype(np.float32)[:, np.newaxis])
    return recordings


def _read_subjects(home: Path, download_if_missing: bool | None) -> tuple[list[Subject], bool]:
    """Read all subjects, in order of their names; tell whether other files stand in."""
    if find("wesad", home) is None and (e4_folder := find("wesad", home, _E4_FILES)):
        return _read_e4_subjects(e4_folder), True
    folder = ensure("wesad", home, download_if_missing)
    paths = [folder / name / f"{name}.pkl" for name in sorted(SPLIT)]
    missing = [str(path) for path in paths if not path.is_file()]
    if missing:
        raise FileNotFoundError(
            f"{', '.join(missing)} missing; unpack the complete data set again, or move {folder}"
            " away if a complete archive lies beside it."
        )
    return [read_subject_pickle(path) for path in paths], False


def _read_e4_subjects(folder: Path) -> list[Subject]:
    """Read all subjects from the wristband's own files."""
    try:
        with open(folder / _INTERVALS, newline="", encoding="utf-8-sig") as stream:  # of Excel too
            table = csv.DictReader(stream)
            rows = list(table)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"{folder / _INTERVALS} is no table; unpack the data set again."
        ) from error
    if "subject" not in (table.fieldnames or ()):
        raise ValueError(
            f"{folder / _INTERVALS} has the columns {table.fieldnames} and no column 'subject':"
            " save it with commas between the columns."
        )
    by_name = {name: [r for r in rows if r.get("subject") == name] for name in sorted(SPLIT)}
    missing = [name for name, own in by_name.items() if not own]
    if missing:
        raise ValueError(f"{folder / _INTERVALS} has no row for {', '.join(missing)}.")
    subjects = [read_subject_e4(folder, name, own) for name, own in by_name.items()]
    for subject in subjects:
        _refuse_missing_rows(folder, subject)
    return subjects


def _refuse_missing_rows(folder: Path, subject: Subject) -> None:
    """Raise if a label lacks a stretch, whose windows would be missing without notice."""
    found = [run.label for run in subject.runs]
    for label, n_runs in enumerate(_N_RUNS):
        if found.count(label) < n_runs:
            raise ValueError(
                f"{folder / _INTERVALS} has {found.count(label)} rows of {subject.name} with the"
                f" label {label + 1} ({TARGET_NAMES[label]}), not {n_runs}; unpack the data set"
                " again."
            )
