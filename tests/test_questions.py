"""The script of other questions to known recordings, on recordings made here and on real ones."""

import sys

import numpy as np
import pytest

from sklearn_pulse.datasets import fetch_har, fetch_wesad

from .datasets.test_har import LENGTHS, random_label_rows, write_folder
from .datasets.wfdb_records import write_signals
from .test_reproduce import script


@pytest.fixture(scope="module")
def questions():
    return script("questions")


@pytest.mark.filterwarnings("ignore:.* recordings that have segments")
@pytest.mark.filterwarnings("ignore:no segment of the class")
def test_a_window_has_the_activity_of_most_of_its_steps(questions, tmp_path):
    rows = random_label_rows(np.random.default_rng(0), LENGTHS)[::2]  # half of the steps have none
    write_folder(tmp_path / "hapt" / "RawData", LENGTHS, rows)
    har = fetch_har(tmp_path)
    names = [None, *har.target_names, *questions.TRANSITIONS]
    expected = []
    for number, experiment in enumerate(har.recording_experiment):
        signal = har.recordings[number]
        for start in range(0, len(signal) - 127, 128):
            steps = [0] * 13
            for row_experiment, _, label, first, last in rows:
                if row_experiment == experiment:  # the file counts from 1, and ends are included
                    steps[label] += sum(first - 1 <= t < last for t in range(start, start + 128))
            if sum(steps) >= 64:
                expected.append((number, start, names[steps.index(max(steps))]))
    data = questions.transitions(tmp_path)
    found = zip(data["recording"].tolist(), data["start"].tolist(), data["y"].tolist(), strict=True)
    assert [*found] == expected and {*questions.TRANSITIONS} & {*data["y"]}
    for i, (number, start, _) in enumerate(expected):
        np.testing.assert_array_equal(data["X"][i], har.recordings[number][start : start + 128])
        assert data["groups"][i] == har.recording_subject[number]


def test_a_window_begins_before_a_beat(questions, tmp_path):
    wfdb = pytest.importorskip("wfdb")
    rng = np.random.default_rng(0)
    folder, at = tmp_path / "mitdb", np.arange(40, 80) * 300
    symbols = np.array([*"N+LRVEAaJSejfN~N"] * 3)[:40]  # fusions, changes and noise are no class
    for name in ("201", "202", "208"):
        signal = 0.1 * rng.normal(size=(81 * 300, 2))
        signal[at, 0] += 4  # a beat is one step long
        write_signals(folder, name, signal, questions.ECG_RATE)
        wfdb.wrann(name, "atr", at, symbol=[*symbols], write_dir=str(folder))
    data = questions.beats(tmp_path)
    is_class = np.isin(symbols, [*"NLRejAaJSVE"])
    assert is_class.sum() > questions.N_BEATS  # stretches overlap, and no beat comes twice
    kinds = [questions.KINDS_OF_BEATS[symbol] for symbol in symbols[is_class]] * 3
    np.testing.assert_array_equal(data["y"], kinds)
    assert {*kinds} == {"normal", "atrial", "ventricular"}
    n = is_class.sum()
    np.testing.assert_array_equal(data["groups"], np.repeat(["201", "201", "208"], n))
    np.testing.assert_array_equal(data["recording"], np.repeat([0, 1, 2], n))
    np.testing.assert_array_equal(data["start"], np.tile(at[is_class] // 2 - 54, 3))
    assert data["X"].shape == (3 * n, 144, 2)
    np.testing.assert_array_equal(data["X"][..., 0].argmax(1), 54)


def test_beats_come_from_the_whole_of_each_record(questions, data_home):
    pytest.importorskip("wfdb")
    data = questions.beats(data_home)
    assert len(np.unique(data["recording"])) == 16 and len(np.unique(data["groups"])) == 15
    for record in range(16):
        start = data["start"][data["recording"] == record]
        assert len(start) == 240 and (np.diff(start) > 0).all()
        assert np.ptp(start) / questions.ECG_RATE * 2 > 1500  # of 1806 s


@pytest.fixture(scope="module")
def conditions(questions, data_home):
    return questions.conditions(data_home)


def test_half_minutes_lie_inside_one_condition(conditions, data_home):
    data, wesad = conditions, fetch_wesad(data_home, windows="onset")
    rows = wesad.segments
    inside = (
        (rows[:, 0] == data["recording"][:, None])
        & (rows[:, 1] <= data["start"][:, None])
        & (data["start"][:, None] + 1920 <= rows[:, 2])
    )
    np.testing.assert_array_equal(inside.sum(1), 1)
    names = np.array(wesad.target_names)
    np.testing.assert_array_equal(data["y"], names[rows[inside.argmax(1), 3]])
    assert len(data["y"]) == np.sum((rows[:, 2] - rows[:, 1]) // 1920)
    for i in (0, 700):
        signal, start = wesad.recordings[data["recording"][i]], data["start"][i]
        np.testing.assert_array_equal(data["X"][i], signal[start : start + 1920 : 2])


def test_missing_recordings_and_packages_are_named(questions, tmp_path, monkeypatch):
    (tmp_path / "mitdb").mkdir()
    with pytest.raises(OSError, match="mitdb/201.hea is missing in .*put the recordings there"):
        questions.beats(tmp_path)
    (tmp_path / "mitdb" / "201.hea").touch()
    monkeypatch.setitem(sys.modules, "wfdb", None)  # as if it were not installed
    with pytest.raises(ImportError, match="records of WFDB: pip install"):
        questions.beats(tmp_path)


def test_the_questions_are_data_sets_of_the_script_of_archives(
    conditions, data_home, tmp_path, monkeypatch
):
    monkeypatch.setenv("SKLEARN_PULSE_DATA", str(data_home))
    file = script("archives").store("conditions", tmp_path)
    with np.load(file) as stored:
        assert stored.files == [*conditions]
        for name, array in conditions.items():
            np.testing.assert_array_equal(stored[name], array)
