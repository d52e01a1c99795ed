"""The command: runs, resumes, shares a folder, reports, and refuses bad arguments."""

import dataclasses
import importlib
import io
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
from filelock import FileLock
from sklearn.model_selection import cross_validate

import sklearn_pulse.baselines
from sklearn_pulse import FineTuneClassifier, PulseTransformer, RandomEncoderTransformer, presets
from sklearn_pulse.benchmark import BUDGETS, Cell, Execution, Results, _run, plan, run
from sklearn_pulse.benchmark.__main__ import main
from sklearn_pulse.benchmark._methods import all_methods, supervised, trained
from sklearn_pulse.benchmark._protocols import PROTOCOLS
from sklearn_pulse.benchmark._tasks import SCENARIOS, TASKS, Scenario
from sklearn_pulse.datasets import get_data_home
from sklearn_pulse.evaluation import make_linear_probe, probe_scores
from sklearn_pulse.features import StatisticsTransformer
from tests.helpers import SMALL

from .toy import ABSENT, SMALL_SETTINGS, TOY, load_toy

FROM_THE_BUDGET = ("max_epochs", "attention_epochs", "random_state", "num_threads")
QUICK = ("majority", "statistics", "untrained")  # MiniRocket compiles for half a minute

SETTINGS = presets.get("pulse", "har") | SMALL_SETTINGS


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(TASKS, "toy", TOY)
    monkeypatch.setitem(TASKS, "absent", ABSENT)
    scenario = Scenario(load_toy, load_toy, "har", "toy to toy", 16, 0.5, 15)
    monkeypatch.setitem(SCENARIOS, "toy-toy", scenario)
    monkeypatch.setattr(presets, "get", lambda *args, **kwargs: SETTINGS)
    cut = presets.windows("pulse", "har") | {"length": 20, "stride": 5, "stride_val": 10}
    monkeypatch.setattr(presets, "windows", lambda *args, **kwargs: cut)


def command(*arguments, out):
    return main([*map(str, arguments), "--out", str(out), "--budget", "smoke"])


def times_of_old_files(folder):
    """Set back the files of a folder, so that one written anew is younger; return their times."""
    paths = list(folder.rglob("*.json"))
    for path in paths:
        os.utime(path, (1e9, 1e9))
    return {path: path.stat().st_mtime_ns for path in paths}


def records(folder):
    return {tuple(r["cell"][k] for k in ("method", "seed")): r for r in Results(folder)}


def test_an_option_that_is_given_twice_adds_up(tmp_path):
    """The last one alone would count by argparse's default, and the others be dropped silently."""
    datasets = ("--dataset", "toy", "--dataset", "absent")
    methods = ("--method", "majority", "--method", "statistics", "majority")
    command("linear-probe", *datasets, *methods, "--seeds", 1, out=tmp_path)
    assert {r["cell"]["method"] for r in Results(tmp_path)} == {"majority", "statistics"}
    asked = Results(tmp_path).asked()
    assert {cell.dataset for cell in asked} == {"toy", "absent"}
    assert len(asked) == 4


def test_linear_probe_is_what_scikit_learn_computes(tmp_path):
    methods = ("untrained", "statistics", "majority")
    assert command("linear-probe", "--dataset", "toy", "--method", *methods, out=tmp_path) == 0
    task = load_toy()
    rows = np.concatenate([task.rows("train"), task.rows("val")])
    encoder = RandomEncoderTransformer(random_state=0, num_threads=1).fit(
        task.X[task.rows("train")]
    )
    expected = cross_validate(
        make_linear_probe(),
        encoder.transform(task.X[rows]),
        task.y[rows],
        cv=[(np.arange(60), np.arange(60, 80))],
        scoring=probe_scores,
    )
    found = records(tmp_path)
    for metric in ("accuracy", "auroc", "auprc"):
        assert found["untrained", 0]["scores"][metric] == pytest.approx(
            expected[f"test_{metric}"][0], abs=1e-6
        )
    assert found["majority", 0]["scores"]["accuracy"] == 0.5
    assert {"ari", "nmi", "silhouette", "davies_bouldin"} <= set(found["statistics", 0]["scores"])
    record = found["untrained", 0]
    assert record["parts"] == {"train": 60, "val": 20, "test": 20}
    assert record["note"] == "made of sines"
    assert {"sklearn_pulse", "torch", "scikit-learn", "numpy"} <= set(record["versions"])


