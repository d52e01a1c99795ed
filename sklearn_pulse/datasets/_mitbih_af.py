"""MIT-BIH Atrial Fibrillation Database: reader of WFDB files, cleaning and windows.

Source: paper, Appendix D (ECG). The cleaning is a high-pass filter and a moving average over one
period of the powerline, both zero-phase, followed by a z-score per record and lead.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._extras import needs
from .._parameters import check_option
from .._warnings import warn_user
from ..windows import RecordingWindows, sliding_windows
from ..windows._checks import check_downsample
from ._ecg import SAMPLING_RATE, clean_ecg, fill_missing, resample, resampling_ratio
from ._groups import check_group, window_groups
from ._home import locate, resolve_data_home
from ._remote import REMOTES, check_flags, ensure, is_there, physionet_folders
from ._split import shuffled_split
from ._standardize import standardize

WINDOW_LENGTH = 2500  # steps at 250 Hz: 10 s
TARGET_NAMES = ["AFIB", "N"]
CHANNEL_NAMES = ["ecg_1", "ecg_2"]

_SLOWEST, _FASTEST = 50, 2000  # sampling rates in Hz that an ECG may have
# The order matters, since the lowest code wins a tie between rhythms.
_RHYTHM_CODES = {"AFIB": 0, "AFL": 1, "J": 2, "N": 3}
_OTHER_RHYTHM = len(_RHYTHM_CODES)
_CLASS_OF_CODE = np.array([0, -1, -1, 1, -1])  # only AFIB and N are classes
# wfdb checks little of what it reads: a damaged file ends in an error of any kind.
_WFDB_DAMAGE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)
_END_OF_ANNOTATIONS = b"\0\0"
_RECORDS = (
    "04015 04043 04048 04126 04746 04908 04936 05091 05121 05261 06426 06453 06995 07162 07859"
    " 07879 07910 08215 08219 08378 08405 08434 08455"
).split()
_WITHOUT_SIGNALS = {"00735", "03665"}  # records that are published with annotations alone
# Two records of the MIT-BIH Arrhythmia Database come from the same man.
_SUBJECT_OF_RECORD = {"202": "201"}

_DESCR = """\
Atrial fibrillation in two-lead ECG (MIT-BIH AF)
------------------------------------------------

:Source: PhysioNet, MIT-BIH Atrial Fibrillation Database 1.0.0; records in WFDB format
:Recordings: 23 records of about 10 hours with signals (two more have none), one subject each
:Channels: 2 ECG leads, z-scores
:Sampling rate: 250 Hz (``sampling_rate``); windows keep every 5th step by default, 50 Hz
    (``window_rate``)
:Windows: 10 s (2,500 steps) without overlap; by default 500 of the steps are kept
:Classes: 2; AFIB (atrial fibrillation), N (every rhythm that the database labels normal)

The database holds long-term recordings of people with atrial fibrillation, mostly paroxysmal.
Cardiologists marked where each rhythm begins.

Processing, as in the PULSE publication: a rhythm lasts until the next mark, and the steps before
the first mark are dropped. All records are cut to the shortest. Each lead is filtered forwards
and backwards: by a Butterworth high-pass of order 5 at 0.5 Hz, then by a moving average of 5
steps against 50 Hz powerline noise. Then the lead's mean is subtracted and the result divided by
the lead's standard deviation over the record. A window has the most frequent rhythm of its steps,
and only windows with atrial fibrillation or normal rhythm are kept. A missing sample is filled
with the last sample before it. A record with another sampling rate is first resampled to 250 Hz.

Split: the records, sorted by name, are shuffled with seed 1234 and divided 70 : 15 : 15 (16 / 3
/ 4 records). Before the shuffle, the publication took the records in the order of its file
system, which is not known; `record_order` sets another order. The database names no person with
two records, so this split by record is also a split by person. Windows of one record are alike:
never divide them at random.

The MIT-BIH Arrhythmia Database (360 Hz, half an hour each, beats and rhythms marked) is read by
the same rules. Its records 201 and 202 come from one person: with ``group="recording"``, and with
`split`, this person can be in two parts. Rhythms without a code here, such as bigeminy and paced
rhythm, belong to no class.

Licence: Open Data Commons Attribution License 1.0.

.. rubric:: References

Moody, G. B. and Mark, R. G. (1983). A new method for detecting atrial fibrillation using R-R
intervals. Computers in Cardiology, 10, 227-230.

