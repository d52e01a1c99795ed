"""Projection of the decoder's input: a constant vector beside features that vary over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from ._packing import CHUNK_ROWS, steps_of
from ._row_pieces import map_table, multiply_rows, row_pieces, sum_of_products


class DropoutMask(NamedTuple):
    """Mask of a dropout that has been drawn.

    Parameters
    ----------
    bits : Tensor of shape (n_rows, n_columns)
        1 for the elements to keep and 0 for the others.
    scale : float
        Factor of the elements that are kept.
    """

    bits: Tensor
    scale: float

    def of(self, rows: Tensor | slice) -> DropoutMask:
        """Return the mask of some rows."""
        return self._replace(bits=self.bits[rows])


class SeededDropout(NamedTuple):
    """Dropout whose masks the caller draws, from a generator of its own.

    Parameters
    ----------
    draw : callable
        Function from a shape (n_rows, n_columns) to a mask of that shape, with 1 for the elements
        to keep and 0 for the others.
    scale : float
        Factor of the elements that are kept.

    Examples
    --------
    >>> from functools import partial
    >>> import torch
    >>> from sklearn_pulse.functional import keep_bits, keep_scale
    >>> draw = partial(keep_bits, p=0.5, generator=torch.Generator().manual_seed(0))
    >>> drop = SeededDropout(draw, keep_scale(0.5))
    >>> drop.draw((2, 3)).shape, drop.mask((2, 3)).scale
    (torch.Size([2, 3]), 2.0)
    """

    draw: Callable[[tuple[int, int]], Tensor]
    scale: float

    def mask(self, shape: tuple[int, int]) -> DropoutMask:
        """Draw a mask.

        Parameters
        ----------
        shape : tuple of int
            Rows and columns.

        Returns
        -------
        DropoutMask
            The mask, with the factor of the elements that are kept.
        """
        return DropoutMask(self.draw(shape), self.scale)

    def of_rows(self, rows: Tensor, n_rows: int) -> SeededDropout:
        """Return the dropout of some rows of a larger table, as the whole table would drop them.

        Parameters
        ----------
        rows : Tensor of int, of shape (n,)
            Numbers of the rows.
        n_rows : int
            Number of rows of the larger table.

        Returns
        -------
        SeededDropout
            Dropout that draws the masks of the larger table and gives those of the rows.
        """

        def draw(shape: tuple[int, int]) -> Tensor:
            return self.draw((n_rows, shape[1]))[rows]

        return self._replace(draw=draw)


class _Span(NamedTuple):
    """Group of neighbouring steps."""

    rows: slice  # rows of the span in the packed table
    steps: list[slice]  # rows of each step, counted from the first row of the span


def project_repeated(
    constant: Tensor,
    drive: Tensor,
    weight: Tensor,
    bias: Tensor,
    sizes: list[int],
    mask: DropoutMask | None = None,
) -> Tensor:
    """Multiply ``[constant, drive[t]]`` by a matrix at every step of packed sequences.

    Without dropout, the constant part is multiplied once and added at every step. With dropout,
    every step has its own mask and hence its own product. The masked rows are made for a few steps
    at a time, and made again for the gradient, rather than stored.

    Parameters
    ----------
    constant : Tensor of shape (sizes[0], n_constant)
        Part of the input that is the same at every step, the longest sequence first.
    drive : Tensor of shape (sum(sizes), n_varying)
        Part of the input that varies from step to step, packed (:class:`Packing`); `n_varying` may
        be zero.
    weight : Tensor of shape (n_outputs, n_constant + n_varying)
        Matrix to multiply by.
    bias : Tensor of shape (n_outputs,)
        Vector to add to every row.
    sizes : list of int
        Number of sequences that run at each step.
    mask : DropoutMask or None, default=None
        Dropout of ``[constant, drive[t]]``, with bits of shape (sum(sizes), n_constant +
        n_varying); None drops nothing.

    Returns
    -------
    Tensor of shape (sum(sizes), n_outputs)
        Projected inputs, packed.

    Examples
    --------
    >>> import torch
    >>> constant, drive, weight = torch.ones(2, 3), torch.zeros(3, 1), torch.ones(5, 4)
    >>> project_repeated(constant, drive, weight, torch.zeros(5), sizes=[2, 1])[:, 0]
    tensor([3., 3., 3.])
    """
    if mask is not None:
        return _MaskedProjection.apply(constant, drive, weight, bias, sizes, *mask)
    n_constant = constant.shape[1]
    # (sum(sizes), n_outputs): the constant part of every packed row
    repeated = _Repeat.apply(F.linear(constant, weight[:, :n_constant], bias), sizes)
    if torch.is_grad_enabled() and len(row_pieces(drive)) > 1:
        return map_table(drive, weight[:, n_constant:]).add_(repeated)
    return torch.addmm(repeated, drive, weight[:, n_constant:].t())


class _Repeat(torch.autograd.Function):
    """Repetition of each row at every step that its sequence runs."""

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
    """Projection of masked inputs that makes the masked rows again for the gradient."""

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
            multiply_rows(inputs.of(span), weight.t(), bias, projected[span.rows])
        return projected

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        constant, drive, weight, bits = ctx.saved_tensors
        inputs = _Inputs(constant, drive, ctx.sizes, bits)
        grads = torch.zeros_like(constant), torch.empty_like(drive), torch.zeros_like(weight)
        for span in inputs.spans:
            rows = grad[span.rows]
            grads[2].add_(sum_of_products(rows, inputs.of(span)))
            # (n_rows, n_constant + n_varying): gradient of the span's inputs
            inner = multiply_rows(rows, weight, None, rows.new_empty(len(rows), weight.shape[1]))
            inner.mul_(inputs.keep(span)).mul_(ctx.scale)
            grads[1][span.rows] = inner[:, constant.shape[1] :]
            for step in span.steps:
                repeated = inner[step, : constant.shape[1]]
                grads[0][: len(repeated)].add_(repeated)
        return *grads, grad.sum(0), None, None, None


class _Inputs:
    """Masked rows that the matrix multiplies, made for a few steps at a time in reused memory."""

    def __init__(self, constant: Tensor, drive: Tensor, sizes: list[int], bits: Tensor) -> None:
        self.constant = constant
        self.drive = drive
        self.bits = bits
        self.spans = list(_spans(sizes))
        n_rows = max(span.rows.stop - span.rows.start for span in self.spans)
        self._rows = constant.new_empty(n_rows, bits.shape[1])
        self._keep = torch.empty_like(self._rows)

    def keep(self, span: _Span) -> Tensor:
        """Return the mask of a span as numbers to multiply by, (n_rows, n_constant + n_varying)."""
        bits = self.bits[span.rows]
        return self._keep[: len(bits)].copy_(bits)

    def of(self, span: _Span) -> Tensor:
        """Return the masked rows of a span, (n_rows, n_constant + n_varying)."""
        keep, n_constant = self.keep(span), self.constant.shape[1]
        rows = self._rows[: len(keep)]
        for step in span.steps:
            kept = keep[step, :n_constant]
            torch.mul(self.constant[: len(kept)], kept, out=rows[step, :n_constant])
        torch.mul(self.drive[span.rows], keep[:, n_constant:], out=rows[:, n_constant:])
        return rows


def _spans(sizes: list[int]) -> Iterator[_Span]:
    """Group neighbouring steps into spans of about `CHUNK_ROWS` rows."""
    first, steps, n_rows = 0, [], sum(sizes)
    for step in steps_of(sizes):
        steps.append(slice(step.start - first, step.stop - first))
        if step.stop - first >= CHUNK_ROWS or step.stop == n_rows:
            yield _Span(slice(first, step.stop), steps)
            first, steps = step.stop, []
