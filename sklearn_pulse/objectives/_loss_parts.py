"""Sum of losses, each of which gives its gradient before the next one is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def sum_losses(losses: Sequence[Callable[[], Tensor]], weights: Sequence[Tensor]) -> Tensor:
    """Add losses that share nothing but weights, and store the activations of one at a time.

    The gradient of each loss is computed right after the loss, so that nothing is computed twice.

    Parameters
    ----------
    losses : sequence of callable
        Functions without arguments that return a scalar. They read no tensor that needs a gradient
        except the weights.
    weights : sequence of Tensor
        Weights that the losses read.

    Returns
    -------
    Tensor, scalar
        The sum, which can be differentiated once, with respect to the weights.

    Examples
    --------
    >>> import torch
    >>> weight = torch.ones(2, requires_grad=True)
    >>> sum_losses([weight.sum, weight.prod], [weight]).backward()
    >>> weight.grad
    tensor([2., 2.])
    """
    wanted = [weight for weight in weights if weight.requires_grad]
    if not torch.is_grad_enabled() or not wanted:
        return torch.stack([loss() for loss in losses]).sum()
    return _LossParts.apply(losses, *wanted)


class _LossParts(torch.autograd.Function):
    """Sum of :func:`sum_losses` with its gradient."""

    @staticmethod
    def forward(ctx: Any, losses: Sequence[Callable[[], Tensor]], *weights: Tensor) -> Tensor:
        # A weight that no loss reads gets no gradient, and so no weight decay.
        totals: list[Tensor | None] = [None] * len(weights)
        values = []
        for loss in losses:
            torch.clear_autocast_cache()  # its casts belong to the graph of the previous loss
            with torch.enable_grad():
                value = loss()
            for i, grad in enumerate(torch.autograd.grad(value, weights, allow_unused=True)):
                if grad is not None:
                    total = totals[i]
                    totals[i] = grad.clone() if total is None else total.add_(grad)
            values.append(value.detach())
        torch.clear_autocast_cache()
        ctx.gradients = totals
        return torch.stack(values).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        totals, ctx.gradients = ctx.gradients, None
        return None, *(None if total is None else total.mul_(slope) for total in totals)
