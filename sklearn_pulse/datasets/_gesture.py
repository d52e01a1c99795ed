"""Gesture: reader of accelerometer recordings in ``.ts`` and ``.pt`` files.

Source: paper, Appendix D (transfer).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._parameters import check_integer, check_option
from . import _tfc
from ._groups import check_group
from ._home import resolve_data_home
from ._remote import check_flags, ensure, find

N_TIMESTEPS = 315
SAMPLING_RATE = 100.0
CHANNEL_NAMES = ["acc_x", "acc_y", "acc_z"]
TARGET_NAMES = [f"gesture_{i}" for i in range(1, 9)]

_TS_LANDMARKS = ("UWaveGestureLibrary_TRAIN.ts", "UWaveGestureLibrary_TEST.ts")
# The transfer benchmark's training part has as many gestures as the archive's test file.
_PART_OF_FILE = {
    "published": {"TEST": "train", "TRAIN": "test"},
    "archive": {"TRAIN": "train", "TEST": "test"},
}

_DESCR = """\
Hand gestures in acceleration (Gesture)
---------------------------------------

:Source: UEA and UCR time series archive, UWaveGestureLibrary (.ts files); or figshare article
    19930247, the transfer benchmark's version (train.pt, val.pt, test.pt)
:Recordings: 440 gestures of 315 steps, 55 of each class; every gesture is one recording
:Channels: 3; acceleration x, y, z, as z-scores per gesture and axis
:Sampling rate: not stated by the source; the transfer benchmark assumes 100 Hz
:Windows: the gestures, whole or cut to their first `n_timesteps`
:Classes: 8 paths of the hand, numbered as in the source

Processing: the stored values are not changed. The PULSE publication fine-tunes on the stored
length and embeds the first 206 steps (``n_timesteps=206``).

Splits: ``split="published"`` is the transfer benchmark's split. Its files hold 320 training, 120
validation and 120 test gestures. Since the source has only 440 gestures, the validation part must
repeat gestures of other parts. Gestures with the same values share a group, and the number of
repeated gestures in the files that were read is stated below. If only the archive's files exist,
the archive's 320 test gestures become the training part and its 120 training gestures the test
part, without a validation part. This division has the published sizes and balance; it is not
known to be the published division. ``split="archive"`` is the archive's own split: 120 training
and 320 test gestures.

Groups: a gesture is a recording. Eight people made the gestures over several days, and no file
says who made which gesture. **All splits may therefore share people between their parts**, and
groups by subject are not available.

Licence: none is stated.

.. rubric:: References

Liu, J., Zhong, L., Wickramasuriya, J. and Vasudevan, V. (2009). uWave: Accelerometer-based
personalized gesture recognition and its applications. Pervasive and Mobile Computing, 5(6),
657-675.

Bagnall, A. et al. (2018). The UEA multivariate time series classification archive, 2018.
arXiv:1811.00075.

