"""Device and number of threads that torch computes on."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

_NAMES = "'auto', 'cpu', 'cuda', 'cuda:<number>' or 'mps'"


def resolve_device(device: Any) -> torch.device:
    """Return the device that a parameter names; "auto" is CUDA where PyTorch finds a device."""
    if isinstance(device, str) and device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except (RuntimeError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"device must be {_NAMES}, got {device!r}") from error
    if resolved.type not in ("cpu", "cuda", "mps"):
        raise ValueError(f"device must be {_NAMES}, got {device!r}")
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"device={device!r}, but PyTorch finds no CUDA device: set device='auto' or 'cpu', or"
            " install a CUDA build of torch and a driver."
        )
    if resolved.type == "mps" and not torch.backends.mps.is_available():
        raise ValueError(
            f"device={device!r}, but PyTorch finds no GPU of Apple's: set device='auto' or 'cpu'."
        )
    return resolved


class _Limit(NamedTuple):
    """Number of torch threads that a thread has asked for, and the number it had before."""

    thread: int
    number: int
    before: int


_limits: list[_Limit] = []  # of all threads, while they last
_LOCK = threading.Lock()
if hasattr(os, "register_at_fork"):  # a child forked by one thread would wait for the others
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )


@contextlib.contextmanager
def threads(number: int | None) -> Iterator[None]:
    """Run with this number of torch threads; None keeps the present number."""
    if number is None:
        yield
        return
    with _LOCK:
        limit = _Limit(threading.get_ident(), number, _threads_before())
        _limits.append(limit)
        torch.set_num_threads(number)
    try:
        yield
    finally:
        with _LOCK:
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
def memory_errors(remedy: str) -> Iterator[None]:
    """Add a remedy to the error of a device, or of the computer, that is out of memory."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise torch.OutOfMemoryError(f"{remedy} {error}") from error
    except MemoryError as error:
        raise MemoryError(f"{remedy} {error}") from error
    except RuntimeError as error:
        if "MPS backend out of memory" in str(error):
            raise torch.OutOfMemoryError(f"{remedy} {error}") from error
        if "DefaultCPUAllocator" not in str(error):
            raise
        raise MemoryError(f"{remedy} {error}") from error
