"""Sleep-EDF: reader of EDF recordings and hypnograms, and 30 s epochs.

Source: paper, Appendix D (EEG). An epoch is a window of 30 s, the unit of sleep scoring.
"""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._extras import needs
from .._parameters import check_option
from .._warnings import warn_user
from ..windows import RecordingWindows
from ..windows._checks import check_downsample
from ._groups import check_group, window_groups
from ._remote import check_flags, ensure
from ._split import shuffled_split
from ._standardize import standardize

SAMPLING_RATE = 100.0
EPOCH_DURATION = 30.0  # seconds
EPOCH_LENGTH = 3000  # steps
_N_NIGHTS = 39  # of the subjects 0 to 19; one night was lost
MARGIN = 30 * 60.0  # seconds of waking that are kept before and after the night
CHANNEL_NAMES = ["EEG Fpz-Cz", "EEG Pz-Oz"]

# Hypnograms are scored by the rules of Rechtschaffen and Kales. "Movement time" and "?" are no
# stage and are left out.
_SCORED = {f"Sleep stage {stage}": stage for stage in ("W", "1", "2", "3", "4", "R")}
_STAGES = {
    "aasm": (
        ["W", "N1", "N2", "N3", "REM"],
        {"W": 0, "1": 1, "2": 2, "3": 3, "4": 3, "R": 4},
    ),
    # The published code keeps the codes 0 to 4 and gives REM the code 5.
    "published": (
        ["W", "N1", "N2", "N3", "N4"],
        {"W": 0, "1": 1, "2": 2, "3": 3, "4": 4},
    ),
}
_EDF_HEADER = 256  # bytes of an EDF file before the fields of its signals
_EDF_NUMBER = 8  # bytes of a number
# Where the header has its length, the number of records and the number of signals.
_EDF_FIELDS = ((184, 192), (236, 244), (252, 256))
_EDF_BEFORE_LENGTHS = 216  # bytes of a signal's fields before its number of samples in a record
# Study, subject (0 to 19 of 83), night, recorder, version.
_PSG_NAME = re.compile(r"(SC4([01]\d)([12])\w)\w-PSG\.edf")
_HYPNOGRAM_NAME = re.compile(r"(SC4[01]\d[12]\w)\w-Hypnogram\.edf")

_DESCR = """\
Sleep stages in two-channel EEG (Sleep-EDF)
-------------------------------------------

:Source: PhysioNet, Sleep-EDF Database Expanded 1.0.0, sleep cassette study; EDF and EDF+ files
:Recordings: 39 nights of the subjects 0 to 19 (two nights each; one night of subject 13 is lost)
:Channels: 2; EEG Fpz-Cz and Pz-Oz, as z-scores
:Sampling rate: 100 Hz (``sampling_rate``); windows keep every 3rd step by default, 33.3 Hz
    (``window_rate``)
:Windows: 30 s epochs (3,000 steps); by default 1,000 of the steps are kept
:Classes: 5; with stages="aasm" W, N1, N2, N3, REM; with stages="published" W, N1, N2, N3, N4

Healthy people slept at home with a cassette recorder. Technicians scored every 30 s.

Processing, as in the PULSE publication: each channel's mean over the whole recording of about 20
hours is subtracted and the result divided by the channel's standard deviation. The hypnogram is a
sequence of stretches of one stage. The recording is cut to the time from 30 minutes before the
onset of the second stretch to 30 minutes after the onset of the second last stretch. Stretches
are divided into epochs from their onset on. The rest of a stretch, movement time and unscored
time give no epochs. ``recordings`` run without a gap from the start of the first to the end of
the last epoch, and are cut to the shortest of them; the windows are not cut.

Stages: the hypnograms distinguish stage 3 and stage 4. By default both are merged to N3, as in
today's rules (AASM), and REM is a class. **In the publication the class that is called REM is
stage 4, and REM sleep is left out**; ``stages="published"`` gives these classes and names stage
4 "N4".

Split: the recordings, sorted by subject and night, are shuffled with seed 1234 and divided
27 / 6 / 6. **This split measures new nights, not new people:** a subject's two nights may lie in
two parts. For an estimate on new people, use ``groups`` (by default the subject of each window)
with ``sklearn.model_selection.GroupKFold``. ``group="recording"`` keeps only the windows of one
night together.

Licence: Open Data Commons Attribution License 1.0.

.. rubric:: References

Kemp, B., Zwinderman, A. H., Tuk, B., Kamphuisen, H. A. C. and Oberyé, J. J. L. (2000). Analysis
of a sleep-dependent neuronal feedback loop: the slow-wave microcontinuity of the EEG. IEEE
Transactions on Biomedical Engineering, 47(9), 1185-1194.

Goldberger, A. L. et al. (2000). PhysioBank, PhysioToolkit, and PhysioNet. Circulation, 101(23),
e215-e220.
"""