Goldberger, A. L. et al. (2000). PhysioBank, PhysioToolkit, and PhysioNet. Circulation, 101(23),
e215-e220.
"""


class Rhythms(NamedTuple):
    """Rhythm annotations of one record.

    Attributes
    ----------
    name : str
        Name of the record.
    sampling_rate : float
        Sampling rate of the file in Hz.
    first : int
        First sample of the file that is used: the sample with the first rhythm annotation.
    stop : int
        Number of samples of the file.
    onset : ndarray of int of shape (n_rhythms,)
        Step at which each rhythm begins, at 250 Hz, counted from `first`.
    code : ndarray of int of shape (n_rhythms,)
        Code of each rhythm: AFIB 0, AFL 1, J 2, N 3, any other rhythm 4.
    """

    name: str
    sampling_rate: float
    first: int
    stop: int
    onset: NDArray[np.int64]
    code: NDArray[np.int64]

    @property
    def n_timesteps(self) -> int:
        """Number of steps at 250 Hz from the first rhythm annotation on."""
        up, down = resampling_ratio(self.sampling_rate)
        return -(-(self.stop - self.first) * up // down)


def fetch_mitbih_af(
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    *,
    group: Literal["subject", "recording"] = "subject",
    record_order: Sequence[str] | None = None,
    label: Literal["majority", "pure"] = "majority",
    downsample: int = 5,
    return_X_y: bool = False,
) -> Bunch | tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Load the MIT-BIH Atrial Fibrillation Database with the published windows.

    Reading needs the package wfdb (``pip install 'sklearn-pulse[ecg]'``). Filtering the 23 records
    takes about a minute, and the recordings take about 1.7 GB of memory.

    ==============   ==============================
    Classes                                       2
    Window           500 steps (10 s), 2 channels
    Recordings       16 / 3 / 4, 250 Hz
    ==============   ==============================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder with the WFDB files, or a folder whose subfolder ``mitbih_af``, ``afdb`` or
        ``physionet.org/files/afdb/1.0.0`` (a download by wget) holds them. If all of these are
        missing, a subfolder ``mitdb`` (the MIT-BIH Arrhythmia Database) is read instead, with a
        warning. None means the default of :func:`get_data_home`.
    download_if_missing : bool, default=True
        Whether to download the data set (440 MB) if it is missing. If False, a missing data set
        raises an OSError.
    group : {"subject", "recording"}, default="subject"
        Meaning of ``groups``: the subject or the recording of a window.
    record_order : sequence of str, default=None
        Names of all records, in the order in which the records enter the seeded shuffle that
        makes the split. None sorts the records by name.
    label : {"majority", "pure"}, default="majority"
        How a window is labelled. "majority" takes the most frequent rhythm of its steps, where
        all rhythms but AFIB, AFL, J and N count as one; the
        first of AFIB, AFL, J, N wins a tie. "pure" keeps only windows with a single rhythm.
    downsample : int, default=5
        A window holds every `downsample`-th of its 2,500 steps. No filter is applied.
    return_X_y : bool, default=False
        If True, return ``(X, y)`` of all windows instead of a Bunch.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object with the attributes

        recordings : list of ndarray of shape (n_timesteps, 2), dtype float32
            Filtered ECG at 250 Hz, as z-scores, from the first rhythm annotation on, in the
            shuffled order: training, then validation, then test records.
        segments : ndarray of shape (n_segments, 4), dtype int64
            Recording index, start, end (exclusive) and label of each rhythm: 0 (AFIB), 1 (N) or
            -1 (any other rhythm).
        X : ndarray of shape (n_windows, ceil(2500 / downsample), 2), dtype float32
            The windows, in the order of ``recordings`` and chronological within each recording.
        y : ndarray of shape (n_windows,)
            Label of each window, 0 (AFIB) or 1 (N).
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
            Subject of each recording, named after the subject's first record.
        recording_name : ndarray of shape (n_recordings,)
            Name of the record of each recording.
        downsample : int
            Value of the parameter. ``RecordingWindows(data.recordings, data.recording,
            data.start, data.X.shape[1], data.downsample)`` holds the windows of ``data.X``
            without their memory.
        channel_names : list of str
            Names of the 2 channels.
        target_names : list of str
            Names of the 2 classes.
        sampling_rate : float
            Sampling rate of ``recordings`` in Hz, 250.0.
        window_rate : float
            Sampling rate of ``X`` in Hz, ``sampling_rate / downsample``.
        stands_in : bool
            Whether the MIT-BIH Arrhythmia Database was read in place of a data set that is missing.
        DESCR : str
            Description of the data set.
    (X, y) : tuple of ndarray
        Windows and labels. Returned only if ``return_X_y`` is True.

    Raises
    ------
    OSError
        If the data set or one of its files is missing and is not downloaded.
    ImportError
        If wfdb is not installed, or if the data set has to be downloaded and pooch is not
        installed.
    ValueError
        If a parameter is invalid, a file is damaged, or a record is shorter than a window.
    TypeError
        If a parameter has a wrong type.

    Warns
    -----
    UserWarning
        If the subfolder ``mitdb`` is read instead of the data set, or some of the published records
        are missing, so that others come into the parts.

    Examples
    --------
    >>> from sklearn_pulse.datasets import fetch_mitbih_af
    >>> ecg = fetch_mitbih_af()  # doctest: +SKIP
    >>> ecg.X.shape[1:]  # doctest: +SKIP
    (500, 2)
    """
    check_group(group)
    check_flags(download_if_missing, return_X_y=return_X_y)
    check_option("label", label, ("majority", "pure"))
    downsample = check_downsample(downsample, WINDOW_LENGTH)
    wfdb = _import_wfdb()
    folder, stands_in = _find_folder(data_home, download_if_missing)
    there = record_names(folder)
    _warn_of_absent(folder, there)
    ordered = ordered_names(there, record_order)
    order, recording_split = shuffled_split(len(ordered))
    rhythms = [read_rhythms(wfdb, folder, ordered[i]) for i in order]
    length = common_length(rhythms)
    recordings = [read_signals(wfdb, folder, record, length) for record in rhythms]
    recording, start, y = label_windows(recordings, rhythms, label)
    n_steps = len(range(0, WINDOW_LENGTH, downsample))
    X = np.asarray(RecordingWindows(recordings, recording, start, n_steps, downsample))
    if return_X_y:
        return X, y
    names = np.array([record.name for record in rhythms])
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
        channel_names=list(CHANNEL_NAMES),
        target_names=list(TARGET_NAMES),
        sampling_rate=SAMPLING_RATE,
        window_rate=SAMPLING_RATE / downsample,
        stands_in=stands_in,
        DESCR=_DESCR,
    )


