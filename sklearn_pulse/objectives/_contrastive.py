"""Base class of the objectives that contrast the output of the system encoder."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from ..functional import dropout
from ..networks import SystemEncoder, mask_steps
from ._base import Objective


class ContrastiveObjective(Objective):
    """Base class of the losses that contrast embeddings of the system encoder.

    A subclass defines `forward` and computes its loss from `represent` or `represent_steps`.

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    embedding_dim : int, default=320
        Width of the embedding.
    encoder_hidden_dim : int, default=64
        Width of the encoder's blocks, except the last.
    encoder_depth : int, default=10
        Blocks of the encoder before the last, widening block.
    pooling : {"max", "mean"}, default="max"
        How the encoder pools over time.
    layer_norm : {"everywhere", "embedding", "none"}, default="everywhere"
        Where the encoder's layer normalisation acts: in the loss and the embedding ("everywhere"),
        in the embedding only, where its weights are never trained ("embedding"), or nowhere
        ("none").
    representation_dropout : float, default=0.0
        Probability of dropout of the encoded steps, before pooling, in training.
    seed : int, default=0
        Seed of the objective's generator.

    Examples
    --------
    >>> import torch
    >>> objective = ContrastiveObjective(2, embedding_dim=8, encoder_depth=3, layer_norm="none")
    >>> objective.represent(torch.randn(4, 16, 2)).shape
    torch.Size([4, 8])
    """

    encoder: SystemEncoder

    def __init__(
        self,
        n_channels: int,
        *,
        embedding_dim: int = 320,
        encoder_hidden_dim: int = 64,
        encoder_depth: int = 10,
        pooling: Literal["max", "mean"] = "max",
        layer_norm: Literal["everywhere", "embedding", "none"] = "everywhere",
        representation_dropout: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__(seed)
        self.layer_norm = layer_norm
        self.representation_dropout = representation_dropout
        self.encoder = SystemEncoder(
            n_channels, encoder_hidden_dim, embedding_dim, encoder_depth, pooling
        )
        if layer_norm == "none":
            self.encoder.norm = nn.Identity()

    @property
    def _drops(self) -> bool:
        return self.training and self.representation_dropout > 0.0

    def represent(
        self,
        x: Tensor,
        observed: Tensor | None = None,
        generator: torch.Generator | None = None,
        part: tuple[int, Tensor] | None = None,
    ) -> Tensor:
        """Embed windows for the loss.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.
        generator : torch.Generator or None, default=None
            Generator of the dropout; None means the objective's own.
        part : (int, Tensor of int) or None, default=None
            Number of windows of a larger batch, and the numbers that these windows have in it: the
            dropout is then that of the larger batch. None means that the batch is whole.

        Returns
        -------
        Tensor of shape (batch, embedding_dim)
            Embeddings with the layer normalisation and the dropout of the loss.
        """
        if self.layer_norm != "embedding" and not self._drops:
            return self.encoder(x, observed)
        hidden = self.encoder.input(mask_steps(x, observed))
        steps = self.represent_steps(hidden, observed, generator, part)
        return self.encoder.pool(steps, observed)

    def represent_steps(
        self,
        hidden: Tensor,
        observed: Tensor | None,
        generator: torch.Generator | None = None,
        part: tuple[int, Tensor] | None = None,
        recurring: bool = True,
    ) -> Tensor:
        """Encode the output of the input layer for a loss that reads every step.

        Parameters
        ----------
        hidden : Tensor of shape (batch, n_timesteps, encoder_hidden_dim)
            Output of the encoder's input layer.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None
            Which steps were observed; None means all.
        generator : torch.Generator or None, default=None
            Generator of the dropout; None means the objective's own.
        part : (int, Tensor of int) or None, default=None
            Number of windows of a larger batch, and the numbers that these windows have in it: the
            dropout is then that of the larger batch. None means that the batch is whole.
        recurring : bool, default=True
            Whether most batches have windows of this length; only the speed depends on it.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, embedding_dim)
            Encoded steps, before pooling, with the layer normalisation and the dropout of the loss.
        """
        hidden = self.encoder.run_blocks(hidden, observed, recurring)
        if self.layer_norm != "embedding":  # with "none", `norm` is the identity
            hidden = self.encoder.norm(hidden)
        if self._drops:
            generator = self.generator(hidden.device) if generator is None else generator
            of = None if part is None else ((part[0], *hidden.shape[1:]), part[1])
            hidden = dropout(hidden, self.representation_dropout, generator, of)
        return hidden
