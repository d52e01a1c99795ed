"""Classification heads on embeddings."""

from __future__ import annotations

from torch import nn

from ._aligned import AlignedLinear


class ClassificationHead(nn.Sequential):
    """Map from embeddings to logits, with or without a hidden layer (paper, Section 5.3).

    Parameters
    ----------
    embedding_dim : int
        Width of the embedding.
    n_classes : int
        Number of logits.
    hidden_dim : int or None, default=64
        Width of the hidden layer, which ends in a tanh; None makes the head one linear map.

    Examples
    --------
    >>> import torch
    >>> ClassificationHead(320, n_classes=8)(torch.zeros(2, 320)).shape
    torch.Size([2, 8])
    """

    def __init__(self, embedding_dim: int, n_classes: int, hidden_dim: int | None = 64) -> None:
        if hidden_dim is None:
            super().__init__(AlignedLinear(embedding_dim, n_classes))
        else:
            super().__init__(
                AlignedLinear(embedding_dim, hidden_dim),
                nn.Tanh(),
                AlignedLinear(hidden_dim, n_classes),
            )
