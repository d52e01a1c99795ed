"""A picture a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..plotting import LabelEfficiencyDisplay
from ._methods import Method
from ._protocols import FEW_LABELS, FRACTIONS, PROTOCOLS
from ._tables import Table

_LABELS = (*FEW_LABELS, "accuracy 100 %")


def draw(table: Table, path: Path) -> None:
    """Draw a table: accuracy against labels or noise where it is about them, else its first metric.

    Parameters
    ----------
    table : Table
        What is drawn.
    path : Path
        Of the PNG file.
    """
    import matplotlib.pyplot as plt

    complete = [m for m in table.methods if all((m.name, x) in table.values for x in _LABELS)]
    curves = [method for method in complete if method.make is not None]
    if PROTOCOLS[table.protocol].is_crossed:
        figure = _across_columns(table)
    else:
        figure = _label_efficiency(table, curves) if curves else _figures(table)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _label_efficiency(table: Table, curves: list[Method]) -> Any:
    """Draw accuracy against the share of labels, one point a seed."""
    scores = {
        method.title: np.array([table.values[method.name, x].per_seed for x in _LABELS])
        for method in curves
    }
    majority = table.values.get(("majority", _LABELS[-1]))
    display = LabelEfficiencyDisplay.from_scores(
        scores, (*FRACTIONS, 1.0), majority_score=majority and majority.mean
    )
    display.ax_.set_title(f"{table.title}, budget {table.budget}", fontsize="medium", loc="left")
    return display.figure_


def _across_columns(table: Table) -> Any:
    """Draw the accuracy of each method across the columns, with its spread over seeds."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
    columns = np.arange(len(table.metrics))
    for number, method in enumerate(table.methods):
        values = [table.values.get((method.name, metric)) for metric in table.metrics]
        there = [column for column in columns if values[column] is not None]
        if not there:
            continue
        ax.errorbar(
            there,
            [values[column].mean for column in there],
            [values[column].spread for column in there],
            label=method.title,
            color=f"C{number % 10}",
            linestyle="--" if method.is_control else "-",
            marker="osD^v"[number // 10],
            capsize=2,
        )
    ax.set_xticks(columns, table.metrics)
    ax.set(ylabel="accuracy")
    ax.grid(alpha=0.3)
    title = f"{table.title}, budget {table.budget}"
    figure.suptitle(title, x=0.01, ha="left", fontsize="medium")  # the legend is beside the axes
    if ax.containers:
        figure.legend(frameon=False, fontsize="small", loc="outside right center")
    return figure


def _figures(table: Table) -> Any:
    """Draw the first metric of each method, with its spread and the paper's value."""
    import matplotlib.pyplot as plt

    metric = table.metrics[0]
    methods = table.methods[::-1]
    figure, ax = plt.subplots(figsize=(7, 1.6 + 0.33 * len(methods)), layout="constrained")
    for height, method in enumerate(methods):
        value = table.values.get((method.name, metric))
        theirs = table.paper(method.name, metric)
        if theirs is not None:
            ax.plot(theirs, height, "D", mfc="none", color="C3")
        if value is None:
            # A share of the width, and the number of the row.
            where = ax.get_yaxis_transform()
            ax.text(0.01, height, "missing", va="center", color="0.5", transform=where)
            continue
        colour = "0.45" if method.is_control else "C0"
        ax.plot(value.per_seed, [height] * len(value.per_seed), "|", color=colour, alpha=0.6)
        ax.errorbar(
            value.mean, height, xerr=value.spread, fmt="o", color=colour, capsize=3, zorder=3
        )
    ax.plot([], [], "o", color="C0", label="method")
    ax.plot([], [], "o", color="0.45", label="control")
    ax.plot([], [], "D", mfc="none", color="C3", label="paper, full budget")
    figure.legend(frameon=False, fontsize="small", loc="outside lower right", ncols=3)
    ax.set_yticks(range(len(methods)), [method.title for method in methods])
    ax.set(xlabel=metric, ylim=(-0.7, len(methods) - 0.3))
    ax.set_title(f"{table.title}, budget {table.budget}", fontsize="medium", loc="left")
    ax.grid(axis="x", alpha=0.3)
    return figure
