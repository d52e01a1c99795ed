"""The comparison: sources, divisions, draws of labels and of people, and its wide tables."""

import dataclasses
import json

import numpy as np
import pytest
from matplotlib.figure import Figure

from sklearn_pulse import CrossPredictionTransformer, presets
from sklearn_pulse.benchmark import Cell, Results, plan, report
from sklearn_pulse.benchmark.__main__ import main
from sklearn_pulse.benchmark._comparison import (
    LABELS,
    MEASURES,
    N_DRAWS,
    draws_of_labels,
    people_of_each_class,
)
from sklearn_pulse.benchmark._sources import SOURCES, ComparisonSource
from sklearn_pulse.benchmark._tables import tables
from sklearn_pulse.benchmark._task import N_FOLDS, Task
from sklearn_pulse.benchmark._tasks import TASKS
from sklearn_pulse.model_selection import LabelFractionSplit

from .toy import SMALL_SETTINGS, load_toy


def load_known(**home):
    """The toy, with the recording and the start of each window."""
    task = load_toy()
    return dataclasses.replace(task, recording=task.groups, start=np.tile(np.arange(10) * 20, 10))


@pytest.fixture
def toy(monkeypatch, few_penalties):
    source = ComparisonSource(load_known, "har", "UWave", 2, Task.stratified_fold)
    monkeypatch.setitem(SOURCES, "gesture", source)


def compare(folder, *methods, extra=()):
    arguments = ["comparison", "--dataset", "gesture", "--method", *methods, *extra]
    return main([*arguments, "--budget", "smoke", "--out", str(folder)])


@pytest.mark.usefixtures("five_draws")
def test_a_cell_has_every_amount_of_labels_under_both_probes(toy, tmp_path):
    assert compare(tmp_path, "statistics", "majority") == 0
    records = {(r["cell"]["method"], r["cell"]["seed"]): r for r in Results(tmp_path)}
    assert set(records) == {(m, s) for m in ("statistics", "majority") for s in (0, 1)}
    for record in records.values():
        assert set(MEASURES) <= set(record["scores"])
        for measure in MEASURES:
            values = record["scores"][measure]
            assert len(values) == (1 if "100 %" in measure else N_DRAWS)
            assert all(0 <= value <= 1 for value in values)
    assert {f"C {labels}" for labels in LABELS} <= set(records["statistics", 0]["scores"])
    assert records["majority", 0]["scores"]["accuracy 100 %"] == [0.5]
    assert records["statistics", 0]["scores"]["accuracy 100 %"][0] > 0.9
    assert records["statistics", 0]["parts"] == {"train": 60, "val": 20, "test": 20}


def test_probes_are_repeated_on_stored_embeddings_with_equal_scores(toy, tmp_path, monkeypatch):
    assert compare(tmp_path, "untrained", extra=("--seeds", "1")) == 0
    (first,) = Results(tmp_path)
    (path,) = (tmp_path / "embeddings").glob("*.npy")
    assert np.load(path).shape == (80, 320)
    (tmp_path / "cells" / Cell(**first["cell"]).path).unlink()
    monkeypatch.setattr("sklearn_pulse.benchmark._trial.Trial._fit_control", None)
    assert compare(tmp_path, "untrained", extra=("--seeds", "1")) == 0
    (again,) = Results(tmp_path)
    assert again["scores"] == first["scores"]
    assert again["training"] == first["training"]


def test_a_process_reads_the_whole_record_while_another_writes_it_again(toy, tmp_path):
    """Cells of two data sets may share an embedding, which both compute."""
    assert compare(tmp_path, "statistics", extra=("--seeds", "1")) == 0
    (first,) = Results(tmp_path)
    for done in (tmp_path / "cells", tmp_path / "embeddings"):
        for file in [*done.rglob("*val-smoke*"), *done.glob("*.npy")]:
            file.unlink()
    (path,) = (tmp_path / "embeddings").glob("*.json")
    with path.open(encoding="utf-8") as opened:
        assert compare(tmp_path, "statistics", extra=("--seeds", "1")) == 0
        assert json.load(opened) == first["training"]


