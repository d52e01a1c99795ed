"""Device and number of threads that torch computes on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch


def resolve_device(device: Any) -> torch.device:
    """Return the device that a parameter names; "auto" is CUDA where PyTorch finds a device."""
    if isinstance(device, str) and device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except (RuntimeError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"device must be 'auto', 'cpu', 'cuda' or 'cuda:<number>', got {device!r}"
        ) from error
    if resolved.type not in ("cpu", "cuda"):
        raise ValueError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:<number>', got {device!r}")
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"device={device!r}, but PyTorch finds no CUDA device: set device='auto' or 'cpu', or"
            " install a CUDA build of torch and a driver."
        )
    return resolved


@contextlib.contextmanager
def threads(number: int | None) -> Iterator[None]:
    """Run with this number of torch threads; None keeps the present number."""
    if number is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
