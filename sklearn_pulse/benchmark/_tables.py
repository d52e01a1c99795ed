"""Tables of the finished cells."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _paper as paper
from ._budgets import BUDGETS, count_epochs
from ._cells import Cell
from ._comparison import MEASURES
from ._methods import PUBLISHED_SUFFIX, Method
from ._outside import outside_rows
from ._own import OwnSource, is_own
from ._protocols import PROTOCOLS

EVERYTHING = "all"  # data set of the table of means over the titles of a crossed protocol
PARTS = {"val": "validation part", "test": "test part"}
Key = tuple[str, str, str, str]  # protocol, data set, part and budget of a table
LOWER_IS_BETTER = {"mse", "mae", "davies_bouldin"}
ROUNDING = 1e-12  # by which means of the same scores may differ


@dataclass(frozen=True)
class Value:
    """Entry of a table.

    Parameters
    ----------
    of_seed : dict to float
        Score of each seed; if there are several draws, their mean. In a comparison, the score of
        each data set, division and draw.
    """

    of_seed: dict[Any, float]

    @property
    def per_seed(self) -> list[float]:
        """Scores in the order of their seeds."""
        return [self.of_seed[seed] for seed in sorted(self.of_seed)]

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return float(np.mean(self.per_seed))

    @property
    def spread(self) -> float:
        """Population standard deviation over seeds."""
        return float(np.std(self.per_seed))


@dataclass(frozen=True)
class Table:
    """Results of one protocol on one part of one data set, with one budget.

    Parameters
    ----------
    protocol : str
        Name of the protocol.
    dataset : str
        Name of the data set.
    split : {"val", "test"}
        Part of the data set that is scored.
    budget : str
        Name of the budget.
    values : dict
        Values by method and metric; missing results have no entry.
    notes : tuple of str
        Notes for the reader.
    asked : frozenset of str, default=frozenset()
        Names of the methods that were asked for; those without a value are missing.
    has_namesake : bool, default=False
        Whether another data set of the report has the same title, so that a digest is needed.
    outside : tuple of Method, default=()
        Rows of the estimators of the user in the whole report.
    """

    protocol: str
    dataset: str
    split: str
    budget: str
    values: dict[tuple[str, str], Value]
    notes: tuple[str, ...]
    asked: frozenset[str] = frozenset()
    has_namesake: bool = False
    outside: tuple[Method, ...] = ()

    @property
    def name(self) -> str:
        """Name of the files of the table."""
        dataset = re.sub(r"[^\w>-]+", "-", self.dataset)
        return f"{self.protocol}-{dataset}-{self.split}-{self.budget}"

    @property
    def title(self) -> str:
        """Title of the table."""
        dataset = self.dataset_title
        if self.has_namesake:
            dataset += f" ({OwnSource(self.dataset).digest})"
        return f"{PROTOCOLS[self.protocol].title}, {dataset}, {PARTS[self.split]}"

    @property
    def dataset_title(self) -> str:
        """Name of the data set in the paper."""
        if PROTOCOLS[self.protocol].is_crossed:
            return "mean over systems" if self.dataset == EVERYTHING else self.dataset
        if PROTOCOLS[self.protocol].is_wide:
            return self.dataset
        return PROTOCOLS[self.protocol].source(self.dataset).title

    @property
    def methods(self) -> list[Method]:
        """Methods of the protocol that are finished or were asked for, and their released code."""
        shown = {name for name, _ in self.values} | self.asked
        methods = PROTOCOLS[self.protocol].methods()
        both = [known for method in methods for known in (method, method.as_published())]
        both += self.outside
        return [m for m in {method.name: method for method in both}.values() if m.name in shown]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics of the columns: those of the protocol of which a method has a value."""
        found = {metric for _, metric in self.values}
        protocol = PROTOCOLS[self.protocol]
        metrics = protocol.metrics
        if protocol.is_wide:  # the user's data sets are further columns
            metrics += tuple(sorted(found - {*metrics}))
        return tuple(metric for metric in metrics if metric in found) or metrics

    def best(self, metric: str) -> list[Method]:
        """Return the methods with the best mean, controls included; several if means are equal.

        Only methods with the largest number of seeds are compared, since a mean over fewer seeds is
        a mean over other tasks or draws.
        """
        sign = -1 if metric in LOWER_IS_BETTER else 1
        there = [method for method in self.methods if (method.name, metric) in self.values]
        counts = [len(self.values[method.name, metric].of_seed) for method in there]
        there = [m for m, count in zip(there, counts, strict=True) if count == max(counts)]
        means = [sign * self.values[method.name, metric].mean for method in there]
        highest = max(means, default=np.nan)
        pairs = zip(there, means, strict=True)
        return [method for method, mean in pairs if np.isclose(mean, highest, 0, ROUNDING)]

    def better(self, method: str, metric: str) -> dict[str, Value]:
        """Return by how much other methods are better on the seeds that both have, by name."""
        found = {}
        for other in self.methods:
            value = self.difference(other.name, metric, method)
            if value is not None and other.name != method and value.mean > ROUNDING:
                found[other.name] = value
        return dict(sorted(found.items(), key=lambda pair: -pair[1].mean))

    def paper(self, method: str, metric: str) -> float | None:
        """Return the value in the paper; None if the paper reports no value."""
        if is_own(self.dataset):  # whatever it is called
            return None
        name = method.removesuffix(PUBLISHED_SUFFIX)
        return paper.value(self.protocol, self.dataset_title, name, metric)

    def has_paper(self, metric: str) -> bool:
        """Return whether the paper reports the metric for a method of the table."""
        return any(self.paper(method.name, metric) is not None for method in self.methods)

    def difference(self, method: str, metric: str, base: str = "pulse") -> Value | None:
        """Return the difference from `base` on the seeds that both have; None without any."""
        ours, theirs = self.values.get((method, metric)), self.values.get((base, metric))
        if ours is None or theirs is None:
            return None
        both = ours.of_seed.keys() & theirs.of_seed.keys()
        return Value({s: ours.of_seed[s] - theirs.of_seed[s] for s in both}) if both else None

    def paper_difference(self, method: str, metric: str) -> float | None:
        """Return the difference from PULSE in the paper; None if a value is not reported."""
        ours, theirs = self.paper(method, metric), self.paper("pulse", metric)
        return None if ours is None or theirs is None else ours - theirs


