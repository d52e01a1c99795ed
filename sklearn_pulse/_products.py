"""Matrix products in float32, twice as fast as torch's own on AMD's Zen 5.

torch gives these products to MKL, which uses AVX-512 on processors of Intel alone. oneDNN, which
torch holds too, uses AVX-512 on processors of AMD as well. Zen 4 computes AVX-512 in halves, and
gains nothing by it.
"""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

# Products of fewer rows round in another way, and a row must not depend on the size of its batch.
_FEWEST_ROWS = 16
_ZEN_5 = 26  # family of processors
_CPU_INFO = Path("/proc/cpuinfo")  # of Linux; elsewhere Python knows who made the processor


def _is_zen_5() -> bool:
    """Whether AMD made the processor, of Zen 5 or later; False if the system does not say so."""
    try:
        text = _CPU_INFO.read_text(encoding="utf-8", errors="replace")
    except OSError:  # it is not there, or hidden in a sandbox
        text = platform.processor()
    family = re.search(r"\bfamily\s*:?\s*(\d+)", text, re.IGNORECASE)
    return "AuthenticAMD" in text and family is not None and int(family[1]) >= _ZEN_5


_IS_FASTER = (
    torch.backends.mkldnn.is_available()
    and torch.backends.mkl.is_available()
    and torch.backends.cpu.get_cpu_capability() == "AVX512"
    and _is_zen_5()
)


def uses_onednn(x: Tensor) -> bool:
    """Whether products, and convolutions of training, go to oneDNN.

    Parameters
    ----------
    x : Tensor
        An operand, of any shape.

    Returns
    -------
    bool
        True for float32 on AMD's Zen 5 and later.

    Examples
    --------
    >>> uses_onednn(torch.zeros(1, dtype=torch.float64))
    False
    """
    if not _IS_FASTER or x.dtype != torch.float32 or x.device.type != "cpu":
        return False
    is_graph = torch.compiler.is_compiling()  # or exporting
    return bool(torch.backends.mkldnn.enabled) and not is_graph


def multiply(
    rows: Tensor, matrix: Tensor, bias: Tensor | None = None, out: Tensor | None = None
) -> Tensor:
    """Compute ``rows @ matrix + bias`` without a gradient.

    Parameters
    ----------
    rows : Tensor of shape (n_rows, n_columns)
        A table.
    matrix : Tensor of shape (n_columns, n_outputs)
        The matrix.
    bias : Tensor of shape (n_outputs,), or None, default=None
        What to add to each row.
    out : Tensor of shape (n_rows, n_outputs), or None, default=None
        Where to write the product; None allocates memory.

    Returns
    -------
    Tensor of shape (n_rows, n_outputs)
        The product.

    Examples
    --------
    >>> multiply(torch.ones(2, 3), torch.ones(3, 1), torch.ones(1)).flatten()
    tensor([4., 4.])
    """
    if uses_onednn(rows) and rows.numel() > 0:
        weight = _dense(matrix.t())
        product = torch.ops.mkldnn._linear_pointwise(_dense(rows), weight, bias, "none", [], "")
        return product if out is None else out.copy_(product)
    if bias is None:
        return torch.mm(rows, matrix, out=out)
    return torch.addmm(bias, rows, matrix, out=out)


def _dense(table: Tensor) -> Tensor:
    """Return a table without gaps in memory, by rows or columns; oneDNN is very slow with gaps."""
    if table.is_contiguous() or table.t().is_contiguous():
        return table
    by_rows = table.stride(0) >= table.stride(1)
    return table.contiguous() if by_rows else table.t().contiguous().t()  # a turn takes long


def multiply_transposed(left: Tensor, right: Tensor, total: Tensor | None = None) -> Tensor:
    """Compute ``left.T @ right`` without a gradient: the sum over rows of their outer products.

    Parameters
    ----------
    left : Tensor of shape (n_rows, n_left)
        A table.
    right : Tensor of shape (n_rows, n_right)
        A table of as many rows.
    total : Tensor of shape (n_left, n_right), or None, default=None
        What to add the sum to, in place.

    Returns
    -------
    Tensor of shape (n_left, n_right)
        The sum, or `total`.

    Examples
    --------
    >>> multiply_transposed(torch.ones(3, 1), torch.ones(3, 2))
    tensor([[3., 3.]])
    """
    if not uses_onednn(left):
        return left.t() @ right if total is None else total.addmm_(left.t(), right)
    # It is faster with the narrower table first.
    swaps = left.shape[1] > right.shape[1]
    product = multiply(right.t(), left).t() if swaps else multiply(left.t(), right)
    return product if total is None else total.add_(product)


class Linear(nn.Linear):
    """Linear map whose products go to oneDNN where that is faster.

    Examples
    --------
    >>> Linear(6, 5)(torch.zeros(2, 6)).shape
    torch.Size([2, 5])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Map the last axis.

        Parameters
        ----------
        x : Tensor of shape (..., in_features)
            Rows.

        Returns
        -------
        Tensor of shape (..., out_features)
            Mapped rows.

        Raises
        ------
        ValueError
            If the last axis has another size.
        """
        if x.shape[-1] != self.in_features:  # else padding to aligned widths might hide it
            raise ValueError(
                f"the last axis of the input has {x.shape[-1]} entries, and this layer reads"
                f" {self.in_features}: windows have the shape (batch, n_timesteps, n_channels)."
            )
        return self._map(x)

    def _map(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute ``x @ weight.T + bias``, by oneDNN where that is faster.

    Parameters
    ----------
    x : Tensor of shape (..., n_columns)
        Rows.
    weight : Tensor of shape (n_outputs, n_columns)
        The matrix.
    bias : Tensor of shape (n_outputs,), or None, default=None
        What to add to each product.

    Returns
    -------
    Tensor of shape (..., n_outputs)
        The mapped rows.

    Examples
    --------
    >>> linear(torch.ones(2, 3), torch.ones(1, 3), torch.ones(1)).flatten()
    tensor([4., 4.])
    """
    if torch.is_autocast_enabled(x.device.type) or not uses_onednn(x):
        return F.linear(x, weight, bias)
    n_rows = x.shape[:-1].numel()
    rows = x.reshape(n_rows, x.shape[-1])
    if torch.is_grad_enabled():
        mapped = _Linear.apply(rows, weight, bias)
    else:
        rows = F.pad(rows, (0, 0, 0, max(0, _FEWEST_ROWS - n_rows)))
        mapped = multiply(rows, weight.t(), bias)[:n_rows]
    return mapped.view(*x.shape[:-1], len(weight))


class _Linear(torch.autograd.Function):
    """Linear map of a table with a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        return multiply(x, weight.t(), bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, _ = ctx.needs_input_grad
        of_x = multiply(grad, weight) if needs_x else None
        of_weight = multiply_transposed(grad, x) if needs_weight else None
        return of_x, of_weight, grad.sum(0) if ctx.has_bias else None
