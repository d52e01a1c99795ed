"""Keeping the time steps that were not observed out of a network."""

from __future__ import annotations

import torch
from torch import Tensor


def mask_steps(x: Tensor, observed: Tensor | None) -> Tensor:
    """Zero the time steps that were not observed.

    Parameters
    ----------
    x : Tensor of shape (batch, n_timesteps, n_channels)
        Any per-step values.
    observed : Tensor of bool, of shape (batch, n_timesteps), or None
        None means that every step was observed.

    Returns
    -------
    Tensor
        `x` itself where `observed` is None.

    Examples
    --------
    >>> import torch
    >>> mask_steps(torch.ones(1, 3, 1), torch.tensor([[True, False, True]])).flatten()
    tensor([1., 0., 1.])
    """
    return x if observed is None else x * observed.unsqueeze(-1)


def pool_steps(x: Tensor, how: str, observed: Tensor | None = None) -> Tensor:
    """Pool over time, leaving out the steps that were not observed.

    Parameters
    ----------
    x : Tensor of shape (batch, n_timesteps, n_features)
        Per-step values.
    how : {"max", "mean"}
        The pooling.
    observed : Tensor of bool, of shape (batch, n_timesteps), or None
        None means that every step was observed.

    Returns
    -------
    Tensor of shape (batch, n_features)
        The pooled values.

    Examples
    --------
    >>> import torch
    >>> pool_steps(torch.tensor([[[1.0], [3.0]]]), "mean")
    tensor([[2.]])
    """
    if observed is None:
        return x.amax(1) if how == "max" else x.mean(1)
    if how == "max":
        return x.masked_fill(~observed.unsqueeze(-1), -torch.inf).amax(1)
    return mask_steps(x, observed).sum(1) / observed.sum(1, keepdim=True)
