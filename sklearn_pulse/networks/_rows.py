"""Two linear maps with a GELU between them, for many rows on the CPU."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from .._products import multiply, multiply_transposed

_PART_ROWS = 2**8  # rows whose hidden values stay in the cache


def map_rows(x: Tensor, first: Tensor, shift: Tensor, second: Tensor, offset: Tensor) -> Tensor:
    """Compute ``GELU(x @ first.T + shift) @ second.T + offset`` a few rows at a time.

    The hidden values of all rows are never in memory at once: the gradient computes them again.
    Memory that is new to the process costs more than this product does.

    Parameters
    ----------
    x : Tensor of shape (n_rows, dim)
        Rows.
    first : Tensor of shape (hidden_dim, dim)
        Weights of the first map.
    shift : Tensor of shape (hidden_dim,)
        Bias of the first map.
    second : Tensor of shape (n_outputs, hidden_dim)
        Weights of the second map.
    offset : Tensor of shape (n_outputs,)
        Bias of the second map.

    Returns
    -------
    Tensor of shape (n_rows, n_outputs)
        The mapped rows.

    Examples
    --------
    >>> import torch
    >>> one = torch.ones(1, 1)
    >>> map_rows(torch.tensor([[0.0], [9.0]]), one, torch.zeros(1), one, torch.ones(1)).flatten()
    tensor([ 1., 10.])
    """
    return _RowMap.apply(x, first, shift, second, offset)


class _RowMap(torch.autograd.Function):
    """Maps of :func:`map_rows` with a backward pass of its own."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, first: Tensor, shift: Tensor, second: Tensor, offset: Tensor
    ) -> Tensor:
        ctx.save_for_backward(x, first, shift, second)
        y = x.new_empty(len(x), len(second))
        for rows, result in zip(x.split(_PART_ROWS), y.split(_PART_ROWS), strict=True):
            active = F.gelu(multiply(rows, first.t(), shift))
            multiply(active, second.t(), offset, out=result)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        x, first, shift, second = ctx.saved_tensors
        grad, outer = grad.contiguous(), torch.empty_like(x)
        sums = [torch.zeros_like(weight) for weight in (first, shift, second)]
        parts = (tensor.split(_PART_ROWS) for tensor in (x, grad, outer))
        for rows, slope, result in zip(*parts, strict=True):
            hidden = multiply(rows, first.t(), shift)
            multiply_transposed(slope, F.gelu(hidden), sums[2])
            inner = multiply(slope, second)
            torch.ops.aten.gelu_backward.grad_input(inner, hidden, grad_input=inner)
            multiply_transposed(inner, rows, sums[0])
            sums[1].add_(inner.sum(0))
            multiply(inner, first, out=result)
        return outer, *sums, grad.sum(0)
