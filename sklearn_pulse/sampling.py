"""Where crops start, what they hold, which steps are masked: arithmetic on batches."""

from __future__ import annotations

import torch
from torch import Tensor


def length_in_steps(min_crop_length: int | float, n_timesteps: int) -> int:
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
    >>> length_in_steps(0.5, 128), length_in_steps(64, 128), length_in_steps(0.5, 1)
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


def take_steps(x: Tensor, start: Tensor, n_steps: int) -> Tensor:
    """Cut as many steps out of every window, each from its own start.

    Parameters
    ----------
    x : Tensor of shape (batch, n_timesteps, ...)
        Windows, or masks of their steps.
    start : Tensor of int, of shape (batch,)
        First step of each cut; before the window, or too late in it, the edge is repeated.
    n_steps : int
        Length of the cuts.

    Returns
    -------
    Tensor of shape (batch, n_steps, ...)
        The cuts, copied.

    Examples
    --------
    >>> import torch
    >>> take_steps(torch.arange(8).view(2, 4), torch.tensor([1, -2]), 3)
    tensor([[1, 2, 3],
            [4, 4, 4]])
    """
    steps = start.unsqueeze(1) + torch.arange(n_steps, device=x.device)
    rows = torch.arange(len(x), device=x.device).unsqueeze(1)
    return x[rows, steps.clamp(0, x.shape[1] - 1)]


def random_integers(low: Tensor, high: Tensor, generator: torch.Generator) -> Tensor:
    """Draw integers between two bounds, both included; `low` where they are crossed.

    Parameters
    ----------
    low, high : Tensor of int
        Bounds of each draw, of one shape.
    generator : torch.Generator
        On the device of the bounds. The number of draws does not depend on the bounds.

    Returns
    -------
    Tensor of int
        Of the shape of `low`.

    Examples
    --------
    >>> import torch
    >>> low, high = torch.tensor([3, 5]), torch.tensor([3, 6])
    >>> random_integers(low, high, torch.Generator().manual_seed(0))[0]
    tensor(3)
    """
    uniform = torch.rand(
        low.shape, generator=generator, device=generator.device, dtype=torch.float64
    )
    return low + (uniform * (high - low + 1).clamp(min=1)).long()


def draw_shifts(
    max_shift: float,
    lengths: Tensor,
    generator: torch.Generator,
    room: Tensor | None = None,
) -> Tensor:
    """Draw how far each window is moved along time.

    Whole steps, uniform in ``[-max_shift * length, max_shift * length)`` as far as there is room.

    Parameters
    ----------
    max_shift : float
        As a fraction of the window.
    lengths : Tensor of int, of shape (batch,)
        Steps of each window.
    generator : torch.Generator
        On the device of `lengths`.
    room : Tensor of int, of shape (batch, 2), or None
        Steps recorded before and after each window; None means any number.

    Returns
    -------
    Tensor of int, of shape (batch,)
        Steps to move; a positive one moves towards later steps.

    Examples
    --------
    >>> import torch
    >>> lengths, generator = torch.full((1000,), 6), torch.Generator().manual_seed(0)
    >>> draw_shifts(0.5, lengths, generator).unique()
    tensor([-3, -2, -1,  0,  1,  2])
    >>> draw_shifts(0.5, lengths, generator, room=torch.tensor([[1, 9]])).unique()
    tensor([-1,  0,  1,  2])
    """
    farthest = (max_shift * lengths.double()).long()
    low, high = -farthest, farthest - 1
    if room is not None:
        low, high = torch.maximum(low, -room[:, 0]), torch.minimum(high, room[:, 1])
    return random_integers(low, high, generator)


def shift_within(
    x: Tensor, shift: Tensor, observed: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """Move each window along time, and repeat its edge where there is nothing to read.

    The first and the last observed step are the edges. Padding before and after them stays where
    it is, so an observed step is always left.

    Parameters
    ----------
    x : Tensor of shape (batch, n_timesteps, n_channels)
        Windows.
    shift : Tensor of int, of shape (batch,)
        Steps to move; a positive one moves towards later steps.
    observed : Tensor of bool, of shape (batch, n_timesteps), or None
        None means that every step was observed.

    Returns
    -------
    x, observed
        New tensors of the same shapes; the second is None where it was None.

    Examples
    --------
    >>> import torch
    >>> x = torch.arange(4.0).view(1, 4, 1)
    >>> shift_within(x, torch.tensor([2]))[0].flatten()
    tensor([2., 3., 3., 3.])
    """
    n_timesteps = x.shape[1]
    if observed is None:
        return take_steps(x, shift, n_timesteps), None
    first, stop = observed_span(observed)
    steps = torch.arange(n_timesteps, device=x.device)
    inside = (steps >= first.unsqueeze(1)) & (steps < stop.unsqueeze(1))
    source = (steps + shift.unsqueeze(1)).clamp(first.unsqueeze(1), (stop - 1).unsqueeze(1))
    rows = torch.arange(len(x), device=x.device).unsqueeze(1)
    return x[rows, source], observed[rows, source] & inside


def geometric_mask(
    shape: tuple[int, int, int], mask_ratio: float, mean_length: float, generator: torch.Generator
) -> Tensor:
    """Draw runs of masked steps with geometric lengths, a Markov chain a sample and channel.

    A chain starts masked with probability `mask_ratio`, leaves the mask with probability ``1 /
    mean_length`` and enters it with ``mask_ratio / (1 - mask_ratio) / mean_length``. Each step's
    one draw says whether it is masked whatever came before, or is not, or is what its
    predecessor is (or is not, where changing is likelier than that).

    Parameters
    ----------
    shape : tuple of three ints
        Samples, steps and channels.
    mask_ratio : float
        Part that is masked, on average; at most ``mean_length / (1 + mean_length)``.
    mean_length : float
        Mean length of a masked run, in steps.
    generator : torch.Generator
        Source of the draws; the mask lies on its device.

    Returns
    -------
    Tensor of bool, of shape `shape`
        True where masked.

    Examples
    --------
    >>> import torch
    >>> mask = geometric_mask((10, 1000, 2), 0.5, 3.0, torch.Generator().manual_seed(0))
    >>> round(mask.float().mean().item(), 1)
    0.5
    """
    leave = 1.0 / mean_length
    enter = leave * mask_ratio / (1.0 - mask_ratio)
    flip = max(0.0, leave + enter - 1.0)
    draws = torch.rand(shape, generator=generator, device=generator.device)
    masked = draws < enter - flip
    decided = masked | (draws >= 1.0 - (leave - flip))
    decided[:, 0] = True
    masked[:, 0] = draws[:, 0] < mask_ratio
    steps = torch.arange(shape[1], device=draws.device).view(1, -1, 1)
    last = torch.where(decided, steps, 0).cummax(1).values  # the decision that still holds
    kept = masked.gather(1, last)
    if flip == 0.0:
        return kept
    n_flips = (~decided & (draws < enter)).cumsum(1)
    return kept ^ ((n_flips - n_flips.gather(1, last)) % 2).bool()
