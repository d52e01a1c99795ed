"""Tables and pictures of the finished cells, with the paper's values and the controls."""

from __future__ import annotations

import csv
import os
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Literal

from .._parameters import as_path, check_option
from . import _paper as paper
from ._budgets import BUDGETS
from ._cells import Cell, Results
from ._comparison import SCORES, measures_of
from ._markdown import NOT_SCORED, figure, grid, percent
from ._outside import title_of
from ._own import title_of_dataset
from ._pictures import draw
from ._protocols import PROTOCOLS
from ._tables import PARTS, ROUNDING, Table, Value, table_key, tables
from ._wide import measure_markdown, summaries


def report(
    results: Results,
    folder: str | os.PathLike[str],
    *,
    score: Literal["accuracy", "balanced_accuracy", "auroc"] = "accuracy",
) -> str:
    """Write the tables of the finished cells as CSV, Markdown and PNG files.

    Parameters
    ----------
    results : Results
        Folder of the finished cells.
    folder : path-like
        Folder of the written files, which is created if it does not exist.
    score : {"accuracy", "balanced_accuracy", "auroc"}, default="accuracy"
        Score of a comparison that Markdown and pictures show: the share of windows that are right,
        the mean of this share over classes, or the mean area under the ROC curve of each class
        against the others. The CSV file holds all three. Other protocols show all their scores.

    Returns
    -------
    str
        All tables, in Markdown.

    Raises
    ------
    ValueError
        If no cell is finished, or `score` is unknown.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn_pulse.benchmark import Execution, Results, plan, report, run
    >>> cells = plan(["synthetic"], datasets=["lorenz-0"], methods=["majority"], budget="smoke")
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = Path(name)
    ...     outcomes = run(cells, Execution(folder))
    ...     text = report(Results(folder), folder / "tables")
    >>> print(text.splitlines()[0])
    ### Parameters of chaotic systems, Lorenz, validation part
    """
    check_option("score", score, SCORES)
    found = list(tables(results, results.asked()))
    if not found:
        raise ValueError(f"{results.folder} holds no finished cell: run a protocol first.")
    folder = as_path("folder", folder)
    folder.mkdir(parents=True, exist_ok=True)
    wide = [table for table in found if PROTOCOLS[table.protocol].is_wide]
    chosen = measures_of(SCORES[score])
    shown = [t for t in found if not PROTOCOLS[t.protocol].is_wide or t.dataset in chosen]
    text = "\n".join([*summaries(wide, SCORES[score]), *map(markdown, shown)])
    text += "".join(f"\nMissing altogether: {what}.\n" for what in _unfinished(results))
    text += "".join(f"\nMissing in part: {what}.\n" for what in _begun(results))
    ran_with = sorted({_versions(record) for record in results} - {""})
    text += "".join(f"\nRun with {versions}.\n" for versions in ran_with)
    looks = results.looks()
    if looks:
        cells = {tuple(value for key, value in look.items() if key != "time") for look in looks}
        text += f"\nThe test parts were scored {len(looks)} times, for {len(cells)} cells.\n"
    (folder / "tables.md").write_text(text, encoding="utf-8")
    with open(folder / "tables.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _COLUMNS)
        writer.writeheader()
        writer.writerows(row for table in found for row in rows(table))
    for table in shown:
        draw(table, folder / f"{table.name}.png")
    return text


def _unfinished(results: Results) -> list[str]:
    """List the data sets that were asked for and have no finished cell, by protocol and part."""
    finished = {table_key(Cell(**record["cell"])) for record in results}
    names: dict[str, dict[str, None]] = defaultdict(dict)
    for cell in results.asked():
        if cell.protocol in PROTOCOLS and cell.split in PARTS and table_key(cell) not in finished:
            title, part = PROTOCOLS[cell.protocol].title, PARTS[cell.split]
            name = title_of_dataset(cell.dataset)
            names[f"{title}, {part}, budget {cell.budget}"][name] = None
    return [f"{what}: {', '.join(datasets)}" for what, datasets in names.items()]


def _begun(results: Results) -> list[str]:
    """Count the missing runs of the methods of which others that were asked for are finished."""
    finished = {Cell(**record["cell"]) for record in results}
    asked: dict[Any, list[bool]] = defaultdict(list)
    for cell in dict.fromkeys(results.asked()):
        if cell.protocol in PROTOCOLS and cell.split in PARTS:
            asked[(*table_key(cell), cell.method)].append(cell in finished)
    found = []
    for (protocol, dataset, split, budget, method), runs in asked.items():
        if 0 < sum(runs) < len(runs):
            title, part = PROTOCOLS[protocol].title, PARTS[split]
            what = f"{title_of(method)} on {title_of_dataset(dataset)}"
            number = f"{len(runs) - sum(runs)} of {len(runs)} runs"
            found.append(f"{title}, {part}, budget {budget}: {number} of {what}")
    return found


def _versions(record: dict[str, Any]) -> str:
    """List the versions with which a cell was run."""
    return ", ".join(f"{name} {version}" for name, version in record.get("versions", {}).items())


_COLUMNS = "protocol dataset split budget method control metric n_seeds mean spread paper".split()


def rows(table: Table) -> Iterator[dict[str, Any]]:
    """Yield one row per method and metric; missing values are empty."""
    shown = dict.fromkeys([*table.metrics, *(metric for _, metric in table.values)])
    for method in table.methods:
        for metric in shown:
            value = table.values.get((method.name, metric))
            if value is None and metric not in table.metrics:
                continue
            n_seeds = 0 if value is None else len(value.per_seed)
            yield {
                "protocol": table.protocol,
                "dataset": table.dataset,
                "split": table.split,
                "budget": table.budget,
                "method": method.title,
                "control": method.is_control,
                "metric": metric,
                "n_seeds": n_seeds,
                "mean": None if value is None else value.mean,
                "spread": value.spread if value is not None and n_seeds > 1 else None,
                "paper": table.paper(method.name, metric),
            }


def markdown(table: Table) -> str:
    """Return a table in Markdown: mean and spread over seeds in percent, the best in bold."""
    if PROTOCOLS[table.protocol].is_wide:
        return measure_markdown(table)
    figures = _differences(table) if table.protocol == "ablation" else _figures(table)
    text = [f"### {table.title}", "", *grid(*figures), ""]
    if PROTOCOLS[table.protocol].is_crossed:
        text += [
            "Differences from the untrained encoder, on the seeds that both have:",
            "",
            *grid(*_gains(table)),
            "",
        ]
    return "\n".join([*text, *(f"- {remark}" for remark in _remarks(table)), ""])


def _figures(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return header and lines of a table of values, each beside the paper's."""
    header = ["%", "seeds"]
    with_paper = {metric for metric in table.metrics if table.has_paper(metric)}
    for metric in table.metrics:
        header += [metric, "paper"] if metric in with_paper else [metric]
    lines = []
    for method in table.methods:
        values = [table.values.get((method.name, metric)) for metric in table.metrics]
        line = [method.heading, _n_seeds(values)]
        is_run = any(values) and not PROTOCOLS[table.protocol].is_crossed
        for metric, value in zip(table.metrics, values, strict=True):
            wins = method.name in [best.name for best in table.best(metric)]
            line.append(NOT_SCORED if is_run and value is None else figure(value, bold=wins))
            if metric in with_paper:
                line.append(percent(table.paper(method.name, metric)))
        lines.append(line)
    return header, lines


def _differences(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return header and lines of a table of differences from PULSE, for the ablation."""
    metric = table.metrics[0]
    header = ["%", "seeds", metric, "paper", "minus PULSE", "paper's difference"]
    lines = []
    for method in table.methods:
        value = table.values.get((method.name, metric))
        difference = table.difference(method.name, metric)
        lines.append(
            [
                method.title,
                _n_seeds([value]),
                figure(value),
                percent(table.paper(method.name, metric)),
                figure(difference, sign="+"),
                percent(table.paper_difference(method.name, metric), sign="+"),
            ]
        )
    return header, lines


def _gains(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return header and lines of a table of differences from the untrained encoder."""
    lines = []
    for method in table.methods:
        gains = [table.difference(method.name, metric, "untrained") for metric in table.metrics]
        if method.name != "untrained":
            lines.append(
                [method.title, _n_seeds(gains), *(figure(gain, sign="+") for gain in gains)]
            )
    return ["points", "seeds", *table.metrics], lines


def _remarks(table: Table) -> list[str]:
    """Return remarks on the values of a table, and on controls that win."""
    remarks = [
        f"Mean ± standard deviation over {_unit(table)}s. Budget {table.budget}:"
        f" {BUDGETS[table.budget]}."
    ]
    has_paper = any(map(table.has_paper, table.metrics))
    if has_paper and table.split == "val":
        remarks.append("The paper's values are of the test part, at the full budget.")
    if has_paper and any(method.is_trained and not method.published for method in table.methods):
        remarks.append(
            "The paper's values come from the released code. Rows without '(released code)' mend"
            " its errors; --published runs it as it is."
        )
    if has_paper:
        remarks += [
            remark
            for (protocol, name), remark in _OF_PAPER.items()
            if protocol in ("", table.protocol) and any(m.name == name for m in table.methods)
        ]
    remarks += filter(None, (_of_controls(table, metric) for metric in table.metrics))
    if table.protocol != "ablation":  # whose table shows differences already
        remarks += filter(None, (_above(table, *pair) for pair in _PAIRS))
    remarks += [f"Note: {note}." for note in table.notes]
    return remarks


# Rows of the paper that are not of what their name says, or that the released code lacks; by
# protocol (any, if empty) and method.
_OF_PAPER = {
    ("", "pulse-random-pairs"): (
        "The released code has no random pairs: this row is our reading of the paper's text."
    ),
    ("transfer", "patchtst"): (
        "The paper's PatchTST is here what the released code fine-tunes, an untrained convolutional"
        " encoder, so that its equal is 'untrained encoder'. Ours is PatchTST itself."
    ),
}

# Pairs of methods: the paper ranks the first above the second, or training should do so.
_PAIRS = (
    ("oracle-positive", "pulse"),
    ("oracle-positive", "oracle-negative"),
    ("pulse", "untrained"),
    *(("pulse", without) for without in paper.ABLATIONS),
)


def _above(table: Table, upper: str, lower: str) -> str:
    """Return a remark on how far one method is above another, on the seeds that both have."""
    differences = []
    for metric in table.metrics:
        value = table.difference(upper, metric, lower)
        if value is not None:
            n_above = sum(x > ROUNDING for x in value.per_seed)
            above = f"{n_above} of {len(value.per_seed)}"
            differences.append(f"{metric}: {figure(value, sign='+')} (above in {above})")
    if not differences:
        return ""
    titles = {method.name: method.title for method in table.methods}
    pair = f"{titles[upper]} minus {titles[lower]}"
    unit = _unit(table)
    return f"{unit.capitalize()} by {unit}, {pair}: {'; '.join(differences)}."


def _unit(table: Table) -> str:
    """Return the unit of repetition."""
    return "fold" if PROTOCOLS[table.protocol].has_folds else "seed"


def _of_controls(table: Table, metric: str) -> str:
    """Return a remark if no method is better than a control."""
    best = table.best(metric)
    controls = [method.title for method in best if method.is_control]
    has_rival = any(
        not method.is_control and (method.name, metric) in table.values for method in table.methods
    )
    if not controls or not has_rival:
        return ""
    verdict = "wins" if len(controls) == len(best) else "is as good as the best"
    return f"**A control {verdict}: {' and '.join(controls)} ({metric}).**"


def _n_seeds(values: list[Value | None]) -> str:
    """Return the number of seeds of a row, as a range if its values differ in it."""
    counts = sorted({len(value.per_seed) for value in values if value}) or [0]
    return "-".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
