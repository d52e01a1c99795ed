"""Markdown of a comparison: all methods on all data sets, with the cells that are lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from ._budgets import BUDGETS
from ._comparison import LABELS, PROBES, measure_of, measures_of
from ._markdown import figure, grid
from ._methods import Method
from ._tables import PARTS, ROUNDING, Table, Value

_HERO = "cross-prediction"  # the method whose lost cells are named
_UNEQUAL = 1.5  # how many times its share the largest class has, from which on readers are told


def measure_markdown(table: Table) -> str:
    """Return the table of one measure: a row per method, a column per data set."""
    lines = []
    for method in table.methods:
        entries = [_entry(table, method, metric) for metric in table.metrics]
        lines.append([method.heading, *entries])
    text = [f"### {table.title}", "", *grid(["%", *table.metrics], lines), ""]
    return "\n".join([*text, *(f"- {remark}" for remark in _remarks(table)), ""])


def _entry(table: Table, method: Method, metric: str) -> str:
    """Return an entry: the best in bold, "(lost)" if lost, "(3 of 5)" if scores are missing."""
    value = table.values.get((method.name, metric))
    wins = method.name in [best.name for best in table.best(metric)]
    text = figure(value, bold=wins)
    if value is None:
        return text
    largest = max(len(v.of_seed) for (_, column), v in table.values.items() if column == metric)
    if len(value.of_seed) < largest:
        text += f" ({len(value.of_seed)} of {largest})"
    return text + (" (lost)" if method.name == _HERO and table.better(_HERO, metric) else "")


def _remarks(table: Table) -> list[str]:
    """Return remarks on the values of a table, and on what is lost by how much to whom."""
    titles = {method.name: method.title for method in table.methods}
    remarks = [
        "Mean ± standard deviation over divisions and draws of the labels. Budget"
        f" {table.budget}: {BUDGETS[table.budget]}."
    ]
    for metric in table.metrics:
        better = table.better(_HERO, metric)
        if better:
            names = ", ".join(f"{titles[name]} {_lead(value)}" for name, value in better.items())
            remarks.append(f"**Lost by {titles[_HERO]}: {metric}**, to {names}.")
    return [*remarks, *(f"Note: {note}." for note in table.notes)]


def _lead(difference: Value) -> str:
    """Return a difference, and in how many divisions it is above zero.

    Draws of labels in a division share the windows that are scored, so that a spread over draws
    says little about other people.
    """
    of_division: dict[Any, list[float]] = defaultdict(list)
    for (dataset, seed, _), value in difference.of_seed.items():
        of_division[dataset, seed].append(value)
    n_ahead = sum(np.mean(values) > ROUNDING for values in of_division.values())
    text = figure(difference, sign="+")
    if len(of_division) == 1:
        return text
    return f"{text} (in {n_ahead} of {len(of_division)} divisions)"


def summaries(wide: list[Table], score: str) -> Iterator[str]:
    """Yield, per part and budget, what is won and lost, and per probe a table of everything.

    What is won and lost is left out where cross-prediction has no value. If classes are unequal,
    which accuracy hides, a remark says where.
    """
    for split, budget in dict.fromkeys((table.split, table.budget) for table in wide):
        of_part = {t.dataset: t for t in wide if (t.split, t.budget) == (split, budget)}
        where = f"{PARTS[split]}s, budget {budget}"
        shown = {name: of_part[name] for name in measures_of(score) if name in of_part}
        if any(_has(table, _HERO) for table in shown.values()):
            yield _won_and_lost(shown, where)
        unequal = _unequal_classes(of_part) if score == "accuracy" else {}
        if shown and unequal:
            yield _of_unequal_classes(unequal)
        what = "All methods" if score == "accuracy" else f"All methods, {score}"
        for suffix, probe in PROBES.items():
            names = {labels: measure_of(score, labels, suffix) for labels in LABELS}
            found = {labels: shown[name] for labels, name in names.items() if name in shown}
            if found:
                yield _everything(found, f"### {what}, {probe}, {where}")


def _unequal_classes(of_part: dict[str, Table]) -> dict[str, float]:
    """Return the share of the largest class by column, where it is well above an equal share.

    The majority class has all windows of one class right, so that its balanced accuracy is the
    share that each class would have if they were equal.
    """
    names = (measure_of(score, LABELS[0], "") for score in ("accuracy", "balanced accuracy"))
    accuracy, equal = (of_part[name].values if name in of_part else {} for name in names)
    return {
        column: value.mean
        for (method, column), value in accuracy.items()
        if method == "majority"
        and (method, column) in equal
        and value.mean > _UNEQUAL * equal[method, column].mean
    }


def _of_unequal_classes(share: dict[str, float]) -> str:
    """Return a remark on columns whose classes are unequal."""
    where = ", ".join(f"{column} ({100 * value:.0f} %)" for column, value in share.items())
    return (
        f"Classes are unequal in {where}; the number is the accuracy of the majority class. There a"
        " row may be above another for naming the largest class more often. `report --score"
        " balanced_accuracy` counts each class alike.\n"
    )


def _won_and_lost(of_measure: dict[str, Table], where: str) -> str:
    """Return the numbers of cells that are won and lost, a row per measure."""
    lines = []
    for measure, table in of_measure.items():
        there = [metric for metric in table.metrics if (_HERO, metric) in table.values]
        lost = [metric for metric in there if table.better(_HERO, metric)]
        won = f"{len(there) - len(lost)} of {len(there)}"
        lines.append([measure, won, "; ".join(lost) or "none"])
    title = f"### Cells in which no other finished row is above {_HERO}, {where}"
    return "\n".join([title, "", *grid(["measure", "won or shared", "lost"], lines), ""])


def _everything(of_labels: dict[str, Table], title: str) -> str:
    """Return one table: a row per data set and amount of labels, a column per method."""
    tables = of_labels.values()
    methods = {m.name: m for table in tables for m in table.methods if _has(table, m.name)}
    metrics = dict.fromkeys(metric for table in tables for metric in table.metrics)
    lines = [
        [f"{metric}, {_name(labels)}", *(_entry(table, m, metric) for m in methods.values())]
        for metric in metrics
        for labels, table in of_labels.items()
    ]
    header = ["%", *(method.title for method in methods.values())]
    return "\n".join([title, "", *grid(header, lines), ""])


def _has(table: Table, method: str) -> bool:
    """Return whether a table holds a value of a method."""
    return any(name == method for name, _ in table.values)


def _name(labels: str) -> str:
    """Return the name of an amount of labels in a row."""
    return "all labels" if labels == "100 %" else labels
