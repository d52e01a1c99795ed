"""The MIT-BIH Atrial Fibrillation Database: reader, cleaning and windows (WFDB files).

Source: paper, Appendix D (ECG). The cleaning is a high-pass filter and a moving average over one
period of the powerline, both zero-phase, then a z-score per record and lead.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from .._parameters import check_integer, check_option
from ..windows import RecordingWindows, sliding_windows
from ._ecg import SAMPLING_RATE, clean_ecg, fill_missing, resample, resampling_ratio
from ._groups import check_group, window_groups
from ._har import shuffled_split
from ._remote import ensure, locate, resolve_data_home
from ._standardize import standardize

WINDOW_LENGTH = 2500  # steps at 250 Hz: 10 s
TARGET_NAMES = ["AFIB", "N"]
FEATURE_NAMES = ["ecg_1", "ecg_2"]

# Order matters: a tie between rhythms goes to the lowest code.
_RHYTHM_CODES = {"AFIB": 0, "AFL": 1, "J": 2, "N": 3}
_OTHER_RHYTHM = len(_RHYTHM_CODES)
_CLASS_OF_CODE = np.array([0, -1, -1, 1, -1])  # AFIB and N are kept
_LANDMARKS = ("*.dat", "*.hea", "*.atr")
# In the MIT-BIH Arrhythmia Database two records are of one man.
_SUBJECT_OF_RECORD = {"202": "201"}

_DESCR = """\
Atrial fibrillation in two-lead ECG (MIT-BIH AF)
------------------------------------------------

:Source: PhysioNet, MIT-BIH Atrial Fibrillation Database 1.0.0; records in WFDB format
:Recordings: 23 records of about 10 hours with signals (two more have none), one subject each
:Channels: 2 ECG leads, z-scores
:Sampling rate: 250 Hz
:Windows: 10 s (2,500 steps) without overlap; every 5th step of them by default (500 steps)
:Classes: 2; AFIB (atrial fibrillation), N (every rhythm that the database labels normal)

Long-term recordings of people with atrial fibrillation, mostly paroxysmal; cardiologists marked
where each rhythm begins.

Processing, as in the PULSE publication: a rhythm lasts until the next one is marked, and what
lies before the first mark is dropped. All records are cut to the shortest. Each lead is filtered
forwards and backwards: a Butterworth high-pass of order 5 at 0.5 Hz, then a moving average of 5
steps against 50 Hz powerline noise. Then the lead's mean is subtracted and the result divided by
its standard deviation over the record. A window has the rhythm that most of its steps have, and
only windows with atrial fibrillation or normal rhythm are kept. Missing samples are filled with
the last one before them. A record that was not sampled at 250 Hz is resampled to it first.

Split: the records, sorted by name, are shuffled with seed 1234 and divided 70 : 15 : 15 (16 / 3
/ 4 records). The publication took them in the order of its file system before the shuffle,
which is not known; `record_order` sets another one. The database names no person with two
records, so this split by record is one by person as well. Windows of one record are
alike: never divide them at random.

The MIT-BIH Arrhythmia Database (360 Hz, half an hour each, beats and rhythms marked) is read by
the same rules. There records 201 and 202 are of one person: with ``group="recording"``, and with
`split`, that person can be in two parts. Bigeminy, paced rhythm and others that have no code
here are in no window's label.

Licence: Open Data Commons Attribution License 1.0.

.. rubric:: References

Moody, G. B. and Mark, R. G. (1983). A new method for detecting atrial fibrillation using R-R
intervals. Computers in Cardiology, 10, 227-230.

