"""Models that come with the package: their names, and a folder with the files of each."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


def names() -> list[str]:
    """Return the names of the models, sorted."""
    return sorted(entry.name for entry in _room().iterdir() if (entry / "config.json").is_file())


@contextlib.contextmanager
def folder(name: str) -> Iterator[Path]:
    """Yield the folder of a model.

    The folder is a copy if the package lies in an archive, or its files are links to a store of
    packages: readers of models follow no link.

    Parameters
    ----------
    name : str
        One of :func:`names`.

    Yields
    ------
    Path
        The folder.
    """
    source = _room() / name
    if isinstance(source, Path) and not any(file.is_symlink() for file in source.iterdir()):
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="sklearn_pulse-") as home:
        copied = Path(home) / name
        copied.mkdir()
        for file in source.iterdir():
            (copied / file.name).write_bytes(file.read_bytes())
        yield copied


def card(name: str) -> str:
    """Return the model card of one of :func:`names`, in Markdown."""
    return (_room() / name / "README.md").read_text(encoding="utf-8")


def _room() -> Traversable:
    return files(__name__.partition(".")[0]) / "pretrained"
