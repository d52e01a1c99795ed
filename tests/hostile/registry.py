"""Register of hostile files: what writes one, and through which loader it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Loader of each kind of file: a function of the path that an attack has returned.
LOADERS: dict[str, Callable[[Path], Any]] = {}
ATTACKS: dict[str, Attack] = {}


@dataclass(frozen=True)
class Attack:
    """A hostile file.

    Parameters
    ----------
    name : str
        Name of the attack, after the name of its loader.
    loader : str
        Key of LOADERS.
    write : callable
        Function of an empty folder, which writes the file and returns the path for the loader.
    harmless : callable or None
        Check of what was loaded; None if the file must be refused.
    """

    name: str
    loader: str
    write: Callable[[Path], Path]
    harmless: Callable[[Any], bool] | None = None


def loader(name):
    """Decorate the function that reads files of a kind."""

    def register(read):
        LOADERS[name] = read
        return read

    return register


def attack(loader, name=None, *, harmless=None):
    """Decorate a function that writes a hostile file into a folder and returns its path."""

    def register(write):
        key = f"{loader}: {name or write.__name__.replace('_', ' ')}"
        assert key not in ATTACKS, key
        ATTACKS[key] = Attack(key, loader, write, harmless)
        return write

    return register