@pytest.mark.usefixtures("five_draws")
def test_pulse_is_trained_once_for_both_protocols(tmp_path, monkeypatch):
    fits = []
    fit = PulseTransformer.fit
    monkeypatch.setattr(
        PulseTransformer,
        "fit",
        lambda self, X, *args, **kwargs: fits.append(len(X)) or fit(self, X, *args, **kwargs),
    )
    where = ("--dataset", "toy", "--method", "pulse", "--seeds", "1")
    assert command("linear-probe", *where, out=tmp_path) == 0
    assert command("label-efficiency", *where, out=tmp_path) == 0
    assert fits == [216]  # 6 recordings, (200 - 20 - 2) / 5 windows of each
    found = {record["cell"]["protocol"]: record for record in Results(tmp_path)}
    probe, few = found["linear-probe"], found["label-efficiency"]
    assert {"mse", "mae", "r2"} <= set(probe["scores"])
    assert probe["training"]["n_pretraining_windows"] == fits[0]
    assert probe["training"]["n_epochs"] == 1
    assert len(few["scores"]["accuracy 1 %"]) == 5
    assert few["scores"]["accuracy 100 %"] == probe["scores"]["accuracy"]
    assert not list(tmp_path.rglob("*.checkpoints"))


def test_an_encoder_that_another_process_trains_is_waited_for(tmp_path, monkeypatch):
    """Cells of other protocols and parts have locks of their own, and the same encoder."""
    where = ("--dataset", "toy", "--method", "pulse", "--seeds", "1")
    assert command("linear-probe", *where, out=tmp_path / "other") == 0
    (record,) = (tmp_path / "other" / "encoders").glob("*.json")
    out = tmp_path / "out"
    (out / "locks").mkdir(parents=True)
    lock = FileLock(out / "locks" / f"{record.stem}.lock", thread_local=False)
    other = threading.Thread(target=lock.acquire)  # filelock refuses to wait for its own thread
    other.start()
    other.join()

    def other_finishes(seconds):
        shutil.copytree(record.parent, out / "encoders")
        lock.release()

    monkeypatch.setattr(_run.time, "sleep", other_finishes)
    monkeypatch.setattr(PulseTransformer, "fit", lambda *args, **kwargs: pytest.fail("trained"))
    assert command("label-efficiency", *where, "--split", "test", out=out) == 0
    assert not lock.is_locked


def test_an_encoder_without_its_record_is_made_again(tmp_path):
    where = ("--dataset", "toy", "--method", "pulse", "--seeds", "1")
    assert command("linear-probe", *where, out=tmp_path) == 0
    (record,) = (tmp_path / "encoders").glob("*.json")
    record.write_text("{")
    assert command("label-efficiency", *where, out=tmp_path) == 1  # "delete it: it is made again"
    record.unlink()
    assert command("label-efficiency", *where, out=tmp_path) == 0


def test_an_encoder_that_is_damaged_is_deleted_and_made_again(tmp_path, capsys):
    where = ("--dataset", "toy", "--method", "pulse", "--seeds", "1")
    assert command("linear-probe", *where, out=tmp_path) == 0
    (weights,) = (tmp_path / "encoders").glob("*/model.safetensors")
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-100])
    capsys.readouterr()
    assert command("label-efficiency", *where, out=tmp_path) == 1
    error = capsys.readouterr().err
    assert f"{weights.parent} is damaged: delete it, and its encoder is trained again" in error
    shutil.rmtree(weights.parent)
    assert command("label-efficiency", *where, out=tmp_path) == 0
    assert weights.read_bytes() == whole


