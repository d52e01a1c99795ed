"""Random views of windows, as modules that return new tensors and hold no random state.

Each module is called as ``augmentation(x, generator)``. The caller owns the generator, so that the
same seed gives the same views. The number of draws depends on the shape of `x` only. Draws are in
float32; views of floats have the type of `x`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def _uniform(shape: tuple[int, ...], x: Tensor, generator: torch.Generator) -> Tensor:
    """Draw numbers between 0 and 1 in float32, whatever torch's default type is."""
    return torch.rand(shape, generator=generator, device=x.device, dtype=torch.float32)


def _in_type_of(x: Tensor, view: Tensor) -> Tensor:
    """Return a view of windows in their own type of floats, as layers of it need; else as it is."""
    return view.to(x.dtype) if x.is_floating_point() else view


class Scale(nn.Module):
    """Multiplication of each window by a random factor, shared by all steps and channels.

    The defaults are those of SimCLR in the paper (Appendix C).

    Parameters
    ----------
    low : float, default=0.5
        Lower bound of the factor, which is uniform between the bounds.
    high : float, default=1.5
        Upper bound of the factor.

    Raises
    ------
    ValueError
        If a bound is not finite, or `low` is above `high`.

    Examples
    --------
    >>> import torch
    >>> Scale(2.0, 2.0)(torch.ones(1, 3, 1), torch.Generator().manual_seed(0)).flatten()
    tensor([2., 2., 2.])
    """

    def __init__(self, low: float = 0.5, high: float = 1.5) -> None:
        super().__init__()
        if not -math.inf < low <= high < math.inf:
            raise ValueError(
                f"low and high must be finite, and low at most high, got low={low!r} and"
                f" high={high!r}; pass for example low=0.5, high=1.5"
            )
        self.low = low
        self.high = high

    def forward(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Scale windows.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows.
        generator : torch.Generator
            Generator of the factors, on the device of `x`.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, n_channels)
            Scaled windows, a new tensor.
        """
        factor = _uniform((len(x), 1, 1), x, generator)
        return _in_type_of(x, x * (self.low + (self.high - self.low) * factor))


class Jitter(nn.Module):
    """Addition of normal noise, independent for every entry.

    Parameters
    ----------
    std : float, default=0.2
        Standard deviation of the noise, as a multiple of the `unit` that `forward` is given.

    Raises
    ------
    ValueError
        If `std` is negative or not finite.

    Examples
    --------
    >>> import torch
    >>> x = torch.zeros(1, 10_000, 1)
    >>> noisy = Jitter(0.5)(x, torch.Generator().manual_seed(0), unit=torch.tensor([4.0]))
    >>> round(noisy.std().item(), 1)
    2.0
    """

    def __init__(self, std: float = 0.2) -> None:
        super().__init__()
        if not 0.0 <= std < math.inf:
            raise ValueError(
                f"std must be a finite number from 0 on, got {std!r}; pass for example std=0.2"
            )
        self.std = std

    def forward(self, x: Tensor, generator: torch.Generator, unit: Tensor | None = None) -> Tensor:
        """Add noise to windows.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows.
        generator : torch.Generator
            Generator of the noise, on the device of `x`.
        unit : Tensor of shape (batch,), or None, default=None
            Unit of the noise for each window, such as the standard deviation of the data; None
            means 1.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, n_channels)
            Noisy windows, a new tensor.
        """
        noise = torch.randn(x.shape, generator=generator, device=x.device, dtype=torch.float32)
        std = self.std if unit is None else self.std * unit.view(-1, 1, 1)
        return _in_type_of(x, x + std * noise)


class RandomApply(nn.Module):
    """Application of an augmentation to randomly chosen windows of the batch.

    Parameters
    ----------
    augmentation : torch.nn.Module
        Augmentation, called as ``augmentation(x, generator, **kwargs)``.
    p : float, default=0.5
        Probability of each window to be augmented, from 0 to 1, independently of the others.

    Raises
    ------
    ValueError
        If `p` is out of its range.

    Examples
    --------
    >>> import torch
    >>> apply = RandomApply(Scale(2.0, 2.0), p=0.5)
    >>> apply(torch.ones(1000, 1, 1), torch.Generator().manual_seed(0)).unique()
    tensor([1., 2.])
    """

    def __init__(self, augmentation: nn.Module, p: float = 0.5) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(
                f"p must be a probability from 0 to 1, got {p!r}; pass for example p=0.5"
            )
        self.augmentation = augmentation
        self.p = p

    def forward(self, x: Tensor, generator: torch.Generator, **kwargs: Tensor) -> Tensor:
        """Augment some windows and keep the others as they are.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows.
        generator : torch.Generator
            Generator of the choice and of the augmentation, on the device of `x`.
        **kwargs : Tensor
            Further arguments of the augmentation, such as the `unit` of :class:`Jitter`.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, n_channels)
            Windows, some of them augmented; a new tensor.
        """
        chosen = _uniform((len(x),), x, generator) < self.p
        return torch.where(chosen.view(-1, 1, 1), self.augmentation(x, generator, **kwargs), x)
