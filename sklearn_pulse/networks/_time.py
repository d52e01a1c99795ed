"""Time axis of a window: missing steps, pooling and padding at the edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..sampling import observed_span
from ._exporting import is_exporting


def observed_or_all(x: Tensor, observed: Tensor | None) -> Tensor:
    """Return a mask of observed time steps; without one, a mask that is True at every step.

    Parameters
    ----------
    x : Tensor of shape (..., n_timesteps, n_channels)
        Values of each step.
    observed : Tensor of bool, of shape (..., n_timesteps), or None
        Which steps were observed; None means all.

    Returns
    -------
    Tensor of bool, of shape (..., n_timesteps)
        The mask.

    Examples
    --------
    >>> import torch
    >>> from sklearn_pulse.networks import observed_or_all
    >>> observed_or_all(torch.zeros(1, 2, 3), None)
    tensor([[True, True]])
    """
    return torch.ones_like(x[..., 0], dtype=torch.bool) if observed is None else observed


def in_memory_order(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Apply a function of single steps to them as they lie in memory, without copies.

    Parameters
    ----------
    function : callable
        Function of a tensor that leaves all axes but the last as they are.
    x : Tensor of shape (n_timesteps, batch, n_features), or with the first two axes swapped
        Values of each step, contiguous in either order of the two axes.

    Returns
    -------
    Tensor of shape (n_timesteps, batch, n_results), or with the first two axes swapped
        Results, in the order of axes and of memory that `x` has.

    Examples
    --------
    >>> import torch
    >>> in_memory_order(torch.abs, torch.zeros(2, 3, 4).transpose(0, 1)).stride()
    (4, 12, 1)
    """
    return function(x) if x.is_contiguous() else function(x.transpose(0, 1)).transpose(0, 1)


def mask_steps(x: Tensor, observed: Tensor | None) -> Tensor:
    """Zero the time steps that were not observed.

    Parameters
    ----------
    x : Tensor of shape (batch, n_timesteps, n_channels)
        Values of each step; those of a step that was not observed may be NaN or infinite.
    observed : Tensor of bool, of shape (batch, n_timesteps), or None
        Which steps were observed; None means all.

    Returns
    -------
    Tensor of shape (batch, n_timesteps, n_channels)
        The masked values; `x` itself if `observed` is None.

    Examples
    --------
    >>> import torch
    >>> from sklearn_pulse.networks import mask_steps
    >>> mask_steps(torch.ones(1, 3, 1), torch.tensor([[True, False, True]])).flatten()
    tensor([1., 0., 1.])
    """
    return x if observed is None else x.masked_fill(~observed.unsqueeze(-1), 0.0)


def pool_steps(x: Tensor, how: Literal["max", "mean"], observed: Tensor | None = None) -> Tensor:
    """Pool over the observed time steps.

    Parameters
    ----------
    x : Tensor of shape (batch, n_timesteps, n_features)
        Values of each step.
    how : {"max", "mean"}
        Kind of pooling.
    observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
        Which steps were observed; None means all.

    Returns
    -------
    Tensor of shape (batch, n_features)
        The pooled values; without an observed step, minus infinity ("max") or NaN ("mean").

    Raises
    ------
    ValueError
        If `how` is another word.

    Examples
    --------
    >>> import torch
    >>> pool_steps(torch.tensor([[[1.0], [3.0]]]), "mean")
    tensor([[2.]])
    """
    if how == "max":
        seen = x if observed is None else x.masked_fill(~observed.unsqueeze(-1), -torch.inf)
        return seen.amax(1) if is_exporting() else _LargestStep.apply(seen)
    if how != "mean":
        raise ValueError(f"pooling must be 'max' or 'mean', got {how!r}")
    count: int | Tensor = x.shape[1]
    if observed is not None:
        x, count = mask_steps(x, observed), observed.sum(1, keepdim=True)
    # Sums in bfloat16 would round. Whether there is a mask must not matter: of a part of a tensor,
    # sums add up in another order.
    wide = torch.promote_types(x.dtype, torch.float32)
    return (x.contiguous().sum(1, dtype=wide) / count).to(x.dtype)


