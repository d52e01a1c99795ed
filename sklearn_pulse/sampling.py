"""Random crops, shifts and masks of batches, as index arithmetic."""

from __future__ import annotations

import math
from numbers import Integral

import torch
from torch import Tensor

# A fraction times a number of steps may miss an integer by this share of it: a little more than the
# rounding of a fraction in float32.
_ROUNDING = 1e-7


def length_in_steps(length: int | float, n_timesteps: int) -> int:
    """Convert a length in steps or as a fraction of the window to steps.

    Parameters
    ----------
    length : int or float
        Steps (int), or a fraction of the window (float).
    n_timesteps : int
        Steps of the window.

    Returns
    -------
    int
        Between 1 and ``n_timesteps - 1`` (1 for a window of one step).

    Examples
    --------
    >>> length_in_steps(0.5, 128), length_in_steps(64, 128), length_in_steps(0.5, 1)
    (64, 64, 1)
    """
    # The product of a fraction of NumPy would be rounded to the type of the fraction.
    steps = length if isinstance(length, Integral) else whole_steps(float(length) * n_timesteps)
    return max(1, min(int(steps), n_timesteps - 1))


def whole_steps(steps: float) -> int:
    """Round a number of steps down, unless only a rounding error separates it from an integer.

    Parameters
    ----------
    steps : float
        A fraction times a number of steps.

    Returns
    -------
    int
        The whole steps.

    Examples
    --------
    >>> 0.29 * 100, whole_steps(0.29 * 100), whole_steps(28.9)
    (28.999999999999996, 29, 28)
    """
    nearest = round(steps)
    return nearest if abs(steps - nearest) <= _ROUNDING * abs(steps) else math.floor(steps)


def lengths_in_steps(length: int | float, n_timesteps: Tensor) -> Tensor:
    """Convert a length in steps or as a fraction of each window to steps.

    Parameters
    ----------
    length : int or float
        Steps (int), or a fraction of the window (float).
    n_timesteps : Tensor of int
        Steps of each window.

    Returns
    -------
    Tensor of int
        Between 1 and ``n_timesteps - 1`` (1 for a window of one step), of the shape of
        `n_timesteps`.

    Examples
    --------
    >>> import torch
    >>> lengths_in_steps(0.5, torch.tensor([128, 10, 1]))
    tensor([64,  5,  1])
    """
    if isinstance(length, Integral):
        steps = torch.full_like(n_timesteps, int(length))
    else:
        steps = _fractions(float(length), n_timesteps).long()
    return torch.minimum(steps, n_timesteps - 1).clamp(min=1)


def finest_float(device: torch.device) -> torch.dtype:
    """Return the type of the finest real numbers of a device.

    Parameters
    ----------
    device : torch.device
        The device.

    Returns
    -------
    torch.dtype
        Float64, or float32 on a GPU of Apple's ("mps"), which has no float64.

    Examples
    --------
    >>> finest_float(torch.device("cpu")), finest_float(torch.device("mps"))
    (torch.float64, torch.float32)
    """
    return torch.float32 if device.type == "mps" else torch.float64


def _fractions(fraction: float, lengths: Tensor) -> Tensor:
    """Return fractions of lengths, rounded where only a rounding error makes them no integers."""
    steps = lengths.to(finest_float(lengths.device)) * fraction
    # On a GPU of Apple's the product is rounded to float32, too.
    rounding = _ROUNDING * steps if steps.dtype == torch.float64 else 1e-3
    return torch.where((steps - steps.round()).abs() <= rounding, steps.round(), steps)


def observed_span(observed: Tensor) -> tuple[Tensor, Tensor]:
    """Find the first observed step of each window, and the step after the last observed one.

    Parameters
    ----------
    observed : Tensor of bool, of shape (batch, n_timesteps)
        Which steps were observed, at least one per window.

    Returns
    -------
    first : Tensor of int, of shape (batch,)
        First observed step.
    stop : Tensor of int, of shape (batch,)
        Step after the last observed one.

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
    """Draw the start of each crop so that at least a minimum number of steps follows it.

    ``t0 ~ U{0, ..., n_timesteps - R - 1}`` with R the minimum crop length, independently for each
    crop and sample (paper, Section 3.2). In a window with missing steps, the first and the last
    observed step replace the ends of the window, so that padding is never cropped.

    Parameters
    ----------
    n_crops : int
        Number of crops per sample.
    shape : tuple of int
        Shape (batch, n_timesteps) of the windows.
    min_crop_length : int or float
        Minimum crop length R in steps (int), or as a fraction of the window (float).
    generator : torch.Generator
        Generator of the draws; the result lies on its device.
    observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
        Which steps were observed, at least one per window; None means all.

    Returns
    -------
    Tensor of int, of shape (n_crops, batch)
        Start t0 of each crop.

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
    choices = (length - lengths_in_steps(min_crop_length, length)).clamp(min=1)
    # The number of draws depends on the shape only: later draws must not depend on `observed`.
    dtype = finest_float(device)
    uniform = torch.rand(n_crops, batch, generator=generator, device=device, dtype=dtype)
    return first + (uniform * choices).long()


