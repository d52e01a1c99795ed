"""Compiler of encoders, which computes without it where it fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .._warnings import warn_user


class _Computing(threading.local):
    """In each thread, the list of failures of the encoder that is computing, or None.

    One compiled graph may serve several encoders, so a graph learns only when it runs which encoder
    it fails.
    """

    failures: list[str] | None = None


_computing = _Computing()


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
        Tensors that the operations are applied to first.

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
        if _computing.failures is not None:
            _computing.failures[:] = [reason]
        return graph.forward(*inputs)

    return plain


def compile_noting_failures(encoder: nn.Module) -> list[str]:
    """Compile an encoder in place; names of its weights and its pickles stay as they are.

    Parameters
    ----------
    encoder : nn.Module
        The encoder.

    Returns
    -------
    list of str
        Reasons why the encoder is not compiled; empty until it has computed without a compiler.
    """
    failures: list[str] = []
    encoder.compile(backend=inductor_or_plain)
    call: Any = encoder._compiled_call_impl or encoder._call_impl

    def noting(*args: Any, **kwargs: Any) -> Any:
        before, _computing.failures = _computing.failures, failures
        try:
            return call(*args, **kwargs)
        finally:
            _computing.failures = before

    encoder._compiled_call_impl = noting
    return failures


def warn_of_failure(reason: str) -> None:
    """Warn that an encoder was not compiled."""
    warn_user(
        f"compile=True has no effect, since torch cannot compile the encoder here ({reason}):"
        " install what torch.compile needs, such as a C++ compiler, or set compile=False."
    )
