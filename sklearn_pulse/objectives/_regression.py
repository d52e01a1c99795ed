"""Supervised objective: squared error of a head on an encoder."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ._head import HeadOnEncoder


class Regression(HeadOnEncoder):
    """Weighted squared error of a head on the embedding of a window or a bag.

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    n_targets : int
        Number of targets, which count alike: standardise them.
    **settings : Any
        Encoder, head and seed, as for :class:`HeadOnEncoder`.

    Examples
    --------
    >>> import torch
    >>> objective = Regression(3, n_targets=2, embedding_dim=8, encoder_depth=2)
    >>> objective(torch.randn(5, 16, 3), torch.zeros(5, 2), torch.ones(5)).shape
    torch.Size([])
    """

    replayed = "whole"

    def __init__(self, n_channels: int, *, n_targets: int, **settings: Any) -> None:
        super().__init__(n_channels, n_outputs=n_targets, **settings)

    def forward(
        self, x: Tensor, y: Tensor, weight: Tensor, observed: Tensor | None = None
    ) -> Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels) or \
                (batch, n_windows, n_timesteps, n_channels)
            Windows, or bags of windows; unobserved steps hold any finite value.
        y : Tensor of shape (batch, n_targets)
            Standardised targets of each sample.
        weight : Tensor of shape (batch,)
            Weight of each sample, with mean one over the training or the validation part.
        observed : Tensor of bool, of the shape of `x` without its last axis, or None, default=None
            Which steps were observed; None means all.

        Returns
        -------
        Tensor, scalar
            Mean over the batch of weight times squared error, itself the mean over the targets.
        """
        errors = (self.predict(x, observed) - y).square().mean(1)
        return (weight * errors).mean()