class Night(NamedTuple):
    """Files of one night.

    Attributes
    ----------
    subject : int
        Number of the subject, 0 to 19.
    night : int
        Number of the night, 1 or 2.
    psg : pathlib.Path
        EDF file with the polysomnogram.
    hypnogram : pathlib.Path
        EDF+ file with the hypnogram.
    """

    subject: int
    night: int
    psg: Path
    hypnogram: Path


class Hypnogram(NamedTuple):
    """Scored stretches of a recording, in order of time.

    Attributes
    ----------
    onset : ndarray of shape (n_stretches,)
        Onset of each stretch in seconds from the beginning of the recording.
    duration : ndarray of shape (n_stretches,)
        Duration of each stretch in seconds.
    description : ndarray of str of shape (n_stretches,)
        Score of each stretch, such as "Sleep stage 2".
    """

    onset: NDArray[np.float64]
    duration: NDArray[np.float64]
    description: NDArray[np.str_]


class _Epochs(NamedTuple):
    """Epochs of one recording.

    Attributes
    ----------
    series : ndarray of shape (n_timesteps, 2), dtype float32
        EEG from the start of the first to the end of the last epoch.
    start : ndarray of int of shape (n_epochs,)
        First step of each epoch in `series`.
    y : ndarray of int of shape (n_epochs,)
        Label of each epoch.
    """

    series: NDArray[np.float32]
    start: NDArray[np.int64]
    y: NDArray[np.int64]


