"""Number of threads that torch and linear algebra compute with, and threads that run parts."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import torch

from ._blas import blas_threads

_MAX_WORKERS = 1024  # as many as `num_threads` admits


class _Limit(NamedTuple):
    """Number of torch threads that a thread has asked for, and the number it had before."""

    thread: int
    number: int
    before: int


_limits: list[_Limit] = []  # of all threads, while they last
TORCH_LOCK = threading.Lock()  # of the settings that torch has once per process


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


@contextlib.contextmanager
def limited_threads(number: int | None) -> Iterator[None]:
    """Run with this number of threads in torch and in numpy's linear algebra; None keeps both."""
    if number is None:
        yield
        return
    with threads(number), blas_threads(number):
        yield


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
    number, outer = n_workers(), getattr(_share, "number", None)
    with threads(1):
        _share.number = number
        try:
            yield
        finally:
            _share.number = outer


def run_side_by_side(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Return the results of calls that run side by side, each with one torch thread.

    As many run at a time as torch has threads here. The threads wait from one use to the next. A
    free thread takes the next call, so a thread that a busy processor holds up delays only its own.
    The calls inherit neither the autocast nor the gradient mode of the caller. If torch has one
    thread, they run in the thread of the caller. After an error no further call begins, and it is
    raised when those that run have ended.
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
            try:
                results[i] = call()
            except BaseException:
                remaining.clear()  # the others stop after the call that they are in
                raise

    workers: list[Future[None]] = []
    try:
        for _ in range(min(number, len(calls))):
            workers.append(_pool().submit(work))
        wait(workers)
    finally:  # also after an interrupt, or if no thread can start: no call goes on after this one
        remaining.clear()
        wait(workers)
        torch.set_num_threads(present)  # new threads take the number that was set last
    for worker in workers:
        worker.result()
    return results


@functools.cache
def _pool() -> ThreadPoolExecutor:
    """Return the pool, which starts a thread where it has none that waits."""
    return ThreadPoolExecutor(_MAX_WORKERS, "sklearn_pulse")


def _begin_child() -> None:
    """Make a forked child independent of the threads that it does not have."""
    TORCH_LOCK.release()
    _pool.cache_clear()


if hasattr(os, "register_at_fork"):  # a child would wait for a lock that another thread holds
    os.register_at_fork(
        before=TORCH_LOCK.acquire, after_in_parent=TORCH_LOCK.release, after_in_child=_begin_child
    )
