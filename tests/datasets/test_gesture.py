"""The Gesture reader, on files made here and on the archive's files if they are available."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sklearn_pulse.datasets import _gesture as reader
from sklearn_pulse.datasets import fetch_gesture

PARTS = ("train", "val", "test")
HEADER = """\
#A remark.
@problemName UWaveGestureLibrary
@timeStamps false
@dimensions 3
@classLabel true 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0
"""


def write_ts(path, X, y, header=HEADER):
    """Write series, shape (n, n_timesteps, n_channels), as the archive does."""
    lines = [
        ":".join([*(",".join(map(repr, channel.tolist())) for channel in series.T), f"{label}.0"])
        for series, label in zip(X, y, strict=True)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(header + "@data\n" + "\n".join(lines) + "\n")


def write_tfc(folder, content):
    """Write (X, y) of each part in the format of the transfer benchmark's files."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, (X, y) in content.items():
        samples = torch.from_numpy(X.transpose(0, 2, 1).copy())
        torch.save({"samples": samples, "labels": torch.tensor(y)}, folder / f"{part}.pt")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write a data home with small archive files: 9 gestures to train on, 16 to test."""
    home = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    content = {}
    for file, n in (("TRAIN", 9), ("TEST", 16)):
        X, y = rng.normal(size=(n, 315, 3)), (np.arange(n) % 8 + 1).tolist()
        content[file] = X, y
        write_ts(home / "uwave_gesture" / f"UWaveGestureLibrary_{file}.ts", X, y)
    return home, content


@pytest.mark.parametrize(
    ("split", "files"), [("published", ("TEST", "TRAIN")), ("archive", ("TRAIN", "TEST"))]
)
def test_archive_files(folder, split, files):
    home, content = folder
    data = fetch_gesture(home, split=split)
    X = np.concatenate([content[file][0] for file in files])
    y = [label - 1 for file in files for label in content[file][1]]
    assert data.X.dtype == np.float32
    np.testing.assert_array_equal(data.X, X.astype(np.float32))
    assert data.y.tolist() == y
    expected = ["train"] * len(content[files[0]][1]) + ["test"] * len(content[files[1]][1])
    assert data.split.tolist() == data.recording_split.tolist() == expected


@pytest.mark.parametrize("n_timesteps", [None, 206])
def test_recordings_stay_as_they_are_if_windows_change(folder, n_timesteps):
    data = fetch_gesture(folder[0], n_timesteps=n_timesteps)
    before = np.array(data.recordings)
    data.X *= 2
    np.testing.assert_array_equal(data.recordings, before)


def test_length_is_checked_before_a_download(tmp_path):
    with pytest.raises(TypeError, match="n_timesteps must be an integer of at least 1"):
        fetch_gesture(tmp_path, n_timesteps="206")


def test_bunch_is_complete(folder):
    data = fetch_gesture(folder[0], n_timesteps=206)
    assert data.X.shape == (25, 206, 3)
    assert data.channel_names == ["acc_x", "acc_y", "acc_z"] and len(data.target_names) == 8
    assert data.sampling_rate == 100.0 and data.recording_subject is None
    assert {recording.shape for recording in data.recordings} == {(315, 3)}
    np.testing.assert_array_equal(data.X, [recording[:206] for recording in data.recordings])
    assert data.segments.tolist() == [[i, 0, 315, y] for i, y in enumerate(data.y.tolist())]
    assert data.groups.tolist() == data.recording.tolist() == list(range(25))
    assert not data.start.any()
    assert "No gesture of these files is in two parts" in data.DESCR
    for word in ("Liu", "share people", "Licence"):
        assert word in data.DESCR


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    """Write the benchmark's files, with a validation part that repeats the test part."""
    folder = tmp_path_factory.mktemp("gesture") / "gesture"
    rng = np.random.default_rng(1)
    test = rng.normal(size=(4, 315, 3)), [3, 2, 1, 0]
    train = rng.normal(size=(5, 315, 3)), [7, 6, 5, 4, 3]
    val = test[0][[2, 0, 1]], [1, 3, 2]
    content = {"train": train, "val": val, "test": test}
    write_tfc(folder, content)
    return folder, content


