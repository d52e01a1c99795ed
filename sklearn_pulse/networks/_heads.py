"""Heads on embeddings."""

from __future__ import annotations

from torch import nn

from ._aligned import AlignedLinear


class Head(nn.Sequential):
    """Map from embeddings to logits or targets, with one hidden layer or none (paper, Section 5.3).

    Parameters
    ----------
    embedding_dim : int
        Width of the embedding.
    n_outputs : int
        Number of logits or targets.
    hidden_dim : int or None, default=64
        Width of the hidden layer, which ends in a tanh; None makes the head one linear map.

    Examples
    --------
    >>> import torch
    >>> Head(320, n_outputs=8)(torch.zeros(2, 320)).shape
    torch.Size([2, 8])
    """

    def __init__(self, embedding_dim: int, n_outputs: int, hidden_dim: int | None = 64) -> None:
        if hidden_dim is None:
            super().__init__(AlignedLinear(embedding_dim, n_outputs))
        else:
            super().__init__(
                AlignedLinear(embedding_dim, hidden_dim),
                nn.Tanh(),
                AlignedLinear(hidden_dim, n_outputs),
            )
