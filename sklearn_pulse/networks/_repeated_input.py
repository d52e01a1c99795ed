"""The decoder's input, projected: a vector repeated at every step beside a few that vary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from ._packing import steps_of

_CHUNK_ROWS = 2**12  # rows that are worked on at once: they stay in the cache


class SeededDropout(NamedTuple):
    """How elements are dropped out."""

    draw: Callable[[tuple[int, int]], Tensor]  # a mask of so many rows and columns, 1 to keep
    scale: float  # of what is kept


class _Span(NamedTuple):
    """Some neighbouring steps."""

    rows: slice  # of the packed table
    steps: list[slice]  # each step's rows, counted from the first of the span


def project_repeated(
    constant: Tensor,
    drive: Tensor,
    weight: Tensor,
    bias: Tensor,
    sizes: list[int],
    drop: SeededDropout | None = None,
) -> Tensor:
    """Multiply ``[constant, drive[t]]`` by a matrix at every step of packed sequences.

    Without dropout the constant part is multiplied once and added at every step. With it every
    step has a mask of its own, so there is one product a step; the rows that it reads are made a
    few steps at a time, and again for the gradient, rather than kept.

    Parameters
    ----------
    constant : Tensor of shape (sizes[0], n_constant)
        What does not vary over time, the longest sequence first.
    drive : Tensor of shape (sum(sizes), n_varying)
        What does, packed (:class:`Packing`); there may be none.
    weight : Tensor of shape (n_outputs, n_constant + n_varying)
        The matrix.
    bias : Tensor of shape (n_outputs,)
        Added to every row.
    sizes : list of int
        Sequences that run at each step.
    drop : SeededDropout or None, default=None
        Drops elements of ``[constant, drive[t]]`` out, each step anew.

    Returns
    -------
    Tensor of shape (sum(sizes), n_outputs)
        Packed.

    Examples
    --------
    >>> import torch
    >>> constant, drive, weight = torch.ones(2, 3), torch.zeros(3, 1), torch.ones(5, 4)
    >>> project_repeated(constant, drive, weight, torch.zeros(5), sizes=[2, 1])[:, 0]
    tensor([3., 3., 3.])
    """
    if drop is not None:
        bits = drop.draw((len(drive), weight.shape[1]))
        return _MaskedProjection.apply(constant, drive, weight, bias, sizes, bits, drop.scale)
    n_constant = constant.shape[1]
    repeated = _Repeat.apply(F.linear(constant, weight[:, :n_constant], bias), sizes)
    return torch.addmm(repeated, drive, weight[:, n_constant:].t())


class _Repeat(torch.autograd.Function):
    """Repeat rows at every step that they run."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, sizes: list[int]) -> Tensor:
        ctx.sizes = sizes
        return torch.cat([rows[:size] for size in sizes])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        total = grad.new_zeros(ctx.sizes[0], grad.shape[1])
        for step, size in zip(steps_of(ctx.sizes), ctx.sizes, strict=True):
            total[:size].add_(grad[step])
        return total, None


class _MaskedProjection(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        constant: Tensor,
        drive: Tensor,
        weight: Tensor,
        bias: Tensor,
        sizes: list[int],
        bits: Tensor,
        scale: float,
    ) -> Tensor:
        constant, drive = constant * scale, drive * scale
        ctx.save_for_backward(constant, drive, weight, bits)
        ctx.sizes, ctx.scale = sizes, scale
        projected = constant.new_empty(len(drive), len(weight))
        inputs = _Inputs(constant, drive, sizes, bits)
        for span in inputs.spans:
            torch.addmm(bias, inputs.of(span), weight.t(), out=projected[span.rows])
        return projected

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        constant, drive, weight, bits = ctx.saved_tensors
        inputs = _Inputs(constant, drive, ctx.sizes, bits)
        grads = torch.zeros_like(constant), torch.empty_like(drive), torch.zeros_like(weight)
        for span in inputs.spans:
            rows = grad[span.rows]
            grads[2].addmm_(rows.t(), inputs.of(span))
            inner = (rows @ weight).mul_(inputs.keep(span)).mul_(ctx.scale)
            grads[1][span.rows] = inner[:, constant.shape[1] :]
            for step in span.steps:
                repeated = inner[step, : constant.shape[1]]
                grads[0][: len(repeated)].add_(repeated)
        return *grads, grad.sum(0), None, None, None


class _Inputs:
    """What the matrix reads, made for some steps at a time in memory that is used again."""

    def __init__(self, constant: Tensor, drive: Tensor, sizes: list[int], bits: Tensor) -> None:
        self.constant = constant
        self.drive = drive
        self.bits = bits
        self.spans = list(_spans(sizes))
        n_rows = max(span.rows.stop - span.rows.start for span in self.spans)
        self._rows = constant.new_empty(n_rows, bits.shape[1])
        self._keep = torch.empty_like(self._rows)

    def keep(self, span: _Span) -> Tensor:
        """Return the mask as numbers that multiply."""
        bits = self.bits[span.rows]
        return self._keep[: len(bits)].copy_(bits)

    def of(self, span: _Span) -> Tensor:
        """Return the masked rows."""
        keep, n_constant = self.keep(span), self.constant.shape[1]
        rows = self._rows[: len(keep)]
        for step in span.steps:
            kept = keep[step, :n_constant]
            torch.mul(self.constant[: len(kept)], kept, out=rows[step, :n_constant])
        torch.mul(self.drive[span.rows], keep[:, n_constant:], out=rows[:, n_constant:])
        return rows


def _spans(sizes: list[int]) -> Iterator[_Span]:
    """Group neighbouring steps into spans of about `_CHUNK_ROWS` rows."""
    first, steps = 0, []
    for step in steps_of(sizes):
        steps.append(slice(step.start - first, step.stop - first))
        if step.stop - first >= _CHUNK_ROWS or step.stop == sum(sizes):
            yield _Span(slice(first, step.stop), steps)
            first, steps = step.stop, []
