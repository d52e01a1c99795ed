"""Number of threads that torch computes with, and threads that run parts of a computation."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import torch

_MAX_WORKERS = 1024  # as many as `num_threads` admits


class _Limit(NamedTuple):
    """Number of torch threads that a thread has asked for, and the number it had before."""

    thread: int
    number: int
    before: int


_limits: list[_Limit] = []  # of all threads, while they last
TORCH_LOCK = threading.Lock()  # of the settings that torch has once per process
if hasattr(os, "register_at_fork"):  # a child forked by one thread would wait for the others
    os.register_at_fork(
        before=TORCH_LOCK.acquire,
        after_in_parent=TORCH_LOCK.release,
        after_in_child=TORCH_LOCK.release,
    )


@contextlib.contextmanager
def threads(number: int | None) -> Iterator[None]:
    """Run with this number of torch threads; None keeps the present number."""
    if number is None:
        yield
        return
    with TORCH_LOCK:
        limit = _Limit(threading.get_ident(), number, _threads_before())
        _limits.append(limit)
        torch.set_num_threads(number)
    try:
        yield
    finally:
        with TORCH_LOCK:
            _limits.remove(limit)
            torch.set_num_threads(limit.before)


def _threads_before() -> int:
    """Return the number of torch threads that this thread had before any limit.

    torch gives a new thread the number that was set last, wherever it was set. So a thread that
    began under the limit of another has that limit, which must not outlast it.
    """
    present, thread = torch.get_num_threads(), threading.get_ident()
    if any(limit.thread == thread for limit in _limits):
        return present
    return next((limit.before for limit in _limits if limit.number == present), present)


_share = threading.local()  # of the threads, by `workers_only`


def n_workers() -> int:
    """Return the number of calls that `run_side_by_side` runs at a time."""
    if torch.compiler.is_compiling():  # a compiled network shares operations, as torch does
        return 1
    return getattr(_share, "number", None) or torch.get_num_threads()


@contextlib.contextmanager
def workers_only() -> Iterator[None]:
    """Give the threads to `run_side_by_side` alone; all else runs with one torch thread.

    The threads of an operation wait for one another, each time for as long as a busy processor
    holds one of them up. Operations of milliseconds gain less by them than they lose.
    """
    number = n_workers()
    with threads(1):
        _share.number = number
        try:
            yield
        finally:
            del _share.number


def run_side_by_side(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Return the results of calls that run side by side, each with one torch thread.

    As many run at a time as torch has threads here. The threads wait from one use to the next. A
    free thread takes the next call, so a thread that a busy processor holds up delays only its own.
    The calls inherit neither the autocast nor the gradient mode of the caller. If torch has one
    thread, they run in the thread of the caller.
    """
    number, present = n_workers(), torch.get_num_threads()
    if min(number, len(calls)) <= 1:
        return [call() for call in calls]
    results: list[Any] = [None] * len(calls)
    remaining = deque(enumerate(calls))

    def work() -> None:
        torch.set_num_threads(1)
        while True:
            try:
                i, call = remaining.popleft()
            except IndexError:
                return
            results[i] = call()

    workers = [_pool().submit(work) for _ in range(min(number, len(calls)))]
    try:
        for worker in workers:
            worker.result()
    finally:
        torch.set_num_threads(present)  # new threads take the number that was set last
    return results


@functools.cache
def _pool() -> ThreadPoolExecutor:
    """Return the pool, which starts a thread where it has none that waits."""
    return ThreadPoolExecutor(_MAX_WORKERS, "sklearn_pulse")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # the child has none of the threads
