"""Pure tensor functions: dropout and losses."""

from __future__ import annotations

import torch
from torch import Tensor

_LANES = 4  # 16-bit draws in one 64-bit draw
_LEVELS = 2**16


def keep_mask(shape: tuple[int, ...], p: float, generator: torch.Generator) -> Tensor:
    """Draw a dropout mask: True with probability ``1 - p``.

    Four 16-bit draws are cut from each 64-bit random number, which is several times faster than
    one Bernoulli draw an element, so ``p`` is rounded to the nearest multiple of ``2**-16``.

    Parameters
    ----------
    shape : tuple of int
        Shape of the mask.
    p : float
        Probability of a False, in [0, 1).
    generator : torch.Generator
        Source of the draws; the mask lies on its device.

    Returns
    -------
    Tensor of bool, of shape `shape`
        The entries to keep.

    Examples
    --------
    >>> import torch
    >>> mask = keep_mask((100, 100), 0.25, torch.Generator().manual_seed(0))
    >>> round(mask.float().mean().item(), 1)
    0.8
    """
    size = torch.Size(shape)
    n = size.numel()
    draws = torch.empty(-(-n // _LANES), dtype=torch.int64, device=generator.device)
    lanes = draws.random_(-(2**63), None, generator=generator).view(torch.int16)
    return (lanes[:n] >= round(p * _LEVELS) - _LEVELS // 2).view(size)


def dropout(x: Tensor, p: float, generator: torch.Generator) -> Tensor:
    """Zero each element with probability `p` and rescale the others to keep the mean.

    As :func:`torch.nn.functional.dropout`, but the mask comes from a generator that the caller
    owns, so that the same seed gives the same bits whatever else draws random numbers.

    Parameters
    ----------
    x : Tensor
        Any shape.
    p : float
        Probability of a zero, in [0, 1), rounded to a multiple of ``2**-16``.
    generator : torch.Generator
        On the device of `x`.

    Returns
    -------
    Tensor
        Of the shape of `x`.

    Examples
    --------
    >>> import torch
    >>> x = torch.ones(1000)
    >>> dropout(x, 0.5, torch.Generator().manual_seed(0)).unique()
    tensor([0., 2.])
    """
    rounded = round(p * _LEVELS) / _LEVELS
    if rounded == 0.0:
        return x
    return x * keep_mask(x.shape, p, generator).to(x.dtype).mul_(1.0 / (1.0 - rounded))


def pass_errors(
    prediction: Tensor, target: Tensor, scored: Tensor, n_steps: Tensor, reduction: str
) -> Tensor:
    """Mean squared error of each reconstruction pass.

    Parameters
    ----------
    prediction, target : Tensor of shape (n_steps, n_passes, batch, n_channels)
        Reconstruction and signal, time first.
    scored : Tensor of bool, of shape (n_steps, n_passes, batch)
        The steps that count: inside the crop and observed.
    n_steps : Tensor of int, of shape (n_passes,)
        Length of the longest crop of each pass.
    reduction : {"published", "valid"}
        "published" divides by all ``batch * n_steps * n_channels`` entries of a pass, the ones
        past the end of a shorter crop included; "valid" divides by the number that count.

    Returns
    -------
    Tensor of shape (n_passes,)
        The loss of each pass (paper, Eq. 3, reconstruction term).

    Examples
    --------
    >>> import torch
    >>> prediction, target = torch.zeros(2, 1, 1, 1), torch.ones(2, 1, 1, 1)
    >>> scored = torch.tensor([True, False]).view(2, 1, 1)
    >>> pass_errors(prediction, target, scored, torch.tensor([2]), "published")
    tensor([0.5000])
    >>> pass_errors(prediction, target, scored, torch.tensor([2]), "valid")
    tensor([1.])
    """
    _, _, batch, n_channels = target.shape
    errors = (prediction - target).float() * scored.unsqueeze(-1)
    total = errors.square().sum((0, 2, 3))
    steps = scored.sum((0, 2)) if reduction == "valid" else batch * n_steps
    return total / (steps * n_channels).clamp(min=1)