def test_benchmark_files(benchmark):
    folder, content = benchmark
    for home in (folder, folder.parent):
        data = fetch_gesture(home)
        X = np.concatenate([content[part][0] for part in PARTS]).astype(np.float32)
        np.testing.assert_array_equal(data.X, X)
        assert data.y.tolist() == sum((content[part][1] for part in PARTS), [])
        assert data.split.tolist() == ["train"] * 5 + ["val"] * 3 + ["test"] * 4


def test_repeated_gestures_share_a_group(benchmark):
    data = fetch_gesture(benchmark[0])
    assert data.groups.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 6, 7, 5, 11]
    assert "3 gestures of the test part are in the val part too." in data.DESCR
    assert "No gesture of these" not in data.DESCR
    assert data.recording.tolist() == list(range(12))


def test_benchmark_files_come_first(benchmark, folder, tmp_path):
    for path in (*benchmark[0].iterdir(), *(folder[0] / "uwave_gesture").iterdir()):
        (tmp_path / path.name).symlink_to(path)
    assert len(fetch_gesture(tmp_path).X) == 12
    assert len(fetch_gesture(tmp_path, split="archive").X) == 25


def test_archive_split_of_benchmark_files(benchmark):
    with pytest.raises(ValueError, match=r"needs UWaveGestureLibrary_TRAIN\.ts"):
        fetch_gesture(benchmark[0], split="archive")


def test_a_repeated_gesture_with_missing_values_shares_its_group(tmp_path):
    X = np.random.default_rng(0).normal(size=(3, 315, 3))
    X[0, 7] = np.nan
    write_ts(tmp_path / "UWaveGestureLibrary_TEST.ts", X, [1, 2, 3])
    write_ts(tmp_path / "UWaveGestureLibrary_TRAIN.ts", X[[1, 0]], [2, 1])
    assert fetch_gesture(tmp_path).groups.tolist() == [0, 1, 2, 1, 0]


def test_subjects_are_not_known(folder):
    with pytest.raises(ValueError, match="no file says who"):
        fetch_gesture(folder[0], group="subject")


@pytest.mark.parametrize(
    "parameters",
    [{"n_timesteps": 0}, {"n_timesteps": 316}, {"split": "random"}, {"group": "gesture"}],
    ids=str,
)
def test_bad_parameters(folder, parameters):
    with pytest.raises(ValueError, match=f"{next(iter(parameters))} must be"):
        fetch_gesture(folder[0], **parameters)


@pytest.mark.parametrize(("name", "other"), [("TRAIN", "TEST"), ("TEST", "TRAIN")])
@pytest.mark.parametrize("split", ["published", "archive"])
def test_one_of_the_two_files_is_missing(folder, tmp_path, name, other, split):
    """Once another version of the gestures was downloaded."""
    file = f"UWaveGestureLibrary_{name}.ts"
    (tmp_path / file).symlink_to(folder[0] / "uwave_gesture" / file)
    with pytest.raises(
        FileNotFoundError, match=rf"_{other}\.ts is missing, although .*_{name}\.ts"
    ):
        fetch_gesture(tmp_path, download_if_missing=False, split=split)


@settings(max_examples=40, deadline=None)
@given(
    X=st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 3)).flatmap(
        lambda shape: arrays(np.float64, shape, elements=st.floats(-1e6, 1e6))
    ),
    data=st.data(),
)
def test_ts_files_give_back_what_was_written(tmp_path_factory, X, data):
    y = data.draw(st.lists(st.integers(1, 8), min_size=len(X), max_size=len(X)))
    path = tmp_path_factory.mktemp("ts") / "a.ts"
    write_ts(path, X, y)
    read = reader.read_ts(path)
    np.testing.assert_array_equal(read.X, X)
    assert read.label == [f"{label}.0" for label in y]