def test_cross_prediction_is_told_the_recordings_of_the_training_part(toy, tmp_path, monkeypatch):
    seen = {}

    def fit(self, X, y=None, *, groups=None, start=None):
        seen.update(n=len(X), groups=groups, start=start)
        return self

    monkeypatch.setattr(CrossPredictionTransformer, "fit", fit)
    monkeypatch.setattr(CrossPredictionTransformer, "transform", lambda self, X: X[:, 0, :3])
    assert compare(tmp_path, "cross-prediction", extra=("--seeds", "1")) == 0
    task = load_known().stratified_fold(0)
    rows = task.rows("train")
    assert seen["n"] == len(rows) == 60
    np.testing.assert_array_equal(seen["groups"], task.recording[rows])
    np.testing.assert_array_equal(seen["start"], task.start[rows])


def test_looks_at_test_parts_are_logged(toy, tmp_path):
    assert compare(tmp_path, "majority", extra=("--split", "test")) == 0
    assert [look["split"] for look in Results(tmp_path).looks()] == ["test", "test"]


@pytest.mark.slow
def test_a_split_without_validation_part_trains_on_all_its_windows(tmp_path, monkeypatch):
    task = load_known()
    published = dataclasses.replace(task, split=np.where(task.split == "val", "train", task.split))
    source = ComparisonSource(lambda **home: published, "har", "UWave", 1, Task.with_validation)
    monkeypatch.setitem(SOURCES, "gesture", source)
    small = presets.get("pulse", "har") | SMALL_SETTINGS
    monkeypatch.setattr(presets, "get", lambda *args, **kwargs: small)
    cut = presets.windows("pulse", "har") | {"mode": "labeled", "length": 20}
    monkeypatch.setattr(presets, "windows", lambda *args, **kwargs: cut)
    for split in ("val", "test"):
        assert compare(tmp_path, "pulse", extra=("--split", split)) == 0
    parts = {r["cell"]["split"]: r["parts"] for r in Results(tmp_path)}
    assert parts["test"] == {"train": 80, "val": 0, "test": 20}
    assert parts["val"]["train"] + parts["val"]["val"] == 80
    assert len(list((tmp_path / "encoders").glob("*.json"))) == 2


def test_stratified_folds_are_whole_groups_that_take_turns():
    task = load_toy()
    tested = []
    for number in range(N_FOLDS):
        fold = task.stratified_fold(number)
        assert fold.note == "folds hold whole people"
        parts = [set(fold.groups[fold.rows(part)]) for part in ("train", "val", "test")]
        assert not parts[0] & parts[1] and not parts[1] & parts[2] and not parts[0] & parts[2]
        tested.append(fold.rows("test"))
    np.testing.assert_array_equal(np.sort(np.concatenate(tested)), np.arange(len(task.y)))


def test_a_class_that_a_part_lacks_is_named():
    task = load_toy()
    rare = dataclasses.replace(task, y=np.where(task.groups == 3, 2, task.y))
    notes = [rare.stratified_fold(number).note for number in range(N_FOLDS)]
    lacking = {part: sum(f"{part} lacks [2]" in note for note in notes) for part in ("val", "test")}
    assert lacking == {"val": N_FOLDS - 1, "test": N_FOLDS - 1}
    assert any("train lacks [2]" in note for note in notes)


@pytest.mark.usefixtures("five_draws")
def test_labels_of_few_people_show_every_class():
    groups = np.repeat(np.arange(10), 4)
    every = np.tile([0, 0, 1, 1], 10)
    draws = [people_of_each_class(every, groups, 1, 0, draw) for draw in range(N_DRAWS)]
    assert [len(np.unique(groups[rows])) for rows in draws] == [1] * N_DRAWS
    assert len({groups[rows][0] for rows in draws}) == N_DRAWS  # each draw has another person
    assert len(np.unique(groups[people_of_each_class(every, groups, 2, 0, 0)])) == 2
    single = np.repeat(np.arange(10) % 3, 4)  # each person shows one of three classes
    rows = people_of_each_class(single, groups, 2, 0, 0)
    assert np.unique(single[rows], return_counts=True)[1].tolist() == [8, 8, 8]
    rows = people_of_each_class(single, groups, 99, 0, 0)  # more people than there are
    assert len(rows) == 40


