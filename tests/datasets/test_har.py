"""The HAR reader, on folders made here and on the real recordings if they are available."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from sklearn_pulse.datasets import fetch_har, get_data_home

pytestmark = pytest.mark.filterwarnings("ignore:.* recordings that have segments")

LENGTH = 128
# Lengths of seven recordings: the third smallest is 700, two are shorter.
LENGTHS = {1: 900, 2: 300, 3: 750, 4: 700, 5: 1000, 6: 420, 7: 701}
SUBJECTS = {1: 1, 2: 1, 3: 2, 4: 2, 5: 3, 6: 3, 7: 4}


def write_folder(raw: Path, lengths, label_rows, seed=0) -> dict[int, np.ndarray]:
    """Write a folder like that of the UCI archive; return the signals of each experiment."""
    raw.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    signals = {}
    for experiment, length in lengths.items():
        signals[experiment] = rng.normal(size=(length, 6))
        name = f"exp{experiment:02d}_user{SUBJECTS.get(experiment, 1):02d}.txt"
        np.savetxt(raw / f"acc_{name}", signals[experiment][:, :3], fmt="%.17g")
        np.savetxt(raw / f"gyro_{name}", signals[experiment][:, 3:], fmt="%.17g")
    np.savetxt(raw / "labels.txt", np.array(label_rows), fmt="%d")
    return signals


def random_label_rows(rng, lengths):
    """Return label rows of successive activities and transitions, some past the common length."""
    rows = []
    for experiment, length in lengths.items():
        start = int(rng.integers(0, 40))
        while start < length:
            end = min(start + int(rng.integers(50, 400)), length)
            rows.append([experiment, SUBJECTS[experiment], rng.integers(1, 13), start, end])
            start = end + int(rng.integers(1, 30))
    return rows


def literal_windows(signals, label_rows):
    """Apply the published rules, one row and one window at a time."""
    experiments = sorted(signals)
    length = sorted(len(signals[e]) for e in experiments)[2]
    experiments = [e for e in experiments if len(signals[e]) >= length]
    np.random.RandomState(1234).shuffle(experiments)
    n = len(experiments)
    windows = []
    for place, experiment in enumerate(experiments):
        part = "train" if place < int(0.7 * n) else "val" if place < int(0.85 * n) else "test"
        for row_experiment, subject, activity, start, end in label_rows:
            if row_experiment != experiment or activity >= 7:
                continue
            if start >= length:
                break
            i = start
            while i + LENGTH < length and i + LENGTH <= end:
                x = signals[experiment][i : i + LENGTH].astype(np.float32)
                windows.append((x, activity - 1, subject, place, i, part))
                i += LENGTH
    return experiments, windows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write a data home with seven small recordings; return it, its content and its Bunch."""
    home = tmp_path_factory.mktemp("data")
    rows = random_label_rows(np.random.default_rng(3), LENGTHS)
    signals = write_folder(home / "hapt" / "RawData", LENGTHS, rows)
    return home, signals, rows, fetch_har(home)


def assert_literal(data, signals, rows):
    """Compare a Bunch with the literal rules."""
    experiments, windows = literal_windows(signals, rows)
    assert data.recording_experiment.tolist() == experiments
    assert len(windows) == len(data.X) > 0
    for column, key in enumerate(["X", "y", "groups", "recording", "start", "split"]):
        np.testing.assert_array_equal(data[key], np.array([w[column] for w in windows]), key)


def test_windows_follow_the_literal_rules(folder):
    _, signals, rows, data = folder
    assert_literal(data, signals, rows)


@pytest.mark.filterwarnings("ignore:no segment of the class")  # labels that change often
@pytest.mark.parametrize("seed", range(4))
def test_windows_follow_the_literal_rules_on_other_labels(tmp_path, seed):
    rng = np.random.default_rng(seed)
    lengths = {e: int(rng.integers(200, 900)) for e in SUBJECTS}
    rows = random_label_rows(rng, lengths)
    signals = write_folder(tmp_path / "RawData", lengths, rows, seed)
    assert_literal(fetch_har(tmp_path), signals, rows)


