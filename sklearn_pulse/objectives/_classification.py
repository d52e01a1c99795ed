"""Supervised objective: cross-entropy of a head on an encoder."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from ._head import HeadOnEncoder


class Classification(HeadOnEncoder):
    """Weighted cross-entropy of a head on the embedding of a window or a bag.

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    n_classes : int
        Number of classes.
    **settings : Any
        Encoder, head and seed, as for :class:`HeadOnEncoder`.

    Examples
    --------
    >>> import torch
    >>> objective = Classification(3, n_classes=2, embedding_dim=8, encoder_depth=2)
    >>> x, y = torch.randn(5, 16, 3), torch.tensor([0, 1, 0, 1, 1])
    >>> objective(x, y, torch.ones(5)).shape
    torch.Size([])
    """

    replayed = "whole"

    def __init__(self, n_channels: int, *, n_classes: int, **settings: Any) -> None:
        super().__init__(n_channels, n_outputs=n_classes, **settings)

    def forward(
        self, x: Tensor, y: Tensor, weight: Tensor, observed: Tensor | None = None
    ) -> Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels) or \
                (batch, n_windows, n_timesteps, n_channels)
            Windows, or bags of windows; unobserved steps hold any finite value.
        y : Tensor of int, of shape (batch,)
            Index of the class of each sample.
        weight : Tensor of shape (batch,)
            Weight of each sample, with mean one over the training or the validation part.
        observed : Tensor of bool, of the shape of `x` without its last axis, or None, default=None
            Which steps were observed; None means all.

        Returns
        -------
        Tensor, scalar
            Mean over the batch of weight times cross-entropy.
        """
        losses = F.cross_entropy(self.predict(x, observed), y, reduction="none")
        return (weight * losses).mean()
