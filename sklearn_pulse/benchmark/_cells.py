"""Cells of a benchmark, and the folder of finished cells, one file per cell."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FORMAT = 1


@dataclass(frozen=True, order=True)
class Cell:
    """Unit of a benchmark, which is run and stored as a whole.

    Parameters
    ----------
    protocol : str
        Name of the protocol.
    dataset : str
        Name of the data set; for a transfer, "source-target".
    method : str
        Name of the method.
    seed : int
        Seed of the method; for a cross-validation, the number of the fold.
    split : {"val", "test"}
        Part of the data set that is scored.
    budget : str
        Name of the budget.

    Examples
    --------
    >>> from sklearn_pulse.benchmark import Cell
    >>> cell = Cell("linear-probe", "har", "pulse", seed=0, split="val", budget="small")
    >>> cell.path.as_posix()
    'linear-probe/har/pulse/val-small-0.json'
    """

    protocol: str
    dataset: str
    method: str
    seed: int
    split: str
    budget: str

    @property
    def path(self) -> Path:
        """Path of the file of this cell, relative to the folder of all cells."""
        return (
            Path(self.protocol)
            / self.dataset
            / self.method
            / f"{self.split}-{self.budget}-{self.seed}.json"
        )

    def __str__(self) -> str:
        return f"{self.protocol} {self.dataset} {self.method} seed {self.seed}"


class Results:
    """Folder of finished cells, which several processes may share.

    Iteration yields the records of all cells, in the order of their names.

    Parameters
    ----------
    folder : path-like
        The folder, which is created when a cell is written.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn_pulse.benchmark import Cell, Results
    >>> cell = Cell("linear-probe", "har", "pulse", seed=0, split="val", budget="small")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = Results(folder)
    ...     results.write(cell, {"lr": 0.1}, {"scores": {"accuracy": 0.9}})
    ...     results.has(cell, {"lr": 0.1}), results.has(cell, {"lr": 0.2})
    (True, False)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def read(self, cell: Cell) -> dict[str, Any] | None:
        """Return the record of a cell.

        Parameters
        ----------
        cell : Cell
            The cell.

        Returns
        -------
        dict or None
            The record; None if the cell is not finished, or its file has another format.
        """
        try:
            record = _load(self.folder / "cells" / cell.path)
        except FileNotFoundError:
            return None
        return record if record.get("format") == FORMAT else None

    def has(self, cell: Cell, identity: dict[str, Any]) -> bool:
        """Return whether a cell was finished with given settings.

        Parameters
        ----------
        cell : Cell
            The cell.
        identity : dict
            Settings on which the result depends.

        Returns
        -------
        bool
            True if the stored record has the same settings.
        """
        record = self.read(cell)
        return record is not None and record["identity"] == _plain(identity)

    def write(self, cell: Cell, identity: dict[str, Any], content: dict[str, Any]) -> None:
        """Store a finished cell; its file is written completely or not at all.

        Parameters
        ----------
        cell : Cell
            The cell.
        identity : dict
            Settings on which the result depends.
        content : dict
            Further entries of the record, such as "scores".
        """
        record = {"format": FORMAT, "cell": asdict(cell), "identity": identity, **content}
        path = self.folder / "cells" / cell.path
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=path.parent, suffix=".partial")
        with os.fdopen(handle, "w") as file:
            json.dump(record, file, indent=1, allow_nan=False)
        os.replace(partial, path)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over the records of all cells, in the order of their names."""
        for path in sorted((self.folder / "cells").rglob("*.json")):
            record = _load(path)
            if record.get("format") == FORMAT:
                yield record

    def log_look(self, cell: Cell) -> None:
        """Log that the test part of a cell is about to be scored.

        Parameters
        ----------
        cell : Cell
            The cell.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **asdict(cell)}
        with open(self.folder / "test_looks.jsonl", "a") as file:
            # One write per line, so that lines of several processes do not mix.
            file.write(json.dumps(line) + "\n")

    def looks(self) -> list[dict[str, Any]]:
        """Return the log of all scorings of test parts.

        Returns
        -------
        list of dict
            Time and cell of each scoring.
        """
        try:
            text = (self.folder / "test_looks.jsonl").read_text()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.splitlines()]


def _load(path: Path) -> dict[str, Any]:
    """Read the record of a cell."""
    try:
        record: dict[str, Any] = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is no finished cell ({error}): delete it.") from error
    return record


def _plain(value: Any) -> Any:
    """Return a value as it is read back from a file."""
    return json.loads(json.dumps(value))
