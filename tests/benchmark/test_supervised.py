"""The supervised row: a few labels, the head's scores, and who selects the epoch."""

import dataclasses

import numpy as np
import pytest

from sklearn_pulse import presets
from sklearn_pulse.baselines import SupervisedClassifier
from sklearn_pulse.benchmark import BUDGETS, Results
from sklearn_pulse.benchmark.__main__ import main
from sklearn_pulse.benchmark._tasks import TASKS
from sklearn_pulse.model_selection import LabelFractionSplit

from .toy import TOY, load_toy

SMALL = {"embedding_dim": 8, "encoder_hidden_dim": 8, "encoder_depth": 3}


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(TASKS, "toy", TOY)
    settings = presets.get("supervised", "har") | SMALL
    monkeypatch.setattr(presets, "get", lambda *args, **kwargs: settings)


def few_labels(out, *arguments):
    where = ("label-efficiency", "--dataset", "toy", "--method", "supervised", "--out", str(out))
    assert main([*where, "--budget", "smoke", *arguments]) == 0
    (record,) = Results(out)
    return record


def draw(task, fraction, smoothing, part):
    rows = np.concatenate([task.rows("train"), task.rows(part)])
    n = len(task.rows("train"))
    splitter = LabelFractionSplit(
        fraction,
        smoothing=smoothing,
        n_draws=1,
        cv=[(np.arange(n), np.arange(n, len(rows)))],
        random_state=0,
    )
    chosen, scored = next(splitter.split(rows, task.y[rows]))
    return rows[chosen], rows[scored]


@pytest.mark.usefixtures("no_pictures")
def test_its_head_is_scored_on_a_few_labels(tmp_path, capsys):
    record = few_labels(tmp_path)
    where = ["--dataset", "toy", "--out", str(tmp_path), "--budget", "smoke"]
    assert main(["label-efficiency", *where, "--method", "majority"]) == 0
    assert main(["report", "--out", str(tmp_path)]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if "| Supervised" in line)
    assert row.count("–") == 1 and "missing" not in row  # with all labels it is not scored
    task = load_toy()
    chosen, scored = draw(task, 0.05, "per_class", "val")
    classifier = SupervisedClassifier(**SMALL, max_epochs=1, random_state=0, num_threads=1)
    classifier.fit(task.X[chosen], task.y[chosen])
    expected = classifier.score(task.X[scored], task.y[scored])
    assert record["scores"]["accuracy 5 %"] == expected
    assert "accuracy 100 %" not in record["scores"]
    assert record["identity"]["supervised_epochs"] == BUDGETS["smoke"].supervised_epochs


def test_what_is_scored_does_not_select(tmp_path, monkeypatch):
    seen = []
    fit = SupervisedClassifier.fit

    def spy(self, X, y, **validation):
        seen.append((X, validation.get("X_val")))
        return fit(self, X, y, **validation)

    monkeypatch.setattr(SupervisedClassifier, "fit", spy)
    few_labels(tmp_path / "val")
    assert all(X_val is None for _, X_val in seen)
    seen.clear()
    few_labels(tmp_path / "test", "--split", "test")
    task = load_toy()
    chosen, _ = draw(task, 0.05, "none", "test")
    X, X_val = seen[-1]
    np.testing.assert_array_equal(X, task.X[chosen])
    known = np.isin(task.y[task.rows("val")], task.y[chosen])
    np.testing.assert_array_equal(X_val, task.X[task.rows("val")][known])


def test_validation_windows_of_other_classes_do_not_select(tmp_path, monkeypatch):
    """As of people who show a class of their own; then a part of the few labels does."""
    task = load_toy()
    alone = dataclasses.replace(task, y=np.where(task.split == "val", 2, task.y))
    monkeypatch.setitem(TASKS, "toy", dataclasses.replace(TOY, load=lambda **home: alone))
    scores = few_labels(tmp_path, "--split", "test")["scores"]
    chosen, scored = draw(alone, 0.05, "per_class", "test")
    classifier = SupervisedClassifier(**SMALL, max_epochs=1, random_state=0, num_threads=1)
    classifier.fit(alone.X[chosen], alone.y[chosen])
    assert scores["accuracy 5 %"] == classifier.score(alone.X[scored], alone.y[scored])


def test_folds_score_few_labels_only(tmp_path):
    arguments = ("cross-validation", "--dataset", "toy", "--method", "supervised")
    assert main([*arguments, "--budget", "smoke", "--out", str(tmp_path)]) == 0
    assert all("accuracy" not in record["scores"] for record in Results(tmp_path))
    assert len(list(Results(tmp_path))) == 5


def test_a_budget_cuts_each_stage():
    settings = {"max_epochs": 100, "attention_epochs": 300, "lr": 1.0}
    assert BUDGETS["small"].pretraining(settings) == {"max_epochs": 10, "attention_epochs": 10}
    assert BUDGETS["full"].pretraining(settings) == {"max_epochs": 100, "attention_epochs": 300}
    assert BUDGETS["small"].supervised({"max_epochs": 100}) == {"max_epochs": 40}
    assert BUDGETS["full"].supervised({"max_epochs": 100}) == {"max_epochs": 100}
    half, known = BUDGETS["full-bfloat16"], {"max_epochs": 100, "precision": "float32"}
    assert half.pretraining(known) == half.supervised(known) == known | {"precision": "bfloat16"}
