"""Dilated convolution of activated steps, time first."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from .._products import multiply, multiply_transposed, uses_onednn
from ._aligned import align, is_aligned
from ._autocast import compute_dtype
from ._exporting import is_exporting
from ._images import as_images, as_steps, as_taps
from ._time import in_memory_order


class DilatedConv(nn.Conv1d):
    """Three-tap convolution of ``GELU(x)`` with zero padding, time first.

    With time first, the steps that a tap reads are one block of memory. Each tap is therefore one
    matrix product that adds to the result of the other taps. A tap whose dilation exceeds the
    window reads only padding and is not multiplied; its weights still get a gradient of zero, so
    that weight decay acts on them. The backward pass recomputes the GELU instead of storing it.
    Where oneDNN is faster than these products, it convolves. Where no gradient is recorded, a block
    of the encoder calls `convolve` of `_fused_conv` instead, if the processor has it.

    Parameters
    ----------
    in_channels : int
        Channels of the input.
    out_channels : int
        Channels of the output.
    dilation : int
        Steps between two taps.

    Examples
    --------
    >>> import torch
    >>> DilatedConv(2, 5, dilation=4)(torch.zeros(10, 1, 2)).shape
    torch.Size([10, 1, 5])
    """

    bias: nn.Parameter  # never None

    def __init__(self, in_channels: int, out_channels: int, dilation: int) -> None:
        super().__init__(in_channels, out_channels, 3, dilation=dilation, padding=dilation)

    def forward(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Activate and convolve.

        Parameters
        ----------
        x : Tensor of shape (n_timesteps, batch, in_channels)
            Values before the activation.
        observed : Tensor of shape (n_timesteps, batch, 1), or None, default=None
            1 for observed steps, 0 for the others; None means that all were observed.

        Returns
        -------
        Tensor of shape (n_timesteps, batch, out_channels)
            The convolution.
        """
        if is_exporting():
            active = F.gelu(x) if observed is None else F.gelu(x) * observed
            return super().forward(active.permute(1, 2, 0)).permute(2, 0, 1)
        x = x.to(compute_dtype(x))
        weight, bias = self.weight.to(x.dtype), self.bias.to(x.dtype)
        dilation = self.dilation[0]
        if torch.is_grad_enabled() or is_aligned(self.in_channels, self.out_channels):
            conv = _OneConvolution if uses_onednn(x) else _ThreeProducts
            return conv.apply(x, weight, bias, observed, dilation)
        weight, bias = align(weight, -2, -3), align(bias, -1)
        y = _ThreeProducts.apply(align(x, -1), weight, bias, observed, dilation)
        return y[..., : self.out_channels]