def test_the_precision_of_the_budget_is_that_of_training_and_of_the_record(tmp_path, monkeypatch):
    precisions = []
    fit = PulseTransformer.fit
    monkeypatch.setattr(
        PulseTransformer,
        "fit",
        lambda self, *args, **kwargs: (
            precisions.append(self.precision) or fit(self, *args, **kwargs)
        ),
    )
    half = dataclasses.replace(BUDGETS["smoke"], precision="bfloat16")
    where = ("--dataset", "toy", "--method", "pulse", "untrained", "--seeds", "1")
    assert command("linear-probe", *where, out=tmp_path) == 0
    first = {r["cell"]["method"]: r["identity"]["budget"] for r in Results(tmp_path)}
    monkeypatch.setitem(BUDGETS, "smoke", half)
    assert command("linear-probe", *where, out=tmp_path) == 0  # another identity, so run again
    second = {r["cell"]["method"]: r["identity"]["budget"] for r in Results(tmp_path)}
    assert precisions == ["float32", "bfloat16"]
    assert second == {"pulse": first["pulse"] | {"precision": "bfloat16"}, "untrained": None}
    assert BUDGETS["full-bfloat16"] == dataclasses.replace(BUDGETS["full"], precision="bfloat16")
    assert str(BUDGETS["full-bfloat16"]).endswith("of the presets, in bfloat16")


