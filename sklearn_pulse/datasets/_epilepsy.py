"""Epilepsy: reader of the Bonn EEG and of the transfer benchmark's windows of it.

Source: paper, Appendix D (transfer). The EEG of the University of Bonn has one text file per
segment; the transfer benchmark has ``.pt`` files with windows of about one second.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._parameters import check_option
from . import _tfc
from ._groups import check_group, window_groups
from ._home import locate, resolve_data_home
from ._remote import REMOTES, check_flags, ensure, find
from ._split import SPLIT_SEED

SAMPLING_RATE = 173.61
WINDOW_LENGTH = 178
N_WINDOWS = 23  # windows per segment; the last three steps are not used
SEGMENT_LENGTH = 4097
TARGET_NAMES = ["seizure", "other"]
CHANNEL_NAMES = ["eeg"]

_SETS = "ZONFS"
_SEIZURE_SET = "S"
_VOLUNTEER_SETS = "ZO"
_FILES_PER_SET = 100
_BONN_LANDMARKS = tuple(f"{name}/{name}[0-9][0-9][0-9].[tT][xX][tT]" for name in _SETS)

# The 80 windows of the benchmark's train.pt and val.pt, in the order of these files, found by
# comparing values. Each is written as set, number of the file and number of the window in the
# file, both counted from 1.
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
    figshare article 19930199, the same EEG cut and scaled (train.pt, val.pt, test.pt)
:Recordings: 500 segments of 4,097 steps (23.6 s), 100 of each set
:Channels: 1
:Sampling rate: 173.61 Hz (a window of 178 steps is often mistaken for one second at 178 Hz)
:Windows: 11,500 of 178 steps (1.03 s); 2,300 with a seizure
:Classes: 2; seizure (set S), other (sets Z, O, N, F)

Sets Z and O were recorded from the scalp of five healthy volunteers, with eyes open (Z) and
closed (O). Sets N and F were recorded inside the brain of five patients between seizures,
opposite to (N) and within (F) the epileptogenic zone. Set S was recorded from the patients
during seizures.

Processing, as in the transfer benchmark: a segment is cut into 23 windows without overlap. Each
of the 178 time steps is scaled to [0, 1] with its own minimum and maximum over all 11,500
windows. The scaling thus uses the test windows. Since minimum and maximum differ from step to
step, it also imprints the same pattern on all windows. ``recordings`` are not scaled; they are in
the units of the files.

Splits: ``split="published"`` is the benchmark's split: 60 training and 20 validation windows
(half of them with a seizure) and 11,420 test windows. **It leaks:** windows of one segment, which
lasts 23.6 seconds, lie in different parts. All 73 segments with training or validation windows
have windows in the test part, and two of them (S014, S080) have both training and validation
windows. ``split="segment"`` keeps segments whole: 70 training, 15 validation and 15 test segments
of each set (shuffled with seed 1234).

Groups: a segment is a recording. It was never published which of the ten people a segment is
from. With ``group="subject"``, the groups are therefore the two pools of people: five volunteers
(sets Z, O) and five patients (sets N, F, S). Both splits share people between their parts.

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
    """Segments of the Bonn EEG in order of set (Z, O, N, F, S) and file.

    Attributes
    ----------
    name : list of str
        Set and number of each segment, for example "Z001".
    signals : ndarray of shape (500, 4097), dtype float64
        The segments, with the values of the files.
    """

    name: list[str]
    signals: NDArray[np.float64]


def fetch_epilepsy(
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    *,
    group: Literal["recording", "subject"] = "recording",
    split: Literal["published", "segment"] = "published",
    return_X_y: bool = False,
) -> Bunch | tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Load the EEG windows of the Epilepsy task.

    The windows are read from the Bonn text files if these exist, and from the benchmark's ``.pt``
    files otherwise. Only the ``.pt`` files are downloaded. Only the text files tell which windows
    belong to one segment.

    ==============   ====================
    Classes                             2
    Windows             60 / 20 / 11,420
    Window           178 steps, 1 channel
    ==============   ====================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder with the Bonn folders ``Z O N F S`` or the three ``.pt`` files, or a folder whose
        subfolder ``epilepsy`` or ``bonn_epilepsy`` holds them. None means the default of
        :func:`get_data_home`.
    download_if_missing : bool, default=True
        Whether to download the data set if it is missing. If False, a missing data set raises an
        OSError.
    group : {"recording", "subject"}, default="recording"
        Meaning of ``groups``: "recording" is the segment, "subject" is the pool of people
        (volunteers or patients).
    split : {"published", "segment"}, default="published"
        Division of the windows: "published" is the benchmark's split, "segment" keeps segments
        whole (70 : 15 : 15).
    return_X_y : bool, default=False
        If True, return ``(X, y)`` of all windows instead of a Bunch.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object with the attributes

        X : ndarray of shape (11500, 178, 1), dtype float64
            The windows, scaled to [0, 1] per time step. With ``split="published"``: training and
            validation windows in the benchmark's order, then test windows. With
            ``split="segment"``: all windows in the order of the text files (sets Z, O, N, F, S).
        y : ndarray of shape (11500,)
            Label of each window, 0 (seizure) or 1 (other).
        split : ndarray of shape (11500,)
            "train", "val" or "test" for each window.
        recordings : list of ndarray of shape (4097, 1), dtype float32, or None
            The 500 segments, not scaled. None if the data come from ``.pt`` files.
        segments : ndarray of shape (500, 4), dtype int64, or None
            Recording index, start, end (exclusive) and label of the steps that the windows of
            each segment cover. None if the data come from ``.pt`` files.
        groups : ndarray of shape (11500,) or None
            Group of each window: index of the segment, or "volunteers" or "patients". None if the
            data come from ``.pt`` files.
        recording : ndarray of shape (11500,) or None
            Index into ``recordings`` of each window. None if the data come from ``.pt`` files.
        start : ndarray of shape (11500,) or None
            First time step of each window in its recording. None if the data come from ``.pt``
            files.
        recording_split : ndarray of shape (500,) or None
            "train", "val" or "test" for each segment. None for ``split="published"``, which
            divides segments.
        recording_subject : ndarray of shape (500,) or None
            Pool of people of each segment. None if the data come from ``.pt`` files.
        recording_name : ndarray of shape (500,) or None
            Name of each segment, such as "Z001". None if the data come from ``.pt`` files.
        channel_names : list of str
            Name of the channel.
        target_names : list of str
            Names of the 2 classes.
        sampling_rate : float
            Sampling rate in Hz, 173.61.
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
        If a parameter is invalid, if a file is damaged, or if ``split="segment"`` or
        ``group="subject"`` is passed and only the ``.pt`` files exist.
    TypeError
        If a parameter has a wrong type.

    Examples
    --------
    >>> from sklearn_pulse.datasets import fetch_epilepsy
    >>> epilepsy = fetch_epilepsy(split="segment")  # doctest: +SKIP
    >>> epilepsy.X[epilepsy.split == "train"].shape  # doctest: +SKIP
    (8050, 178, 1)
    """
    check_group(group)
    check_option("split", split, ("published", "segment"))
    check_flags(download_if_missing, return_X_y=return_X_y)
    home = resolve_data_home(data_home)
    bonn = find("epilepsy", home, _BONN_LANDMARKS)
    if bonn is not None:
        data = _from_bonn(read_segments(bonn), group, split)
    else:
        for place in (home, *REMOTES["epilepsy"].places(home)):
            _refuse_some_sets(place)
        data = _from_tfc(ensure("epilepsy", home, download_if_missing), group, split)
    return (data.X, data.y) if return_X_y else data


