"""The Epilepsy task of the transfer benchmark, and the EEG of the University of Bonn it is made of.

Source: paper, Appendix D (transfer). The Bonn EEG is a text file per segment; the benchmark has
``.pt`` files with one second windows of it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch

from .._parameters import check_option
from . import _tfc
from ._groups import check_group, window_groups
from ._remote import ensure, locate, resolve_data_home

SAMPLING_RATE = 173.61
WINDOW_LENGTH = 178
N_WINDOWS = 23  # of each segment; three steps remain
SEGMENT_LENGTH = 4097
TARGET_NAMES = ["seizure", "other"]
FEATURE_NAMES = ["eeg"]

_SETS = "ZONFS"
_SEIZURE_SET = "S"
_VOLUNTEER_SETS = "ZO"
_FILES_PER_SET = 100
_SPLIT_SEED = 1234
_BONN_LANDMARKS = tuple(f"{name}/{name}001.[tT][xX][tT]" for name in _SETS)

# The 80 windows of the benchmark's train.pt and val.pt, in their order there, found by comparing
# values: set, number of the file and number of the window in it, counted from 1.
_TRAIN = """
S5:8 S7:23 S43:22 S28:2 S96:4 S15:13 S14:23 S98:21 S17:9 S48:19 S29:23 S39:6 S56:5 S1:2 S69:8
S70:18 S100:5 S53:5 S69:1 S56:17 S25:4 S79:6 S80:6 S47:19 S16:2 S44:20 S13:20 S100:7 S36:22
S70:23 F30:9 Z73:1 N96:12 Z7:21 O43:4 N73:4 O68:1 F32:7 O81:6 O84:6 Z1:8 O38:6 O36:11 Z7:8 O96:1
F76:6 Z36:3 N15:21 O42:9 Z25:13 Z67:17 O94:19 N66:6 F92:5 F67:22 O11:14 Z95:2 Z93:23 N34:11
O3:10
"""
_VAL = """
S83:2 S30:15 S26:18 S63:4 S89:3 S32:16 S62:19 S14:22 S18:9 S80:16 F26:12 F64:15 O76:14 O50:23
Z50:8 Z22:4 O37:13 N4:4 N3:4 Z65:11
"""

_DESCR = """\
Seizures in single-channel EEG (Epilepsy)
-----------------------------------------

:Source: University of Bonn, Department of Epileptology, EEG sets Z, O, N, F, S (text files); or
    figshare article 19930199, the same cut and scaled (train.pt, val.pt, test.pt)
:Recordings: 500 segments of 4,097 steps (23.6 s), 100 of each set
:Channels: 1
:Sampling rate: 173.61 Hz (windows of 178 steps are often taken for one second at 178 Hz)
:Windows: 11,500 of 178 steps; 2,300 with a seizure
:Classes: 2; seizure (set S), other (sets Z, O, N, F)

Sets Z and O are from the scalp of five healthy volunteers with eyes open and closed, sets N and F
from the brain of five patients between seizures, opposite to and within the epileptogenic zone,
set S from the patients during seizures.

Processing, as in the transfer benchmark: a segment is cut into 23 windows without overlap, and
each of the 178 time steps is scaled to [0, 1] with its own minimum and maximum over all 11,500
windows. So the scaling has seen the test windows, and it prints one pattern, of extremes that
differ from step to step, on all windows. ``recordings`` are in the units of the files and not
scaled.

Splits: ``split="published"`` is the benchmark's, 60 train and 20 validation windows (half of them
seizures), 11,420 test. **It leaks:** windows of one segment, which follow one another within 23.6
seconds, lie in different parts; all 73 segments that train or validate have windows in the test
part, and two of them (S014, S080) are in train and in validation. ``split="segment"`` keeps
segments whole: of each set 70 segments train, 15 validate, 15 test (shuffled with seed 1234).

