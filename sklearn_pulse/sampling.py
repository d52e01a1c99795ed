"""Where crops start: index arithmetic on batches."""

from __future__ import annotations

import torch
from torch import Tensor


def minimum_length(min_crop_length: int | float, n_timesteps: int) -> int:
    """Turn a crop length, in steps or as a fraction, into steps.

    Parameters
    ----------
    min_crop_length : int or float
        Steps, or a fraction of the window.
    n_timesteps : int
        Length of the window.

    Returns
    -------
    int
        Between 1 and ``n_timesteps - 1`` (1 for a window of one step).

    Examples
    --------
    >>> minimum_length(0.5, 128), minimum_length(64, 128), minimum_length(0.5, 1)
    (64, 64, 1)
    """
    steps = (
        int(min_crop_length * n_timesteps)
        if isinstance(min_crop_length, float)
        else min_crop_length
    )
    return max(1, min(steps, n_timesteps - 1))


def observed_span(observed: Tensor) -> tuple[Tensor, Tensor]:
    """First observed step of each window, and one past the last.

    Parameters
    ----------
    observed : Tensor of bool, of shape (batch, n_timesteps)
        At least one True a row.

    Returns
    -------
    first, stop : Tensor of int, of shape (batch,)
        Half-open spans.

    Examples
    --------
    >>> import torch
    >>> observed_span(torch.tensor([[False, True, False, True, False]]))
    (tensor([1]), tensor([4]))
    """
    steps = observed.to(torch.int64)
    n_timesteps = observed.shape[1]
    return steps.argmax(1), n_timesteps - steps.flip(1).argmax(1)


def crop_starts(
    n_crops: int,
    shape: tuple[int, int],
    min_crop_length: int | float,
    generator: torch.Generator,
    observed: Tensor | None = None,
) -> Tensor:
    """Draw the start of each crop, so that enough steps are left to predict after it.

    ``t0 ~ U{0, ..., n_timesteps - R - 1}`` with R the minimum crop length, independently for each
    crop and sample (paper, Section 3.2). In a window with missing steps the first and last
    observed ones take the place of the window's ends, so padding is never cropped.

    Parameters
    ----------
    n_crops : int
        Crops a sample.
    shape : tuple of int
        ``(batch, n_timesteps)``.
    min_crop_length : int or float
        R in steps, or as a fraction of the window.
    generator : torch.Generator
        Source of the draws.
    observed : Tensor of bool, of shape (batch, n_timesteps), or None
        None means that every step was observed.

    Returns
    -------
    Tensor of int, of shape (n_crops, batch)
        Start indices.

    Examples
    --------
    >>> import torch
    >>> starts = crop_starts(2, (3, 10), 0.5, torch.Generator().manual_seed(0))
    >>> starts.shape, bool((starts <= 4).all())
    (torch.Size([2, 3]), True)
    """
    batch, n_timesteps = shape
    device = generator.device
    if observed is None:
        first = torch.zeros(batch, dtype=torch.int64, device=device)
        length = torch.full_like(first, n_timesteps)
    else:
        first, stop = observed_span(observed)
        length = stop - first
    if isinstance(min_crop_length, float):
        minimum = (length.double() * min_crop_length).long()
    else:
        minimum = torch.full_like(length, min_crop_length)
    choices = (length - torch.minimum(minimum.clamp(min=1), length - 1)).clamp(min=1)
    # One draw of each size whatever was observed: the next draws must not depend on it.
    uniform = torch.rand(n_crops, batch, generator=generator, device=device, dtype=torch.float64)
    return first + (uniform * choices).long()


def aligned_steps(starts: Tensor, n_timesteps: int, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Window index of each predicted step, time first, and whether it lies in the crop.

    A pass started at t0 predicts steps t0 + 1, t0 + 2, ...; the step at t0 itself is never a
    target (paper, Eq. 3).

    Parameters
    ----------
    starts : Tensor of int, of shape (n_passes, batch)
        Start t0 of each pass.
    n_timesteps : int
        Length of the window.
    lengths : Tensor of int, of shape (n_passes, 1) or (n_passes, batch)
        The most steps that a pass predicts; the window's end cuts it short.

    Returns
    -------
    index : Tensor of int, of shape (n_timesteps - 1, n_passes, batch)
        Window index, clamped to the window where the crop has ended.
    inside : Tensor of bool, of the same shape
        False past the end of the crop.

    Examples
    --------
    >>> import torch
    >>> index, inside = aligned_steps(torch.tensor([[1]]), 4, torch.tensor([[3]]))
    >>> index.flatten(), inside.flatten()
    (tensor([2, 3, 3]), tensor([ True,  True, False]))
    """
    offset = torch.arange(n_timesteps - 1, device=starts.device).view(-1, 1, 1)
    index = starts + 1 + offset
    inside = (index < n_timesteps) & (offset < lengths)
    return index.clamp(max=n_timesteps - 1), inside
