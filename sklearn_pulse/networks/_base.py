"""Base class of the encoders that estimators embed windows with."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn


class Encoder(nn.Module):
    """Torch module from windows (batch, n_timesteps, n_channels) to (batch, embedding_dim).

    A subclass defines ``forward(x, observed)`` and sets the facts below that differ.

    Attributes
    ----------
    embedding_dim : int
        Width of the embedding.
    tokens_per_step : int
        Tokens that the encoder reads per time step of the window; blocks of windows are cut to
        bound the number of tokens in memory.
    steps_read : slice
        Time steps of a window that the encoder reads: all, unless patches leave a rest.
    dilations : sequence of int
        Distances in time steps over which convolution weights act. A window no longer than a
        distance never trains the weights at that distance.

    Examples
    --------
    >>> import torch
    >>> class Mean(Encoder):
    ...     def __init__(self, n_channels):
    ...         super().__init__()
    ...         self.embedding_dim = n_channels
    ...
    ...     def forward(self, x, observed=None):
    ...         return x.mean(1)
    >>> Mean(3)(torch.ones(2, 16, 3)).shape
    torch.Size([2, 3])
    """

    embedding_dim: int
    tokens_per_step: int = 1
    steps_read: slice = slice(None)

    def __init__(self) -> None:  # whose signature is that of the class
        super().__init__()

    @property
    def dilations(self) -> Sequence[int]:
        """Distances in time steps over which convolution weights act."""
        return ()
