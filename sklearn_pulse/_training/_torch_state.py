"""State of torch that a caller may have set, and that a training must not depend on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from .._threads import TORCH_LOCK

_before: list[torch.dtype] = []  # default dtype of the process; one entry per thread that is inside


@contextlib.contextmanager
def own_torch_state() -> Iterator[None]:
    """Run as torch starts: float32 on the CPU, with gradients, without inference mode or autocast.

    The default dtype belongs to the process. It is set back when the last thread has left.

    Examples
    --------
    >>> with torch.inference_mode(), own_torch_state():
    ...     torch.zeros(1, requires_grad=True).sum().requires_grad
    True
    """
    with TORCH_LOCK:
        _before.append(torch.get_default_dtype() if not _before else _before[0])
        torch.set_default_dtype(torch.float32)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(torch.enable_grad())
            for device in ("cpu", "cuda"):
                stack.enter_context(torch.autocast(device, enabled=False))
            # torch asks such a context at every call, so it is entered only where it is needed.
            if torch.empty(0).device.type != "cpu":
                stack.enter_context(torch.device("cpu"))
            yield
    finally:
        with TORCH_LOCK:
            before = _before.pop()
            if not _before:
                torch.set_default_dtype(before)
