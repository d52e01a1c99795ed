"""Products of tables whose number of rows is another at every step of training.

oneDNN compiles the kernel of a product for its shape, which takes 1 to 15 ms and half a MiB, and
keeps the last thousand. So tables that it multiplies are multiplied in pieces whose sizes recur.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .._products import Linear, linear, multiply, multiply_transposed, uses_onednn
from ._aligned import map_aligned
from ._autocast import compute_dtype

_LARGEST, _SMALLEST = 2**12, 2**4  # rows of a piece; fewer rows may remain for the last piece


def padded_rows(n_rows: int, like: Tensor) -> int:
    """Round a number of rows up to one that recurs, where products are compiled for their shape.

    That is a multiple of 16 where oneDNN multiplies operands of the type and device of `like`, as
    it does in bfloat16, else `n_rows`.

    Examples
    --------
    >>> narrow, wide = (torch.zeros(1, dtype=t) for t in (torch.bfloat16, torch.float64))
    >>> padded_rows(50, narrow), padded_rows(50, wide)
    (64, 50)
    """
    return -(-n_rows // _SMALLEST) * _SMALLEST if _is_compiled(like) else n_rows


def recurring_length(n: int) -> int:
    """Round a length up to a length that recurs; from 128 on, eight lie in each doubling.

    It is a multiple of 16, and from 256 on at most an eighth more than `n`.

    Examples
    --------
    >>> [recurring_length(n) for n in (1, 16, 120, 257, 1000)]
    [16, 16, 128, 288, 1024]
    """
    step = max(_SMALLEST, 2 ** (n.bit_length() - 4))
    return -(-n // step) * step


def _is_compiled(x: Tensor) -> bool:
    """Whether products with this tensor are compiled for their shape."""
    return x.device.type == "cpu" and (x.dtype == torch.bfloat16 or uses_onednn(x))


def row_pieces(table: Tensor) -> list[slice]:
    """Split a table into pieces of recurring sizes, where products are compiled for their shape.

    Parameters
    ----------
    table : Tensor of shape (n_rows, n_columns)
        One operand of the product.

    Returns
    -------
    list of slice
        The rows of each piece, in order; a single piece unless oneDNN multiplies the table.

    Examples
    --------
    >>> row_pieces(torch.zeros(50, 1, dtype=torch.bfloat16))
    [slice(0, 32, None), slice(32, 48, None), slice(48, 50, None)]
    >>> row_pieces(torch.zeros(50, 1, dtype=torch.float64))
    [slice(0, 50, None)]
    """
    n_rows = len(table)
    if n_rows == 0 or not _is_compiled(table):
        return [slice(0, n_rows)]
    pieces, start, size = [], 0, _LARGEST
    while start < n_rows:
        while _SMALLEST < size > n_rows - start:
            size //= 2
        stop = min(start + size, n_rows)
        pieces.append(slice(start, stop))
        start = stop
    return pieces


def multiply_rows(rows: Tensor, matrix: Tensor, bias: Tensor | None, out: Tensor) -> Tensor:
    """Multiply each row of a table by a matrix, in pieces.

    Parameters
    ----------
    rows : Tensor of shape (n_rows, n_columns)
        The table.
    matrix : Tensor of shape (n_columns, n_outputs)
        The matrix.
    bias : Tensor of shape (n_outputs,), or None
        What to add to each product.
    out : Tensor of shape (n_rows, n_outputs)
        Where the products are written.

    Returns
    -------
    Tensor of shape (n_rows, n_outputs)
        `out`.

    Examples
    --------
    >>> multiply_rows(torch.ones(3, 2), torch.ones(2, 1), None, torch.empty(3, 1)).flatten()
    tensor([2., 2., 2.])
    """
    for piece in row_pieces(rows):
        multiply(rows[piece], matrix, bias, out=out[piece])
    return out


def sum_of_products(left: Tensor, right: Tensor) -> Tensor:
    """Return ``left.T @ right``, the sum over rows of their outer products.

    Parameters
    ----------
    left : Tensor of shape (n_rows, n_left)
        A table.
    right : Tensor of shape (n_rows, n_right)
        A table of as many rows.

    Returns
    -------
    Tensor of shape (n_left, n_right)
        The sum, of the type of the tables. That of the pieces is in float32.

    Examples
    --------
    >>> sum_of_products(torch.ones(3, 1), torch.ones(3, 2))
    tensor([[3., 3.]])
    """
    first, *others = row_pieces(left)
    total = multiply_transposed(left[first], right[first])
    if not others:
        return total
    wide = total.float()
    for piece in others:
        wide.add_(multiply_transposed(left[piece], right[piece]))
    return wide.to(total.dtype)


class RowLinear(Linear):
    """Linear map of a table's rows, which multiplies in pieces where a gradient is recorded.

    Examples
    --------
    >>> RowLinear(6, 5)(torch.zeros(2, 6)).shape
    torch.Size([2, 5])
    """

    def _map(self, x: Tensor) -> Tensor:
        return map_table(x.to(compute_dtype(x)), self.weight, self.bias)


def map_table(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute ``x @ weight.T + bias``, in pieces where a gradient is recorded.

    Without one, no row depends on its place.

    Examples
    --------
    >>> map_table(torch.ones(2, 3), torch.ones(1, 3), torch.ones(1)).flatten()
    tensor([4., 4.])
    """
    if not torch.is_grad_enabled():
        return map_aligned(x, weight, bias)
    if x.dim() != 2 or len(row_pieces(x)) == 1:
        return linear(x, weight, bias)
    return _TableMap.apply(x, weight.to(x.dtype), None if bias is None else bias.to(x.dtype))


class _TableMap(torch.autograd.Function):
    """Linear map of :func:`map_table` with a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        return multiply_rows(x, weight.t(), bias, x.new_empty(len(x), len(weight)))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        inner = multiply_rows(grad, weight, None, torch.empty_like(x))
        return inner, sum_of_products(grad, x), grad.sum(0) if ctx.has_bias else None