@pytest.mark.filterwarnings("ignore:no segment of the class")  # labels that change often
def test_label_rows_in_detail(tmp_path):
    """T = 400: each row of one experiment shows one rule."""
    rows = [
        [1, 1, 1, 10, 138],  # exactly one window
        [1, 1, 7, 10, 138],  # a transition: skipped
        [1, 1, 2, 140, 267],  # one step short of a window
        [1, 1, 3, 143, 5000],  # two windows, the second ends at T - 1
        [1, 1, 9, 999, 1200],  # a transition past T: skipped before it can end the recording
        [1, 1, 4, 399, 600],  # starts at the last step: no window, the recording goes on
        [1, 1, 5, 0, 128],  # out of order: still read
        [1, 1, 6, 400, 600],  # starts at T: ends the recording
        [1, 1, 1, 0, 128],  # not read any more
        [2, 1, 6, 272, 400],  # would end at T: the last step is never used
        [3, 2, 6, 271, 400],  # ends at T - 1: fits
        [4, 2, 1, 0, 150],  # a dropped recording
    ]
    write_folder(tmp_path / "RawData", {1: 5000, 2: 400, 3: 420, 4: 300, 5: 310}, rows)
    data = fetch_har(tmp_path)
    got = {
        int(e): [
            (int(s), int(label))
            for r, s, label in zip(data.recording, data.start, data.y, strict=True)
            if data.recording_experiment[r] == e
        ]
        for e in data.recording_experiment
    }
    assert got == {1: [(10, 0), (143, 2), (271, 2), (0, 4)], 2: [], 3: [(271, 5)]}


def test_recordings_are_cut_to_the_third_smallest_length(folder):
    _, signals, _, data = folder
    assert sorted(data.recording_experiment.tolist()) == [1, 3, 4, 5, 7]
    for experiment, recording in zip(data.recording_experiment, data.recordings, strict=True):
        assert recording.dtype == np.float32
        np.testing.assert_array_equal(recording, signals[experiment][:700].astype(np.float32))


def test_split_of_59_recordings_is_the_published_one(tmp_path):
    numbers = [e for e in range(1, 62) if e not in (20, 21)]
    rows = [[e, SUBJECTS.get(e, 1), 1, 0, 129] for e in numbers]
    write_folder(tmp_path / "RawData", dict.fromkeys(numbers, 130), rows)
    data = fetch_har(tmp_path)
    assert data.recording_split.tolist() == ["train"] * 41 + ["val"] * 9 + ["test"] * 9
    assert data.recording_experiment[50:].tolist() == [52, 16, 27, 55, 13, 56, 41, 22, 50]


def test_equal_lengths_drop_nothing(tmp_path):
    rows = [[e, SUBJECTS[e], 1, 0, 200] for e in (1, 2, 3, 4)]
    write_folder(tmp_path / "RawData", dict.fromkeys((1, 2, 3, 4), 200), rows)
    assert len(fetch_har(tmp_path).recordings) == 4


def test_segments_give_back_the_windows(folder):
    data = folder[-1]
    assert data.segments.shape[1] == 4
    cut = [
        (recording, i, label)
        for recording, start, end, label in data.segments.tolist()
        for i in range(start, end - LENGTH + 1, LENGTH)
    ]
    assert cut == list(zip(data.recording, data.start, data.y, strict=True))
    assert np.all(data.segments[:, 2] > data.segments[:, 1])


def test_bunch_is_complete(folder):
    data = folder[-1]
    assert data.X.dtype == np.float32 and data.X.shape[1:] == (128, 6)
    assert data.y.dtype.kind == "i"
    assert data.channel_names == ["acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z"]
    assert len(data.target_names) == 6 and data.target_names[5] == "laying"
    assert data.sampling_rate == 50.0
    assert data.recording_split.tolist() == ["train", "train", "train", "val", "test"]
    expected = [SUBJECTS[e] for e in data.recording_experiment]
    assert data.recording_subject.tolist() == expected
    for word in ("341", "Reyes-Ortiz", "commercial", "not new people"):
        assert word in data.DESCR


def test_where_the_folder_is_looked_for(folder, monkeypatch, tmp_path):
    home, _, _, data = folder
    for place in (home, str(home), home / "hapt"):
        np.testing.assert_array_equal(fetch_har(place).start, data.start)
    monkeypatch.setenv("SKLEARN_PULSE_DATA", str(home))
    np.testing.assert_array_equal(fetch_har().start, data.start)
    shutil.copytree(home / "hapt", tmp_path / "har")
    np.testing.assert_array_equal(fetch_har(tmp_path).start, data.start)
    for name in ("HAPT Data Set", "hapt/HAPT Data Set"):
        shutil.copytree(home / "hapt", tmp_path / name / "home" / name)
        np.testing.assert_array_equal(
            fetch_har(tmp_path / name / "home", download_if_missing=False).start, data.start
        )
    with pytest.raises(OSError, match="not in"):
        fetch_har(tmp_path / "other", download_if_missing=False)


