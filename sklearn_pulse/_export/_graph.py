"""Network from windows with missing steps to embeddings, as a graph."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class EncoderGraph(nn.Module):
    """Windows to embeddings, where NaN marks what is missing.

    Parameters
    ----------
    objective : torch.nn.Module
        Module with the method ``encode(x, observed)`` and `steps_read`, the slice of time steps
        that it reads.

    Examples
    --------
    >>> import torch
    >>> class Mean(torch.nn.Module):
    ...     steps_read = slice(None)
    ...
    ...     def encode(self, x, observed):
    ...         return x.sum(1) / observed.sum(1, keepdim=True)
    >>> EncoderGraph(Mean())(torch.tensor([[[1.0], [torch.nan], [3.0]]]))
    tensor([[2.]])
    """

    def __init__(self, objective: Any) -> None:
        super().__init__()
        self.objective = objective

    def forward(self, windows: Tensor) -> Tensor:
        """Embed windows.

        Parameters
        ----------
        windows : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; a step with a NaN in any channel is missing.

        Returns
        -------
        Tensor of shape (batch, embedding_dim)
            Embeddings; NaN for a window without an observed step.
        """
        observed = ~torch.isnan(windows).any(-1)
        x = torch.where(observed.unsqueeze(-1), windows, torch.zeros_like(windows))
        embedding = self.objective.encode(x, observed)
        # Networks with a bias embed a window of zeros too.
        is_seen = observed[:, self.objective.steps_read].any(1, keepdim=True)
        return torch.where(is_seen, embedding, torch.full_like(embedding, torch.nan))
