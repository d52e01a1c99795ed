"""Patches of a window: short stretches that a transformer reads as tokens."""

from __future__ import annotations

import math
from numbers import Integral

import torch
from torch import Tensor

from ..sampling import whole_steps
from ._time import mask_steps, observed_or_all


def patch_steps(patch_length: int | float, n_timesteps: int) -> int:
    """Convert a patch length in steps (int) or as a fraction of the window (float) to steps.

    They are at most half the window, so that one patch can be hidden while another is visible; 1
    for a window of one step.

    Examples
    --------
    >>> patch_steps(12, 128), patch_steps(0.25, 128), patch_steps(12, 16), patch_steps(12, 1)
    (12, 32, 8, 1)
    """
    is_steps = isinstance(patch_length, Integral)  # any other number is a fraction
    steps = int(patch_length) if is_steps else whole_steps(float(patch_length) * n_timesteps)
    return max(1, min(steps, n_timesteps // 2))


def stride_steps(patch_stride: int | float, patch_length: int) -> int:
    """Convert the distance of patches in steps (int) or as a fraction of a patch (float) to steps.

    It is never longer than a patch, so that every step between the first and the last patch lies in
    a patch.

    Examples
    --------
    >>> stride_steps(0.5, 12), stride_steps(1, 12), stride_steps(1.0, 12), stride_steps(12, 8)
    (6, 1, 12, 8)
    """
    is_steps = isinstance(patch_stride, Integral)  # any other number is a fraction
    steps = int(patch_stride) if is_steps else whole_steps(float(patch_stride) * patch_length)
    return max(1, min(steps, patch_length))


def standardize(x: Tensor, observed: Tensor | None = None) -> Tensor:
    """Subtract the mean of each window and channel, and divide by ``sqrt(variance + 1e-5)``.

    Parameters
    ----------
    x : Tensor of shape (batch, n_timesteps, n_channels)
        Windows; unobserved steps hold any finite value.
    observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
        Steps that the statistics are taken over; None means all.

    Returns
    -------
    Tensor of shape (batch, n_timesteps, n_channels)
        Standardised windows; zero at the unobserved steps.

    Examples
    --------
    >>> import torch
    >>> standardize(torch.tensor([[[1.0], [3.0]]])).flatten().round(decimals=3)
    tensor([-1.,  1.])
    """
    observed = observed_or_all(x, observed)
    count = observed.sum(1).clamp(min=1).view(-1, 1, 1)
    centred = mask_steps(x, observed)
    for _ in range(2):  # of a constant, the first pass leaves the rounding error of the mean
        mean = centred.sum(1, keepdim=True) / count
        centred = mask_steps(centred - mean, observed)
    variance = centred.square().sum(1, keepdim=True) / count
    return centred / (variance + 1e-5).sqrt()


def sinusoidal_positions(n_positions: int, dim: int) -> Tensor:
    """Build a table of sines and cosines, centred and scaled to a standard deviation of 0.1.

    Parameters
    ----------
    n_positions : int
        Number of positions, the rows of the table.
    dim : int
        Width of the tokens, the columns of the table; the frequencies are geometrically spaced.

    Returns
    -------
    Tensor of shape (n_positions, dim)
        Sines in the even columns, cosines in the odd columns.

    Examples
    --------
    >>> table = sinusoidal_positions(20, 8)
    >>> table.shape, round(table.std().item(), 3)
    (torch.Size([20, 8]), 0.1)
    """
    frequency = torch.exp(torch.arange(0, dim, 2) * (-math.log(10_000.0) / dim))
    angle = torch.arange(n_positions).unsqueeze(1) * frequency
    table = torch.zeros(n_positions, dim)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle[:, : dim // 2].cos()
    table = table - table.mean()
    return table / (10.0 * table.std())


def attendable(visible: Tensor) -> Tensor:
    """Let attention read every token of the rows without a visible token, as a softmax needs one.

    `visible`, of shape (batch, n_tokens), tells which tokens hold an observed step.

    Examples
    --------
    >>> import torch
    >>> attendable(torch.tensor([[True, False], [False, False]]))
    tensor([[ True, False],
            [ True,  True]])
    """
    return visible | ~visible.any(1, keepdim=True)