def test_what_lies_in_a_hidden_folder_is_not_read(folder, tmp_path):
    """A file manager puts what was deleted into .Trash-1000."""
    deleted, kept = (tmp_path / "har" / name for name in (".Trash-1000", "unpacked"))
    for place in (deleted, kept):
        shutil.copytree(folder[0] / "hapt", place)
    for path in deleted.rglob("acc_*.txt"):
        path.write_text(path.read_text().replace("1", "2"))
    np.testing.assert_array_equal(fetch_har(tmp_path).X, folder[-1].X)
    shutil.rmtree(kept)
    with pytest.raises(OSError, match="not in"):
        fetch_har(tmp_path, download_if_missing=False)


def test_missing_data_set_says_what_to_do(tmp_path):
    home = tmp_path / "nothing"
    with pytest.raises(OSError) as caught:
        fetch_har(home, download_if_missing=False)
    message = str(caught.value)
    for part in ("Postural Transitions", "341", str(home / "har"), "RawData/acc_exp*.txt"):
        assert part in message
    assert not home.exists()


def test_groups_are_subjects_or_recordings(folder):
    home, _, _, data = folder
    by_recording = fetch_har(home, group="recording")
    np.testing.assert_array_equal(by_recording.groups, data.recording)
    np.testing.assert_array_equal(by_recording.split, data.split)
    np.testing.assert_array_equal(data.groups, data.recording_subject[data.recording])
    with pytest.raises(ValueError, match="group must be one of 'subject', 'recording'"):
        fetch_har(home, group="person")


def test_get_data_home(tmp_path, monkeypatch):
    named = tmp_path / "a" / "b"
    assert get_data_home(named) == str(named) and named.is_dir()
    monkeypatch.setenv("SKLEARN_PULSE_DATA", str(tmp_path / "c"))
    assert get_data_home() == str(tmp_path / "c")
    assert get_data_home(named) == str(named)
    monkeypatch.delenv("SKLEARN_PULSE_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert get_data_home() == str(tmp_path / "sklearn_pulse_data")
    assert get_data_home("~/d") == str(tmp_path / "d")


def test_data_home_that_is_a_file(tmp_path):
    path = tmp_path / "x"
    path.touch()
    for use in (get_data_home, fetch_har):
        with pytest.raises(NotADirectoryError, match="x' is a file: name the folder"):
            use(path)
        with pytest.raises(NotADirectoryError, match="lies in .*x', which is a file: name the"):
            use(path / "data")


@pytest.mark.parametrize("data_home", [3, b"data", ["data"]])
def test_data_home_of_another_type(data_home):
    with pytest.raises(TypeError, match="data_home must be a path"):
        get_data_home(data_home)
    with pytest.raises(TypeError, match="data_home must be a path"):
        fetch_har(data_home, download_if_missing=False)


@pytest.fixture
def damaged(folder, tmp_path):
    """Copy the small data set to damage it; return its RawData folder."""
    shutil.copytree(folder[0] / "hapt" / "RawData", tmp_path / "RawData")
    return tmp_path / "RawData"


@pytest.mark.parametrize("row", ["1 1 0 10 400", "1 1 13 10 400", "1 1 1 -300 400"])
def test_label_row_that_cannot_be(damaged, row):
    (damaged / "labels.txt").write_text(f"{row}\n")
    with pytest.raises(ValueError, match=r"labels\.txt has a row \[1, 1, .*; unpack"):
        fetch_har(damaged.parent)


def test_other_files_are_ignored(folder, damaged):
    (damaged / "._acc_exp01_user01.txt").write_bytes(b"\x00\x05\x16")
    (damaged / "acc_exp01_user01.txt.part").write_text("0.1")
    np.testing.assert_array_equal(fetch_har(damaged.parent).X, folder[-1].X)


def test_missing_gyroscope_file(damaged):
    (damaged / "gyro_exp03_user02.txt").unlink()
    with pytest.raises(OSError, match=r"gyro_exp03_user02\.txt is missing"):
        fetch_har(damaged.parent)


def test_recordings_that_were_not_unpacked(damaged):
    """Once the others were split anew, in silence."""
    for path in damaged.glob("*_exp0[13]*"):
        path.unlink()
    message = r"acc_exp01_user01\.txt is missing, one of 2 missing recordings"
    with pytest.raises(OSError, match=message):
        fetch_har(damaged.parent)


def test_a_recording_that_is_cut_off(damaged):
    """Once all others were cut to it, in silence."""
    for path in damaged.glob("*_exp05_user03.txt"):
        path.write_text("\n".join(path.read_text().splitlines()[:500]) + "\n")
    message = r"acc_exp05_user03\.txt has 500 rows, but labels\.txt names steps up to \d+ of it"
    with pytest.raises(ValueError, match=message):
        fetch_har(damaged.parent)


def test_labels_that_are_cut_off(damaged):
    """Once the other recordings gave no windows, in silence."""
    path = damaged / "labels.txt"
    rows = path.read_text().splitlines()
    path.write_text("\n".join(row for row in rows if row[0] not in "57"))
    with pytest.raises(ValueError, match=r"labels\.txt has no row of experiment 5 with user 3"):
        fetch_har(damaged.parent)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("acc_exp03_user02.txt", "1 2 nan\n", "holds a value that is not finite"),
        ("acc_exp03_user02.txt", "", "is empty"),
        ("acc_exp03_user02.txt", "1 2 x\n", "not a table of numbers"),
        ("acc_exp03_user02.txt", "1 2 3 4\n", "4 columns instead of 3"),
        ("gyro_exp03_user02.txt", "1 2 3\n", "one file is damaged"),
        ("labels.txt", "1 1 5 250\n", "4 columns instead of 5"),
        ("labels.txt", "1 1 walking 250 300\n", "not a table of numbers"),
    ],
)
def test_damaged_file_is_named(damaged, name, text, message):
    (damaged / name).write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        fetch_har(damaged.parent)
    assert name in str(caught.value)


