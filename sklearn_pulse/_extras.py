"""Packages that come with an extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def command(extra: str) -> str:
    """Return the command that installs an extra, quoted for every shell."""
    return f"pip install 'sklearn-pulse[{extra}]'"


@contextmanager
def needs(what: str, extra: str) -> Iterator[None]:
    """Name the extra to install where an import fails.

    `what`, which says what needs which package, begins the message of the ImportError.

    Examples
    --------
    >>> with needs("pictures need matplotlib", "plot"):
    ...     import no_such_module
    Traceback (most recent call last):
        ...
    ImportError: pictures need matplotlib: pip install 'sklearn-pulse[plot]'.
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(f"{what}: {command(extra)}.") from error
