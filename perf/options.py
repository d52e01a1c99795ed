"""Kinds of arguments that the timings take, checked before anything is timed."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path


def at_least(least: int) -> Callable[[str], int]:
    """Return a kind of argument: a whole number that is not below `least`."""

    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}") from None
        if value < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, got {value}")
        return value

    return number


count = at_least(1)


def page(text: str) -> Path:
    """Return the path of a page that is there, so that its sections can be filled."""
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"{text} is no file: name a copy of docs/performance.md")
    return path


def new_file(text: str) -> Path:
    """Return the path of a file to write, in a folder that is made if it is missing."""
    path = Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a folder: name a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"there can be no folder {path.parent} ({error.strerror}): name another file"
        ) from None
    return path