def tables(records: Iterable[dict[str, Any]], asked: Iterable[Cell] = ()) -> Iterator[Table]:
    """Yield the tables of the finished cells.

    Parameters
    ----------
    records : iterable of dict
        Records of cells, as in `Results`. Records of unknown protocols, data sets, parts or budgets
        are left out.
    asked : iterable of Cell, default=()
        Cells that were asked for, finished or not.

    Yields
    ------
    Table
        One table, in the order of the protocols and of their data sets.
    """
    records, asked = list(records), list(asked)
    names = [record["cell"]["method"] for record in records] + [cell.method for cell in asked]
    outside = tuple(outside_rows(names))
    for table in _tables(records, asked):
        yield dataclasses.replace(table, outside=outside)


def _tables(records: list[dict[str, Any]], asked: list[Cell]) -> Iterator[Table]:
    """Yield the tables, without the rows of estimators of the user."""
    found = defaultdict(list)
    for record in records:
        cell = Cell(**record["cell"])
        if cell.split in PARTS and cell.budget in BUDGETS:
            found[table_key(cell)].append(record)
    wanted = defaultdict(set)
    for cell in asked:
        wanted[table_key(cell)].add(cell.method)
    namesakes = _namesakes(found)
    for protocol in PROTOCOLS.values():
        if protocol.is_wide:
            yield from _wide(protocol.name, found, wanted, namesakes)
            continue
        of_protocol = [
            _table(key, found[key], wanted[key], key[1] in namesakes)
            for dataset in (*protocol.datasets, *_own(protocol.name, found))
            for key in sorted(key for key in found if key[:2] == (protocol.name, dataset))
        ]
        yield from _crossed(of_protocol, wanted) if protocol.is_crossed else of_protocol


def table_key(cell: Cell) -> Key:
    """Return what the cells of one table share."""
    return cell.protocol, cell.dataset, cell.split, cell.budget


def _own(protocol: str, found: Iterable[Key]) -> list[str]:
    """Return the names of the user's data sets of a protocol."""
    return sorted({key[1] for key in found if key[0] == protocol and is_own(key[1])})


def _namesakes(found: Iterable[Key]) -> set[str]:
    """Return the names of the user's data sets whose title another data set of `found` has."""
    titles = set()  # pairs, since protocols may give a data set titles of their own
    for name, dataset, *_ in found:
        protocol = PROTOCOLS.get(name)
        if protocol and protocol.takes_own and (is_own(dataset) or dataset in protocol.datasets):
            titles.add((dataset, protocol.source(dataset).title))
    n_of = Counter(title for _, title in titles)
    return {dataset for dataset, title in titles if is_own(dataset) and n_of[title] > 1}


def _table(key: Key, records: list[dict[str, Any]], asked: set[str], has_namesake: bool) -> Table:
    """Return the table of records that share everything but method and seed."""
    per_seed: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for record in records:
        for metric, score in record.get("scores", {}).items():
            row = record["cell"]["method"], metric
            per_seed[row][record["cell"]["seed"]] = float(np.mean(score))
    values = {row: Value(of_seed) for row, of_seed in per_seed.items()}
    found = {text for record in records for text in (record.get("note", ""), _training(record))}
    notes = tuple(sorted(found - {""}))
    return Table(*key, values, notes, frozenset(asked), has_namesake)


