"""From finished cells to tables, text, files and pictures."""

import csv
import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from sklearn_pulse.benchmark import Cell, Results, plan, report
from sklearn_pulse.benchmark import _paper as paper
from sklearn_pulse.benchmark._tables import tables

PAPER_ROWS = {
    "linear_probe": 96,
    "linear_probe_cv": 108,
    "semi_supervised": 72,
    "semi_supervised_cv": 80,
    "transfer": 28,
    "ablation": 24,
    "table_analysis": 40,
}


def finish(results, protocol, method, seed, *, dataset="har", split="val", **scores):
    cell = Cell(protocol, dataset, method, seed, split, "small")
    scores = {
        name.replace("_percent", " %").replace("accuracy_", "accuracy "): value
        for name, value in scores.items()
    }
    results.write(cell, {}, {"scores": scores, "note": "a note"})


@pytest.fixture
def results(tmp_path):
    results = Results(tmp_path)
    for seed, accuracy in enumerate((0.8, 0.9, 0.7)):
        finish(results, "linear-probe", "pulse", seed, accuracy=accuracy, auroc=0.95, auprc=0.9)
        finish(results, "linear-probe", "untrained", seed, accuracy=0.85, auroc=0.9, auprc=0.8)
    return results


def test_values_are_means_and_spreads_over_seeds(results):
    (table,) = tables(results)
    value = table.values["pulse", "accuracy"]
    assert value.mean == pytest.approx(np.mean([0.8, 0.9, 0.7]))
    assert value.spread == pytest.approx(np.std([0.8, 0.9, 0.7]))
    assert table.paper("pulse", "accuracy") == pytest.approx(0.9327)
    assert table.paper("untrained", "accuracy") is None


def test_equal_means_are_not_above_each_other_by_rounding(tmp_path):
    results = Results(tmp_path)
    finish(results, "label-efficiency", "pulse", 0, accuracy_1_percent=[0.1, 0.2, 0.3])
    finish(results, "label-efficiency", "untrained", 0, accuracy_1_percent=[0.3, 0.2, 0.1])
    told = "Seed by seed, PULSE minus untrained encoder: accuracy 1 %: +0.0 (above in 0 of 1)."
    assert told in report(results, tmp_path / "tables")


def test_a_public_name_is_told_apart_where_another_protocol_calls_it_otherwise(tmp_path):
    """The comparison has two columns of HAR, neither of which has its name alone."""
    results = Results(tmp_path)
    for dataset in ("har", "own-HAR-0123456789ab"):
        finish(results, "ablation", "pulse", 0, dataset=dataset, accuracy=0.5)
    finish(results, "comparison", "pulse", 0, **{"accuracy 100 %": 0.5})
    titles = [table.title for table in tables(results)]
    assert titles[1] == "Ablation of PULSE, HAR (0123456789ab), validation part"


def test_draws_are_averaged_before_seeds(tmp_path):
    results = Results(tmp_path)
    finish(results, "label-efficiency", "pulse", 0, accuracy_1_percent=[0.2, 0.4])
    finish(results, "label-efficiency", "pulse", 1, accuracy_1_percent=[0.5, 0.7])
    (table,) = tables(results)
    value = table.values["pulse", "accuracy 1 %"]
    assert value.per_seed == pytest.approx([0.3, 0.6])
    assert table.paper("pulse", "accuracy 1 %") == pytest.approx(0.8474)


def test_a_control_that_wins_is_printed_as_winning(results, tmp_path):
    text = report(results, tmp_path / "tables")
    assert "| untrained encoder (control) | 3 | **85.0 ± 0.0** |" in text
    assert "**A control wins: untrained encoder (accuracy).**" in text
    assert "| PULSE | 3 | 80.0 ± 8.2 | 93.3 | **95.0 ± 0.0** |" in text
    assert "Note: a note." in text