Zhang, X., Zhao, Z., Tsiligkaridis, T. and Zitnik, M. (2022). Self-supervised contrastive
pre-training for time series via time-frequency consistency. Advances in Neural Information
Processing Systems, 35.
"""


class Series(NamedTuple):
    """Series of a ``.ts`` file with their classes.

    Attributes
    ----------
    X : ndarray of shape (n_series, n_timesteps, n_channels), dtype float64
        The series.
    label : list of str
        Class of each series, as the file names it.
    """

    X: NDArray[np.float64]
    label: list[str]


def fetch_gesture(
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    *,
    group: Literal["recording"] = "recording",
    split: Literal["published", "archive"] = "published",
    n_timesteps: int | None = None,
    return_X_y: bool = False,
) -> Bunch | tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Load the accelerometer gestures (UWaveGestureLibrary).

    The gestures are read from the transfer benchmark's ``.pt`` files if these exist, and from the
    archive's ``.ts`` files otherwise. Only the ``.pt`` files are downloaded.

    ==============   =====================
    Classes                              8
    Gestures                           440
    Window           315 steps, 3 channels
    ==============   =====================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder with the ``.pt`` or the ``.ts`` files, or a folder whose subfolder ``gesture`` or
        ``uwave_gesture`` holds them. None means the default of :func:`get_data_home`.
    download_if_missing : bool, default=True
        Whether to download the data set if it is missing. If False, a missing data set raises an
        OSError.
    group : {"recording"}, default="recording"
        Meaning of ``groups``: "recording" is the gesture. "subject" is an error, since the files
        do not say who made a gesture.
    split : {"published", "archive"}, default="published"
        Division of the gestures: "published" is the transfer benchmark's split, "archive" is the
        archive's split (``.ts`` files only). See ``DESCR``.
    n_timesteps : int, default=None
        Number of time steps to keep from the start of each gesture, 206 in the publication's
        evaluation. None keeps all 315.
    return_X_y : bool, default=False
        If True, return ``(X, y)`` of all windows instead of a Bunch.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object with the attributes

        recordings : list of ndarray of shape (315, 3), dtype float32
            The whole gestures: training, then validation, then test part.
        segments : ndarray of shape (n_windows, 4), dtype int64
            Recording index, start (0), end (exclusive) and label of each gesture.
        X : ndarray of shape (n_windows, n_timesteps, 3), dtype float32
            The first `n_timesteps` steps of each gesture.
        y : ndarray of shape (n_windows,)
            Label of each gesture, 0 to 7.
        groups : ndarray of shape (n_windows,)
            Group of each gesture: index of the first gesture with the same values, which is its
            own index unless it repeats an earlier gesture.
        recording : ndarray of shape (n_windows,)
            Index into ``recordings`` of each gesture.
        start : ndarray of shape (n_windows,)
            First time step of each gesture in its recording, 0.
        split : ndarray of shape (n_windows,)
            "train", "val" or "test" for each gesture.
        recording_split : ndarray of shape (n_windows,)
            The same as ``split``, since every gesture is one recording.
        recording_subject : None
            The files do not say who made a gesture.
        channel_names : list of str
            Names of the 3 channels.
        target_names : list of str
            Names of the 8 classes.
        sampling_rate : float
            Sampling rate in Hz, 100.0. It is an assumption of the transfer benchmark.
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
        If a parameter is invalid, if a file is damaged, or if ``split="archive"`` is passed and
        the ``.ts`` files are missing.
    TypeError
        If a parameter has a wrong type.

    Examples
    --------
    >>> from sklearn_pulse.datasets import fetch_gesture
    >>> gesture = fetch_gesture(n_timesteps=206)  # doctest: +SKIP
    >>> gesture.X.shape  # doctest: +SKIP
    (440, 206, 3)
    """
    _check_group(group)
    check_option("split", split, tuple(_PART_OF_FILE))
    check_flags(download_if_missing, return_X_y=return_X_y)
    _check_n_timesteps(n_timesteps)  # before a download
    parts = _read(data_home, download_if_missing, split)
    X = parts.X.astype(np.float32)
    _check_n_timesteps(n_timesteps, X.shape[1])
    windows = X[:, :n_timesteps].copy()  # the recordings stay as they are if the windows change
    if return_X_y:
        return windows, parts.y
    index = np.arange(len(X))
    first = first_equal(parts.X)
    return Bunch(
        recordings=list(X),
        segments=np.column_stack([index, 0 * index, 0 * index + X.shape[1], parts.y]),
        X=windows,
        y=parts.y,
        groups=first,
        recording=index,
        start=np.zeros_like(index),
        split=parts.split,
        recording_split=parts.split.copy(),
        recording_subject=None,
        channel_names=list(CHANNEL_NAMES),
        target_names=list(TARGET_NAMES),
        sampling_rate=SAMPLING_RATE,
        DESCR=_DESCR + _repeated(first, parts.split),
    )


def read_ts(path: Path) -> Series:
    """Read a ``.ts`` file of the time series archive.

    A line that begins with "#" is a remark, a line that begins with "@" belongs to the header.
    After "@data", every line is one series: its channels and then its class, separated by colons.
    The values of a channel are separated by commas.

    Parameters
    ----------
    path : pathlib.Path
        File with series of equal length, without time stamps.

    Returns
    -------
    series : Series
        The series and their classes. A missing value ("?") is NaN.

    Raises
    ------
    ValueError
        If the file is damaged; the message names the file, and the line if there is one.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text; unpack the data set again.") from error
    X, label, in_data = [], [], False
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if not in_data:
            in_data = line.lower() == "@data"
            continue
        *channels, name = line.split(":")
        try:
            X.append(np.array([_values(channel) for channel in channels]).T)
        except ValueError as error:
            raise ValueError(
                f"{path}, line {number} is not a series with a class; unpack the data set again."
            ) from error
        if X[-1].ndim != 2 or X[-1].shape != X[0].shape:
            raise ValueError(
                f"{path}, line {number} has shape {X[-1].shape} and the first series has "
                f"{X[0].shape}; unpack the data set again."
            )
        label.append(name.strip())
    if not X:
        raise ValueError(f"{path} has no series after a line @data; unpack the data set again.")
    return Series(np.array(X), label)


def first_equal(X: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the index of the first series that equals each series.

    Parameters
    ----------
    X : ndarray of shape (n_series, ...)
        The series.

    Returns
    -------
    first : ndarray of shape (n_series,)
        Index of the first series with the same values; a missing value (NaN) equals another.

    Examples
    --------
    >>> import numpy as np
    >>> first_equal(np.array([[5.0, 1.0], [2.0, 2.0], [5.0, 1.0]]))
    array([0, 1, 0])
    """
    seen: dict[bytes, int] = {}
    # Bytes are equal where both are NaN, too. Adding 0.0 makes 0.0 of -0.0.
    first = [seen.setdefault(series.tobytes(), index) for index, series in enumerate(X + 0.0)]
    return np.array(first, dtype=np.intp)