Goldberger, A. L. et al. (2000). PhysioBank, PhysioToolkit, and PhysioNet. Circulation, 101(23),
e215-e220.
"""


class Rhythms(NamedTuple):
    """Where the rhythms of one record begin.

    Attributes
    ----------
    name : str
        Name of the record.
    sampling_rate : float
        Of the file, in Hz.
    first, stop : int
        First sample that is used, the one with the first rhythm annotation, and the end of
        the record, in samples of the file.
    onset : ndarray of int of shape (n_rhythms,)
        Steps at 250 Hz, counted from `first`.
    code : ndarray of int of shape (n_rhythms,)
        AFIB 0, AFL 1, J 2, N 3, any other rhythm 4.
    """

    name: str
    sampling_rate: float
    first: int
    stop: int
    onset: np.ndarray
    code: np.ndarray

    @property
    def n_timesteps(self) -> int:
        """Number of steps at 250 Hz."""
        up, down = resampling_ratio(self.sampling_rate)
        return -(-(self.stop - self.first) * up // down)


def fetch_mitbih_af(
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    *,
    group: str = "subject",
    record_order: Sequence[str] | None = None,
    label: str = "majority",
    downsample: int = 5,
    return_X_y: bool = False,
) -> Bunch | tuple[np.ndarray, np.ndarray]:
    """Load the MIT-BIH Atrial Fibrillation Database with the published windows.

    Reading needs the package wfdb (``pip install sklearn-pulse[ecg]``). Filtering the 23 records
    takes about a minute and the recordings about 1.7 GB of memory.

    ==============   ==============================
    Classes                                       2
    Window           500 steps (10 s), 2 channels
    Recordings       16 / 3 / 4, 250 Hz
    ==============   ==============================

    Parameters
    ----------
    data_home : str or path-like, default=None
        The folder that holds the WFDB files, or a folder with a subfolder ``mitbih_af`` or
        ``afdb`` that does. If there is none of these, but a subfolder ``mitdb`` (the MIT-BIH
        Arrhythmia Database), that is read, with a warning. None stands for
        :func:`get_data_home`'s default.
    download_if_missing : bool, default=True
        If False, raise an OSError if the data set is not there, instead of downloading it
        (440 MB).
    group : {"subject", "recording"}, default="subject"
        What ``groups`` holds.
    record_order : sequence of str, default=None
        All names of the records, in the order in which they enter the seeded shuffle that
        makes the split. None sorts them.
    label : {"majority", "pure"}, default="majority"
        "majority" labels a window by the rhythm that most of its steps have, ties going to the
        first of AFIB, AFL, J, N; "pure" keeps only windows with a single rhythm.
    downsample : int, default=5
        A window holds every `downsample`-th of its 2,500 steps; there is no filter.
    return_X_y : bool, default=False
        If True, return ``(X, y)`` of all windows instead of a Bunch.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        recordings : list of ndarray of shape (n_timesteps, 2), dtype float32
            Filtered ECG at 250 Hz, z-scores, from the first rhythm annotation on, in the
            shuffled order: training, then validation, then test records.
        segments : ndarray of shape (n_segments, 4), dtype int64
            Recording index, start, end (exclusive) and label of each rhythm: 0 AFIB, 1 N, -1
            any other.
        X : ndarray of shape (n_windows, ceil(2500 / downsample), 2), dtype float32
            The windows: recordings in the order above, chronological within each.
        y : ndarray of shape (n_windows,)
            0 (AFIB) or 1 (N).
        groups : ndarray of shape (n_windows,)
            Subject (str), or index of the recording, of each window.
        recording, start : ndarray of shape (n_windows,)
            Index into ``recordings``, and first time step in it, of each window.
        split : ndarray of shape (n_windows,)
            "train", "val" or "test" for each window.
        recording_split, recording_subject, recording_name : ndarray of shape (n_recordings,)
            Part, subject and record name of each recording. Subjects are named after their
            first record.
        downsample : int
            As given. ``RecordingWindows(data.recordings, data.recording, data.start,
            data.X.shape[1], data.downsample)`` is ``data.X`` without its memory.
        feature_names, target_names : list of str
            Names of the 2 channels and of the 2 classes.
        sampling_rate : float
            Of ``recordings``: 250.0 Hz.
        DESCR : str
            Description of the data set.
    (X, y) : tuple of ndarray
        If ``return_X_y`` is True.

    Raises
    ------
    OSError
        If the data set or one of its files is not there.
    ImportError
        If wfdb is not installed.
    ValueError
        If a parameter is invalid, a file is damaged or a record is shorter than a window.

    Warns
    -----
    UserWarning
        If the subfolder ``mitdb`` stands in for the data set.

    Examples
    --------
    >>> from sklearn_pulse.datasets import fetch_mitbih_af
    >>> ecg = fetch_mitbih_af()  # doctest: +SKIP
    >>> ecg.X.shape[1:]  # doctest: +SKIP
    (500, 2)
    """
    check_group(group)
    check_option("label", label, ("majority", "pure"))
    downsample = check_integer(
        "downsample", downsample, 1, WINDOW_LENGTH, meaning="1 keeps every step"
    )
    wfdb = _import_wfdb()
    folder = _find_folder(data_home, download_if_missing)
    names = ordered_names(record_names(folder), record_order)
    order, recording_split = shuffled_split(len(names))
    rhythms = [read_rhythms(wfdb, folder, names[i]) for i in order]
    length = common_length(rhythms)
    recordings = [read_signals(wfdb, folder, one, length) for one in rhythms]
    recording, start, y = label_windows(recordings, rhythms, label)
    n_steps = len(range(0, WINDOW_LENGTH, downsample))
    X = np.asarray(RecordingWindows(recordings, recording, start, n_steps, downsample))
    if return_X_y:
        return X, y
    names = np.array([one.name for one in rhythms])
    subject = np.array([_SUBJECT_OF_RECORD.get(name, name) for name in names.tolist()])
    return Bunch(
        recordings=recordings,
        segments=rhythm_segments(rhythms, length),
        X=X,
        y=y,
        groups=window_groups(group, recording, subject),
        recording=recording,
        start=start,
        split=recording_split[recording],
        recording_split=recording_split,
        recording_subject=subject,
        recording_name=names,
        downsample=downsample,
        feature_names=list(FEATURE_NAMES),
        target_names=list(TARGET_NAMES),
        sampling_rate=SAMPLING_RATE,
        DESCR=_DESCR,
    )


def record_names(folder: Path) -> list[str]:
    """Return the sorted names of the records that have signals, that is a ``.dat`` file."""
    return sorted(path.stem for path in folder.glob("*.dat") if not path.name.startswith("."))


def ordered_names(names: list[str], record_order: Sequence[str] | None) -> list[str]:
    """Return the names in the wanted order; an error unless it has each name once."""
    if record_order is None:
        return names
    is_text = isinstance(record_order, str)
    if is_text or sorted(map(str, record_order)) != names:
        raise (TypeError if is_text else ValueError)(
            f"record_order must hold each of the {len(names)} records once, got "
            f"{record_order!r}; the records are {', '.join(names)}."
        )
    return [str(name) for name in record_order]


def read_rhythms(wfdb: Any, folder: Path, name: str) -> Rhythms:
    """Read where the rhythms of a record begin.

    Rhythm annotations are the ones whose text begins with "("; beats are passed over.

    Parameters
    ----------
    wfdb : module
        The package wfdb.
    folder : pathlib.Path
        The folder with the record's files.
    name : str
        Name of the record.

    Returns
    -------
    rhythms : Rhythms
        Onsets at 250 Hz, counted from the first one.

    Raises
    ------
    OSError
        If the header or the annotations are missing.
    ValueError
        If the record has no rhythm annotation.
    """
    for suffix in (".hea", ".atr"):
        if not (folder / (name + suffix)).is_file():
            raise FileNotFoundError(
                f"{folder / (name + suffix)} is missing; unpack the complete data set again."
            )
    header = wfdb.rdheader(str(folder / name))
    annotation = wfdb.rdann(str(folder / name), "atr")
    marks = [
        (int(sample), text.strip("\x00 ")[1:])
        for sample, text in zip(annotation.sample, annotation.aux_note, strict=True)
        if text.startswith("(")
    ]
    if not marks:
        raise ValueError(f"{folder / name}.atr marks no rhythm; unpack the data set again.")
    first = marks[0][0]
    rate = float(header.fs)
    onset = np.rint([(sample - first) * SAMPLING_RATE / rate for sample, _ in marks])
    code = [_RHYTHM_CODES.get(rhythm, _OTHER_RHYTHM) for _, rhythm in marks]
    return Rhythms(name, rate, first, header.sig_len, onset.astype(np.int64), np.array(code))


def common_length(rhythms: list[Rhythms]) -> int:
    """Return the length of the shortest record, in steps at 250 Hz."""
    shortest = min(rhythms, key=lambda one: one.n_timesteps)
    if shortest.n_timesteps < WINDOW_LENGTH:
        raise ValueError(
            f"record {shortest.name} has {shortest.n_timesteps} steps at 250 Hz after its first "
            f"rhythm annotation, less than a window ({WINDOW_LENGTH}), and all records are cut to "
            "the shortest; unpack the data set again, or move the record away."
        )
    return shortest.n_timesteps


def read_signals(wfdb: Any, folder: Path, rhythms: Rhythms, length: int) -> np.ndarray:
    """Read, resample, cut and clean the signals of a record.

    Parameters
    ----------
    wfdb : module
        The package wfdb.
    folder : pathlib.Path
        The folder with the record's files.
    rhythms : Rhythms
        Of the record.
    length : int
        Number of steps to keep, at 250 Hz.

    Returns
    -------
    signals : ndarray of shape (length, n_leads), dtype float32
        z-scores per lead.

    Raises
    ------
    ValueError
        If a lead holds no sample.
    """
    up, down = resampling_ratio(rhythms.sampling_rate)
    stop = rhythms.stop if (up, down) != (1, 1) else rhythms.first + length
    record = wfdb.rdrecord(str(folder / rhythms.name), sampfrom=rhythms.first, sampto=stop)
    signals = np.array(record.p_signal, dtype=np.float64)
    for lead in range(signals.shape[1]):
        if not np.isfinite(signals[:, lead]).any():
            raise ValueError(
                f"record {rhythms.name} has no sample in lead {lead}; unpack the data set again."
            )
    signals = resample(fill_missing(signals), up, down)[:length]
    return standardize(clean_ecg(signals)).astype(np.float32)


def rhythm_steps(rhythms: Rhythms, length: int) -> np.ndarray:
    """Return the rhythm code of each of the first `length` steps, shape (length,).

    Examples
    --------
    >>> import numpy as np
    >>> marks = Rhythms("a", 250.0, 0, 9, onset=np.array([0, 2]), code=np.array([3, 0]))
    >>> rhythm_steps(marks, 5)
    array([3, 3, 0, 0, 0])
    """
    bounds = np.append(np.minimum(rhythms.onset, length), length)
    return np.repeat(rhythms.code, np.diff(bounds))


def rhythm_segments(rhythms: list[Rhythms], length: int) -> np.ndarray:
    """Return the rhythms of all recordings as rows (recording, start, end, label)."""
    rows = []
    for index, one in enumerate(rhythms):
        bounds = np.append(np.minimum(one.onset, length), length).tolist()
        labels = _CLASS_OF_CODE[one.code].tolist()
        rows += [
            (index, start, end, label)
            for start, end, label in zip(bounds[:-1], bounds[1:], labels, strict=True)
            if end > start
        ]
    return np.array(rows, dtype=np.int64)


def label_windows(
    recordings: list[np.ndarray], rhythms: list[Rhythms], label: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut the records into windows and keep those with atrial fibrillation or normal rhythm.

    Parameters
    ----------
    recordings : list of ndarray of shape (n_timesteps, n_leads)
        The recordings at 250 Hz.
    rhythms : list of Rhythms
        Their rhythms.
    label : {"majority", "pure"}
        How a window is labelled.

    Returns
    -------
    recording, start, y : ndarray of int of shape (n_windows,)
        Recording, first step and class (0 AFIB, 1 N) of each window.
    """
    recording, start, y = [], [], []
    # One record at a time: the codes per step of all of them would fill gigabytes.
    for index, (signals, one) in enumerate(zip(recordings, rhythms, strict=True)):
        codes = rhythm_steps(one, len(signals))
        cut = sliding_windows([signals], WINDOW_LENGTH, y=[codes], label=label, lazy=True)
        classes = np.append(_CLASS_OF_CODE, -1)[cut.y]  # -1: no single rhythm
        kept = classes >= 0
        recording.append(np.full(int(kept.sum()), index))
        start.append(cut.start[kept])
        y.append(classes[kept])
    return np.concatenate(recording), np.concatenate(start), np.concatenate(y)


def _find_folder(data_home: str | os.PathLike[str] | None, download_if_missing: bool) -> Path:
    """Return the folder with the WFDB files."""
    home = resolve_data_home(data_home)
    found = locate((home, home / "afdb"), _LANDMARKS)
    if found is not None:
        return found
    stand_in = locate((home / "mitdb",), _LANDMARKS)
    if stand_in is None:
        return ensure("mitbih_af", data_home, download_if_missing)
    try:
        return ensure("mitbih_af", data_home, download_if_missing=False)
    except OSError:
        warnings.warn(
            f"the MIT-BIH AF database is not in {home}; the MIT-BIH Arrhythmia Database in "
            f"{stand_in} is read instead. Name that folder with data_home to say that it is meant.",
            UserWarning,
            stacklevel=3,
        )
        return stand_in


def _import_wfdb() -> Any:
    try:
        import wfdb
    except ImportError as error:
        raise ImportError(
            "fetch_mitbih_af reads WFDB files with the package wfdb: "
            "pip install sklearn-pulse[ecg]."
        ) from error
    return wfdb