class _ThreeProducts(torch.autograd.Function):
    """Convolution of :class:`DilatedConv` by a product for each tap."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        observed: Tensor | None,
        dilation: int,
    ) -> Tensor:
        ctx.save_for_backward(x, weight, observed)
        ctx.dilation = dilation
        shift = dilation * x.shape[1]  # distance between taps, in rows of the flattened table
        active = activate(x, observed).flatten(0, 1)  # (n_timesteps * batch, in_channels)
        past, centre, future = weight.unbind(2)
        y = torch.addmm(bias, active, centre.t())
        if shift < len(active):
            y[shift:].addmm_(active[:-shift], past.t())
            y[:-shift].addmm_(active[shift:], future.t())
        return y.unflatten(0, x.shape[:2])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, observed = ctx.saved_tensors
        shift = ctx.dilation * x.shape[1]
        active, grad = activate(x, observed).flatten(0, 1), grad.flatten(0, 1)
        past, centre, future = weight.unbind(2)
        inner = grad @ centre  # (n_timesteps * batch, in_channels)
        taps = grad.new_zeros(3, *centre.shape)
        torch.mm(grad.t(), active, out=taps[1])
        if shift < len(active):
            torch.mm(grad[shift:].t(), active[:-shift], out=taps[0])
            torch.mm(grad[:-shift].t(), active[shift:], out=taps[2])
            inner[:-shift].addmm_(grad[shift:], past)
            inner[shift:].addmm_(grad[:-shift], future)
        inner = inner.view_as(x)
        if observed is not None:
            inner.mul_(observed)
        torch.ops.aten.gelu_backward.grad_input(inner, x, grad_input=inner)
        return inner, taps.permute(1, 2, 0), grad.sum(0), None, None


class _OneConvolution(torch.autograd.Function):
    """Convolution of :class:`DilatedConv` by oneDNN, which reads and writes each step once.

    It is fastest where the steps of a window lie side by side in memory.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        observed: Tensor | None,
        dilation: int,
    ) -> Tensor:
        ctx.save_for_backward(x, weight, observed)
        ctx.dilation = dilation
        active = activate(x, observed)
        if dilation >= len(x):  # the centre alone reads more than padding
            return _unroll(multiply(_roll(active), _centre(weight).t(), bias), x)
        padding, spacing = (0, dilation), (1, dilation)
        return as_steps(F.conv2d(as_images(active), as_taps(weight), bias, 1, padding, spacing))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, observed = ctx.saved_tensors
        active, grad = activate(x, observed), _laid_out_like(x, grad)
        if ctx.dilation >= len(x):
            rows = _roll(grad)
            inner = _unroll(multiply(rows, _centre(weight)), x)
            taps = F.pad(multiply_transposed(rows, _roll(active)).unsqueeze(2), (1, 1))
            bias = rows.sum(0)
        else:
            inner, taps, bias = torch.ops.aten.convolution_backward(
                as_images(grad),
                as_images(active),
                as_taps(weight),
                bias_sizes=[len(weight)],
                stride=[1, 1],
                padding=[0, ctx.dilation],
                dilation=[1, ctx.dilation],
                transposed=False,
                output_padding=[0, 0],
                groups=1,
                output_mask=[True, True, True],
            )
            inner, taps = _laid_out_like(x, as_steps(inner)), taps.squeeze(2)
        if observed is not None:
            inner.mul_(observed)
        torch.ops.aten.gelu_backward.grad_input(inner, x, grad_input=inner)
        return inner, taps, bias, None, None


def _centre(weight: Tensor) -> Tensor:
    """Return the middle tap, (out_channels, in_channels)."""
    return weight[:, :, 1].contiguous()


def _laid_out_like(x: Tensor, steps: Tensor) -> Tensor:
    """Return steps (n_timesteps, batch, n_channels), in the order of memory that `x` has."""
    if x.is_contiguous():
        return steps.contiguous()
    return steps.transpose(0, 1).contiguous().transpose(0, 1)


def _roll(steps: Tensor) -> Tensor:
    """Write steps (n_timesteps, batch, n_channels) as rows, in the order of memory."""
    return (steps if steps.is_contiguous() else steps.transpose(0, 1)).flatten(0, 1)


def _unroll(rows: Tensor, x: Tensor) -> Tensor:
    """Undo :func:`_roll` of steps that were laid out like `x`."""
    if x.is_contiguous():
        return rows.unflatten(0, x.shape[:2])
    return rows.unflatten(0, (x.shape[1], x.shape[0])).transpose(0, 1)


def activate(x: Tensor, observed: Tensor | None) -> Tensor:
    """Return the GELU of every observed step, and zeros for the others.

    Parameters
    ----------
    x : Tensor of shape (n_timesteps, batch, n_channels)
        Values before the activation, contiguous in either order of the first two axes.
    observed : Tensor of shape (n_timesteps, batch, 1), or None
        1 for observed steps, 0 for the others; None means that all were observed.

    Returns
    -------
    Tensor of shape (n_timesteps, batch, n_channels)
        The activated steps, in the memory order of `x`.

    Examples
    --------
    >>> activate(torch.zeros(2, 3, 4), None).shape
    torch.Size([2, 3, 4])
    """
    active = in_memory_order(F.gelu, x)
    return active if observed is None else active.mul_(observed)
