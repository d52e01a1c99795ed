"""
Other questions to recordings that choices were made on
=======================================================

`CrossPredictionTransformer` was developed on activities of HAR, conditions of WESAD and rhythms of
the MIT-BIH Arrhythmia Database. The same recordings answer other questions, on which no choice was
made; `archives.py` scores the methods on them.

- `conditions`: half minutes of WESAD, from the onset of a condition on, where the development had
  the minute before it.
- `transitions`: all of HAR's recordings, in which people also sit down, lie down and get up. These
  six transitions last a few seconds each, and are rare; the development left them out.
- `beats`: single beats of the MIT-BIH records, half of which have premature beats, of the atria
  (which are rare) or of the ventricles. Each window begins 0.3 seconds before a beat.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.signal import butter, sosfiltfilt

from sklearn_pulse.datasets import fetch_har, fetch_wesad, get_data_home
from sklearn_pulse.windows import segment_windows

HALF_MINUTE = 1920  # steps at 64 Hz
TRANSITIONS = (
    "stand to sit",
    "sit to stand",
    "sit to lie",
    "lie to sit",
    "stand to lie",
    "lie to stand",
)
STEPS_OF_ACTIVITY = 128
ECG_RATE = 360  # in Hz
BEFORE, AFTER = 54, 90  # steps of a window beside its beat, at half of the rate
N_STRETCHES, N_BEATS = 8, 30  # of a record, and of a stretch
KINDS_OF_BEATS = {
    **dict.fromkeys("NLRej", "normal"),
    **dict.fromkeys("AaJS", "atrial"),
    **dict.fromkeys("VE", "ventricular"),
}
SAME_PERSON = {"202": "201"}


def conditions(home=None):
    """Return half minutes of the pulse of WESAD at 32 Hz, and their conditions."""
    data = fetch_wesad(home, windows="onset")
    windows = segment_windows(data.recordings, data.segments, HALF_MINUTE)
    names = np.array(data.target_names)[windows.y]
    subject = data.recording_subject[windows.recording]
    return {"X": windows.X[:, ::2], "y": names, "groups": subject} | order_of(windows)


def transitions(home=None):
    """Return windows of whole recordings of HAR, each of its most frequent activity."""
    data = fetch_har(home)
    rows = np.loadtxt(found("RawData/labels.txt", home), dtype=int)
    names = np.array([*data.target_names, *TRANSITIONS])
    segments = []
    for number, experiment in enumerate(data.recording_experiment):
        activity = np.zeros(len(data.recordings[number]), dtype=int)
        for _, _, label, first, last in rows[rows[:, 0] == experiment]:
            activity[max(first, 1) - 1 : last] = label
        for start in range(0, len(activity) - STEPS_OF_ACTIVITY + 1, STEPS_OF_ACTIVITY):
            shown = np.bincount(activity[start : start + STEPS_OF_ACTIVITY], minlength=13)[1:]
            if shown.sum() >= STEPS_OF_ACTIVITY // 2:
                segments.append((number, start, start + STEPS_OF_ACTIVITY, shown.argmax()))
    windows = segment_windows(data.recordings, np.array(segments), STEPS_OF_ACTIVITY)
    subject = data.recording_subject[windows.recording]
    return {"X": windows.X, "y": names[windows.y], "groups": subject} | order_of(windows)


def beats(home=None):
    """Return beats of two leads at 180 Hz, from stretches of each record, and their kinds."""
    folder = found("mitdb/201.hea", home).parent
    try:
        import wfdb
    except ImportError as error:
        raise ImportError("beats are records of WFDB: pip install 'sklearn-pulse[ecg]'") from error

    parts = []
    for number, header in enumerate(sorted(folder.glob("*.hea"))):
        name = str(header.with_suffix(""))
        record, notes = wfdb.rdrecord(name), wfdb.rdann(name, "atr")
        band = butter(2, (0.5, 40), "bandpass", fs=ECG_RATE, output="sos")
        signal = sosfiltfilt(band, record.p_signal, axis=0)[::2]
        start = notes.sample // 2 - BEFORE
        kind = np.array([KINDS_OF_BEATS.get(symbol, "") for symbol in notes.symbol])
        usable = np.flatnonzero(
            (kind != "") & (start >= 0) & (start + BEFORE + AFTER <= len(signal))
        )
        firsts = np.linspace(0, len(usable) - N_BEATS, N_STRETCHES).astype(int)
        kept = usable[np.unique(firsts[:, None] + np.arange(N_BEATS))]
        steps = start[kept][:, None] + np.arange(BEFORE + AFTER)
        person = SAME_PERSON.get(header.stem, header.stem)
        of_record = np.full(len(kept), number)
        parts.append((signal[steps], kind[kept], [person] * len(kept), of_record, start[kept]))
    names = "X", "y", "groups", "recording", "start"
    arrays = (np.concatenate(part) for part in zip(*parts, strict=True))
    return dict(zip(names, arrays, strict=True))


def found(path, home):
    """Return a file or folder of the data sets."""
    folder = Path(get_data_home(home))
    for place in (folder / path, *sorted(folder.glob(f"*/{path}"))):
        if place.exists():
            return place
    raise OSError(f"{path} is missing in {folder}: put the recordings there, as published")


def order_of(windows):
    """Return the recording and the start of windows."""
    return {"recording": windows.recording, "start": windows.start}


SOURCES = {"conditions": conditions, "transitions": transitions, "beats": beats}