def _values(channel: str) -> list[float]:
    """Parse the values of one channel; "?" becomes NaN."""
    values = [float("nan" if value.strip() == "?" else value) for value in channel.split(",")]
    if np.isinf(values).any():
        raise ValueError("a value is infinite")
    return values


def _read(
    data_home: str | os.PathLike[str] | None, download_if_missing: bool, split: str
) -> _tfc.Parts:
    """Read the benchmark's files; if they are missing, read the archive's files."""
    home = resolve_data_home(data_home)
    folder = find("gesture", home)
    archive = find("gesture", home, _TS_LANDMARKS)
    if archive is not None and (folder is None or split == "archive"):
        return _from_archive(archive, split)
    if folder is None or split == "archive":
        _refuse_one_of_two(home)
    if split == "archive":
        raise ValueError(
            f"split='archive' needs {' and '.join(_TS_LANDMARKS)}, which are not in {home}; put "
            "them into this folder, or use split='published'."
        )
    folder = ensure("gesture", home, download_if_missing)
    return _tfc.read_parts(folder, n_channels=len(CHANNEL_NAMES), n_classes=len(TARGET_NAMES))


def _refuse_one_of_two(home: Path) -> None:
    """Raise if one file of the archive is there: another version of the gestures is downloaded."""
    for name, other in (_TS_LANDMARKS, _TS_LANDMARKS[::-1]):
        if found := find("gesture", home, (name,)):
            raise FileNotFoundError(
                f"{found / other} is missing, although {name} is there; unpack the complete data "
                "set again."
            )


def _from_archive(folder: Path, split: str) -> _tfc.Parts:
    """Read the archive's two files, the training part first."""
    X: list[NDArray[np.float64]] = []
    y: list[int] = []
    parts: list[str] = []
    for file, part in _PART_OF_FILE[split].items():
        path = folder / f"UWaveGestureLibrary_{file}.ts"
        series = read_ts(path)
        if series.X.shape[1:] != (N_TIMESTEPS, len(CHANNEL_NAMES)):
            raise ValueError(
                f"{path} has series of shape {series.X.shape[1:]} instead of "
                f"{(N_TIMESTEPS, len(CHANNEL_NAMES))}; unpack the data set again."
            )
        X.append(series.X)
        y += [_class_index(name, path) for name in series.label]
        parts += [part] * len(series.label)
    return _tfc.Parts(np.concatenate(X), np.array(y), np.array(parts, dtype="<U5"))


def _class_index(name: str, path: Path) -> int:
    """Return the index of a class, which the file names "1.0" to "8.0"."""
    names = [f"{i + 1}.0" for i in range(len(TARGET_NAMES))]
    if name not in names:
        raise ValueError(
            f"{path} has the class {name!r} instead of one of {', '.join(names)}; unpack the data "
            "set again."
        )
    return names.index(name)


def _check_n_timesteps(n_timesteps: int | None, n_stored: int | None = None) -> None:
    """Raise unless `n_timesteps` is None or a number of steps that a gesture can have."""
    if n_timesteps is not None:
        meaning = "None keeps all steps of a gesture"
        check_integer("n_timesteps", n_timesteps, 1, n_stored, meaning=meaning)


def _repeated(first: NDArray[np.intp], split: NDArray[np.str_]) -> str:
    """Return sentences that count the gestures of a part that an earlier part also holds."""
    lines = []
    for part, earlier in (("val", "train"), ("test", "train"), ("test", "val")):
        shared = np.isin(first[split == part], first[split == earlier]).sum()
        if shared:
            lines.append(f"{shared} gestures of the {part} part are in the {earlier} part too.")
    return "\n" + "\n".join(lines or ["No gesture of these files is in two parts."]) + "\n"


def _check_group(group: str) -> None:
    """Raise unless `group` is "recording"."""
    check_group(group)
    if group == "subject":
        raise ValueError(
            "group='subject' is not possible: no file says who made a gesture; use "
            "group='recording'."
        )
