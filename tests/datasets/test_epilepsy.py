"""The Epilepsy reader, on files made here and on the Bonn EEG if it is in the data folder."""

from __future__ import annotations

import csv
import pickle
import shutil

import numpy as np
import pytest
import torch

from sklearn_pulse.datasets import _epilepsy as reader
from sklearn_pulse.datasets import fetch_epilepsy

SETS = "ZONFS"
PARTS = ("train", "val", "test")


def write_bonn(folder, seed=0):
    """Write small numbers as the Bonn text files; return them by name."""
    rng = np.random.default_rng(seed)
    segments = {}
    for name in SETS:
        (folder / name).mkdir(parents=True)
        suffix = "TXT" if name == "N" else "txt"
        for i in range(1, 101):
            values = rng.integers(-200, 200, 4097)
            segments[f"{name}{i:03d}"] = values
            text = "\r\n".join(map(str, values.tolist()))
            (folder / name / f"{name}{i:03d}.{suffix}").write_text(text + "\r\n")
    return segments


def write_tfc(folder, X, y, split):
    """Write windows in the format of the transfer benchmark's files."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        content = {
            "samples": torch.from_numpy(X[split == part].transpose(0, 2, 1).copy()),
            "labels": torch.from_numpy(y[split == part]),
        }
        torch.save(content, folder / f"{part}.pt")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write a data home with small Bonn files; return it, the segments and the Bunch."""
    home = tmp_path_factory.mktemp("data")
    segments = write_bonn(home / "bonn_epilepsy")
    return home, segments, fetch_epilepsy(home)


def literal_windows(segments):
    """Return all windows in order of set, file and time, scaled one column at a time."""
    rows = []
    for name in SETS:
        for i in range(1, 101):
            for k in range(23):
                rows.append(segments[f"{name}{i:03d}"][178 * k : 178 * (k + 1)].astype(float))
    rows = np.array(rows)
    for column in range(178):
        low, high = min(rows[:, column]), max(rows[:, column])
        rows[:, column] = (rows[:, column] - low) / (high - low)
    return rows


