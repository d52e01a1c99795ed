"""Normalisation of each window and feature over time, and its inverse (RevIN)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ._time import mask_steps

_EPS = 1e-5  # added to the variance by both normalisations
_EPS_SCALE = 1e-10  # added to the learnt scale before dividing by it


class ReversibleNorm(nn.Module):
    """Instance normalisation with a learnt affine map, and its inverse (RevIN).

    Parameters
    ----------
    n_channels : int
        Channels of the windows.

    References
    ----------
    Kim et al., "Reversible instance normalization for accurate time-series forecasting against
    distribution shift", ICLR 2022.

    Examples
    --------
    >>> import torch
    >>> norm, x = ReversibleNorm(2), torch.randn(3, 50, 2)
    >>> statistics = norm.statistics(x)
    >>> torch.allclose(norm.restore(norm(x, *statistics), *statistics), x, atol=1e-5)
    True
    """

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_channels))
        self.bias = nn.Parameter(torch.zeros(n_channels))

    @staticmethod
    def statistics(x: Tensor, observed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Compute the mean and standard deviation of each window and channel, without a gradient.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Steps that the statistics are taken over; None means all.

        Returns
        -------
        mean : Tensor of shape (batch, 1, n_channels)
            Mean over time.
        std : Tensor of shape (batch, 1, n_channels)
            Square root of the biased variance plus 1e-5.
        """
        mean, variance = _moments(x.detach(), observed)
        return mean, (variance + _EPS).sqrt()

    def forward(self, x: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        """Normalise windows by given statistics.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows.
        mean : Tensor of shape (batch, 1, n_channels)
            Mean to subtract; it may come from other windows.
        std : Tensor of shape (batch, 1, n_channels)
            Standard deviation to divide by; it may come from other windows.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, n_channels)
            Normalised windows, after the learnt affine map.
        """
        return (x - mean) / std * self.weight + self.bias

    def restore(self, x: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        """Map normalised windows back to the units of the signal.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Normalised windows.
        mean : Tensor of shape (batch, 1, n_channels)
            Mean that the windows were normalised by.
        std : Tensor of shape (batch, 1, n_channels)
            Standard deviation that the windows were normalised by.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, n_channels)
            Windows in the units of the signal.
        """
        return (x - self.bias) / (self.weight + _EPS_SCALE) * std + mean


def instance_norm(x: Tensor, observed: Tensor | None) -> Tensor:
    """Normalise each window and feature over its observed steps."""
    if observed is None:
        normed = F.layer_norm(x.permute(2, 0, 1), (x.shape[1],), eps=_EPS)
        return normed.permute(1, 2, 0)
    mean, variance = _moments(x, observed)
    return (x - mean) * (variance + _EPS).rsqrt()


def _moments(x: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor]:
    """Compute mean and biased variance over the observed steps, of shape (batch, 1, n_features)."""
    if observed is None:
        mean = x.mean(1, keepdim=True)
        return mean, (x - mean).square().mean(1, keepdim=True)
    count = observed.sum(1).view(-1, 1, 1)
    mean = mask_steps(x, observed).sum(1, keepdim=True) / count
    return mean, mask_steps((x - mean).square(), observed).sum(1, keepdim=True) / count
