"""From finished cells to the rows of tables."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _paper as paper
from ._methods import Method
from ._protocols import PROTOCOLS

EVERYTHING = "all"  # the table of means over the titles of a crossed protocol
LOWER_IS_BETTER = {"mse", "mae", "davies_bouldin"}


@dataclass(frozen=True)
class Value:
    """A figure of a table.

    Parameters
    ----------
    of_seed : dict of int to float
        One a seed, the mean over draws where there are several.
    """

    of_seed: dict[int, float]

    @property
    def per_seed(self) -> list[float]:
        """The figures in the order of their seeds."""
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
    """One protocol on one data set, scored on one part at one budget.

    Parameters
    ----------
    protocol, dataset, split, budget : str
        Names.
    values : dict
        By method and metric; what is missing is missing here.
    notes : tuple of str
        What a reader must know.
    """

    protocol: str
    dataset: str
    split: str
    budget: str
    values: dict[tuple[str, str], Value]
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of its files."""
        return f"{self.protocol}-{self.dataset}-{self.split}-{self.budget}"

    @property
    def title(self) -> str:
        """What it shows."""
        part = {"val": "validation part", "test": "test part"}[self.split]
        return f"{PROTOCOLS[self.protocol].title}, {self.dataset_title}, {part}"

    @property
    def dataset_title(self) -> str:
        """Name of its data set as in the paper."""
        if PROTOCOLS[self.protocol].is_crossed:
            return "mean over systems" if self.dataset == EVERYTHING else self.dataset
        return PROTOCOLS[self.protocol].datasets[self.dataset].title

    @property
    def methods(self) -> list[Method]:
        """Every method that belongs in it, finished or not."""
        return PROTOCOLS[self.protocol].methods()

    @property
    def metrics(self) -> tuple[str, ...]:
        """Its columns."""
        return PROTOCOLS[self.protocol].metrics

    def best(self, metric: str) -> list[Method]:
        """Return the methods with the best mean, controls too: several if they are equal.

        Of those with the most seeds, since means over other seeds are of other tasks or draws.
        """
        sign = -1 if metric in LOWER_IS_BETTER else 1
        there = [method for method in self.methods if (method.name, metric) in self.values]
        counts = [len(self.values[method.name, metric].of_seed) for method in there]
        there = [m for m, count in zip(there, counts, strict=True) if count == max(counts)]
        means = [sign * self.values[method.name, metric].mean for method in there]
        highest = max(means, default=np.nan)
        pairs = zip(there, means, strict=True)
        return [method for method, mean in pairs if np.isclose(mean, highest, 0, 1e-12)]

    def paper(self, method: str, metric: str) -> float | None:
        """Return what the paper reports, None where it reports nothing."""
        return paper.value(self.protocol, self.dataset_title, method, metric)

    def difference(self, method: str, metric: str, base: str = "pulse") -> Value | None:
        """Return the difference from `base`, over the seeds that both have; None without any."""
        ours, theirs = self.values.get((method, metric)), self.values.get((base, metric))
        if ours is None or theirs is None:
            return None
        both = ours.of_seed.keys() & theirs.of_seed.keys()
        return Value({s: ours.of_seed[s] - theirs.of_seed[s] for s in both}) if both else None

    def paper_difference(self, method: str, metric: str, base: str = "pulse") -> float | None:
        """Return the same of the paper."""
        ours, theirs = self.paper(method, metric), self.paper(base, metric)
        return None if ours is None or theirs is None else ours - theirs


def tables(records: Iterable[dict[str, Any]]) -> Iterator[Table]:
    """Yield the tables of the finished cells.

    Parameters
    ----------
    records : iterable of dict
        As of `Results`; those of protocols or data sets that are no more are left out.

    Yields
    ------
    Table
        In the order of the protocols and of their data sets.
    """
    found = defaultdict(list)
    for record in records:
        cell = record["cell"]
        found[cell["protocol"], cell["dataset"], cell["split"], cell["budget"]].append(record)
    for protocol in PROTOCOLS.values():
        of_protocol = [
            _table(*key, found[key])
            for dataset in protocol.datasets
            for key in sorted(key for key in found if key[:2] == (protocol.name, dataset))
        ]
        yield from _crossed(of_protocol) if protocol.is_crossed else of_protocol


def _table(
    protocol: str, dataset: str, split: str, budget: str, records: list[dict[str, Any]]
) -> Table:
    per_seed: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for record in records:
        for metric, score in record["scores"].items():
            key = record["cell"]["method"], metric
            per_seed[key][record["cell"]["seed"]] = float(np.mean(score))
    values = {key: Value(of_seed) for key, of_seed in per_seed.items()}
    notes = {record["note"] for record in records} | {_training(record) for record in records}
    return Table(protocol, dataset, split, budget, values, tuple(sorted(notes - {""})))


def _crossed(of_datasets: list[Table]) -> Iterator[Table]:
    """Yield the tables whose columns were data sets, and first that of the means over them."""
    groups: dict[tuple[str, str], dict[str, list[Table]]] = defaultdict(lambda: defaultdict(list))
    for table in of_datasets:
        title = PROTOCOLS[table.protocol].datasets[table.dataset].title
        groups[table.split, table.budget][title].append(table)
    for of_title in groups.values():
        rows = [_side_by_side(title, tables) for title, tables in of_title.items()]
        yield _mean_of(rows)
        yield from rows


def _side_by_side(title: str, of_datasets: list[Table]) -> Table:
    """Return one table whose columns are the accuracies of several."""
    values = {}
    for table in of_datasets:
        column = PROTOCOLS[table.protocol].datasets[table.dataset].column
        for method in table.methods:
            if (method.name, "accuracy") in table.values:
                values[method.name, column] = table.values[method.name, "accuracy"]
    notes = tuple(dict.fromkeys(note for table in of_datasets for note in table.notes))
    return dataclasses.replace(of_datasets[0], dataset=title, values=values, notes=notes)


def _mean_of(of_titles: list[Table]) -> Table:
    """Return the means over tables, of the seeds that all have of what all have."""
    first = of_titles[0]
    n_titles = len({source.title for source in PROTOCOLS[first.protocol].datasets.values()})
    values = {}
    for key in first.values:
        found = [table.values[key].of_seed for table in of_titles if key in table.values]
        seeds = set.intersection(*(set(of_seed) for of_seed in found))
        if len(found) == n_titles and seeds:
            values[key] = Value({s: float(np.mean([x[s] for x in found])) for s in seeds})
    notes = tuple(dict.fromkeys(note for table in of_titles for note in table.notes))
    return dataclasses.replace(first, dataset=EVERYTHING, values=values, notes=notes)


def _training(record: dict[str, Any]) -> str:
    """Say what a cell was trained on, where it was."""
    training = record.get("training", {})
    if "n_epochs" not in training:
        return ""
    return (
        f"pre-training on {training['n_pretraining_windows']:,} windows of"
        f" {training['n_timesteps']} steps, {training['n_epochs']} epochs"
    )