@settings(max_examples=40, deadline=None)
@given(
    arrays(np.int64, st.tuples(st.integers(1, 8), st.integers(1, 3)), elements=st.integers(0, 2))
)
def test_first_equal(X):
    rows = X.tolist()
    assert reader.first_equal(X).tolist() == [rows.index(row) for row in rows]


def test_a_file_that_is_no_text_is_named(tmp_path):
    (tmp_path / "a.ts").write_bytes(b"@data\n1,\xff:x\n")
    with pytest.raises(ValueError, match=r"a\.ts is no text"):
        reader.read_ts(tmp_path / "a.ts")


def test_missing_values_and_spaces(tmp_path):
    (tmp_path / "a.ts").write_text("@DATA\n1, ? :3,4: x \n\n# remark\n5,6:7,8:y\n")
    read = reader.read_ts(tmp_path / "a.ts")
    np.testing.assert_array_equal(read.X, [[[1, 3], [np.nan, 4]], [[5, 7], [6, 8]]])
    assert read.label == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no series after a line @data"),
        ("@data\n", "no series after a line @data"),
        ("1,2:1.0\n", "no series after a line @data"),
        ("@data\n1,x:1.0\n", "line 2 is not a series"),
        ("@data\n1,-inf:1.0\n", "line 2 is not a series"),
        ("@data\n1,2:1:1.0\n", "line 2 is not a series"),
        ("@data\n1,2:3,4:1.0\n1,2,3:4,5,6:1.0\n", r"line 3 has shape \(3, 2\)"),
        ("@data\n1.0\n", "line 2 has shape"),
        ("@data\n1,2:3,4:5,6:1.0\n", r"shape \(2, 3\) instead of \(315, 3\)"),
        ("@data\n" + ":".join([",".join(["1"] * 315)] * 3) + ":9.0\n", r"has the class '9\.0'"),
    ],
)
def test_damaged_ts_file_is_named(folder, tmp_path, text, message):
    for file in ("TRAIN", "TEST"):
        source = folder[0] / "uwave_gesture" / f"UWaveGestureLibrary_{file}.ts"
        (tmp_path / source.name).write_bytes(source.read_bytes())
    (tmp_path / "UWaveGestureLibrary_TEST.ts").write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        fetch_gesture(tmp_path)
    assert "UWaveGestureLibrary_TEST.ts" in str(caught.value)


# The real gestures


@pytest.fixture(scope="module")
def home(data_home):
    """Return the data home with the archive's files."""
    if not (data_home / "uwave_gesture").is_dir():
        pytest.skip(f"no folder uwave_gesture in {data_home}")
    return data_home


@pytest.mark.parametrize(("split", "sizes"), [("published", (320, 120)), ("archive", (120, 320))])
def test_published_numbers(home, split, sizes):
    data = fetch_gesture(home / "uwave_gesture", split=split)
    assert data.X.shape == (440, 315, 3)
    assert tuple(int((data.split == part).sum()) for part in ("train", "test")) == sizes
    for part, size in zip(("train", "test"), sizes, strict=True):
        assert np.bincount(data.y[data.split == part]).tolist() == [size // 8] * 8
    assert len(set(data.groups.tolist())) == 440


def test_published_length(home):
    data = fetch_gesture(home, n_timesteps=206)
    assert data.X.shape == (440, 206, 3)
    np.testing.assert_allclose([x.mean() for x in data.recordings], 0, atol=1e-4)


def test_first_real_values(home):
    """Compare the first gesture of the archive's training file with its line, split by hand."""
    text = (home / "uwave_gesture" / "UWaveGestureLibrary_TRAIN.ts").read_text()
    line = text.split("@data\n")[1].split("\n")[0]
    channels = line.split(":")
    data = fetch_gesture(home, split="archive")
    for i in range(3):
        np.testing.assert_array_equal(
            data.X[0, :, i], np.array(channels[i].split(","), dtype=np.float32)
        )
    assert data.y[0] == int(float(channels[3])) - 1