def _wide(
    name: str,
    found: dict[Any, list[dict[str, Any]]],
    wanted: dict[Any, set[str]],
    namesakes: set[str],
) -> Iterator[Table]:
    """Yield one table per measure, whose columns are those of the data sets of a protocol."""
    columns = {dataset: source.column for dataset, source in PROTOCOLS[name].datasets.items()}
    columns |= {dataset: _own_column(dataset, namesakes) for dataset in _own(name, found)}
    keys = sorted({key[2:] for key in found if key[0] == name})
    for split, budget in keys:
        records = [r for dataset in columns for r in found.get((name, dataset, split, budget), [])]
        notes = tuple(dict.fromkeys(_note_of(r, columns) for r in records if r.get("note")))
        of_part = [key for key in wanted if key[0] == name and key[2:] == (split, budget)]
        asked = frozenset().union(*(wanted[key] for key in of_part))
        for measure in MEASURES:
            of_draw: dict[tuple[str, str], dict[Any, float]] = defaultdict(dict)
            for record in records:
                cell = record["cell"]
                key = cell["method"], columns[cell["dataset"]]
                scores = np.ravel(record.get("scores", {}).get(measure, [])).tolist()
                for draw, score in enumerate(scores):
                    of_draw[key][cell["dataset"], cell["seed"], draw] = score
            values = {key: Value(of_key) for key, of_key in of_draw.items()}
            if values:
                yield Table(name, measure, split, budget, values, notes, asked)


def _own_column(dataset: str, namesakes: set[str]) -> str:
    """Return the name of the column of a data set of the user."""
    source = OwnSource(dataset)
    return source.title + (f" ({source.digest})" if dataset in namesakes else "")


def _note_of(record: dict[str, Any], columns: dict[str, str]) -> str:
    """Return the note of a cell, after the name of its column."""
    return f"{columns[record['cell']['dataset']]}: {record['note']}"


def _crossed(of_datasets: list[Table], wanted: Iterable[Key]) -> Iterator[Table]:
    """Yield the tables whose columns are data sets.

    The table of the means over all titles comes first. It is left out if a title was neither asked
    for nor finished, since no mean can be in it then.
    """
    groups: dict[tuple[str, ...], dict[str, list[Table]]] = defaultdict(lambda: defaultdict(list))
    for table in of_datasets:
        title = PROTOCOLS[table.protocol].datasets[table.dataset].title
        groups[table.protocol, table.split, table.budget][title].append(table)
    for (protocol, *part), of_title in groups.items():
        rows = [_side_by_side(title, parts) for title, parts in of_title.items()]
        asked = {dataset for name, dataset, *rest in wanted if [name, *rest] == [protocol, *part]}
        sources = PROTOCOLS[protocol].datasets.items()
        shown = {*of_title, *(source.title for dataset, source in sources if dataset in asked)}
        if shown == {source.title for _, source in sources}:
            yield _mean_of(rows)
        yield from rows


def _side_by_side(title: str, of_datasets: list[Table]) -> Table:
    """Return one table whose columns are the accuracies of several tables."""
    values = {}
    for table in of_datasets:
        column = PROTOCOLS[table.protocol].datasets[table.dataset].column
        for method in table.methods:
            if (method.name, "accuracy") in table.values:
                values[method.name, column] = table.values[method.name, "accuracy"]
    return _merged(of_datasets, title, values)


def _mean_of(of_titles: list[Table]) -> Table:
    """Return the table of means over several tables, on the entries and seeds that all have."""
    first = of_titles[0]
    n_titles = len({source.title for source in PROTOCOLS[first.protocol].datasets.values()})
    values = {}
    for key in first.values:
        found = [table.values[key].of_seed for table in of_titles if key in table.values]
        seeds = set.intersection(*(set(of_seed) for of_seed in found))
        if len(found) == n_titles and seeds:
            values[key] = Value({s: float(np.mean([x[s] for x in found])) for s in seeds})
    return _merged(of_titles, EVERYTHING, values)


def _merged(tables: list[Table], dataset: str, values: dict[tuple[str, str], Value]) -> Table:
    """Return one table of values from several tables, with the notes and methods of all."""
    notes = tuple(dict.fromkeys(note for table in tables for note in table.notes))
    asked = frozenset().union(*(table.asked for table in tables))
    return dataclasses.replace(tables[0], dataset=dataset, values=values, notes=notes, asked=asked)


def _training(record: dict[str, Any]) -> str:
    """Return a note on the pre-training of a cell; empty without pre-training."""
    names = ("n_pretraining_windows", "n_timesteps", "n_epochs")
    numbers = [record.get("training", {}).get(name) for name in names]
    if not all(isinstance(number, int) for number in numbers):
        return ""
    n_windows, n_timesteps, n_epochs = numbers
    return f"pre-training on {n_windows:,} windows of {n_timesteps} steps, {count_epochs(n_epochs)}"
