"""Pictures of the tables."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._extras import needs
from ..plotting import LabelEfficiencyDisplay
from ..plotting._style import MARKERS, distinct_colors
from ._methods import Method
from ._protocols import ALL_LABELS, FEW_LABELS, FEW_PEOPLE, FRACTIONS, N_PEOPLE, PROTOCOLS
from ._tables import Table, Value

_GAINS = (-0.5, -0.2, -0.1, -0.05, -0.02, -0.01, 0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_LABELS = dict(zip((*FEW_LABELS, ALL_LABELS), (*FRACTIONS, 1.0), strict=True))
_PEOPLE = dict(zip(FEW_PEOPLE, N_PEOPLE, strict=True))


def draw(table: Table, path: Path) -> None:
    """Draw a score against the amount of labels, or by column, or else the first metric.

    Parameters
    ----------
    table : Table
        Table to draw.
    path : Path
        Path of the PNG file to write.
    """
    with needs("the pictures of a report need matplotlib; its tables are written", "benchmark"):
        import matplotlib.pyplot as plt

    if PROTOCOLS[table.protocol].is_crossed or PROTOCOLS[table.protocol].is_wide:
        figure = _across_columns(table)
    else:
        curve = learning_curve(table)
        figure = _figures(table) if curve is None else curve.figure_
    with warnings.catch_warnings():
        # The user's title may be in a script that no font at hand has. The picture then shows boxes
        # for it; its file and the heading above it have the title.
        for message in (r"Glyph \d+ .* missing from", "Matplotlib currently does not support"):
            warnings.filterwarnings("ignore", message, UserWarning)
        figure.savefig(path, dpi=120)
    plt.close(figure)


def learning_curve(table: Table) -> LabelEfficiencyDisplay | None:
    """Draw accuracy against the amount of labels, with one point per seed.

    An amount that only some seeds have is left out, such as that of more people than some training
    parts hold.

    Parameters
    ----------
    table : Table
        Table to draw.

    Returns
    -------
    LabelEfficiencyDisplay or None
        The display; None if no method has scores of several amounts.
    """
    of_people = table.protocol == "labelled-people"
    known = _PEOPLE if of_people else _LABELS
    amounts = _whole(table, known)
    if len(amounts) < 2:
        return None
    scores = {
        method.title: _by_amount(table, method, amounts)
        for method in table.methods
        if method.make is not None and _n_scored(table, method, amounts) > 1
    }
    if not scores:
        return None
    majority = table.values.get(("majority", [*amounts][-1]))
    shown: Any = tuple(amounts.values())
    display = LabelEfficiencyDisplay.from_scores(
        scores,
        None if of_people else shown,
        n_groups=shown if of_people else None,
        majority_score=None if majority is None else majority.mean,
    )
    display.ax_.set_title(f"{table.title}, budget {table.budget}", fontsize="medium", loc="left")
    if of_people:
        display.ax_.set_xlabel("labelled people of each class")
    return display


def _whole(table: Table, amounts: dict[str, Any]) -> dict[str, Any]:
    """Return the amounts that have values, each of as many seeds as its method has elsewhere."""
    n_of = {key: len(value.of_seed) for key, value in table.values.items() if key[1] in amounts}
    most = {method: max(n for (m, _), n in n_of.items() if m == method) for method, _ in n_of}
    short = {metric for (method, metric), n in n_of.items() if n < most[method]}
    there = {metric for _, metric in n_of} - short
    return {metric: amount for metric, amount in amounts.items() if metric in there}


def _n_scored(table: Table, method: Method, metrics: Iterable[str]) -> int:
    """Return how many of the metrics a method has a value of."""
    return sum((method.name, metric) in table.values for metric in metrics)


def _by_amount(table: Table, method: Method, metrics: Iterable[str]) -> NDArray[np.float64]:
    """Return the scores of a method, of shape (n_metrics, n_seeds); NaN for a metric without any.

    The supervised method is not trained with all labels.
    """
    values = [table.values.get((method.name, metric)) for metric in metrics]
    n_seeds = max(len(value.of_seed) for value in values if value is not None)
    return np.array([[np.nan] * n_seeds if v is None else v.per_seed for v in values])


def _across_columns(table: Table) -> Any:
    """Draw a score by column and, on the same seeds, its gain over the untrained encoder."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 6), layout="constrained")
    n_methods, colors = len(table.methods), distinct_colors(8)
    for number, method in enumerate(table.methods):
        style = {
            "color": colors[number % len(colors)],
            "marker": MARKERS[number // len(colors) % len(MARKERS)],
            "markerfacecolor": "white" if method.is_control else None,
            "capsize": 2,
        }
        values = [table.values.get((method.name, metric)) for metric in table.metrics]
        line = "--" if method.is_control else "-"
        _bars(left, values, 0.0, label=method.title, linestyle=line, **style)
        gains = [table.difference(method.name, metric, "untrained") for metric in table.metrics]
        if method.name != "untrained":  # whose gain is the line at zero
            _bars(right, gains, 0.7 * ((number + 0.5) / n_methods - 0.5), linestyle="", **style)
    is_wide = PROTOCOLS[table.protocol].is_wide
    score = table.dataset if is_wide else "accuracy"  # a wide table is that of one measure
    left.set(ylabel=score, title=score)
    right.set(ylabel="points, logarithmic beyond 2", title="minus untrained encoder, same seeds")
    right.axhline(0.0, color="0.5", linewidth=0.8)
    if right.containers:
        right.set_yscale("symlog", linthresh=0.02)
        right.set_yticks(_GAINS, [f"{100 * gain:+.0f}" if gain else "0" for gain in _GAINS])
        right.autoscale(axis="y")  # the limits of the linear scale do not fit
    else:
        right.text(0.5, 0.5, "missing", ha="center", color="0.5", transform=right.transAxes)
    for ax in (left, right):
        ax.set_xticks(range(len(table.metrics)), table.metrics, rotation=90 if is_wide else 0)
        ax.grid(alpha=0.3)
    figure.suptitle(f"{table.title}, budget {table.budget}", x=0.01, ha="left", fontsize="medium")
    if left.containers:
        figure.legend(frameon=False, fontsize="small", loc="outside right center")
    return figure


def _bars(ax: Any, values: list[Value | None], shift: float, **style: Any) -> None:
    """Draw the means of all columns that have a value, with their spreads."""
    there = [(column + shift, value) for column, value in enumerate(values) if value is not None]
    if there:
        means, spreads = zip(*((value.mean, value.spread) for _, value in there), strict=True)
        ax.errorbar([x for x, _ in there], means, spreads, **style)


def _figures(table: Table) -> Any:
    """Draw the first metric of each method, with its spread and the paper's value."""
    import matplotlib.pyplot as plt

    metric = table.metrics[0]
    methods = table.methods[::-1]
    figure, ax = plt.subplots(figsize=(7, 1.6 + 0.33 * len(methods)), layout="constrained")
    ours, paper = distinct_colors(2)
    has_paper = False
    for height, method in enumerate(methods):
        value = table.values.get((method.name, metric))
        theirs = table.paper(method.name, metric)
        if theirs is not None:
            ax.plot(theirs, height, "D", mfc="none", color=paper)
            has_paper = True
        if value is None:
            # The coordinates are a fraction of the width and the number of the row.
            where = ax.get_yaxis_transform()
            ax.text(0.01, height, "missing", va="center", color="0.5", transform=where)
            continue
        colour = "0.45" if method.is_control else ours
        ax.plot(value.per_seed, [height] * len(value.per_seed), "|", color=colour, alpha=0.6)
        ax.errorbar(
            value.mean, height, xerr=value.spread, fmt="o", color=colour, capsize=3, zorder=3
        )
    ax.plot([], [], "o", color=ours, label="method")
    ax.plot([], [], "o", color="0.45", label="control")
    if has_paper:
        ax.plot([], [], "D", mfc="none", color=paper, label="paper, full budget")
    figure.legend(frameon=False, fontsize="small", loc="outside lower right", ncols=3)
    ax.set_yticks(range(len(methods)), [method.title for method in methods])
    ax.set(xlabel=metric, ylim=(-0.7, len(methods) - 0.3))
    ax.set_title(f"{table.title}, budget {table.budget}", fontsize="medium", loc="left")
    ax.grid(axis="x", alpha=0.3)
    return figure
