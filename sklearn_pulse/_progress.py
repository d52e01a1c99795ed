"""Output of commands: progress bars, and the end of output that nobody reads any more."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(
    name: str, total: int, unit: str, *, shown: bool = True
) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances a bar, or prints a line per tenth if tqdm is missing.

    Parameters
    ----------
    name : str
        Text before the bar.
    total : int
        Number of units at the end.
    unit : str
        What is counted.
    shown : bool, default=True
        False yields a function that does nothing.
    """
    if not shown:
        yield lambda n: None
        return
    try:
        from tqdm import tqdm
    except ImportError:
        tqdm = None
    if tqdm is None:  # outside of `except`, whose error would be shown beside one of the caller
        yield _lines(name, total)
        return
    with tqdm(total=total, desc=name, unit=unit, unit_scale=True) as bar:
        yield bar.update


@contextmanager
def closable_output() -> Iterator[None]:
    """Exit with status 1, and without a traceback, if the reader of the output has gone.

    ``head`` goes once it has its lines. Python's documentation recommends this for the signal
    SIGPIPE.
    """
    try:
        yield
        sys.stdout.flush()  # at exit, an error could not be caught
    except BrokenPipeError:
        # Python flushes once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _lines(name: str, total: int) -> Callable[[int], None]:
    """Return a function that counts units and prints a line when another tenth is done."""
    done = 0

    def advance(n: int) -> None:
        nonlocal done
        before, done = done, done + n
        if 10 * done // total > 10 * before // total:
            print(f"{name}: {100 * done // total} %", flush=True)

    return advance