def fetch_sleep_edf(
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool | None = None,
    *,
    group: Literal["subject", "recording"] = "subject",
    stages: Literal["aasm", "published"] = "aasm",
    downsample: int = 3,
    truncate: bool = True,
    return_X_y: bool = False,
) -> Bunch | tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Load the sleep recordings (Sleep-EDF) with the published epochs and split.

    Reading needs the package mne (``pip install 'sklearn-pulse[eeg]'``) and about 2 GB of memory.

    ==============   ==============================
    Classes                                       5
    Window           1,000 steps (30 s), 2 channels
    Recordings       27 / 6 / 6, 100 Hz
    ==============   ==============================

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder with ``SC4...-PSG.edf`` and ``SC4...-Hypnogram.edf``, or a folder whose subfolder
        ``sleep_edf``, ``sleep-cassette``, ``physionet-sleep-data`` (mne's folder) or
        ``physionet.org/files/sleep-edfx/1.0.0/sleep-cassette`` (a download by wget) holds them.
        Only files of the subjects 0 to 19 are read. None means the default of
        :func:`get_data_home`.
    download_if_missing : bool or None, default=None
        Whether to download the data set (8.1 GB, of which about a quarter is kept) if it is
        missing. Since it is larger than 1 GB, it is downloaded only with True; None and False
        raise an OSError.
    group : {"subject", "recording"}, default="subject"
        Meaning of ``groups``: the subject or the recording of a window.
    stages : {"aasm", "published"}, default="aasm"
        Classes. With "aasm", stages 3 and 4 are one class and REM is a class. With "published",
        stages 3 and 4 are two classes and REM is left out, as in the publication.
    downsample : int, default=3
        A window holds every `downsample`-th of its 3,000 steps. No filter is applied.
    truncate : bool, default=True
        Whether to cut ``recordings`` to the shortest, as published. The windows are not cut, so
        that some of them lie past the end of their recording. If False, recordings are not cut
        and hold all their windows.
    return_X_y : bool, default=False
        If True, return ``(X, y)`` of all windows instead of a Bunch.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object with the attributes

        recordings : list of ndarray of shape (n_timesteps, 2), dtype float32
            EEG Fpz-Cz and Pz-Oz at 100 Hz, as z-scores, from the start of the first to the end of
            the last epoch, in the shuffled order: training, then validation, then test
            recordings.
        segments : ndarray of shape (n_segments, 4), dtype int64
            Recording index, start, end (exclusive) and label of each stretch of one stage,
            inside ``recordings``.
        X : ndarray of shape (n_windows, ceil(3000 / downsample), 2), dtype float32
            The epochs, in the order of ``recordings`` and chronological within each recording.
        y : ndarray of shape (n_windows,)
            Label of each window, 0 to 4.
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
            Subject of each recording, 0 to 19.
        recording_night : ndarray of shape (n_recordings,)
            Night of each recording, 1 or 2.
        downsample : int
            Value of the parameter.
        channel_names : list of str
            Names of the 2 channels.
        target_names : list of str
            Names of the 5 classes.
        sampling_rate : float
            Sampling rate of ``recordings`` in Hz, 100.0.
        window_rate : float
            Sampling rate of ``X`` in Hz, ``sampling_rate / downsample``.
        DESCR : str
            Description of the data set.
    (X, y) : tuple of ndarray
        Windows and labels. Returned only if ``return_X_y`` is True.

    Raises
    ------
    OSError
        If the data set or one of its files is missing and is not downloaded.
    ImportError
        If mne is not installed, or if the data set has to be downloaded and pooch is not
        installed.
    ValueError
        If a parameter is invalid or a file is damaged.
    TypeError
        If a parameter has a wrong type.

    Warns
    -----
    UserWarning
        If nights are missing, so that others come into the parts.

    Examples
    --------
    >>> from sklearn_pulse.datasets import fetch_sleep_edf
    >>> sleep = fetch_sleep_edf(download_if_missing=True)  # doctest: +SKIP
    >>> sleep.target_names  # doctest: +SKIP
    ['W', 'N1', 'N2', 'N3', 'REM']
    """
    check_group(group)
    check_flags(download_if_missing, truncate=truncate, return_X_y=return_X_y)
    check_option("stages", stages, tuple(_STAGES))
    downsample = check_downsample(downsample, EPOCH_LENGTH)
    names, codes = _STAGES[stages]
    mne = _import_mne()
    nights = find_nights(ensure("sleep_edf", data_home, download_if_missing))
    if len(nights) < _N_NIGHTS:
        warn_user(
            f"{nights[0].psg.parent} holds {len(nights)} of the {_N_NIGHTS} nights of the subjects"
            " 0 to 19, so the parts are not the published ones: these nights are divided anew."
        )
    order, recording_split = shuffled_split(len(nights))
    nights = [nights[i] for i in order]
    epochs = [_read_epochs(mne, night, codes) for night in nights]
    recordings = [of_night.series for of_night in epochs]
    recording = np.repeat(np.arange(len(epochs)), [len(of_night.y) for of_night in epochs])
    start = np.concatenate([of_night.start for of_night in epochs])
    n_steps = len(range(0, EPOCH_LENGTH, downsample))
    X = np.asarray(RecordingWindows(recordings, recording, start, n_steps, downsample))
    y = np.concatenate([of_night.y for of_night in epochs])
    if return_X_y:
        return X, y
    if truncate:
        # A slice would keep the whole recording in memory, so copy it.
        shortest = min(map(len, recordings))
        recordings = [series[:shortest].copy() for series in recordings]
    subject = np.array([night.subject for night in nights])
    return Bunch(
        recordings=recordings,
        segments=_segments(epochs, [len(series) for series in recordings]),
        X=X,
        y=y,
        groups=window_groups(group, recording, subject),
        recording=recording,
        start=start,
        split=recording_split[recording],
        recording_split=recording_split,
        recording_subject=subject,
        recording_night=np.array([night.night for night in nights]),
        downsample=downsample,
        channel_names=list(CHANNEL_NAMES),
        target_names=list(names),
        sampling_rate=SAMPLING_RATE,
        window_rate=SAMPLING_RATE / downsample,
        DESCR=_DESCR,
    )


def find_nights(folder: Path) -> list[Night]:
    """Find the recordings of subjects 0 to 19, in order of subject and night.

    Parameters
    ----------
    folder : pathlib.Path
        Folder with the EDF files.

    Returns
    -------
    nights : list of Night
        The files of each night.

    Raises
    ------
    OSError
        If a polysomnogram or a hypnogram is missing.
    ValueError
        If the folder holds no recording of these subjects, or two of one night.
    """
    nights = []
    for path in sorted(folder.glob("SC4*-PSG.edf")):
        match = _PSG_NAME.fullmatch(path.name)
        if match is None:
            continue
        stem, subject, night = match.groups()
        # The last letter of a hypnogram's name stands for its scorer.
        hypnogram = next(iter(sorted(folder.glob(f"{stem}?-Hypnogram.edf"))), None)
        if hypnogram is None:
            raise FileNotFoundError(
                f"{folder / stem}?-Hypnogram.edf is missing; unpack the complete data set again."
            )
        nights.append(Night(int(subject), int(night), path, hypnogram))
        if len(nights) > 1 and nights[-2][:2] == nights[-1][:2]:
            raise ValueError(
                f"{nights[-2].psg.name} and {path.name} in {folder} are both of subject"
                f" {int(subject)} and night {night}: remove one of them."
            )
    for path in sorted(folder.glob("SC4*-Hypnogram.edf")):
        match = _HYPNOGRAM_NAME.fullmatch(path.name)
        if match is not None and not any(folder.glob(f"{match[1]}?-PSG.edf")):
            raise FileNotFoundError(
                f"{folder / match[1]}?-PSG.edf is missing, although {path.name} is there; unpack"
                " the complete data set again, or remove this file to leave the night out."
            )
    if not nights:
        raise ValueError(
            f"{folder} holds no recording of the subjects 0 to 19 (SC400... to SC419...); unpack "
            "the complete data set again."
        )
    return nights


def read_signals(mne: Any, path: Path) -> NDArray[np.float64]:
    """Read both EEG channels of a polysomnogram.

    Parameters
    ----------
    mne : module
        The package mne.
    path : pathlib.Path
        EDF file of the polysomnogram.

    Returns
    -------
    signals : ndarray of shape (n_timesteps, 2), dtype float64
        EEG in volts.

    Raises
    ------
    ValueError
        If the file is cut off, or a channel is missing, not sampled at 100 Hz or without a range.
    """
    # mne reports the headers' filter settings as warnings, which do not matter here.
    read = partial(mne.io.read_raw_edf, verbose="ERROR")
    raw = _read_edf(path, read, include=CHANNEL_NAMES)
    missing = [name for name in CHANNEL_NAMES if name not in raw.ch_names]
    if missing:
        raise ValueError(f"{path} has no channel {missing[0]!r}; unpack the data set again.")
    for name in CHANNEL_NAMES:
        # Read alone, since mne brings channels of several rates to the highest of them.
        rate = _read_edf(path, read, include=[name]).info["sfreq"]
        if rate != SAMPLING_RATE:
            raise ValueError(
                f"{path} is sampled at {rate:g} Hz instead of {SAMPLING_RATE:g} Hz in {name!r}; "
                "unpack the data set again."
            )
    with np.errstate(all="ignore"):  # a range that is no number is an error below
        signals: NDArray[np.float64] = raw.get_data(picks=CHANNEL_NAMES, verbose="ERROR").T
        has_range = np.isfinite(signals.std(axis=0)).all()
    if not has_range:
        raise ValueError(f"{path} has a channel without a range; unpack the data set again.")
    return signals


def read_hypnogram(mne: Any, path: Path) -> Hypnogram:
    """Read the annotations of a hypnogram."""
    read = _read_edf(path, mne.read_annotations)
    return Hypnogram(
        np.asarray(read.onset, dtype=np.float64),
        np.asarray(read.duration, dtype=np.float64),
        np.array([str(description) for description in read.description], dtype=str),
    )


def crop_hypnogram(hypnogram: Hypnogram) -> Hypnogram:
    """Cut off most of the waking day before and after the night.

    Parameters
    ----------
    hypnogram : Hypnogram
        Hypnogram of at least two stretches.

    Returns
    -------
    cropped : Hypnogram
        The stretches from 30 minutes before the onset of the second stretch to 30 minutes after
        the onset of the second last stretch. A stretch that reaches beyond is shortened.

    Raises
    ------
    ValueError
        If the hypnogram has fewer than two stretches.

    Examples
    --------
    >>> import numpy as np
    >>> onset, duration = np.array([0.0, 3600.0, 7200.0]), np.array([3600.0, 3600.0, 600.0])
    >>> night = Hypnogram(onset, duration, np.array(["W", "2", "?"]))
    >>> crop_hypnogram(night).onset
    array([1800., 3600.])
    """
    if len(hypnogram.onset) < 2:
        raise ValueError(
            f"the hypnogram has {len(hypnogram.onset)} annotation(s), and at least 2 are "
            "needed to find the night; unpack the data set again."
        )
    begin = hypnogram.onset[1] - MARGIN
    end = hypnogram.onset[-2] + MARGIN
    onset = np.maximum(hypnogram.onset, begin)
    offset = np.minimum(hypnogram.onset + hypnogram.duration, end)
    kept = offset > onset
    return Hypnogram(onset[kept], (offset - onset)[kept], hypnogram.description[kept])


def stage_epochs(
    hypnogram: Hypnogram, codes: dict[str, int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Divide the stretches of known stages into epochs of 30 s.

    A stretch has as many epochs as fit into it, from its onset on.

    Parameters
    ----------
    hypnogram : Hypnogram
        The stretches.
    codes : dict
        Label of each stage ("W", "1" to "4", "R"). Stretches of other stages give no epoch.

    Returns
    -------
    start : ndarray of int of shape (n_epochs,)
        First step of each epoch at 100 Hz.
    y : ndarray of int of shape (n_epochs,)
        Label of each epoch.

    Examples
    --------
    >>> import numpy as np
    >>> stages = np.array(["Sleep stage W", "Sleep stage 1"])
    >>> night = Hypnogram(np.array([0.0, 60.0]), np.array([60.0, 59.0]), stages)
    >>> stage_epochs(night, {"W": 0, "1": 1})
    (array([   0, 3000, 6000]), array([0, 0, 1]))
    """
    starts, labels = [], []
    for onset, duration, description in zip(*hypnogram, strict=True):
        label = codes.get(_SCORED.get(description, ""))
        if label is not None:
            # Times are decimal text. The small constant keeps a stretch of n epochs from losing
            # an epoch to rounding.
            n_epochs = int(duration / EPOCH_DURATION + 1e-6)
            starts += [onset + i * EPOCH_DURATION for i in range(n_epochs)]
            labels += [label] * n_epochs
    steps = np.rint(np.array(starts, dtype=np.float64) * SAMPLING_RATE)
    return steps.astype(np.int64), np.array(labels, dtype=np.int64)


def _read_epochs(mne: Any, night: Night, codes: dict[str, int]) -> _Epochs:
    """Read one night; its series begins with its first epoch."""
    signals = standardize(read_signals(mne, night.psg)).astype(np.float32)
    hypnogram = read_hypnogram(mne, night.hypnogram)
    try:
        start, y = stage_epochs(crop_hypnogram(hypnogram), codes)
    except ValueError as error:
        raise ValueError(f"{night.hypnogram}: {error}") from error
    inside = (start >= 0) & (start + EPOCH_LENGTH <= len(signals))
    start, y = start[inside], y[inside]
    if not len(start):
        raise ValueError(
            f"{night.hypnogram} scores no stage within {night.psg.name}; unpack the data set again."
        )
    begin, end = start[0], start[-1] + EPOCH_LENGTH
    return _Epochs(signals[begin:end].copy(), start - begin, y)


def _segments(epochs: list[_Epochs], lengths: list[int]) -> NDArray[np.int64]:
    """Return stretches of one stage as rows (recording, start, end, label) in the recordings."""
    rows = []
    for index, ((_, starts, labels), length) in enumerate(zip(epochs, lengths, strict=True)):
        # whether the next epoch follows without a gap and has the same stage
        continues = (np.diff(starts) == EPOCH_LENGTH) & (np.diff(labels) == 0)
        first = np.flatnonzero(np.append(True, ~continues))
        last = np.append(first[1:], len(labels)) - 1
        for start, end, label in zip(starts[first], starts[last], labels[first], strict=True):
            if start < length:
                rows.append((index, start, min(end + EPOCH_LENGTH, length), label))
    return np.array(rows, dtype=np.int64)


def _read_edf(path: Path, read: Any, **options: Any) -> Any:
    """Call a reader of mne; raise a ValueError that names the file if mne cannot read it."""
    _refuse_cut_off(path)
    try:
        return read(str(path), **options)
    except (ValueError, RuntimeError, IndexError, AssertionError) as error:
        raise ValueError(f"{path} is not a readable EDF file; unpack it again.") from error


def _refuse_cut_off(path: Path) -> None:
    """Raise if an EDF file is shorter than its header says: mne reads what is there, silently."""
    with open(path, "rb") as file:
        header = file.read(_EDF_HEADER)
        try:
            n_header, n_records, n_signals = (int(header[begin:end]) for begin, end in _EDF_FIELDS)
            if n_signals < 0:
                raise ValueError(f"it has {n_signals} signals")
            file.seek(_EDF_HEADER + _EDF_BEFORE_LENGTHS * n_signals)
            lengths = [int(file.read(_EDF_NUMBER)) for _ in range(n_signals)]
        except ValueError as error:
            raise ValueError(f"{path} is not a readable EDF file; unpack it again.") from error
    stated = n_header + n_records * 2 * sum(lengths)  # -1 records: their number is not known
    n_bytes = path.stat().st_size
    if n_bytes < stated:
        raise ValueError(
            f"{path} is cut off: it has {n_bytes} of {stated} bytes; unpack the data set again."
        )


def _import_mne() -> Any:
    """Return the module mne, or raise an ImportError that says how to install it."""
    with needs("fetch_sleep_edf reads EDF files with the package mne", "eeg"):
        import mne
    return mne