def test_sources_have_their_runs_and_the_two_problems_of_bonn_one_division(data_home):
    cells = plan(["comparison"], methods=["majority"])
    runs = {name: sum(cell.dataset == name for cell in cells) for name in SOURCES}
    assert runs == {name: source.n_runs for name, source in SOURCES.items()}
    assert min(runs[name] for name in ("wesad", "mitbih", "har-people", "bonn-2", "bonn-5")) >= 5
    home = {"data_home": data_home, "download_if_missing": False}
    task = SOURCES["bonn-5"].load(**home)
    assert np.unique(task.y, return_counts=True)[1].tolist() == [2300] * 5
    seizures = 1 - TASKS["epilepsy"].load(**home).y
    np.testing.assert_array_equal(SOURCES["bonn-2"].relabel(task.y), seizures)
    fold = task.stratified_fold(0)
    assert all(len(np.unique(fold.y[fold.rows(part)])) == 5 for part in ("train", "val", "test"))


def finish(folder, dataset, method, seed, **scores):
    scores = {name.replace("_", " ") + " %": value for name, value in scores.items()}
    cell = Cell("comparison", dataset, method, seed, "val", "small")
    Results(folder).write(cell, {}, {"scores": scores, "note": "a note"})


def test_a_wide_table_names_the_cells_that_are_lost(tmp_path):
    for seed, other in enumerate(([0.8, 0.8], [0.56, 0.8])):
        finish(tmp_path, "wesad", "cross-prediction", seed, accuracy_5=[0.6, 0.8])
        finish(tmp_path, "wesad", "minirocket", seed, accuracy_5=other)
        finish(tmp_path, "lorenz-3", "cross-prediction", seed, accuracy_5=[0.9])
        finish(tmp_path, "thomas-3", "cross-prediction", seed, accuracy_5=[0.7])
        finish(tmp_path, "lorenz-3", "quant", seed, accuracy_5=[0.8])
    (table,) = [t for t in tables(Results(tmp_path)) if t.dataset == "accuracy 5 %"]
    assert table.values["cross-prediction", "WESAD"].per_seed == [0.6, 0.8, 0.6, 0.8]
    assert table.values["cross-prediction", "chaos, noise 3"].mean == pytest.approx(0.8)
    text = report(Results(tmp_path), tmp_path / "tables")
    (line,) = [x for x in text.splitlines() if x.startswith("| cross-pred") and "70.0" in x]
    assert line == "| cross-prediction | 70.0 ± 10.0 (lost) | **80.0 ± 10.0** |"
    assert "| **80.0 ± 10.0** |" in line
    lead = "MiniRocket +4.0 ± 9.4 (in 1 of 2 divisions)"
    assert f"**Lost by cross-prediction: WESAD**, to {lead}." in text
    assert "| accuracy 5 % | 1 of 2 | WESAD |" in text
    assert "accuracy 1 %" not in text  # of which nothing is finished
    assert "- Note: WESAD: a note." in text
    assert len(list((tmp_path / "tables").glob("comparison-accuracy-5-*.png"))) == 1


def test_a_shared_cell_is_not_called_won(tmp_path):
    for method in ("cross-prediction", "minirocket"):
        finish(tmp_path, "wesad", method, 0, accuracy_5=[0.6])
    text = report(Results(tmp_path), tmp_path / "tables")
    heading = "### Cells in which no other finished row is above cross-prediction, validation parts"
    assert heading in text
    assert "| measure | won or shared | lost |" in text
    assert "| accuracy 5 % | 1 of 1 | none |" in text


def test_a_picture_of_more_rows_than_colours_and_marks(tmp_path):
    for number in range(45):  # settings of an estimator of the user, each a row of its own
        finish(tmp_path, "wesad", f"outside-mine-{number:012x}", 0, accuracy_5=[0.6])
    report(Results(tmp_path), tmp_path / "tables")
    assert len(list((tmp_path / "tables").glob("*.png"))) == 1