def test_a_finished_cell_is_not_run_again_and_a_changed_one_is(tmp_path, monkeypatch):
    arguments = ("linear-probe", "--dataset", "toy", "--method", "statistics", "untrained")
    command(*arguments, out=tmp_path)
    before = times_of_old_files(tmp_path)
    command(*arguments, out=tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")} == before
    monkeypatch.setattr(_run, "encoder_identity", lambda *args: {"package": "another"})
    command(*arguments, out=tmp_path)
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    assert before and all(after[path] > before[path] for path in before)


def test_a_cell_is_run_again_if_a_default_of_its_class_has_changed(tmp_path, monkeypatch):
    arguments = ("linear-probe", "--dataset", "toy", "--method", "statistics", "majority")
    command(*arguments, out=tmp_path)
    before = times_of_old_files(tmp_path)
    monkeypatch.setattr(StatisticsTransformer.__init__, "__defaults__", (3,))  # of max_bands
    command(*arguments, out=tmp_path)
    changed = {p for p, time in before.items() if p.stat().st_mtime_ns > time}
    assert changed == {path for path in before if "statistics" in str(path)}


def test_a_killed_run_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    protocol = PROTOCOLS["linear-probe"]
    calls = []

    def killed_at_the_third(trial):
        calls.append(trial.method.name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return {"accuracy": 1.0}

    monkeypatch.setitem(
        PROTOCOLS, "linear-probe", dataclasses.replace(protocol, run=killed_at_the_third)
    )
    arguments = ("linear-probe", "--dataset", "toy", "--method", *QUICK, "--seeds", "2")
    assert command(*arguments, out=tmp_path) == 130
    assert "interrupted: the same command goes on" in capsys.readouterr().err
    assert len(list(Results(tmp_path))) == 2
    assert command(*arguments, out=tmp_path) == 0
    assert len(calls) == 3 + 4
    assert len(list(Results(tmp_path))) == 6


def test_what_another_process_runs_is_waited_for(tmp_path, monkeypatch):
    cells = plan(["linear-probe"], datasets=["toy"], methods=["statistics"], n_seeds=1)
    (tmp_path / "locks").mkdir()
    lock = FileLock(tmp_path / "locks" / "on_paper_split-toy-statistics-0-val-small.lock")
    lock.acquire()
    slept = []

    def other_finishes(seconds):
        slept.append(seconds)
        Results(tmp_path).write(
            cells[0], _run.identity(cells[0], Execution(tmp_path)), {"scores": {"accuracy": 0.25}}
        )
        lock.release()

    monkeypatch.setattr(_run.time, "sleep", other_finishes)
    (outcome,) = run(cells, Execution(tmp_path))
    assert (outcome.state, len(slept)) == ("there", 1)
    assert next(iter(Results(tmp_path)))["scores"] == {"accuracy": 0.25}


def test_the_data_folder_is_the_one_that_the_environment_names_now(tmp_path, monkeypatch):
    (tmp_path / "full").mkdir()

    def load_if_there(data_home=None, download_if_missing=False):
        if get_data_home(data_home) != str(tmp_path / "full"):
            raise OSError("the toy is not there")
        return load_toy()

    monkeypatch.setitem(TASKS, "toy", dataclasses.replace(TOY, load=load_if_there))
    cells = plan(["linear-probe"], datasets=["toy"], methods=["majority"], budget="smoke")
    states = []
    for name in ("full", "empty", "full"):
        monkeypatch.setenv("SKLEARN_PULSE_DATA", str(tmp_path / name))
        (outcome,) = run(cells, Execution(tmp_path / f"out-{len(states)}"))
        states.append(outcome.state)
    assert states == ["finished", "no data", "finished"]


@pytest.mark.slow  # two interpreters read HAR
def test_two_processes_give_the_scores_of_one(tmp_path, data_home):
    arguments = ("linear-probe", "--dataset", "har", "--method", "statistics", "majority")
    scores = []
    for n_jobs in (1, 2):
        folder = tmp_path / str(n_jobs)
        assert command(*arguments, "--data-home", data_home, "--n-jobs", n_jobs, out=folder) == 0
        scores.append({key: record["scores"] for key, record in records(folder).items()})
    assert len(scores[0]) == 2
    assert scores[0] == scores[1]


def test_transfer_and_ablation(tmp_path):
    methods = ("pulse", *QUICK)
    assert command("transfer", "--dataset", "toy-toy", "--method", *methods, out=tmp_path) == 0
    found = records(tmp_path)
    assert "head accuracy" in found["pulse", 0]["scores"]
    assert "head accuracy" in found["untrained", 0]["scores"]
    assert "head accuracy" not in found["statistics", 0]["scores"]
    variants = ("pulse", "pulse-no-time-varying")
    where = tmp_path / "ablation"
    assert command("ablation", "--dataset", "toy", "--method", *variants, out=where) == 0
    settings = {m: r["identity"]["settings"] for (m, _), r in records(where).items()}
    assert settings["pulse-no-time-varying"]["time_varying_dim"] == 0
    assert "time_varying_dim" not in settings["pulse"]


def test_fine_tuning_sees_part_of_the_target_and_what_is_not_scored(tmp_path, monkeypatch):
    seen = []
    fit = FineTuneClassifier.fit
    monkeypatch.setattr(
        FineTuneClassifier, "fit", lambda self, X, y: seen.append(len(X)) or fit(self, X, y)
    )
    arguments = ("transfer", "--dataset", "toy-toy", "--method", "untrained")
    assert command(*arguments, out=tmp_path) == 0
    assert command(*arguments, "--split", "test", out=tmp_path) == 0
    assert seen == [30, 30 + 20]  # half of 60 windows, and the 20 that validate


@pytest.mark.parametrize("method", ["patchtst", "timemae"])
def test_an_encoder_of_one_length_is_transferred_to_shorter_windows(tmp_path, monkeypatch, method):
    """PatchTST is in the paper's table, whose targets are shorter than the sources' windows."""

    def target(**home):
        toy = load_toy()
        return dataclasses.replace(toy, X=toy.X[:, :18], recordings=None)

    scenario = dataclasses.replace(SCENARIOS["toy-toy"], target=target)
    monkeypatch.setitem(SCENARIOS, "toy-toy", scenario)
    assert command("transfer", "--dataset", "toy-toy", "--method", method, out=tmp_path) == 0
    assert "head accuracy" in records(tmp_path)[method, 0]["scores"]


def test_the_note_of_a_transfer_is_that_of_its_target(tmp_path, monkeypatch):
    def target(**home):
        return dataclasses.replace(load_toy(), note="of the target")

    scenario = dataclasses.replace(SCENARIOS["toy-toy"], target=target)
    monkeypatch.setitem(SCENARIOS, "toy-toy", scenario)
    methods = ("untrained", "majority")
    assert command("transfer", "--dataset", "toy-toy", "--method", *methods, out=tmp_path) == 0
    assert {r["note"] for r in records(tmp_path).values()} == {"of the target"}


@pytest.mark.usefixtures("five_draws")
def test_cross_validation_has_a_seed_a_fold_and_test_folds(tmp_path):
    command("cross-validation", "--dataset", "toy", "--method", "untrained", out=tmp_path)
    found = records(tmp_path)
    assert sorted(seed for _, seed in found) == [0, 1, 2, 3, 4]
    assert {record["identity"]["seed"] for record in found.values()} == {0, 1, 2, 3, 4}
    assert {record["cell"]["split"] for record in found.values()} == {"test"}
    assert len(Results(tmp_path).looks()) == 5
    assert len(found["untrained", 0]["scores"]["accuracy 1 %"]) == 5


@pytest.mark.parametrize("out", ["notes", "notes/results"])
@pytest.mark.parametrize("command", ["report", "synthetic --method majority --budget smoke"])
def test_a_file_in_place_of_the_results_is_named(tmp_path, capsys, command, out):
    (tmp_path / "notes").touch()
    assert main([*command.split(), "--out", str(tmp_path / out)]) == 2
    told = capsys.readouterr().err
    assert f"error: {tmp_path / 'notes'} is a file: name another folder" in told


def test_every_look_at_the_test_part_is_logged(tmp_path, capsys):
    arguments = ("linear-probe", "--dataset", "toy", "--method", "statistics", "--seeds", "1")
    command(*arguments, out=tmp_path)
    assert Results(tmp_path).looks() == []
    command(*arguments, "--split", "test", out=tmp_path)
    (look,) = Results(tmp_path).looks()
    assert (look["split"], look["method"]) == ("test", "statistics")
    command(*arguments, "--split", "test", out=tmp_path)  # finished already, so nothing is scored
    assert len(Results(tmp_path).looks()) == 1
    assert "scored 1 times" in capsys.readouterr().err


def test_absent_data_is_told_and_the_rest_is_run(tmp_path, capsys):
    code = command(
        "linear-probe", "--dataset", "absent", "toy", "--method", "majority", out=tmp_path
    )
    assert code == 0
    told = capsys.readouterr().err
    assert "no data: absent: OSError: the toy is not there" in told
    assert "pass --download, or --data-home and the folder that has the data" in told
    assert list(records(tmp_path)) == [("majority", 0)]
    # A script must not go on where nothing was there.
    assert command("linear-probe", "--dataset", "absent", "--method", "majority", out=tmp_path) == 1


def test_a_run_of_other_settings_that_fails_leaves_no_score(tmp_path, monkeypatch):
    arguments = ("linear-probe", "--dataset", "toy", "--method", "majority")
    assert command(*arguments, out=tmp_path) == 0
    (path,) = (tmp_path / "cells").rglob("*.json")
    record = json.loads(path.read_text())
    record["identity"]["parameters"] = {"another": 1}
    del record["checksum"]
    path.write_text(json.dumps(record))
    with monkeypatch.context() as patch:
        patch.setattr("sklearn_pulse.benchmark._run._content", lambda *args: 1 / 0)
        assert command(*arguments, out=tmp_path) == 1
    assert not list(Results(tmp_path))
    assert command(*arguments, out=tmp_path) == 0
    assert list(records(tmp_path)) == [("majority", 0)]


def test_a_report_without_matplotlib_names_the_extra(tmp_path, monkeypatch, capsys):
    assert command("linear-probe", "--dataset", "toy", "--method", "majority", out=tmp_path) == 0
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert main(["report", "--out", str(tmp_path)]) == 2
    assert "pictures of a report need matplotlib; its tables are" in capsys.readouterr().err
    assert (tmp_path / "tables" / "tables.md").exists()


def test_a_failing_cell_fails_the_command_and_not_the_others(tmp_path, capsys, monkeypatch):
    def broken(self, X):
        raise RuntimeError("no embedding today")

    monkeypatch.setattr(RandomEncoderTransformer, "transform", broken)
    assert command("linear-probe", "--dataset", "toy", "--method", *QUICK, out=tmp_path) == 1
    assert "failed: linear-probe toy untrained seed 0: RuntimeError: no embedding" in (
        capsys.readouterr().err
    )
    assert len(records(tmp_path)) == 2


def test_a_score_that_is_no_number_fails_its_cell_alone(tmp_path, capsys, monkeypatch):
    def score(trial):
        return {"accuracy": float("nan") if trial.method.name == "statistics" else 0.5}

    protocol = dataclasses.replace(PROTOCOLS["linear-probe"], run=score)
    monkeypatch.setitem(PROTOCOLS, "linear-probe", protocol)
    arguments = ("--dataset", "toy", "--method", "statistics", "majority")
    assert command("linear-probe", *arguments, out=tmp_path) == 1
    assert "failed: linear-probe toy statistics seed 0: ValueError" in capsys.readouterr().err
    assert list(records(tmp_path)) == [("majority", 0)]
    assert not list(tmp_path.rglob("*.partial"))


def test_a_method_that_is_added_appears_by_itself(monkeypatch):
    class NewcomerTransformer(PulseTransformer):
        pass

    assert "newcomer" not in all_methods()
    monkeypatch.setattr(
        sklearn_pulse.baselines, "NewcomerTransformer", NewcomerTransformer, raising=False
    )
    assert "newcomer" in {cell.method for cell in plan(["linear-probe", "transfer"])}
    assert all_methods()["newcomer"].title == "Newcomer"


def test_published_runs_the_settings_of_the_released_code_in_a_row_of_its_own(
    tmp_path, monkeypatch, capsys
):
    asked = []

    def get(method, dataset, published=False):
        asked.append((method, published))
        return SETTINGS | ({"deterministic_validation": False} if published else {})

    monkeypatch.setattr(presets, "get", get)
    arguments = ("ablation", "--dataset", "toy", "--method", "pulse", "--seeds", "1")
    assert command(*arguments, out=tmp_path) == 0
    assert command(*arguments, "--published", out=tmp_path) == 0
    assert set(asked) == {("pulse", False), ("pulse", True)}
    by_row = records(tmp_path)
    assert set(by_row) == {("pulse", 0), ("pulse-published", 0)}
    ours, theirs = (
        by_row[name, 0]["identity"]["settings"] for name in ("pulse", "pulse-published")
    )
    assert theirs == ours | {"deterministic_validation": False}
    assert main(["report", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "| PULSE (released code) | 1 |" in printed
    assert "Rows without '(released code)' mend its errors" in printed


def test_every_method_with_a_released_code_has_a_row_for_it():
    for name in presets.methods():
        (method, *_) = (m for m in all_methods().values() if m.preset_name == name)
        released = all_methods()[f"{method.name}-published"]
        settings = presets.get(name, "har", published=True) | method.params
        assert released.settings("har") == settings
        assert released.as_published() is released
    assert "minirocket-published" not in all_methods()


@pytest.mark.slow
def test_every_method_runs_with_few_labels_too(tmp_path, monkeypatch):
    settings = {name: value for name, value in SMALL.items() if name not in FROM_THE_BUDGET}
    monkeypatch.setattr(presets, "get", lambda *args, **kwargs: settings)
    methods = [method.name for method in (*trained(), supervised())]
    arguments = ("--dataset", "toy", "--seeds", "1", "--method")
    assert command("label-efficiency", *arguments, *methods, out=tmp_path) == 0
    assert len(list(Results(tmp_path))) == len(methods)
    assert all("accuracy 5 %" in record["scores"] for record in Results(tmp_path))


def test_the_number_of_runs_without_seeds_is_told(capsys):
    exceptions = set()
    for name, protocol in PROTOCOLS.items():
        datasets = protocol.datasets
        for budget in BUDGETS.values():
            if any(
                protocol.n_runs(dataset, None, budget) != budget.n_seeds for dataset in datasets
            ):
                exceptions.add(name)
    assert exceptions == {"cross-validation", "comparison"}
    with pytest.raises(SystemExit):
        main(["linear-probe", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "(a cross-validation runs all folds, a comparison all divisions)" in told


def test_a_budget_never_cuts_methods_or_data_sets():
    everything = [plan(PROTOCOLS, budget=budget) for budget in ("smoke", "full")]
    kinds = [{(c.protocol, c.dataset, c.method) for c in cells} for cells in everything]
    assert kinds[0] == kinds[1]
    controls = {"majority", "statistics", "minirocket", "untrained"}
    for protocol in set(PROTOCOLS) - {"ablation"}:
        assert controls <= {method for name, _, method in kinds[0] if name == protocol}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"protocols": ["linear-prob"]}, ValueError, "each of protocols must be one of"),
        ({"budget": "huge"}, ValueError, "budget must be one of"),
        ({"split": "train"}, ValueError, "split must be one of"),
        ({"n_seeds": -1}, ValueError, "n_seeds must be an integer of at least 1"),
        ({"datasets": ["har", "hare"]}, ValueError, "each of datasets must be one of"),
        ({"methods": ["pulze", "majority"]}, ValueError, "each of methods must be one of"),
    ],
)
def test_a_plan_of_what_is_not_there_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        plan(**{"protocols": ["linear-probe"]} | changes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "required: command"),
        ("linear-prob", "command: .*'linear-prob'"),
        ("linear-probe --dataset hare", "--dataset: 'hare' is neither"),
        ("linear-probe --method pulze", "--method: .*'pulze'"),
        ("linear-probe --seeds 0", "--seeds: must be an integer of at least 1, got '0'"),
        ("linear-probe --seeds x", "--seeds: must be an integer of at least 1, got 'x'"),
        ("linear-probe --seeds ²", "--seeds: must be an integer of at least 1, got '²'"),
        ("linear-probe --n-jobs -1", "--n-jobs: must be an integer of at least 1, got '-1'"),
        ("linear-probe --budget huge", "--budget: .*'huge'"),
        ("linear-probe --split train", "--split: .*'train'"),
        ("transfer --dataset har", "--dataset: 'har' is neither one of har-gesture"),
        ("ablation --method minirocket", "--method: .*'minirocket'"),
        ("linear-probe --dataset toy --device cuda:x", "device must be .*'cuda:x'"),
        ("report --out nowhere-to-be-found", "nowhere-to-be-found holds no finished cell"),
        ("all --dataset toy-toy --method pulse-random-pairs", "there is no cell to run: all has"),
    ],
)
def test_bad_arguments_end_with_one_line_and_exit_code_2(arguments, message, capsys):
    try:
        code = main(arguments.split())
    except SystemExit as exit:
        code = exit.code
    assert code == 2
    error = capsys.readouterr().err
    assert re.match(f"error: .*{message}", error)
    assert error.count("\n") == 1


