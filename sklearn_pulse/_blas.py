"""Number of threads that numpy's linear algebra computes with."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

from threadpoolctl import ThreadpoolController

_WORTH_SHARING = 2**23  # entries of an array that a product reads in some ten milliseconds

# All threads of the process share the number. Of the limits that each thread has set last, the
# smallest is in force. The first limit to begin notes the numbers before, and the last to end sets
# them back, whichever they are.
_lock = threading.Lock()
_limits: dict[object, tuple[int, int]] = {}  # thread and number of those that last
_before: list[tuple[Any, int]] = []  # libraries, and their numbers before the first limit


@contextlib.contextmanager
def blas_threads(number: int) -> Iterator[None]:
    """Run with this number of threads of linear algebra."""
    limit = object()
    with _lock:
        if not _limits:
            libraries = _libraries(len(sys.modules))
            _before[:] = [(library, library.num_threads) for library in libraries]
        _limits[limit] = threading.get_ident(), int(number)  # C takes no integer of numpy
        _set()
    try:
        yield
    finally:
        with _lock:
            del _limits[limit]
            _set()


@contextlib.contextmanager
def unshared_products(size: int) -> Iterator[None]:
    """Run with one thread of linear algebra if the arrays are small; `size` is their entries.

    The threads of a product wait for one another, each time for as long as a busy processor holds
    one of them up. A solver computes hundreds of small products, which lose more than they gain.
    """
    with contextlib.nullcontext() if is_worth_sharing(size) else blas_threads(1):
        yield


def is_worth_sharing(size: int) -> bool:
    """Return whether threads gain where arrays have so many entries."""
    return size >= _WORTH_SHARING


@functools.lru_cache(maxsize=1)
def _libraries(n_modules: int) -> list[Any]:
    """Return the libraries of linear algebra, which a new module may have brought.

    To look for them takes as long as many a product.
    """
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set() -> None:
    """Set the smallest of the present limits, or the numbers before if there is none."""
    smallest = min(dict(_limits.values()).values(), default=None)
    for library, number in _before:
        # From version 3.8 on, threadpoolctl obeys one thread alone until this thread lets go.
        let_go = getattr(library, "clear_controlling_thread", lambda force: None)
        let_go(force=True)
        library.set_num_threads(number if smallest is None else smallest)
        let_go(force=True)


def _begin_child() -> None:
    """End the limits of threads that a forked child does not have."""
    _lock.release()
    others = [key for key, (thread, _) in _limits.items() if thread != threading.get_ident()]
    for key in others:
        del _limits[key]
    if others:
        _set()


if hasattr(os, "register_at_fork"):  # a child would wait for a lock that another thread holds
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_begin_child
    )