def test_one_table_has_a_row_per_source_and_amount_of_labels_and_a_column_per_method(tmp_path):
    for seed in range(2):
        finish(tmp_path, "wesad", "cross-prediction", seed, accuracy_5=[0.6, 0.8])
        finish(tmp_path, "wesad", "minirocket", seed, accuracy_5=[0.7, 0.8])
    finish(tmp_path, "wesad", "quant", 0, accuracy_5=[0.5, 0.9])
    finish(tmp_path, "lorenz-3", "cross-prediction", 0, accuracy_5=[0.9])
    text = report(Results(tmp_path), tmp_path / "tables")
    _, found = text.split("### All methods, C = 1, validation parts, budget small\n")
    title, _, wesad, chaos, *_ = found.strip().splitlines()
    assert title == "| % | cross-prediction | MiniRocket | QUANT |"
    # Two of the four divisions and draws are no mean of all, so that they are not the best.
    scores = "70.0 ± 10.0 (lost) | **75.0 ± 5.0** | 70.0 ± 20.0 (2 of 4)"
    assert wesad == f"| WESAD, 5 % | {scores} |"
    assert chaos == "| chaos, noise 3, 5 % | **90.0** | missing | missing |"


def finish_unequal(folder, dataset, share):
    """Finish two rows on two classes, the larger of which has a share of the windows."""
    finish(folder, dataset, "majority", 0, accuracy_100=[share], balanced_accuracy_100=[0.5])
    scores = {"accuracy_100": [0.6], "balanced_accuracy_100": [0.7], "auroc_100": [0.8]}
    finish(folder, dataset, "cross-prediction", 0, **scores)


def test_a_report_shows_the_score_that_is_asked_for(tmp_path, capsys):
    finish_unequal(tmp_path, "wesad", 0.9)
    assert main(["report", "--out", str(tmp_path), "--score", "balanced_accuracy"]) == 0
    text = capsys.readouterr().out
    assert "### All methods, balanced accuracy, C = 1, validation parts, budget small" in text
    assert "| WESAD, all labels | **70.0** | 50.0 |" in text
    assert "| balanced accuracy 100 % | 1 of 1 | none |" in text
    assert "60.0" not in text and "80.0" not in text and "unequal" not in text
    (picture,) = (tmp_path / "tables").glob("*.png")
    assert picture.name.startswith("comparison-balanced-accuracy-100-")
    lines = (tmp_path / "tables" / "tables.csv").read_text().splitlines()
    assert {line.split(",")[1] for line in lines[1:]} == {
        "accuracy 100 %",
        "balanced accuracy 100 %",
        "auroc 100 %",
    }
    assert "| WESAD, all labels | **80.0** |" in report(Results(tmp_path), tmp_path, score="auroc")
    with pytest.raises(ValueError, match="score must be one of 'accuracy', 'balanced_accuracy'"):
        report(Results(tmp_path), tmp_path, score="balanced accuracy")


def test_a_picture_names_the_score_that_it_draws(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(Figure, "savefig", lambda self, path, **_: seen.append(self))
    finish_unequal(tmp_path, "wesad", 0.9)
    report(Results(tmp_path), tmp_path / "tables", score="auroc")
    (figure,) = seen
    left, _ = figure.axes
    assert left.containers[0].lines[0].get_ydata() == [0.8]
    assert left.get_ylabel() == left.get_title() == "auroc 100 %"


def test_a_report_of_accuracy_names_unequal_classes(tmp_path):
    finish_unequal(tmp_path, "wesad", 0.74)
    assert "unequal" not in report(Results(tmp_path), tmp_path / "tables")
    finish_unequal(tmp_path, "lorenz-3", 0.76)
    text = report(Results(tmp_path), tmp_path / "tables")
    assert "Classes are unequal in chaos, noise 3 (76 %); the number is" in text
    assert "WESAD (" not in text


@pytest.mark.usefixtures("five_draws")
def test_few_labels_are_those_of_the_other_protocols():
    y = np.arange(60) % 2
    splitter = LabelFractionSplit(0.05, n_draws=N_DRAWS, cv=[(np.arange(60), np.arange(60))])
    drawn = [rows for name, rows in draws_of_labels(y, y, np.arange(60), 0) if name == "5 %"]
    for ours, (theirs, _) in zip(drawn, splitter.split(y, y), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_every_source_has_presets():
    for source in SOURCES.values():
        assert presets.windows("pulse", source.preset)["length"] > 0