def record_names(folder: Path) -> list[str]:
    """Return the sorted names of the records that have signals, that is, a ``.dat`` file.

    Raises
    ------
    OSError
        If the signals of a record of the database are missing.
    """
    signals, headers = (
        {path.stem for path in folder.glob(pattern) if not path.name.startswith(".")}
        for pattern in ("*.dat", "*.hea")
    )
    missing = sorted(headers - signals - _WITHOUT_SIGNALS)
    if missing:
        raise FileNotFoundError(
            f"{folder / missing[0]}.dat is missing, although {missing[0]}.hea is there; unpack the"
            " complete data set again, or remove this header to leave the record out."
        )
    return sorted(signals)


def ordered_names(names: list[str], record_order: Sequence[str] | None) -> list[str]:
    """Return the names in the order `record_order`; raise unless it holds each name once."""
    if record_order is None:
        return names
    is_list = isinstance(record_order, Iterable) and not isinstance(record_order, str)
    ordered = [str(name) for name in record_order] if is_list else []
    if sorted(ordered) != names:
        raise (ValueError if is_list else TypeError)(
            f"record_order must hold each of the {len(names)} records once, got "
            f"{record_order!r}; the records are {', '.join(names)}."
        )
    return ordered


def read_rhythms(wfdb: Any, folder: Path, name: str) -> Rhythms:
    """Read the rhythm annotations of a record.

    The text of a rhythm annotation begins with "("; annotations of beats are skipped.

    Parameters
    ----------
    wfdb : module
        The package wfdb.
    folder : pathlib.Path
        Folder with the record's files.
    name : str
        Name of the record.

    Returns
    -------
    rhythms : Rhythms
        The rhythm annotations.

    Raises
    ------
    OSError
        If the header or the annotation file is missing.
    ValueError
        If a file is damaged, or the record has no rhythm annotation.
    """
    for suffix in (".dat", ".hea", ".atr"):
        if not (folder / (name + suffix)).is_file():
            raise FileNotFoundError(
                f"{folder / (name + suffix)} is missing; unpack the complete data set again."
            )
    header = _read_header(wfdb, folder, name)
    annotations = folder / f"{name}.atr"
    if annotations.read_bytes()[-2:] != _END_OF_ANNOTATIONS:
        raise ValueError(f"{annotations} is cut off; unpack the data set again.")
    annotation = _read_wfdb(annotations, wfdb.rdann, str(folder / name), "atr")
    marks = [
        (int(sample), text.strip("\x00 ")[1:])
        for sample, text in zip(annotation.sample, annotation.aux_note, strict=True)
        if text.startswith("(")
    ]
    if not marks:
        raise ValueError(f"{annotations} has no rhythm annotation; unpack the data set again.")
    samples = [sample for sample, _ in marks]
    if samples[0] < 0 or samples[-1] >= header.sig_len or sorted(samples) != samples:
        raise ValueError(
            f"{annotations} has rhythms outside its record or out of order; unpack the data set"
            " again."
        )
    first = samples[0]
    rate = float(header.fs)
    onset = np.rint([(sample - first) * SAMPLING_RATE / rate for sample, _ in marks])
    code = [_RHYTHM_CODES.get(rhythm, _OTHER_RHYTHM) for _, rhythm in marks]
    return Rhythms(name, rate, first, header.sig_len, onset.astype(np.int64), np.array(code))