def aligned_steps(starts: Tensor, n_timesteps: int, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the window index of each predicted step, and whether the step lies in the crop.

    A pass that starts at t0 predicts the steps t0 + 1, t0 + 2, ...; the step t0 itself is never a
    target (paper, Eq. 3).

    Parameters
    ----------
    starts : Tensor of int, of shape (n_passes, batch)
        Start t0 of each pass.
    n_timesteps : int
        Steps of the window.
    lengths : Tensor of int, of shape (n_passes, 1) or (n_passes, batch)
        Maximum number of steps that a pass predicts; the end of the window may stop it earlier.

    Returns
    -------
    index : Tensor of int, of shape (n_timesteps - 1, n_passes, batch)
        Window index, time first; clamped to the window after the end of the crop.
    inside : Tensor of bool, of shape (n_timesteps - 1, n_passes, batch)
        Whether the step lies in the crop.

    Examples
    --------
    >>> import torch
    >>> index, inside = aligned_steps(torch.tensor([[1]]), 4, torch.tensor([[3]]))
    >>> index.flatten(), inside.flatten()
    (tensor([2, 3, 3]), tensor([ True,  True, False]))
    """
    offset = torch.arange(n_timesteps - 1, device=starts.device).view(-1, 1, 1)  # time first
    index = starts + 1 + offset
    inside = (index < n_timesteps) & (offset < lengths)
    return index.clamp(max=n_timesteps - 1), inside


def take_steps(x: Tensor, start: Tensor, n_steps: int) -> Tensor:
    """Cut the same number of steps out of every window, from a separate start in each.

    Parameters
    ----------
    x : Tensor of shape (batch, n_timesteps, ...)
        Windows, or masks of their steps.
    start : Tensor of int, of shape (batch,)
        First step of each cut. Steps outside the window repeat its edge.
    n_steps : int
        Number of steps to cut.

    Returns
    -------
    Tensor of shape (batch, n_steps, ...)
        Copies of the steps.

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
    """Draw integers uniformly between two bounds, both included.

    Parameters
    ----------
    low : Tensor of int
        Lower bound of each draw.
    high : Tensor of int
        Upper bound of each draw, of the shape of `low`; a draw is `low` if `high` is below it.
    generator : torch.Generator
        Generator of the draws, on the device of the bounds. The number of draws does not depend on
        the bounds.

    Returns
    -------
    Tensor of int
        Draws, of the shape of `low`.

    Examples
    --------
    >>> import torch
    >>> low, high = torch.tensor([3, 5]), torch.tensor([3, 6])
    >>> random_integers(low, high, torch.Generator().manual_seed(0))[0]
    tensor(3)
    """
    device = generator.device
    uniform = torch.rand(low.shape, generator=generator, device=device, dtype=finest_float(device))
    return low + (uniform * (high - low + 1).clamp(min=1)).long()


def draw_shifts(
    max_shift: float,
    lengths: Tensor,
    generator: torch.Generator,
    room: Tensor | None = None,
) -> Tensor:
    """Draw the number of steps by which each window is moved along time.

    Shifts are uniform over the integers in ``[-max_shift * length, max_shift * length)``, bounded
    by `room`.

    Parameters
    ----------
    max_shift : float
        Bound of the shifts, as a fraction of the window.
    lengths : Tensor of int, of shape (batch,)
        Steps of each window.
    generator : torch.Generator
        Generator of the draws, on the device of `lengths`.
    room : Tensor of int, of shape (batch, 2), or None, default=None
        Recorded steps before and after each window; None means that shifts are not bounded.

    Returns
    -------
    Tensor of int, of shape (batch,)
        Shift in steps; a positive shift moves the window to later steps.

    Examples
    --------
    >>> import torch
    >>> lengths, generator = torch.full((1000,), 6), torch.Generator().manual_seed(0)
    >>> draw_shifts(0.5, lengths, generator).unique()
    tensor([-3, -2, -1,  0,  1,  2])
    >>> draw_shifts(0.5, lengths, generator, room=torch.tensor([[1, 9]])).unique()
    tensor([-1,  0,  1,  2])
    """
    farthest = _fractions(float(max_shift), lengths)
    low, high = -farthest.floor().long(), farthest.ceil().long() - 1
    if room is not None:
        low, high = torch.maximum(low, -room[:, 0]), torch.minimum(high, room[:, 1])
    return random_integers(low, high, generator)


def shift_within(
    x: Tensor, shift: Tensor, observed: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """Move each window along time, and repeat its edge where the shift leaves the window.

    The first and the last observed step are the edges. Padding before and after them stays in
    place, so that at least one step remains observed.

    Parameters
    ----------
    x : Tensor of shape (batch, n_timesteps, n_channels)
        Windows; unobserved steps hold any finite value.
    shift : Tensor of int, of shape (batch,)
        Shift in steps; a positive shift moves the window to later steps.
    observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
        Which steps were observed, at least one per window; None means all.

    Returns
    -------
    x : Tensor of shape (batch, n_timesteps, n_channels)
        Moved windows, a new tensor.
    observed : Tensor of bool, of shape (batch, n_timesteps), or None
        Which steps of the moved windows were observed; None if the argument was None.

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
    # (batch, n_timesteps): the step that each step of the moved window is read from
    source = (steps + shift.unsqueeze(1)).clamp(first.unsqueeze(1), (stop - 1).unsqueeze(1))
    rows = torch.arange(len(x), device=x.device).unsqueeze(1)
    return x[rows, source], observed[rows, source] & inside


def geometric_mask(
    shape: tuple[int, int, int], mask_ratio: float, mean_length: float, generator: torch.Generator
) -> Tensor:
    """Draw masked runs of geometric length, from one Markov chain per sample and channel.

    A chain starts masked with probability `mask_ratio`. It leaves the mask with probability ``1 /
    mean_length`` and enters it with probability ``mask_ratio / (1 - mask_ratio) / mean_length``.
    One draw per step decides between three cases: the step is masked whatever its predecessor is,
    it is visible whatever its predecessor is, or it copies its predecessor. If the two
    probabilities add up to more than 1, the third case inverts the predecessor instead.

    Parameters
    ----------
    shape : tuple of int
        Shape (n_samples, n_timesteps, n_channels) of the mask.
    mask_ratio : float
        Expected fraction of masked steps, from 0 to ``mean_length / (1 + mean_length)``.
    mean_length : float
        Mean length of a masked run, in steps; at least 1.
    generator : torch.Generator
        Generator of the draws; the mask lies on its device.

    Returns
    -------
    Tensor of bool, of shape `shape`
        True for the masked entries.

    Raises
    ------
    ValueError
        If there is no time step, or `mask_ratio` or `mean_length` is out of its range.

    Examples
    --------
    >>> import torch
    >>> mask = geometric_mask((10, 1000, 2), 0.5, 3.0, torch.Generator().manual_seed(0))
    >>> round(mask.float().mean().item(), 1)
    0.5
    """
    if not shape[1]:
        raise ValueError(f"shape={tuple(shape)} holds no time step: pass one step at least.")
    if not mean_length >= 1.0:
        raise ValueError(f"mean_length must be at least 1 step, got {mean_length!r}: raise it.")
    most = mean_length / (1.0 + mean_length)
    if not 0.0 <= mask_ratio <= most:
        raise ValueError(
            f"mask_ratio must be from 0 to {most:g} with mean_length={mean_length!r}, got"
            f" {mask_ratio!r}: lower mask_ratio, or raise mean_length."
        )
    leave = 1.0 / mean_length
    enter = leave * mask_ratio / (1.0 - mask_ratio)
    flip = max(0.0, leave + enter - 1.0)
    device = generator.device
    draws = torch.rand(shape, generator=generator, device=device, dtype=torch.float32)
    masked = draws < enter - flip
    decided = masked | (draws >= 1.0 - (leave - flip))
    decided[:, 0] = True
    masked[:, 0] = draws[:, 0] < mask_ratio
    steps = torch.arange(shape[1], device=draws.device).view(1, -1, 1)
    # (n_samples, n_timesteps, n_channels): the latest step at which a draw decided
    last = torch.where(decided, steps, 0).cummax(1).values
    kept = masked.gather(1, last)
    if flip == 0.0:
        return kept
    n_flips = (~decided & (draws < enter)).cumsum(1)
    return kept ^ ((n_flips - n_flips.gather(1, last)) % 2).bool()