def test_too_few_recordings(damaged):
    for path in damaged.glob("acc_exp0[1-5]*"):
        path.unlink()
    with pytest.raises(ValueError, match=r"holds 2 file\(s\).*at least 3"):
        fetch_har(damaged.parent)


# The real recordings


@pytest.fixture(scope="module")
def har(data_home):
    """Load the published data set."""
    if not (data_home / "hapt").is_dir():
        pytest.skip(f"no folder hapt in {data_home}")
    return fetch_har(data_home)


def test_published_numbers(har):
    assert har.X.shape == (4600, 128, 6) and har.X.dtype == np.float32
    counts = [int((har.split == part).sum()) for part in ("train", "val", "test")]
    assert counts == [3178, 712, 710]
    assert np.bincount(har.y[har.split == "train"]).tolist() == [612, 262, 311, 615, 688, 690]
    assert {x.shape for x in har.recordings} == {(15038, 6)}
    assert [int((har.recording_split == p).sum()) for p in ("train", "val", "test")] == [41, 9, 9]
    test = har.recording_split == "test"
    assert har.recording_experiment[test].tolist() == [52, 16, 27, 55, 13, 56, 41, 22, 50]
    assert not {20, 21} & set(har.recording_experiment.tolist())


def test_published_subjects_cross_the_split(har):
    subjects = {
        part: set(har.groups[har.split == part].tolist()) for part in ("train", "val", "test")
    }
    assert len(set(har.groups.tolist())) == 30
    assert len(subjects["test"] & subjects["train"]) == 8
    assert subjects["test"] - subjects["train"] == {13} and 13 in subjects["val"]


def test_published_windows_follow_the_literal_rules(har, data_home):
    rows = np.loadtxt(data_home / "hapt" / "RawData" / "labels.txt", dtype=int).tolist()
    signals = dict(zip(har.recording_experiment.tolist(), har.recordings, strict=True))
    expected = []
    for place, experiment in enumerate(signals):
        for row_experiment, subject, activity, start, end in rows:
            if row_experiment != experiment or activity >= 7:
                continue
            if start >= 15038:
                break
            i = start
            while i + LENGTH < 15038 and i + LENGTH <= end:
                expected.append((activity - 1, subject, place, i))
                i += LENGTH
    got = zip(har.y, har.groups, har.recording, har.start, strict=True)
    assert expected == list(got)
    for k in (0, 1234, 4599):
        x = har.recordings[har.recording[k]][har.start[k] : har.start[k] + LENGTH]
        np.testing.assert_array_equal(har.X[k], x)


def test_published_signals(har):
    first = har.recordings[har.recording_experiment.tolist().index(1)][0]
    np.testing.assert_allclose(first[:3], [0.9180556, -0.1125, 0.5097222], rtol=1e-6)
    # The acceleration includes gravity: it is about 1 g for a person at rest.
    still = har.X[har.y >= 3, :, :3].mean(axis=1)
    assert np.median(np.linalg.norm(still, axis=1)) == pytest.approx(1.0, abs=0.05)
