"""Device that torch computes on, and its errors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

_NAMES = "'auto', 'cpu', 'cuda', 'cuda:<number>' or 'mps'"


def resolve_device(device: Any) -> torch.device:
    """Return the device that a parameter names; "auto" is CUDA where PyTorch finds a device."""
    if isinstance(device, str) and device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    message = f"device must be {_NAMES}, got {device!r}; pass for example device='auto'"
    try:
        resolved = torch.device(device)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(message) from error
    if resolved.type not in ("cpu", "cuda", "mps"):
        raise ValueError(message)
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"device={device!r}, but PyTorch finds no CUDA device: set device='auto' or 'cpu', or"
            " install a CUDA build of torch and a driver."
        )
    if resolved.type == "cuda" and resolved.index is not None:
        n_devices = torch.cuda.device_count()
        if resolved.index >= n_devices:
            raise ValueError(
                f"device={device!r}, but PyTorch finds {n_devices} CUDA device(s), numbered from 0:"
                " set device='cuda', or name one of them."
            )
    if resolved.type == "mps" and not torch.backends.mps.is_available():
        raise ValueError(
            f"device={device!r}, but PyTorch finds no GPU of Apple's: set device='auto' or 'cpu'."
        )
    return resolved


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