def test_windows_follow_the_literal_rules(folder):
    _, segments, data = folder
    rows = literal_windows(segments)
    order = np.lexsort((data.start, data.recording))
    assert data.X.shape == (11500, 178, 1) and data.X.dtype == np.float64
    np.testing.assert_allclose(data.X[order, :, 0], rows, rtol=0, atol=1e-12)
    assert data.recording[order].tolist() == [i // 23 for i in range(11500)]
    assert data.start[order].tolist() == [i % 23 * 178 for i in range(11500)]
    assert data.y[order].tolist() == [1] * 9200 + [0] * 2300
    assert data.recording_name.tolist() == list(segments)


def test_published_split(folder):
    data = folder[-1]
    assert data.split.tolist() == ["train"] * 60 + ["val"] * 20 + ["test"] * 11420
    assert data.y[:80].tolist() == [0] * 30 + [1] * 30 + [0] * 10 + [1] * 10
    names = [
        f"{data.recording_name[r]}:{s // 178 + 1}"
        for r, s in zip(data.recording, data.start, strict=True)
    ]
    assert len(set(names)) == 11500
    assert names[:2] == ["S005:8", "S007:23"] and names[60] == "S083:2" and names[79] == "Z065:11"
    assert data.recording_split is None
    leaking = set(data.groups[:60]) & set(data.groups[60:80])
    assert {str(data.recording_name[i]) for i in leaking} == {"S014", "S080"}
    labelled = set(data.groups[:80].tolist())
    assert len(labelled) == 73 and labelled <= set(data.groups[80:].tolist())


def test_segment_split_keeps_segments_whole(folder):
    data = fetch_epilepsy(folder[0], split="segment")
    parts = {part: set(data.groups[data.split == part].tolist()) for part in PARTS}
    assert [len(parts[part]) for part in PARTS] == [350, 75, 75]
    assert not parts["train"] & parts["val"] and not parts["test"] & (parts["train"] | parts["val"])
    np.testing.assert_array_equal(data.split, data.recording_split[data.recording])
    for i in range(0, 500, 100):
        counts = [int((data.recording_split[i : i + 100] == part).sum()) for part in PARTS]
        assert counts == [70, 15, 15]
    # Every set is shuffled differently.
    assert set(data.recording_split[:70].tolist()) > {"train"}
    assert data.recording_split[:100].tolist() != data.recording_split[100:200].tolist()
    np.testing.assert_array_equal(data.recording, np.repeat(np.arange(500), 23))


def test_groups_are_segments_or_pools_of_subjects(folder):
    home, _, data = folder
    np.testing.assert_array_equal(data.groups, data.recording)
    pools = fetch_epilepsy(home, group="subject")
    sets = [str(name)[0] for name in pools.recording_name[pools.recording]]
    assert pools.groups.tolist() == ["volunteers" if s in "ZO" else "patients" for s in sets]
    np.testing.assert_array_equal(pools.groups, pools.recording_subject[pools.recording])


def test_bunch_is_complete(folder):
    _, segments, data = folder
    assert data.channel_names == ["eeg"] and data.target_names == ["seizure", "other"]
    assert data.sampling_rate == 173.61
    assert len(data.recordings) == 500
    for name, recording in zip(segments, data.recordings, strict=True):
        assert recording.dtype == np.float32
        np.testing.assert_array_equal(recording[:, 0], segments[name])
    assert data.segments.tolist() == [[i, 0, 4094, int(i < 400)] for i in range(500)]
    for word in ("Andrzejak", "Creative Commons", "It leaks", "pools of people"):
        assert word in data.DESCR


def test_benchmark_files_give_the_same_windows(folder, tmp_path):
    data = folder[-1]
    write_tfc(tmp_path / "epilepsy", data.X, data.y, data.split)
    for home in (tmp_path, tmp_path / "epilepsy"):
        read = fetch_epilepsy(home)
        np.testing.assert_array_equal(read.X, data.X)
        np.testing.assert_array_equal(read.y, data.y)
        np.testing.assert_array_equal(read.split, data.split)
        assert read.X.dtype == np.float64 and read.y.dtype == np.int64
        assert read.keys() == data.keys()
        assert read.groups is None and read.recordings is None


def test_text_files_come_before_benchmark_files(folder, tmp_path):
    data = folder[-1]
    write_tfc(tmp_path, data.X, data.y, data.split)
    for name in SETS:
        (tmp_path / name).symlink_to(folder[0] / "bonn_epilepsy" / name)
    np.testing.assert_array_equal(fetch_epilepsy(tmp_path).groups, data.groups)


@pytest.mark.parametrize("parameters", [{"split": "segment"}, {"group": "subject"}], ids=str)
def test_options_that_need_the_text_files(tmp_path, parameters):
    write_tfc(tmp_path, np.zeros((3, 178, 1)), np.array([0, 1, 1]), np.array(PARTS))
    with pytest.raises(ValueError, match=r"needs the EEG's text files"):
        fetch_epilepsy(tmp_path, **parameters)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (["samples"], "not a dictionary"),
        ({"samples": torch.zeros(2, 1, 178)}, "not a dictionary"),
        ({"samples": torch.zeros(2, 3, 178), "labels": torch.zeros(2)}, r"\(2, 3, 178\)"),
        ({"samples": torch.zeros(2, 1, 178), "labels": torch.zeros(3)}, r"shape \(3,\)"),
        ({"samples": torch.zeros(2, 1, 178) / 0, "labels": torch.zeros(2)}, "val.pt holds a value"),
        ({"samples": torch.zeros(2, 1, 178), "labels": torch.full((2,), 2)}, "labels from 2 to 2"),
        ({"samples": torch.zeros(2, 1, 100), "labels": torch.zeros(2)}, r"\[100, 178\] steps"),
    ],
)
def test_damaged_benchmark_file(tmp_path, content, message):
    write_tfc(tmp_path, np.zeros((3, 178, 1)), np.array([0, 1, 1]), np.array(PARTS))
    torch.save(content, tmp_path / "val.pt")
    with pytest.raises(ValueError, match=message):
        fetch_epilepsy(tmp_path)


class Hostile:
    """An object whose pickle executes code when it is loaded."""

    def __reduce__(self):
        return exec, ("raise SystemExit('executed')",)


def test_hostile_benchmark_file_is_refused(tmp_path):
    write_tfc(tmp_path, np.zeros((3, 178, 1)), np.array([0, 1, 1]), np.array(PARTS))
    torch.save({"samples": Hostile(), "labels": torch.zeros(1)}, tmp_path / "val.pt")
    with pytest.raises(ValueError, match=r"val\.pt is refused: "):
        fetch_epilepsy(tmp_path)
    (tmp_path / "val.pt").write_bytes(pickle.dumps(Hostile(), protocol=2))
    with pytest.raises(ValueError, match=r"val\.pt is refused: "):
        fetch_epilepsy(tmp_path)


def test_series_without_a_channel_axis(tmp_path):
    write_tfc(tmp_path, np.zeros((3, 178, 1)), np.array([0, 1, 1]), np.array(PARTS))
    content = {"samples": torch.arange(178.0)[None], "labels": torch.tensor([1.0])}
    torch.save(content, tmp_path / "val.pt")
    data = fetch_epilepsy(tmp_path)
    np.testing.assert_array_equal(data.X[data.split == "val"][0, :, 0], np.arange(178.0))


