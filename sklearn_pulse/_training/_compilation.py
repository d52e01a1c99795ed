"""Compiler of encoders, which computes without it where it fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .._warnings import warn_user

# Why a graph was not compiled that was computed since the last report. Graphs run in threads of
# their own, and one graph may serve several encoders: whose it is, shows when it is computed.
_failures: list[str] = []


def inductor_or_plain(
    graph: torch.fx.GraphModule, example_inputs: Sequence[Tensor]
) -> Callable[..., Any]:
    """Compile a graph by torch's own backend; the plain operations take its place if that fails.

    It fails on machines without a C++ compiler, and for operations that it does not know. It is a
    backend of :func:`torch.compile`, and one function for all encoders, since torch compiles anew
    for another backend.

    Parameters
    ----------
    graph : torch.fx.GraphModule
        The operations.
    example_inputs : sequence of Tensor
        What they are applied to at first.

    Returns
    -------
    callable
        Function that computes what the graph does.
    """
    try:
        inductor: Any = torch._dynamo.lookup_backend("inductor")
        compiled: Callable[..., Any] = inductor(graph, example_inputs)
        return compiled
    except Exception as error:  # a compiler raises what it likes
        lines = [line.strip() for line in str(error).splitlines()]
        reason = next(filter(None, lines), type(error).__name__)

    def plain(*inputs: Any) -> Any:
        _failures[:] = [reason]
        return graph.forward(*inputs)

    return plain


def take_failure() -> str | None:
    """Return why an encoder was not compiled that was called since the last time, and forget it."""
    return _failures.pop() if _failures else None


def warn_of_failure(reason: str) -> None:
    """Warn that an encoder was not compiled."""
    warn_user(
        f"compile=True has no effect, since torch cannot compile the encoder here ({reason}):"
        " install what torch.compile needs, such as a C++ compiler, or set compile=False."
    )