@pytest.mark.parametrize("name", ["--out", "--dataset"])
def test_an_empty_path_is_not_the_working_folder(name, capsys):
    """As that of an unset variable of the shell."""
    try:
        code = main(["linear-probe", name, ""])
    except SystemExit as exit:
        code = exit.code
    assert code == 2
    assert re.search(f"error: .*{name}.* must be a path.*got ''", capsys.readouterr().err)


def test_without_filelock_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "sklearn_pulse.benchmark")
    monkeypatch.setitem(sys.modules, "filelock", None)
    with pytest.raises(ImportError, match=r"needs filelock: pip .*sklearn-pulse\[benchmark\]"):
        importlib.import_module("sklearn_pulse.benchmark")


def test_the_module_is_a_command(tmp_path, monkeypatch, capsys):
    name = "sklearn_pulse.benchmark"
    monkeypatch.delitem(sys.modules, f"{name}.__main__")  # runpy warns of it
    monkeypatch.setattr(sys, "argv", [name, "report", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as end:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    assert (end.value.code, capsys.readouterr().err.count("\n")) == (2, 1)


# That of the command of the generators, which writes by the same function, is quicker.
@pytest.mark.slow
def test_a_report_ends_quietly_where_nobody_reads_on(tmp_path):
    arguments = {"datasets": ["lorenz-0"], "methods": ["majority"], "budget": "smoke"}
    run(plan(["synthetic"], **arguments), Execution(tmp_path))
    report = [sys.executable, "-m", "sklearn_pulse.benchmark", "report", "--out", tmp_path]
    with subprocess.Popen(report, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()  # as head does
        assert process.stderr.read() == b""
    assert process.returncode == 1
    assert (tmp_path / "tables" / "tables.md").exists()


@pytest.mark.usefixtures("no_pictures")
def test_a_report_is_printed_where_the_output_lacks_letters(tmp_path, monkeypatch):
    arguments = {"datasets": ["lorenz-0"], "methods": ["majority"], "budget": "smoke"}
    run(plan(["synthetic"], **arguments, n_seeds=2), Execution(tmp_path))
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")  # as of some consoles
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", output)
        assert main(["report", "--out", str(tmp_path)]) == 0
    assert b"20.0 ? 0.0" in output.buffer.getvalue()
    assert "20.0 ± 0.0" in (tmp_path / "tables" / "tables.md").read_text(encoding="utf-8")


def test_a_cell_file_is_readable_json(tmp_path):
    command("linear-probe", "--dataset", "toy", "--method", "majority", out=tmp_path)
    cell = Cell("linear-probe", "toy", "majority", 0, "val", "smoke")
    text = (tmp_path / "cells" / cell.path).read_text()
    assert json.loads(text)["cell"]["protocol"] == "linear-probe"
