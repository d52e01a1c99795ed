"""Parts, folds and pre-training windows of the benchmark's data sets."""

import dataclasses

import numpy as np
import pytest

from sklearn_pulse import presets
from sklearn_pulse.benchmark import Results
from sklearn_pulse.benchmark.__main__ import main
from sklearn_pulse.benchmark._task import N_FOLDS
from sklearn_pulse.benchmark._tasks import SCENARIOS, TASKS
from sklearn_pulse.windows import random_windows
from tests.datasets.test_epilepsy import write_tfc

from .toy import N_RECORDINGS, load_toy

CUT = {
    "mode": "random",
    "length": 20,
    "downsample": 1,
    "stride": 5,
    "stride_val": 10,
    "fraction": 1.0,
    "fraction_val": 0.5,
    "n_channels": 6,
}


@pytest.fixture(scope="module")
def task():
    return load_toy()


def test_folds_hold_whole_groups_and_take_turns(task):
    tested = []
    assert task.fold(0).note == "folds hold whole people"
    for number in range(N_FOLDS):
        fold = task.fold(number)
        parts_of = {g: set(fold.split[fold.groups == g]) for g in range(N_RECORDINGS)}
        assert all(len(parts) == 1 for parts in parts_of.values())
        assert {part for parts in parts_of.values() for part in parts} == {"train", "val", "test"}
        np.testing.assert_array_equal(
            fold.recording_split, [next(iter(parts_of[g])) for g in range(N_RECORDINGS)]
        )
        following = task.fold((number + 1) % N_FOLDS)
        np.testing.assert_array_equal(fold.rows("val"), following.rows("test"))
        tested.append(fold.rows("test"))
    np.testing.assert_array_equal(np.sort(np.concatenate(tested)), np.arange(len(task.y)))


def test_random_windows_come_from_the_recordings_of_the_part(task):
    windows = task.pretraining_windows(CUT, "train", 3, None)
    expected = random_windows(task.recordings[:6], 20, 5, random_state=3).X
    np.testing.assert_array_equal(np.asarray(windows), expected)
    windows = task.pretraining_windows(CUT, "val", 3, None)
    expected = random_windows(task.recordings[6:8], 20, 10, 0.5, random_state=3).X
    np.testing.assert_array_equal(np.asarray(windows), expected)


def test_a_budget_takes_some_of_the_same_windows(task):
    everything = {w.tobytes() for w in np.asarray(task.pretraining_windows(CUT, "train", 0, None))}
    some = np.asarray(task.pretraining_windows(CUT, "train", 0, 13))
    assert len(some) == 13 == len({w.tobytes() for w in some} & everything)
    again = np.asarray(task.pretraining_windows(CUT, "train", 0, 13))
    np.testing.assert_array_equal(some, again)
    other = np.asarray(task.pretraining_windows(CUT, "train", 1, 13))
    assert not np.array_equal(some, other)
    assert len(task.pretraining_windows(CUT, "train", 0, 10_000)) == len(everything)


def test_labelled_windows_are_those_of_the_part(task):
    cut = CUT | {"mode": "labeled", "fraction": 0.5}
    windows = task.pretraining_windows(cut, "train", 0, None)
    assert len(windows) == 30
    order = np.random.RandomState(0).permutation(60)[:30]
    np.testing.assert_array_equal(windows, task.X[task.rows("train")][order])


@pytest.mark.parametrize("n_windows", [None, 13])
def test_labels_are_those_of_their_windows(task, n_windows):
    cut = CUT | {"mode": "labeled"}
    X, y = task.labeled_windows(cut, "train", 0, n_windows)
    label = {window.tobytes(): own for window, own in zip(task.X, task.y, strict=True)}
    assert y.tolist() == [label[window.tobytes()] for window in X]
    assert len(X) == (n_windows or 60)


def test_a_validation_part_is_made_where_there_is_none(task):
    assert task.with_validation() is task
    split = np.where(task.split == "val", "train", task.split)
    without = dataclasses.replace(task, split=split, note="")
    made = without.with_validation()
    assert 0 < len(made.rows("val")) <= 0.3 * len(without.rows("train"))
    np.testing.assert_array_equal(made.rows("test"), without.rows("test"))
    assert not set(made.groups[made.rows("val")]) & set(made.groups[made.rows("train")])
    assert "validation" in made.note


def test_every_data_set_has_presets():
    for source in [*TASKS.values(), *SCENARIOS.values()]:
        assert presets.windows("pulse", source.preset)["length"] > 0


def test_the_windows_that_are_downloaded_of_bonn_are_a_target_and_no_source(tmp_path, capsys):
    """They know no segments, by which the other protocols divide them."""
    split = np.repeat(["train", "val", "test"], [8, 8, 8])
    X = np.random.default_rng(0).normal(size=(24, 178, 1))
    write_tfc(tmp_path / "epilepsy", X, np.arange(24) % 2, split)
    where = ("--budget", "smoke", "--data-home", str(tmp_path), "--out", str(tmp_path / "out"))
    method = ("--method", "statistics")
    assert main(["transfer", "--dataset", "eeg-epilepsy", *method, *where]) == 0
    (record,) = Results(tmp_path / "out")
    assert record["parts"] == {"train": 8, "val": 8, "test": 8}
    for protocol, dataset in (("linear-probe", "epilepsy"), ("comparison", "bonn-5")):
        assert main([protocol, "--dataset", dataset, "--seeds", "1", *method, *where]) == 1
        told = capsys.readouterr().err
        assert f"no data: {dataset}: OSError: the text files of the Bonn EEG are missing" in told


@pytest.mark.filterwarnings("ignore:.* is read instead")  # of the ECG
@pytest.mark.parametrize("name", ["har", "ppg", "ecg", "epilepsy"])
def test_real_data_sets(name, data_home):
    if name == "ecg":
        pytest.importorskip("wfdb")
    task = TASKS[name].load(data_home=data_home, download_if_missing=False)
    sizes = {part: len(task.rows(part)) for part in ("train", "val", "test")}
    assert all(sizes.values())
    cut = presets.windows("pulse", TASKS[name].preset)
    windows = task.pretraining_windows(cut, "train", 0, 50)
    assert windows.shape == (50, cut["length"] if name != "epilepsy" else 178, cut["n_channels"])
    assert sum(sizes.values()) == len(task.y)
    fold = task.fold(0)
    assert not set(fold.groups[fold.rows("train")]) & set(fold.groups[fold.rows("test")])