def _read_header(wfdb: Any, folder: Path, name: str) -> Any:
    """Read the header of a record; raise unless the record is its own ``.dat`` file, and whole.

    A header names the files of its signals, so that a hostile header could name any file.
    """
    path, signals = folder / f"{name}.hea", folder / f"{name}.dat"
    header = _read_wfdb(path, wfdb.rdheader, str(folder / name))
    if (
        getattr(header, "n_seg", None) is not None
        or header.file_name != [signals.name] * header.n_sig
    ):
        raise ValueError(
            f"{path} does not describe {signals.name} alone; unpack the data set again."
        )
    rate, n_samples, n_bytes = header.fs, header.sig_len, signals.stat().st_size
    if not rate or not _SLOWEST <= rate <= _FASTEST:
        raise ValueError(f"{path} has a sampling rate of {rate} Hz; unpack the data set again.")
    if header.n_sig != len(CHANNEL_NAMES):
        raise ValueError(
            f"{path} has {header.n_sig} leads instead of {len(CHANNEL_NAMES)}; unpack the data set"
            " again."
        )
    # The formats of this database spend 1.5 or 2 bytes on a sample.
    if not set(header.fmt) <= {"212", "16"} or not n_samples:
        raise ValueError(f"{path} has signals of another format; unpack the data set again.")
    if 3 * n_samples * header.n_sig > 2 * n_bytes + 3 * header.n_sig:
        raise ValueError(
            f"{path} has {n_samples} samples of {header.n_sig} leads, too many for the {n_bytes}"
            f" bytes of {signals.name}; unpack the data set again."
        )
    return header


def _read_wfdb(path: Path, read: Any, *args: Any, **options: Any) -> Any:
    """Call a reader of wfdb; raise a ValueError that names the file if wfdb cannot read it."""
    try:
        return read(*args, **options)
    except _WFDB_DAMAGE as error:
        raise ValueError(f"{path} is no readable WFDB file; unpack the data set again.") from error


def common_length(rhythms: list[Rhythms]) -> int:
    """Return the length of the shortest record, in steps at 250 Hz."""
    shortest = min(rhythms, key=lambda record: record.n_timesteps)
    if shortest.n_timesteps < WINDOW_LENGTH:
        raise ValueError(
            f"record {shortest.name} has {shortest.n_timesteps} steps at 250 Hz after its first "
            f"rhythm annotation, less than a window ({WINDOW_LENGTH}), and all records are cut to "
            "the shortest; unpack the data set again, or remove this record from the folder."
        )
    return shortest.n_timesteps


def read_signals(wfdb: Any, folder: Path, rhythms: Rhythms, length: int) -> NDArray[np.float32]:
    """Read, resample, cut and clean the signals of a record.

    Parameters
    ----------
    wfdb : module
        The package wfdb.
    folder : pathlib.Path
        Folder with the record's files.
    rhythms : Rhythms
        Rhythm annotations of the record.
    length : int
        Number of steps to keep, at 250 Hz.

    Returns
    -------
    signals : ndarray of shape (length, n_leads), dtype float32
        Z-scores of the cleaned ECG, per lead. A lead that is constant in the file is zero.

    Raises
    ------
    ValueError
        If the file is damaged, or a lead holds no sample.
    """
    up, down = resampling_ratio(rhythms.sampling_rate)
    stop = rhythms.stop if (up, down) != (1, 1) else rhythms.first + length
    span = {"sampfrom": rhythms.first, "sampto": stop}
    path = folder / f"{rhythms.name}.dat"
    with np.errstate(all="ignore"):
        record = _read_wfdb(path, wfdb.rdrecord, str(folder / rhythms.name), **span)
    signals = np.array(record.p_signal, dtype=np.float64)
    for lead in range(signals.shape[1]):
        if not np.isfinite(signals[:, lead]).any():
            raise ValueError(
                f"record {rhythms.name} has no sample in lead {lead}; unpack the data set again."
            )
    with np.errstate(all="ignore"):  # numbers beyond a float are an error below
        signals = fill_missing(signals)
        n_kept = (length - 1) * down // up + 1  # samples under the steps that are kept
        is_flat = np.ptp(signals[:n_kept], axis=0) == 0
        signals = resample(signals, up, down)[:length]
        scores = standardize(clean_ecg(signals)).astype(np.float32)
    if not np.isfinite(scores).all():
        raise ValueError(
            f"the gains in {path.with_suffix('.hea')} make the signals infinite; unpack the data"
            " set again."
        )
    scores[:, is_flat] = 0.0  # the filters leave rounding errors, which the scores would enlarge
    return scores


