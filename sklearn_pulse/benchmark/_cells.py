"""Cells of a benchmark, and the folder of finished cells, one file per cell."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from .._parameters import as_path, file_in_the_way
from ..datasets._arrays import write_whole

FORMAT = 1
_LARGEST = sys.float_info.max
_MAX_BYTES = 2**26  # of a file; a finished cell has some thousands


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

    Raises
    ------
    NotADirectoryError
        If `folder` is a file.

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
        self.folder = as_path("folder", folder)
        if file := file_in_the_way(self.folder):
            raise NotADirectoryError(
                f"{file} is a file: name another folder for the results (--out, or out)."
            )

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

        Raises
        ------
        ValueError
            If the file is damaged, or holds another cell; the message names the file.
        """
        return self._found(cell.path)

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

    def set_aside(self, cell: Cell) -> None:
        """Move the record of a cell that is about to be run again, so that no report shows it.

        Parameters
        ----------
        cell : Cell
            The cell, whose record has other settings.
        """
        path = self.folder / "cells" / cell.path
        with contextlib.suppress(FileNotFoundError):
            path.replace(path.with_name(f"{path.name}.earlier"))

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

        Raises
        ------
        ValueError
            If a number is NaN or infinite.
        """
        record = {"format": FORMAT, "cell": asdict(cell), "identity": identity, **content}
        record["checksum"] = _checksum(record)
        text = json.dumps(record, indent=1, allow_nan=False)
        path = self.folder / "cells" / cell.path
        write_whole(path, lambda file: file.write(text.encode()))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over the records of all cells, in the order of their names."""
        folder = self.folder / "cells"
        for path in sorted(folder.rglob("*.json")):
            record = self._found(path.relative_to(folder))
            if record is not None:
                yield record

    def _found(self, name: Path) -> dict[str, Any] | None:
        """Return the record in a file; None if it has another format or is not there.

        Another process may just have set it aside.
        """
        try:
            return _load(self.folder / "cells", name)
        except FileNotFoundError:
            return None

    def note_asked(self, cells: Iterable[Cell]) -> None:
        """Note which cells were asked for, so that those without a result are reported as missing.

        Parameters
        ----------
        cells : iterable of Cell
            The cells.
        """
        known = set(self.asked())
        new = [cell for cell in dict.fromkeys(cells) if cell not in known]
        if new:
            self._append("asked.jsonl", [asdict(cell) for cell in new])

    def asked(self) -> list[Cell]:
        """Return the cells that were asked for.

        Returns
        -------
        list of Cell
            The cells, in the order in which they were first asked for; processes that share the
            folder may note a cell twice.

        Raises
        ------
        ValueError
            If a line is damaged; the message names the file and the line.
        """
        cells = []
        for where, line in self._lines("asked.jsonl"):
            try:
                cells.append(_cell(_parse(line)))
            except ValueError as error:
                raise ValueError(f"{where} names no cell ({error}): delete the line.") from error
        return cells

    def _append(self, name: str, records: Iterable[dict[str, Any]]) -> None:
        """Append records to a file of JSON lines, in one write, which no other process divides."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(record) + "\n" for record in records)
        with open(self.folder / name, "ab+") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
            whole = file.read(1) in (b"", b"\n")  # else a killed run wrote half a line
            file.write(("" if whole else "\n").encode() + lines.encode())

    def _lines(self, name: str) -> Iterator[tuple[str, str]]:
        """Yield the lines of a file, if it exists, each after words that name its place.

        An empty line is no damage: a process that appends while another one writes may end a whole
        line twice.
        """
        path = self.folder / name
        try:
            lines = _read(path).splitlines()
        except FileNotFoundError:
            return
        numbered = enumerate(lines, 1)
        yield from ((f"{path}, line {number}", line) for number, line in numbered if line)

    def log_look(self, cell: Cell) -> None:
        """Log that the test part of a cell is about to be scored.

        Parameters
        ----------
        cell : Cell
            The cell.
        """
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._append("test_looks.jsonl", [{"time": now, **asdict(cell)}])

    def looks(self) -> list[dict[str, Any]]:
        """Return the log of all scorings of test parts.

        Returns
        -------
        list of dict
            Time and cell of each scoring.

        Raises
        ------
        ValueError
            If a line is damaged; the message names the file and the line.
        """
        looks = []
        for where, line in self._lines("test_looks.jsonl"):
            try:
                look = _parse(line)
                _cell({name: value for name, value in look.items() if name != "time"})
                if type(look.get("time")) is not str:
                    raise ValueError("it has no time")
            except ValueError as error:
                raise ValueError(
                    f"{where} is no logged look ({error}): every line counts a scoring of a"
                    " test part; mend the line, or delete it and note the scoring."
                ) from error
            looks.append(look)
        return looks


def read_record(path: Path) -> dict[str, Any]:
    """Return the dictionary of a JSON file; raise a ValueError that names a damaged file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "x.json").write_text('{"lr": 0.1}')
    ...     read_record(Path(folder, "x.json"))
    {'lr': 0.1}
    """
    try:
        return _parse(_read(path))
    except ValueError as error:
        raise ValueError(
            f"{path} is damaged ({error}): delete it, and it is made again."
        ) from error


def _load(folder: Path, name: Path) -> dict[str, Any] | None:
    """Read the record of a cell; None if it has another format."""
    path = folder / name
    try:
        record = _parse(_read(path))
        if type(record.get("format")) is not int:
            raise ValueError("it has no format")
        if record["format"] != FORMAT:
            return None
        if _cell(record.get("cell")).path != name:
            raise ValueError("it holds another cell")
        if not isinstance(record.get("identity"), dict):
            raise ValueError("it has no identity")
        if not _are_scores(record.get("scores")):
            raise ValueError("its scores are damaged")
        for entry, kind in (("note", str), ("training", dict), ("versions", dict)):
            if not isinstance(record.get(entry, kind()), kind):
                raise ValueError(f"its {entry} is damaged")
        checksum = record.pop("checksum", None)  # which files of earlier versions lack
        if checksum is not None and checksum != _checksum(record):
            raise ValueError("it does not hold what was written")
    except ValueError as error:
        raise ValueError(f"{path} is no finished cell ({error}): delete it.") from error
    return record


def _checksum(record: dict[str, Any]) -> str:
    """Return a digest of a record, which is the same after the record was written and read."""
    text = json.dumps(_plain(record), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _read(path: Path) -> str:
    """Read a text file; raise a ValueError if it is too large or no text."""
    if path.stat().st_size > _MAX_BYTES:
        raise ValueError(f"{path} has more than {_MAX_BYTES} bytes: delete it.")
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text: delete it.") from error


def _parse(text: str) -> dict[str, Any]:
    """Return the dictionary of a JSON text; raise a ValueError if it holds anything else."""
    try:
        record = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(record, dict):
        raise ValueError("it is no dictionary")
    return record


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _cell(content: Any) -> Cell:
    """Return a cell that was read; raise a ValueError if the content is no cell."""
    kinds = {field.name: int if field.name == "seed" else str for field in fields(Cell)}
    if not isinstance(content, dict) or content.keys() != kinds.keys():
        raise ValueError("it names no cell")
    if any(type(content[name]) is not kind for name, kind in kinds.items()):
        raise ValueError("it names no cell")
    return Cell(**content)


def _are_scores(content: Any) -> bool:
    """Return whether a value that was read holds finite numbers, or lists of them, by name."""
    if not isinstance(content, dict):
        return False
    listed = [score if isinstance(score, list) else [score] for score in content.values()]
    numbers = [number for scores in listed for number in scores]
    # A number such as 1e999 is read as infinite.
    are_finite = all(type(x) in (int, float) and abs(x) <= _LARGEST for x in numbers)
    return all(listed) and are_finite


def _plain(value: Any) -> Any:
    """Return a value as it is read back from a file."""
    return json.loads(json.dumps(value))