def test_a_control_that_is_as_good_is_printed_as_good(tmp_path):
    results = Results(tmp_path)
    for method in ("pulse", "untrained"):
        finish(results, "linear-probe", method, 0, accuracy=0.5)
    finish(results, "linear-probe", "statistics", 0, accuracy=0.4)
    text = report(results, tmp_path / "tables")
    assert text.count("**50.0**") == 2
    assert "**A control is as good as the best: untrained encoder (accuracy).**" in text
    assert "wins" not in text


def test_no_control_wins_over_controls_alone(tmp_path):
    results = Results(tmp_path)
    finish(results, "linear-probe", "untrained", 0, accuracy=0.5)
    finish(results, "linear-probe", "statistics", 0, accuracy=0.4)
    text = report(results, tmp_path / "tables")
    assert "**50.0**" in text
    assert "A control" not in text


def test_a_lucky_seed_does_not_win(results, tmp_path):
    finish(results, "linear-probe", "ts2vec", 1, accuracy=0.99)
    text = report(results, tmp_path / "tables")
    assert "| TS2Vec | 1 | 99.0 |" in text
    assert "**A control wins: untrained encoder (accuracy).**" in text


def test_a_cell_that_was_asked_for_is_printed_as_missing(results, tmp_path):
    asked = ("minirocket", "ts2vec", "pulse")
    cells = [cell for name in asked for cell in plan(["linear-probe"], methods=[name])]
    results.note_asked(cells)
    results.note_asked(cells)
    assert len(results.asked()) == len(cells)
    lines = report(results, tmp_path / "tables").splitlines()
    rows = {line.split(" |")[0][2:]: line.count("missing") for line in lines if "| " in line}
    assert rows["MiniRocket (control)"] == rows["TS2Vec"] == 3
    assert rows["PULSE"] == rows["untrained encoder (control)"] == 0
    assert not {"SimCLR", "majority class (control)"} & rows.keys()  # nobody asked for them
    with open(tmp_path / "tables" / "tables.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    empty = [row for row in rows if row["method"] == "MiniRocket"]
    assert [row["mean"] for row in empty] == ["", "", ""]
    assert [row["n_seeds"] for row in empty] == ["0", "0", "0"]


def test_a_data_set_without_a_finished_cell_is_told(results, tmp_path):
    text = report(results, tmp_path / "tables")
    assert "Missing altogether" not in text
    for protocol, datasets in (("linear-probe", ["har", "ppg", "ecg"]), ("comparison", ["wesad"])):
        results.note_asked(plan([protocol], datasets=datasets, methods=["majority"]))
    text = report(results, tmp_path / "tables")
    lines = [line for line in text.splitlines() if line.startswith("Missing altogether")]
    assert lines == [
        "Missing altogether: Linear probe, validation part, budget small: ecg, ppg.",
        "Missing altogether: Comparison, validation part, budget small: wesad.",
    ]


def test_runs_that_are_not_finished_are_counted(results, tmp_path):
    """A killed run would else look like a finished one of fewer seeds."""
    text = report(results, tmp_path / "tables")
    assert "Missing in part" not in text
    results.note_asked(plan(["linear-probe"], datasets=["har"], methods=["pulse"], n_seeds=5))
    text = report(results, tmp_path / "tables")
    (line,) = (line for line in text.splitlines() if line.startswith("Missing in part"))
    n_there = sum(
        record["cell"]["method"] == "pulse" and record["cell"]["dataset"] == "har"
        for record in results
        if record["cell"]["protocol"] == "linear-probe"
    )
    assert 0 < n_there < 5
    assert line.endswith(f"budget small: {5 - n_there} of 5 runs of pulse on har.")


REPORT = """
import sys, warnings
from sklearn_pulse.benchmark._methods import trained
assert trained()[0].name == "pulse"  # also where nothing else of the package was imported before
from pathlib import Path
from sklearn_pulse.benchmark import Results, report
# Not those of Matplotlib, which writes a list of fonts the first time.
warnings.filterwarnings("error", category=EncodingWarning, module="sklearn_pulse")
report(Results(Path(sys.argv[1])), Path(sys.argv[1], "tables"))
"""


def test_a_fresh_process_knows_pulse_and_names_the_encoding_of_each_file(results, tmp_path):
    """Python warns of files without an encoding only if it is told so before it starts."""
    environment = os.environ | {"PYTHONWARNDEFAULTENCODING": "1"}
    subprocess.run([sys.executable, "-c", REPORT, tmp_path], env=environment, check=True)
    assert "85.0 ± 0.0" in (tmp_path / "tables" / "tables.md").read_text(encoding="utf-8")


def test_an_ablation_is_a_difference_seed_by_seed(tmp_path):
    results = Results(tmp_path)
    for seed, (whole, without) in enumerate([(0.9, 0.8), (0.7, 0.5)]):
        finish(results, "ablation", "pulse", seed, accuracy=whole)
        finish(results, "ablation", "pulse-no-time-varying", seed, accuracy=without)
    (table,) = tables(results)
    difference = table.difference("pulse-no-time-varying", "accuracy")
    assert difference.per_seed == pytest.approx([-0.1, -0.2])
    assert table.paper_difference("pulse-no-time-varying", "accuracy") == pytest.approx(-0.0173)
    finish(results, "ablation", "pulse-random-pairs", 1, accuracy=0.4)  # seed 0 is missing
    (table,) = tables(results)
    assert table.difference("pulse-random-pairs", "accuracy").of_seed == {1: pytest.approx(-0.3)}
    finish(results, "ablation", "pulse-shared-encoder", 1, accuracy=0.6)
    finish(results, "ablation", "pulse-shared-encoder", 2, accuracy=0.6)  # PULSE lacks seed 2
    (table,) = tables(results)
    assert table.difference("pulse-shared-encoder", "accuracy").of_seed == {1: pytest.approx(-0.1)}
    text = report(results, tmp_path / "tables")
    assert "| w/o TV-Params | 2 | 65.0 ± 15.0 | 91.5 | -15.0 ± 5.0 | -1.7 |" in text
    assert "The released code has no random pairs" in text and "PatchTST" not in text


@pytest.mark.parametrize("method", ["patchtst", "ts2vec"])
def test_the_patchtst_of_the_papers_transfer_is_another(tmp_path, method):
    results = Results(tmp_path)
    finish(results, "transfer", method, 0, dataset="har-gesture", accuracy=0.7)
    text = report(results, tmp_path / "tables")
    assert ("an untrained convolutional encoder" in text) == (method == "patchtst")


def test_the_looks_at_test_parts_are_told(tmp_path):
    results = Results(tmp_path)
    cell = Cell("linear-probe", "har", "pulse", 0, "test", "small")
    results.log_look(cell)
    results.log_look(cell)
    finish(results, "linear-probe", "pulse", 0, split="test", accuracy=0.9)
    assert "scored 2 times, for 1 cells" in report(results, tmp_path / "tables")


def test_the_curve_of_few_labels_has_the_supervised_method(tmp_path, monkeypatch):
    """It is not trained with all labels, and was left out without a word."""
    seen = []
    monkeypatch.setattr(Figure, "savefig", lambda self, path, **_: seen.append(self))
    results = Results(tmp_path)
    few = {"accuracy_1_percent": [0.5, 0.7], "accuracy_5_percent": 0.7}
    finish(results, "label-efficiency", "pulse", 0, **few, accuracy_100_percent=0.8)
    finish(results, "label-efficiency", "supervised", 0, **few)
    report(results, tmp_path / "tables")
    lines = {line.get_label(): line.get_ydata() for line in seen[0].axes[0].get_lines()}
    np.testing.assert_allclose(lines["PULSE"], [0.6, 0.7, 0.8])
    np.testing.assert_allclose(lines["Supervised"], [0.6, 0.7, np.nan])


def test_pictures_and_files(results, tmp_path):
    finish(results, "transfer", "pulse", 0, dataset="har-gesture", accuracy=0.5, auroc=0.8)
    for method in ("pulse", "majority"):
        few = {"accuracy_1_percent": [0.2], "accuracy_5_percent": [0.3]}
        finish(results, "label-efficiency", method, 0, **few, accuracy_100_percent=0.4)
    report(results, tmp_path / "tables")
    names = {path.name for path in (tmp_path / "tables").iterdir()}
    assert names == {
        "tables.md",
        "tables.csv",
        "linear-probe-har-val-small.png",
        "transfer-har-gesture-val-small.png",
        "label-efficiency-har-val-small.png",
    }


def test_the_report_says_what_was_trained_and_with_what(tmp_path):
    results = Results(tmp_path)
    for seed, version in enumerate(("1.0", "1.1")):
        training = {"n_pretraining_windows": 1250, "n_timesteps": 128, "n_epochs": 10}
        content = {"scores": {"accuracy": 0.5}, "note": "", "training": training}
        content["versions"] = {"torch": version}
        results.write(Cell("linear-probe", "har", "pulse", seed, "val", "small"), {}, content)
    text = report(results, tmp_path / "tables")
    assert "Note: pre-training on 1,250 windows of 128 steps, 10 epochs." in text
    assert "Run with torch 1.0.\n" in text
    assert "Run with torch 1.1.\n" in text


def test_cells_of_another_version_are_left_out(results, tmp_path):
    before = report(results, tmp_path / "tables")
    cell = Cell("linear-probe", "har", "pulse", 0, "val", "small")
    for change in ({"budget": "huge"}, {"split": "train"}, {"dataset": "sea"}, {"protocol": "new"}):
        results.write(dataclasses.replace(cell, **change), {}, {"scores": {"accuracy": 0.5}})
    assert report(results, tmp_path / "tables") == before


def test_a_cell_needs_scores_alone(tmp_path):
    results = Results(tmp_path)
    for protocol, dataset, score in (("linear-probe", "har", 0.5), ("comparison", "har", [0.5])):
        cell = Cell(protocol, dataset, "majority", 0, "val", "small")
        content = {"scores": {"accuracy": score, "accuracy 100 %": score}}
        results.write(cell, {}, content | {"training": {"n_epochs": "many"}})
    text = report(results, tmp_path / "tables")
    assert "### Linear probe, HAR" in text
    assert "### Comparison, accuracy 100 %" in text


def test_the_folder_of_the_tables_may_be_text(results, tmp_path):
    report(results, str(tmp_path / "tables"))
    assert (tmp_path / "tables" / "tables.md").exists()


def test_an_empty_folder_says_what_to_do(tmp_path):
    with pytest.raises(ValueError, match="no finished cell: run a protocol"):
        report(Results(tmp_path), tmp_path / "tables")


@pytest.mark.parametrize(
    ("address", "value"),
    [
        (("linear-probe", "HAR", "pulse", "accuracy"), 0.9327),
        (("linear-probe", "PPG", "simclr", "auroc"), 0.6119),
        (("cross-validation", "HAR", "pulse", "accuracy"), 0.953),
        (("label-efficiency", "ECG", "pulse", "accuracy 1 %"), 0.8477),
        (("cross-validation", "HAR", "pulse", "accuracy 1 %"), 0.8416),
        (("transfer", "HAR->Gesture", "pulse", "accuracy"), 0.8367),
        (("ablation", "ECG", "pulse-random-pairs", "accuracy"), 0.6442),
        (("linear-probe", "HAR", "untrained", "accuracy"), None),
        (("linear-probe", "HAR", "pulse", "nmi"), None),
        (("linear-probe", "Epilepsy", "pulse", "accuracy"), None),
    ],
)
def test_the_values_of_the_paper(address, value):
    assert paper.value(*address) == (None if value is None else pytest.approx(value))


def test_every_row_of_the_papers_tables_is_there():
    assert {name: len(paper.table(name)) for name in PAPER_ROWS} == PAPER_ROWS
