"""Markdown of a comparison: all methods on all data sets, with the cells that are lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from ._budgets import BUDGETS
from ._comparison import LABELS, PROBES
from ._markdown import figure, grid
from ._methods import Method
from ._tables import PARTS, Table, Value

_HERO = "cross-prediction"  # the method whose lost cells are named


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
    n_ahead = sum(np.mean(values) > 1e-12 for values in of_division.values())
    text = figure(difference, sign="+")
    if len(of_division) == 1:
        return text
    return f"{text} (in {n_ahead} of {len(of_division)} divisions)"


def summaries(wide: list[Table]) -> Iterator[str]:
    """Yield, per part and budget, what is won and lost, and per probe a table of everything.

    What is won and lost is left out where cross-prediction has no value.
    """
    for split, budget in dict.fromkeys((table.split, table.budget) for table in wide):
        of_part = {t.dataset: t for t in wide if (t.split, t.budget) == (split, budget)}
        where = f"{PARTS[split]}s, budget {budget}"
        if any(_has(table, _HERO) for table in of_part.values()):
            yield _won_and_lost(of_part, where)
        for suffix, probe in PROBES.items():
            measures = {f"accuracy {labels}{suffix}": labels for labels in LABELS}
            found = {measures[name]: t for name, t in of_part.items() if name in measures}
            if found:
                yield _everything(found, f"### All methods, {probe}, {where}")


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