def _refuse_some_sets(folder: Path) -> None:
    """Raise if a folder holds some of the five sets of text files, but not all."""
    there = [
        name
        for name, pattern in zip(_SETS, _BONN_LANDMARKS, strict=True)
        if locate([folder], (pattern,))
    ]
    if 0 < len(there) < len(_SETS):
        lacking = ", ".join(name for name in _SETS if name not in there)
        raise FileNotFoundError(
            f"{folder} holds the folders {', '.join(there)} of the Bonn EEG, but not {lacking}:"
            " unpack all five there."
        )


def read_segments(folder: Path) -> Segments:
    """Read the Bonn text files.

    Parameters
    ----------
    folder : pathlib.Path
        Folder with the folders Z, O, N, F and S.

    Returns
    -------
    segments : Segments
        The 500 segments.

    Raises
    ------
    OSError
        If a file is missing.
    ValueError
        If a file does not hold 4,097 finite numbers.
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


def cut_windows(signals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cut each segment into 23 windows of 178 steps, in order of time, but for its last 3 steps."""
    return signals[:, : N_WINDOWS * WINDOW_LENGTH].reshape(-1, WINDOW_LENGTH)


def scale_time_steps(windows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale each time step to [0, 1] by its minimum and maximum over all windows.

    A time step with the same value in all windows becomes 0.

    Examples
    --------
    >>> import numpy as np
    >>> scale_time_steps(np.array([[1.0, 10.0], [3.0, 30.0], [2.0, 50.0]])).tolist()
    [[0.0, 0.0], [1.0, 0.5], [0.5, 1.0]]
    """
    low, high = windows.min(axis=0), windows.max(axis=0)
    return (windows - low) / np.where(high > low, high - low, 1.0)


def published_split() -> tuple[NDArray[np.int64], NDArray[np.str_]]:
    """Return the order and the part of the windows in the benchmark's files.

    Returns
    -------
    order : ndarray of shape (11500,), dtype int64
        Index of the window at each place, where windows are indexed in order of set, file and
        time: the training windows, the validation windows, then all others in ascending order.
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


def segment_split() -> NDArray[np.str_]:
    """Return the part of each segment: 70 training, 15 validation and 15 test segments per set.

    Returns
    -------
    split : ndarray of shape (500,), dtype str
        "train", "val" or "test" for each segment.
    """
    parts = np.repeat(np.array(["train", "val", "test"], dtype="<U5"), [70, 15, 15])
    generator = np.random.RandomState(SPLIT_SEED)
    return np.concatenate([generator.permutation(parts) for _ in _SETS])


def _window_index(text: str) -> int:
    """Return the index of a window that is written as set, file, colon, window: "Z2:1" is 23."""
    file, window = text[1:].split(":")
    segment = _SETS.index(text[0]) * _FILES_PER_SET + int(file) - 1
    return segment * N_WINDOWS + int(window) - 1


def _read_segment(path: Path) -> NDArray[np.float64]:
    """Read the text file of one segment."""
    try:
        values = np.array(path.read_text(encoding="ascii").split(), dtype=np.float64)
    except ValueError as error:  # UnicodeDecodeError is a ValueError
        raise ValueError(f"{path} is no list of numbers; unpack the data set again.") from error
    if not np.isfinite(values).all():  # it would spread to a time step of all windows
        raise ValueError(f"{path} holds a value that is not finite; unpack the data set again.")
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
    recording_split: NDArray[np.str_] | None
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
    """Read the benchmark's files, which do not tell the segment of a window."""
    for name, value, known in (("split", split, "published"), ("group", group, "recording")):
        if value != known:
            raise ValueError(
                f"{name}={value!r} needs the EEG's text files: the .pt files in {folder} do not "
                "tell which segment a window is from. Put the folders Z, O, N, F and S of the "
                f"University of Bonn's EEG into this folder, or use {name}={known!r}."
            )
    parts = _tfc.read_parts(folder, n_channels=1, n_classes=len(TARGET_NAMES))
    unknown: dict[str, Any] = dict.fromkeys(
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
    """Return a Bunch of the content and the facts of the data set."""
    return Bunch(
        **content,
        channel_names=list(CHANNEL_NAMES),
        target_names=list(TARGET_NAMES),
        sampling_rate=SAMPLING_RATE,
        DESCR=_DESCR,
    )
