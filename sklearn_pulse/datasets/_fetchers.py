"""Public ``fetch_*`` functions: published recordings as scikit-learn Bunches."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from ..windows import segment_windows
from . import _har

_HAR_DESCR = """\
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
twice each.

Processing, as in the PULSE publication: the recordings are cut to the third smallest length,
the two shorter ones (experiments 20 and 21) are dropped. Nothing is normalised or filtered.
Windows are cut without overlap from the start of each labelled activity; the postural
transitions between activities are left out. A start in the label file, which counts from 1, is
used as a 0-based index, and the last step of a recording is never used.

Split: the recordings are shuffled with seed 1234 and divided 41 / 9 / 9. **This split measures
new recordings, not new people:** eight of the nine test subjects also occur in the training
part, the ninth (13) in the validation part. Use ``groups`` (the subject of each window) with
``sklearn.model_selection.GroupKFold`` for an estimate on new people.

Licence: the data set's own readme prohibits commercial use and asks for a citation.

.. rubric:: References

Reyes-Ortiz, J., Anguita, D., Oneto, L. and Parra, X. (2015). Smartphone-Based Recognition of
Human Activities and Postural Transitions [Data set]. UCI Machine Learning Repository.
"""


def get_data_home(data_home: str | os.PathLike[str] | None = None) -> str:
    """Return the folder in which data sets are looked for, and make it if it is not there.

    Parameters
    ----------
    data_home : str or path-like, default=None
        The folder. None stands for the environment variable ``SKLEARN_PULSE_DATA`` if it is
        set, otherwise for ``~/sklearn_pulse_data``. A leading ``~`` is the user's home.

    Returns
    -------
    data_home : str
        Path of the folder.

    Raises
    ------
    TypeError
        If ``data_home`` is no path.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn_pulse.datasets import get_data_home
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     home = get_data_home(os.path.join(folder, "recordings"))
    ...     os.path.isdir(home)
    True
    """
    home = _resolve_data_home(data_home)
    home.mkdir(parents=True, exist_ok=True)
    return str(home)


def fetch_har(
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    *,
    return_X_y: bool = False,
) -> Bunch | tuple[np.ndarray, np.ndarray]:
    """Load the smartphone activity recordings (HAR) with their published windows and split.

    The data set has to be on disk; reading takes a few seconds. See ``DESCR`` of the result
    for the processing and for the subjects that the published split shares between its parts.

    ==============   =====================
    Classes                              6
    Windows            3,178 / 712 / 710
    Window             128 steps, 6 channels
    Recordings         41 / 9 / 9, 50 Hz
    ==============   =====================

    Parameters
    ----------
    data_home : str or path-like, default=None
        The folder that holds ``RawData``, or a folder with a subfolder ``hapt`` that does.
        None stands for :func:`get_data_home`'s default.
    download_if_missing : bool, default=True
        There is no automatic download yet: a missing data set is an OSError either way, which
        says what to download by hand and where to put it.
    return_X_y : bool, default=False
        If True, return ``(X, y)`` of all windows instead of a Bunch.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        recordings : list of ndarray of shape (n_timesteps, 6), dtype float32
            Acceleration x, y, z (g) and angular velocity x, y, z (rad/s), in the published
            shuffled order: training, then validation, then test recordings.
        segments : ndarray of shape (n_segments, 4), dtype int64
            Recording index, start, end (exclusive) and label (0 to 5) of each activity: input
            for :func:`~sklearn_pulse.windows.segment_windows`.
        X : ndarray of shape (n_windows, 128, 6), dtype float32
            The windows: recordings in the order above, chronological within each.
        y : ndarray of shape (n_windows,)
            Label of each window, 0 to 5.
        groups : ndarray of shape (n_windows,)
            Subject of each window.
        recording, start : ndarray of shape (n_windows,)
            Index into ``recordings``, and first time step in it, of each window.
        split : ndarray of shape (n_windows,)
            "train", "val" or "test" for each window.
        recording_split, recording_subject, recording_experiment : ndarray of shape (n_recordings,)
            Part, subject and experiment number of each recording.
        feature_names, target_names : list of str
            Names of the 6 channels and of the 6 classes.
        sampling_rate : float
            50.0 Hz.
        DESCR : str
            Description of the data set.
    (X, y) : tuple of ndarray
        If ``return_X_y`` is True.

    Raises
    ------
    OSError
        If the data set or one of its files is not there.
    ValueError
        If a file is damaged.
    TypeError
        If ``data_home`` is no path.

    Examples
    --------
    >>> from sklearn_pulse.datasets import fetch_har
    >>> har = fetch_har()  # doctest: +SKIP
    >>> har.X[har.split == "train"].shape  # doctest: +SKIP
    (3178, 128, 6)
    """
    folder = _har_folder(_resolve_data_home(data_home))
    data = _load_har(folder / "RawData")
    return (data.X, data.y) if return_X_y else data


def _resolve_data_home(data_home: str | os.PathLike[str] | None) -> Path:
    """Path of the data folder; nothing is created."""
    if data_home is None:
        data_home = os.environ.get("SKLEARN_PULSE_DATA") or "~/sklearn_pulse_data"
    if not isinstance(data_home, (str, os.PathLike)):
        raise TypeError(
            f"data_home must be a path (str or os.PathLike) or None, got {data_home!r}."
        )
    return Path(data_home).expanduser()


def _har_folder(home: Path) -> Path:
    """Return the folder with ``RawData/labels.txt``: ``home`` itself or its subfolder ``hapt``."""
    for folder in (home, home / "hapt"):
        if (folder / "RawData" / "labels.txt").is_file():
            return folder
    raise OSError(
        f"The HAR data set is not in {home}. It cannot be downloaded automatically yet. Download "
        '"Smartphone-Based Recognition of Human Activities and Postural Transitions" (data set '
        f"341 of the UCI Machine Learning Repository) by hand and unpack it into {home / 'hapt'}, "
        "so that RawData/labels.txt, RawData/acc_expEE_userUU.txt and "
        "RawData/gyro_expEE_userUU.txt lie in there; or name its folder with data_home or the "
        "environment variable SKLEARN_PULSE_DATA."
    )


def _load_har(raw_folder: Path) -> Bunch:
    """Read, shuffle, split and window the recordings."""
    rows = _har.read_labels(raw_folder / "labels.txt")
    by_name = _har.read_recordings(raw_folder)
    order, recording_split = _har.shuffled_split(len(by_name))
    recordings = [by_name[i] for i in order]
    segments = _har_segments(recordings, rows)
    subjects = np.array([r.subject for r in recordings])
    signals = [r.signals for r in recordings]
    windows = segment_windows(signals, segments, _har.WINDOW_LENGTH, groups=subjects)
    return Bunch(
        recordings=signals,
        segments=segments,
        X=windows.X,
        y=windows.y,
        groups=windows.groups,
        recording=windows.recording,
        start=windows.start,
        split=recording_split[windows.recording],
        recording_split=recording_split,
        recording_subject=subjects,
        recording_experiment=np.array([r.experiment for r in recordings]),
        feature_names=list(_har.FEATURE_NAMES),
        target_names=list(_har.TARGET_NAMES),
        sampling_rate=_har.SAMPLING_RATE,
        DESCR=_HAR_DESCR,
    )


def _har_segments(recordings: list[_har.Recording], rows: np.ndarray) -> np.ndarray:
    """Segments of all recordings: recording index, start, end (exclusive), label."""
    segments = [
        (index, *segment)
        for index, recording in enumerate(recordings)
        for segment in _har.activity_segments(
            rows[rows[:, 0] == recording.experiment], len(recording.signals)
        )
    ]
    return np.array(segments, dtype=np.int64).reshape(-1, 4)