def rhythm_steps(rhythms: Rhythms, length: int) -> NDArray[np.int64]:
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


def rhythm_segments(rhythms: list[Rhythms], length: int) -> NDArray[np.int64]:
    """Return the rhythms of all recordings as rows (recording, start, end, label)."""
    rows: list[tuple[int, int, int, int]] = []
    for index, record in enumerate(rhythms):
        bounds = np.append(np.minimum(record.onset, length), length).tolist()
        labels = _CLASS_OF_CODE[record.code].tolist()
        rows += [
            (index, start, end, label)
            for start, end, label in zip(bounds[:-1], bounds[1:], labels, strict=True)
            if end > start
        ]
    return np.array(rows, dtype=np.int64)


def label_windows(
    recordings: list[NDArray[np.float32]],
    rhythms: list[Rhythms],
    label: Literal["majority", "pure"],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Cut the records into windows and keep those with atrial fibrillation or normal rhythm.

    Parameters
    ----------
    recordings : list of ndarray of shape (n_timesteps, n_leads)
        The recordings at 250 Hz.
    rhythms : list of Rhythms
        Rhythm annotations of each recording.
    label : {"majority", "pure"}
        How a window is labelled: by the most frequent rhythm of its steps, or only if all its
        steps have the same rhythm.

    Returns
    -------
    recording : ndarray of int of shape (n_windows,)
        Index of the recording of each window.
    start : ndarray of int of shape (n_windows,)
        First step of each window.
    y : ndarray of int of shape (n_windows,)
        Class of each window, 0 (AFIB) or 1 (N).
    """
    recording, start, y = [], [], []
    # Go record by record, since the codes per step of all records would fill gigabytes.
    for index, (signals, record) in enumerate(zip(recordings, rhythms, strict=True)):
        codes = rhythm_steps(record, len(signals))
        cut = sliding_windows([signals], WINDOW_LENGTH, y=[codes], label=label, lazy=True)
        classes = np.append(_CLASS_OF_CODE, -1)[cut.y]  # cut.y is -1 without a single rhythm
        kept = classes >= 0
        recording.append(np.full(int(kept.sum()), index))
        start.append(cut.start[kept])
        y.append(classes[kept])
    return np.concatenate(recording), np.concatenate(start), np.concatenate(y)


def _warn_of_absent(folder: Path, names: Sequence[str]) -> None:
    """Warn of published records that are missing among others, and of others beside them."""
    absent = [name for name in _RECORDS if name not in names]
    foreign = [name for name in names if name not in _RECORDS]
    if foreign and len(absent) < len(_RECORDS):
        warn_user(
            f"{folder} also holds the records {', '.join(foreign)}, which are not of the AF"
            " database, so neither the parts nor the common length are the published ones: move"
            " these records elsewhere."
        )
    if 0 < len(absent) < len(_RECORDS):
        warn_user(
            f"{folder} lacks the records {', '.join(absent)}, so the parts are not the published"
            " ones: the records that are there are divided anew."
        )


def _find_folder(
    data_home: str | os.PathLike[str] | None, download_if_missing: bool
) -> tuple[Path, bool]:
    """Return the folder with the WFDB files, and whether the Arrhythmia Database stands in."""
    home = resolve_data_home(data_home)
    others = [home / folder for folder in physionet_folders("mitdb")]
    stand_in = locate(others, REMOTES["mitbih_af"].landmarks)
    if stand_in is None or is_there("mitbih_af", home):
        return ensure("mitbih_af", home, download_if_missing), False
    warn_user(
        f"the MIT-BIH AF database is not in {home}; the MIT-BIH Arrhythmia Database in "
        f"{stand_in} is read instead. Name that folder with data_home to say that it is meant."
    )
    return stand_in, True


def _import_wfdb() -> Any:
    """Return the module wfdb, or raise an ImportError that says how to install it."""
    with needs("fetch_mitbih_af reads WFDB files with the package wfdb", "ecg"):
        import wfdb
    return wfdb
