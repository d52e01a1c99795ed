"""Whether a network is being written as a graph, which must hold for every batch and length."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_EXPORTING = ContextVar("exporting", default=False)


def is_exporting() -> bool:
    """Return whether the present code computes for a graph."""
    return _EXPORTING.get()


@contextmanager
def exporting() -> Iterator[None]:
    """Compute plainly within a context: without chunks, own gradients or branches on a length."""
    token = _EXPORTING.set(True)
    try:
        yield
    finally:
        _EXPORTING.reset(token)