@pytest.mark.parametrize(
    "parameters",
    [{"split": "random"}, {"group": "segment"}],
    ids=str,
)
def test_bad_parameters(tmp_path, parameters):
    with pytest.raises(ValueError, match=f"{next(iter(parameters))} must be"):
        fetch_epilepsy(tmp_path, **parameters)


def test_a_set_that_was_not_unpacked_is_named(folder, tmp_path):
    source = folder[0] / "bonn_epilepsy"
    shutil.copytree(source, tmp_path / "epilepsy", ignore=shutil.ignore_patterns("S", "N"))
    with pytest.raises(FileNotFoundError, match="folders Z, O, F of .* but not N, S: unpack all"):
        fetch_epilepsy(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"Z002\.txt is missing"),
        ("1 2 3", r"Z002\.txt has 3 values instead of 4097"),
        ("1 x", r"Z002\.txt is no list of numbers"),
        ("1 ä", r"Z002\.txt is no list of numbers"),
        ("nan " + "1 " * 4096, r"Z002\.txt holds a value that is not finite"),
    ],
    ids=["missing", "short", "text", "bytes", "nan"],
)
def test_damaged_text_file(folder, tmp_path, text, message):
    for name in SETS:
        source = folder[0] / "bonn_epilepsy" / name
        if name != "Z":
            (tmp_path / name).symlink_to(source)
            continue
        (tmp_path / name).mkdir()
        for path in source.iterdir():
            if path.name != "Z002.txt":
                (tmp_path / name / path.name).symlink_to(path)
    if text is not None:
        (tmp_path / "Z" / "Z002.txt").write_text(text, encoding="utf-8")
    with pytest.raises((ValueError, OSError), match=message):
        fetch_epilepsy(tmp_path)


def test_the_first_file_of_a_set_is_missing(folder, tmp_path):
    """Once the set itself was said to be missing."""
    shutil.copytree(folder[0] / "bonn_epilepsy", tmp_path / "epilepsy")
    (tmp_path / "epilepsy" / "S" / "S001.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"S001\.txt is missing"):
        fetch_epilepsy(tmp_path)


def test_constant_time_step_is_scaled_to_zero():
    assert reader.scale_time_steps(np.array([[2.0, 1.0], [2.0, 3.0]])).tolist() == [[0, 0], [0, 1]]


# The real EEG


@pytest.fixture(scope="module")
def bonn(data_home):
    """Return the folder with the Bonn EEG."""
    if not (data_home / "bonn_epilepsy").is_dir():
        pytest.skip(f"no folder bonn_epilepsy in {data_home}")
    return data_home / "bonn_epilepsy"


@pytest.fixture(scope="module")
def epilepsy(bonn):
    """Load the windows."""
    return fetch_epilepsy(bonn.parent)


def test_published_numbers(epilepsy):
    assert epilepsy.X.shape == (11500, 178, 1)
    assert int((epilepsy.y == 0).sum()) == 2300
    assert [int((epilepsy.split == part).sum()) for part in PARTS] == [60, 20, 11420]
    np.testing.assert_array_equal(epilepsy.X.min(axis=0), 0.0)
    np.testing.assert_array_equal(epilepsy.X.max(axis=0), 1.0)


def test_split_is_the_one_found_in_the_benchmark(epilepsy, bonn):
    """The file lists the nearest Bonn window of each benchmark window, and their distance."""
    with open(bonn / "tfc_split_to_bonn_index.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 80 and max(float(row["l2dist"]) for row in rows) < 1e-12
    raw = {
        path.stem.upper(): np.loadtxt(path)
        for name in SETS
        for path in sorted((bonn / name).iterdir())
    }
    scaled = literal_windows(raw).reshape(5, 100, 23, 178)
    for place, row in enumerate(rows):
        assert row["split"] == epilepsy.split[place]
        assert int(row["row"]) == place - 60 * (row["split"] == "val")
        assert int(row["tfc_label"]) == epilepsy.y[place]
        assert row["bonn_set"] + f"{int(row['file_no']):03d}" == str(
            epilepsy.recording_name[epilepsy.recording[place]]
        )
        chunk = int(row["chunk_no_1to23"]) - 1
        expected = scaled[SETS.index(row["bonn_set"]), int(row["file_no"]) - 1, chunk]
        np.testing.assert_allclose(epilepsy.X[place, :, 0], expected, rtol=0, atol=1e-12)
