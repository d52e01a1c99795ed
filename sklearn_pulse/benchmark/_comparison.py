"""Scores of a comparison: many, few and grouped labels, by two probes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, recall_score

from ..datasets._arrays import map_array, write_whole
from ..evaluation import macro_auroc
from ..model_selection import LabelFractionSplit
from ..model_selection._draw import rows_of_groups
from ._cells import read_record
from ._probes import CS, FIXED_C, N_SEARCHED, SEARCH_ITER, LabeledRows
from ._trial import Scores, Trial

N_DRAWS = 5
_FRACTIONS = {"5 %": 0.05, "1 %": 0.01}
_PEOPLE = {"2 people": 2, "1 person": 1}
LABELS = ("100 %", *_FRACTIONS, *_PEOPLE)
PROBES = {"": "C = 1", ", C chosen": "C chosen by cross-validation"}
SCORES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "auroc": "auroc",
}  # names in records


def measure_of(score: str, labels: str, probe: str) -> str:
    """Return the name of a score of a probe, given by its suffix, with an amount of labels."""
    return f"{score} {labels}{probe}"


def measures_of(score: str) -> list[str]:
    """Return the names of a score of both probes, with all amounts of labels."""
    return [measure_of(score, labels, probe) for probe in PROBES for labels in LABELS]


MEASURES = tuple(name for score in SCORES.values() for name in measures_of(score))


def probes_by_amount(trial: Trial) -> Scores:
    """Score both probes with all labels, few labels, and the labels of few people.

    For "1 person", people are drawn in random order until every class occurs in at least one of
    them; a person who adds no class is passed over. For "2 people", until every class occurs in at
    least two of them. A person is a segment of Bonn, a gesture of UWave, a trial of a chaotic
    system.
    """
    train, scored = trial.split
    rows = LabeledRows(_embedding(trial), trial.y, trial.task.groups[trial.rows])
    scores: dict[str, list[float]] = defaultdict(list)
    for labels, drawn in draws_of_labels(trial.y, rows.groups, train, trial.seed):
        for name, value in _probed(trial, rows, drawn, scored, labels):
            scores[name].append(value)
    return {name: values for name, values in scores.items() if np.isfinite(values).all()}


def settings() -> dict[str, Any]:
    """Return the settings on which the scores of a comparison depend, beside the encoder."""
    search = {"Cs": CS, "n_searched": N_SEARCHED, "search_iter": SEARCH_ITER}
    return {"labels": LABELS, "n_draws": N_DRAWS, **search}


def draws_of_labels(
    y: NDArray[Any], groups: NDArray[Any], train: NDArray[np.intp], seed: int
) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Yield each draw of labelled rows with the name of its amount of labels."""
    yield "100 %", train
    for name, fraction in _FRACTIONS.items():
        splitter = LabelFractionSplit(
            fraction, n_draws=N_DRAWS, cv=[(train, train)], random_state=seed
        )
        for drawn, _ in splitter.split(y, y):
            yield name, drawn
    for name, n_people in _PEOPLE.items():
        for draw in range(N_DRAWS):
            chosen = people_of_each_class(y[train], groups[train], n_people, seed, draw)
            yield name, train[chosen]


def people_of_each_class(
    y: NDArray[Any], groups: NDArray[Any], n_people: int, seed: int, draw: int
) -> NDArray[np.intp]:
    """Return the rows of random people, so that every class occurs in `n_people` of them.

    Parameters
    ----------
    y : ndarray of shape (n_windows,)
        Labels.
    groups : ndarray of shape (n_windows,)
        Person of each window.
    n_people : int
        Number of people per class, if there are as many.
    seed : int
        Seed of the order of the people.
    draw : int
        Number of the draw, from 0 to `N_DRAWS` - 1. Each begins with another person, if there are
        as many people.

    Returns
    -------
    ndarray of int
        Rows of the people who add a class that fewer people show so far.
    """
    people = np.random.RandomState(seed).permutation(np.unique(groups).size)
    order = np.roll(people, -(draw * len(people) // N_DRAWS))
    return rows_of_groups(y, groups, order, n_people)


def _probed(
    trial: Trial,
    rows: LabeledRows,
    drawn: NDArray[np.intp],
    scored: NDArray[np.intp],
    labels: str,
) -> Iterator[tuple[str, float]]:
    """Yield the scores of both probes that are fitted on the drawn rows."""
    y = rows.y[scored]
    if trial.method.make is None:
        probe = DummyClassifier().fit(rows.Z[drawn], rows.y[drawn])
        for suffix in PROBES:
            yield from _scores(probe, rows.Z[scored], y, labels + suffix)
        return
    X, S = rows.standardised(drawn, scored)
    C, n_capped = rows.choose_C(drawn, trial.seed)
    fixed = rows.fit(drawn, FIXED_C, X)
    chosen = fixed if C == FIXED_C else rows.fit(drawn, C, X)
    for suffix, probe in zip(PROBES, (fixed, chosen), strict=True):
        yield from _scores(probe, S, y, labels + suffix)
        capped = float(probe.n_iter_.max() >= probe.max_iter)
        yield f"stopped early {labels}{suffix}", capped
    yield f"C {labels}", C
    yield f"search fits stopped early {labels}", float(n_capped)


def _scores(probe: Any, X: NDArray[Any], y: NDArray[Any], name: str) -> Iterator[tuple[str, float]]:
    """Yield the scores of a fitted probe by name."""
    predicted = probe.predict(X)
    yield f"accuracy {name}", float(accuracy_score(y, predicted))
    classes = np.unique(y)  # a class that is only predicted has no recall
    recall = recall_score(y, predicted, labels=classes, average="macro")
    yield f"balanced accuracy {name}", float(recall)
    auroc = float("nan")
    if len(classes) > 1:
        auroc = macro_auroc(y, probe.predict_proba(X), classes=probe.classes_)
    yield f"auroc {name}", auroc


def _embedding(trial: Trial) -> NDArray[Any]:
    """Return the embeddings of a trial, which are stored so that probes can be repeated."""
    if trial.method.make is None:
        return trial.embedding
    path = trial.execution.folder / "embeddings" / f"{trial.name}-{trial.scored}.npy"
    record = path.with_suffix(".json")
    if not (path.exists() and record.exists()):
        embedding = trial.embedding
        # Cells of other data sets share the embedding, and other processes may be reading it.
        text = json.dumps(trial.record)
        write_whole(record, lambda file: file.write(text.encode()))
        write_whole(path, lambda file: np.save(file, embedding))
    trial.record |= read_record(record)
    return map_array(path, np.floating, (len(trial.rows), None))
