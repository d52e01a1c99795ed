"""What methods that contrast the system encoder's output have in common."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from .._parameters import check_option, check_real
from ..functional import dropout
from ..networks import SystemEncoder
from ._base import Objective


class ContrastiveObjective(Objective):
    """A loss on what the system encoder makes of windows, with or without layer normalisation.

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    embedding_dim, encoder_hidden_dim, encoder_depth, pooling
        The encoder.
    layer_norm : {"everywhere", "embedding", "none"}, default="everywhere"
        Where its layer normalisation acts: in loss and embedding, in the embedding alone (where
        it is never trained), or nowhere.
    representation_dropout : float, default=0.0
        On the encoder's output, before pooling, in training.
    seed : int, default=0
        Of the objective's generator.

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
        self, x: Tensor, observed: Tensor | None = None, generator: torch.Generator | None = None
    ) -> Tensor:
        """Embed windows for the loss.

        Parameters
        ----------
        x, observed
            As in :meth:`encode`.
        generator : torch.Generator or None
            Of the dropout; None takes the objective's own.

        Returns
        -------
        Tensor of shape (batch, embedding_dim)
            `encode`, but for the layer normalisation and the dropout of the loss.
        """
        if self.layer_norm != "embedding" and not self._drops:
            return self.encoder(x, observed)
        steps = self.represent_steps(self.encoder.input(x), observed, generator)
        return self.encoder.pool(steps, observed)

    def represent_steps(
        self, hidden: Tensor, observed: Tensor | None, generator: torch.Generator | None = None
    ) -> Tensor:
        """Go on from the input layer's output to what the loss reads of each step.

        Parameters
        ----------
        hidden : Tensor of shape (batch, n_timesteps, encoder_hidden_dim)
            Output of the input layer.
        observed, generator
            As in :meth:`represent`.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, embedding_dim)
            Before pooling.
        """
        hidden = self.encoder.run_blocks(hidden, observed)
        if self.layer_norm != "embedding":  # "none" has put the identity in its place
            hidden = self.encoder.norm(hidden)
        if self._drops:
            generator = self.generator(hidden.device) if generator is None else generator
            hidden = dropout(hidden, self.representation_dropout, generator)
        return hidden


def check_contrastive(estimator: Any) -> None:
    """Raise unless `layer_norm` and `representation_dropout` are within their range."""
    check_option("layer_norm", estimator.layer_norm, ("embedding", "everywhere", "none"))
    check_real("representation_dropout", estimator.representation_dropout, 0.0, 1.0)


__all__ = ["ContrastiveObjective", "check_contrastive"]