Groups: a segment is a recording. Which of the ten people a segment is from was never published,
so with ``group="subject"`` the groups are the two pools of people, five volunteers (sets Z, O)
and five patients (N, F, S). Both splits share people between their parts.

Licence: Creative Commons Attribution 4.0.

.. rubric:: References

Andrzejak, R. G., Lehnertz, K., Mormann, F., Rieke, C., David, P. and Elger, C. E. (2001).
Indications of nonlinear deterministic and finite-dimensional structures in time series of brain
electrical activity. Physical Review E, 64, 061907.

Zhang, X., Zhao, Z., Tsiligkaridis, T. and Zitnik, M. (2022). Self-supervised contrastive
pre-training for time series via time-frequency consistency. Advances in Neural Information
Processing Systems, 35.
"""


class Segments(NamedTuple):
    """The Bonn EEG in order of set (Z, O, N, F, S) and file.

    Attributes
    ----------
    name : list of str
        Set and number of each segment, say "Z001".
    signals : ndarray of shape (500, 4097), dtype float64
        As stored.
    """

    name: list[str]
    signals: np.ndarray


def fetch_epilepsy(
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    *,
    group: str = "recording",
    split: str = "published",
    return_X_y: bool = False,
) -> Bunch | tuple[np.ndarray, np.ndarray]:
    """Load the one second EEG windows of the Epilepsy task.

    They are read from the Bonn text files if these are there, and from the benchmark's ``.pt``
    files otherwise; only these are downloaded. The text files tell which windows belong together.

    ==============   ====================
    Classes                             2
    Windows             60 / 20 / 11,420
    Window           178 steps, 1 channel
    ==============   ====================

    Parameters
    ----------
    data_home : str or path-like, default=None
        The folder that holds the Bonn folders ``Z O N F S`` or the three ``.pt`` files, or a
        folder with a subfolder ``epilepsy`` or ``bonn_epilepsy`` that does. None stands for
        :func:`get_data_home`'s default.
    download_if_missing : bool, default=True
        If False, raise an OSError if the data set is not there, instead of downloading it.
    group : {"recording", "subject"}, default="recording"
        What ``groups`` holds: the segment, or the pool of people (volunteers, patients).
    split : {"published", "segment"}, default="published"
        The benchmark's split, or one that keeps segments whole (70 : 15 : 15).
    return_X_y : bool, default=False
        If True, return ``(X, y)`` of all windows instead of a Bunch.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        X : ndarray of shape (11500, 178, 1), dtype float64
            The windows, scaled to [0, 1] per time step: training, then validation windows in
            the benchmark's order, then test windows; with ``split="segment"`` in the order of
            the text files (sets Z, O, N, F, S).
        y : ndarray of shape (11500,)
            0 (seizure) or 1 (other).
        split : ndarray of shape (11500,)
            "train", "val" or "test" for each window.
        recordings : list of ndarray of shape (4097, 1), dtype float32, or None
            The 500 segments, not scaled. This and what follows is None from ``.pt`` files.
        segments : ndarray of shape (500, 4), dtype int64, or None
            Recording index, start, end (exclusive) and label of what the windows cover.
        groups : ndarray of shape (11500,) or None
            Index of the segment, or "volunteers" or "patients", of each window.
        recording, start : ndarray of shape (11500,) or None
            Index into ``recordings``, and first time step in it, of each window.
        recording_split : ndarray of shape (500,) or None
            Part of each segment; None for the published split, which divides segments.
        recording_subject, recording_name : ndarray of shape (500,) or None
            Pool of people and name ("Z001") of each segment.
        feature_names, target_names : list of str
            Names of the channel and of the 2 classes.
        sampling_rate : float
            173.61 Hz.
        DESCR : str
            Description of the data set.
    (X, y) : tuple of ndarray
        If ``return_X_y`` is True.

    Raises
    ------
    OSError
        If the data set or one of its files is not there.
    ValueError
        If a parameter is invalid, a file is damaged, or ``split="segment"`` or
        ``group="subject"`` is asked of the ``.pt`` files.

    Examples
    --------
    >>> from sklearn_pulse.datasets import fetch_epilepsy
    >>> epilepsy = fetch_epilepsy(split="segment")  # doctest: +SKIP
    >>> epilepsy.X[epilepsy.split == "train"].shape  # doctest: +SKIP
    (8050, 178, 1)
    """
    check_group(group)
    check_option("split", split, ("published", "segment"))
    home = resolve_data_home(data_home)
    folders = (home, home / "epilepsy", home / "bonn_epilepsy")
    bonn = locate(folders, _BONN_LANDMARKS)
    if bonn is not None:
        data = _from_bonn(read_segments(bonn), group, split)
    else:
        folder = locate(folders, _tfc.LANDMARKS)
        folder = folder or ensure("epilepsy", data_home, download_if_missing)
        data = _from_tfc(folder, group, split)
    return (data.X, data.y) if return_X_y else data


def read_segments(folder: Path) -> Segments:
    """Read the Bonn text files.

    Parameters
    ----------
    folder : pathlib.Path
        The folder with the folders Z, O, N, F and S.

    Returns
    -------
    segments : Segments
        All 500.

    Raises
    ------
    OSError
        If a file is missing.
    ValueError
        If a file does not hold 4,097 numbers.
    """
    names = [f"{name}{i:03d}" for name in _SETS for i in range(1, _FILES_PER_SET + 1)]
    paths = {
        path.stem.upper(): path
        for name in _SETS
        for path in (folder / name).iterdir()
        if path.suffix.lower() == ".txt"
    }
    missing = [name for name in names if name not in paths]
    if missing:
        raise FileNotFoundError(
            f"{folder / missing[0][0] / missing[0]}.txt is missing; unpack the complete data set "
            "again."
        )
    return Segments(names, np.array([_read_segment(paths[name]) for name in names]))


def cut_windows(signals: np.ndarray) -> np.ndarray:
    """Cut each segment into 23 windows of 178 steps.

    Parameters
    ----------
    signals : ndarray of shape (n_segments, 4097)
        The segments; the last three steps are not used.

    Returns
    -------
    windows : ndarray of shape (n_segments * 23, 178)
        Segment by segment, in order of time.
    """
    return signals[:, : N_WINDOWS * WINDOW_LENGTH].reshape(-1, WINDOW_LENGTH)


def scale_time_steps(windows: np.ndarray) -> np.ndarray:
    """Scale each time step to [0, 1] by its minimum and maximum over all windows.

    Parameters
    ----------
    windows : ndarray of shape (n_windows, n_timesteps)
        The windows.

    Returns
    -------
    scaled : ndarray of shape (n_windows, n_timesteps)
        A time step with one value in all windows becomes 0.

    Examples
    --------
    >>> import numpy as np
    >>> scale_time_steps(np.array([[1.0, 10.0], [3.0, 30.0], [2.0, 50.0]])).tolist()
    [[0.0, 0.0], [1.0, 0.5], [0.5, 1.0]]
    """
    low, high = windows.min(axis=0), windows.max(axis=0)
    return (windows - low) / np.where(high > low, high - low, 1.0)


def published_split() -> tuple[np.ndarray, np.ndarray]:
    """Order and part of the windows in the benchmark's files.

    Returns
    -------
    order : ndarray of shape (11500,), dtype int64
        Index of the window, in order of set, file and time, at each place: the training
        windows, the validation windows, then all others as they come.
    split : ndarray of shape (11500,), dtype str
        "train", "val" or "test" for each place.
    """
    chosen = [_window_index(text) for text in (_TRAIN + _VAL).split()]
    n_windows = len(_SETS) * _FILES_PER_SET * N_WINDOWS
    rest = np.setdiff1d(np.arange(n_windows), chosen)
    split = np.full(n_windows, "test", dtype="<U5")
    split[: len(chosen)] = "val"
    split[: len(_TRAIN.split())] = "train"
    return np.concatenate([chosen, rest]), split


def segment_split() -> np.ndarray:
    """Part of each of the 500 segments: in each set 70 train, 15 validate and 15 test.

    Returns
    -------
    split : ndarray of shape (500,), dtype str
        "train", "val" or "test".
    """
    parts = np.repeat(np.array(["train", "val", "test"], dtype="<U5"), [70, 15, 15])
    generator = np.random.RandomState(_SPLIT_SEED)
    return np.concatenate([generator.permutation(parts) for _ in _SETS])


def _window_index(text: str) -> int:
    """Index of a window written as set, file, colon, window: ``"Z2:1"`` is 23."""
    file, window = text[1:].split(":")
    segment = _SETS.index(text[0]) * _FILES_PER_SET + int(file) - 1
    return segment * N_WINDOWS + int(window) - 1


def _read_segment(path: Path) -> np.ndarray:
    try:
        values = np.array(path.read_text(encoding="ascii").split(), dtype=np.float64)
    except ValueError as error:  # a UnicodeDecodeError too
        raise ValueError(f"{path} is no list of numbers; unpack the data set again.") from error
    if values.shape != (SEGMENT_LENGTH,):
        raise ValueError(
            f"{path} has {len(values)} values instead of {SEGMENT_LENGTH}; unpack the data set "
            "again."
        )
    return values


def _from_bonn(segments: Segments, group: str, split: str) -> Bunch:
    """Cut, scale and divide the Bonn EEG."""
    in_set = np.array([name[0] for name in segments.name])
    label = np.where(in_set == _SEIZURE_SET, 0, 1)
    pool = np.where(np.isin(in_set, list(_VOLUNTEER_SETS)), "volunteers", "patients")
    n_segments = len(segments.name)
    covered = N_WINDOWS * WINDOW_LENGTH
    if split == "published":
        order, part = published_split()
        recording_split = None
    else:
        order = np.arange(n_segments * N_WINDOWS)
        recording_split = segment_split()
        part = np.repeat(recording_split, N_WINDOWS)
    recording, window = np.divmod(order, N_WINDOWS)
    index = np.arange(n_segments)
    return _bunch(
        X=scale_time_steps(cut_windows(segments.signals))[order, :, np.newaxis],
        y=label[recording],
        split=part,
        recordings=list(segments.signals.astype(np.float32)[:, :, np.newaxis]),
        segments=np.column_stack([index, 0 * index, 0 * index + covered, label]),
        groups=window_groups(group, recording, pool),
        recording=recording,
        start=window * WINDOW_LENGTH,
        recording_split=recording_split,
        recording_subject=pool,
        recording_name=np.array(segments.name),
    )


def _from_tfc(folder: Path, group: str, split: str) -> Bunch:
    """Read the benchmark's files, which do not tell where a window is from."""
    for name, value, known in (("split", split, "published"), ("group", group, "recording")):
        if value != known:
            raise ValueError(
                f"{name}={value!r} needs the EEG's text files: the .pt files in {folder} do not "
                "tell which segment a window is from. Put the folders Z, O, N, F and S of the "
                f"University of Bonn's EEG there, or use {name}={known!r}."
            )
    parts = _tfc.read_parts(folder, n_channels=1, n_classes=len(TARGET_NAMES))
    unknown = dict.fromkeys(
        (
            "recordings",
            "segments",
            "groups",
            "recording",
            "start",
            "recording_split",
            "recording_subject",
            "recording_name",
        )
    )
    return _bunch(X=parts.X, y=parts.y, split=parts.split, **unknown)


def _bunch(**content: object) -> Bunch:
    return Bunch(
        **content,
        feature_names=list(FEATURE_NAMES),
        target_names=list(TARGET_NAMES),
        sampling_rate=SAMPLING_RATE,
        DESCR=_DESCR,
    )