class _LargestStep(torch.autograd.Function):
    """Largest value over the steps; steps that share it share its gradient.

    The gradient is that of ``amax(1)``. PyTorch's reads Booleans as integers of eight bytes, which
    takes a tenth of a training step in bfloat16.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        largest = x.amax(1)
        ctx.save_for_backward(x, largest)
        return largest

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        x, largest = ctx.saved_tensors
        hits = x.clone().eq_(largest.unsqueeze(1))  # ones and zeros, in the type of x
        n_hits = hits.sum(1, dtype=torch.float32)
        return hits.mul_((grad / n_hits).to(hits.dtype).unsqueeze(1))


def replicate_edges(x: Tensor, n_steps: int, observed: Tensor | None = None) -> Tensor:
    """Pad by repeating the first and the last step.

    PyTorch's own padding is not used, since its gradient adds in no fixed order on CUDA.

    Parameters
    ----------
    x : Tensor of shape (batch, n_timesteps, n_channels)
        Windows of at least one step.
    n_steps : int
        Steps to add at each end.
    observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
        Which steps were observed; None means all. Steps before the first observed one or after the
        last are padding too.

    Returns
    -------
    Tensor of shape (batch, n_timesteps + 2 * n_steps, n_channels)
        The padded windows.

    Examples
    --------
    >>> import torch
    >>> replicate_edges(torch.tensor([[[1.0], [2.0]]]), 2).flatten()
    tensor([1., 1., 1., 2., 2., 2.])
    """
    if observed is not None:
        first, stop = (step.unsqueeze(1) for step in observed_span(observed))
        steps = torch.arange(x.shape[1], device=x.device)
        rows = torch.arange(len(x), device=x.device).unsqueeze(1)
        x = x[rows, steps.clamp(first, stop - 1)]
    first, last = x[:, :1], x[:, -1:]
    return torch.cat([first.expand(-1, n_steps, -1), x, last.expand(-1, n_steps, -1)], dim=1)


def reflect_edges(x: Tensor, observed: Tensor | None = None) -> Tensor:
    """Pad by one step at each end, the neighbour of the edge; a single step is its own neighbour.

    Parameters
    ----------
    x : Tensor of shape (batch, n_timesteps, n_channels)
        Windows of at least one step.
    observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
        Which steps were observed; None means all. The step before the first observed one and that
        after the last are padding too.

    Returns
    -------
    Tensor of shape (batch, n_timesteps + 2, n_channels)
        The padded windows.

    Examples
    --------
    >>> import torch
    >>> reflect_edges(torch.tensor([[[1.0], [2.0], [3.0]]])).flatten()
    tensor([2., 1., 2., 3., 2.])
    """
    if observed is not None:
        first, stop = (step.unsqueeze(1) for step in observed_span(observed))
        steps = torch.arange(x.shape[1], device=x.device).expand(len(x), -1)
        rows = torch.arange(len(x), device=x.device).unsqueeze(1)
        before = torch.minimum(first + 1, stop - 1)
        after = torch.maximum(stop - 2, first)
        steps = torch.where(steps == first - 1, before, steps)
        x = x[rows, torch.where(steps == stop, after, steps)]
    if x.shape[1] == 1:
        return replicate_edges(x, 1)
    return torch.cat([x[:, 1:2], x, x[:, -2:-1]], dim=1)


def take_rows(x: Tensor, steps: Tensor) -> Tensor:
    """Take steps of each window.

    Parameters
    ----------
    x : Tensor of shape (batch, n_timesteps, n_features)
        Values of each step.
    steps : Tensor of int, of shape (batch, n_taken)
        Steps of each window, each at most once.

    Returns
    -------
    Tensor of shape (batch, n_taken, n_features)
        Their values.

    Examples
    --------
    >>> import torch
    >>> x = torch.arange(6.0).view(1, 3, 2)
    >>> take_rows(x, torch.tensor([[2, 0]])).tolist()
    [[[4.0, 5.0], [0.0, 1.0]]]
    """
    return x.gather(1, steps.unsqueeze(-1).expand(-1, -1, x.shape[2]))
