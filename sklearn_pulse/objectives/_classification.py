"""The supervised objective: the cross-entropy of a head on an encoder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..networks import ClassificationHead, SystemEncoder
from ..networks._time import pool_steps
from ._base import Objective


class Source(NamedTuple):
    """Where a pretrained encoder comes from."""

    objective: Objective  # embeds by its `encode`; its own loss is never used
    n_channels: int  # that it takes
    embedding_dim: int  # that it returns
    min_batch_size: int  # in training


class Classification(Objective):
    """Weighted cross-entropy of a classification head on the embedding of a window or a bag.

    The encoder is that of another objective, whose `encode` runs behind a linear map of the
    channels where their number differs, or a new one.

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    n_classes : int
        Number of classes.
    source : Source or None, default=None
        The pretrained encoder, which is adopted, not copied; None makes a new
        :class:`~sklearn_pulse.networks.SystemEncoder`.
    embedding_dim, encoder_hidden_dim, encoder_depth, pooling
        The new encoder.
    head_hidden_dim : int or None, default=64
        Hidden layer of the head; None is one linear map.
    train_head : bool, default=True
        False leaves the head as it is initialised.
    freeze_epochs : int, default=0
        For so many epochs the encoder neither changes nor drops out; the rest trains.
    bag_pooling : {"mean", "max"}, default="mean"
        Over the windows of a bag.
    seed : int, default=0
        Of what the encoder draws in training.

    Examples
    --------
    >>> import torch
    >>> objective = Classification(3, n_classes=2, embedding_dim=8, encoder_depth=2)
    >>> x, y = torch.randn(5, 16, 3), torch.tensor([0, 1, 0, 1, 1])
    >>> objective(x, y, torch.ones(5)).shape
    torch.Size([])
    """

    def __init__(
        self,
        n_channels: int,
        *,
        n_classes: int,
        source: Source | None = None,
        embedding_dim: int = 320,
        encoder_hidden_dim: int = 64,
        encoder_depth: int = 10,
        pooling: Literal["max", "mean"] = "max",
        head_hidden_dim: int | None = 64,
        train_head: bool = True,
        freeze_epochs: int = 0,
        bag_pooling: Literal["mean", "max"] = "mean",
        seed: int = 0,
    ) -> None:
        super().__init__(seed)
        if source is None:
            # Built first, so that the same seed gives the weights of every other encoder.
            encoder = SystemEncoder(
                n_channels, encoder_hidden_dim, embedding_dim, encoder_depth, pooling
            )
            source = Source(_wrap_encoder(encoder), n_channels, embedding_dim, min_batch_size=1)
        self.source = source.objective
        self.source.seed = seed
        same = source.n_channels == n_channels
        self.in_head = nn.Identity() if same else nn.Linear(n_channels, source.n_channels)
        self.head = ClassificationHead(source.embedding_dim, n_classes, head_hidden_dim)
        self.head.requires_grad_(train_head)
        self.embedding_dim = source.embedding_dim
        self.freeze_epochs = freeze_epochs
        self.bag_pooling = bag_pooling
        self._trained = {name for name, p in self.source.named_parameters() if p.requires_grad}

    @property
    def encoder(self) -> nn.Module:  # type: ignore[override]  # read only: `source` owns it
        """Encoder of the source, which comes after the map of the channels."""
        return self.source.encoder

    def forward(
        self, x: Tensor, y: Tensor, weight: Tensor, observed: Tensor | None = None
    ) -> Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels) or \
                (batch, n_windows, n_timesteps, n_channels)
            Windows, or bags of windows.
        y : Tensor of int, of shape (batch,)
            Number of the class of each sample.
        weight : Tensor of shape (batch,)
            Weight of each sample, of mean one over the training part.
        observed : Tensor of bool, of the shape of `x` but its last axis, or None
            None means that every step was observed.

        Returns
        -------
        Tensor, scalar
            The mean over the batch of weight times cross-entropy.
        """
        logits = self.head(self.encode(x, observed))
        return (weight * F.cross_entropy(logits, y, reduction="none")).mean()

    def encode(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Embed windows, or bags of windows; `x` and `observed` are those of `forward`."""
        if x.ndim == 3:
            return self.source.encode(self.in_head(x), observed)
        usable = None
        if observed is not None:
            # A window without a step is embedded as zeros, for its shape, and then left out.
            usable = observed.any(2)
            observed = (observed | ~usable.unsqueeze(2)).flatten(0, 1)
        rows = self.source.encode(self.in_head(x.flatten(0, 1)), observed)
        return pool_steps(rows.unflatten(0, x.shape[:2]), self.bag_pooling, usable)

    def train(self, mode: bool = True) -> Classification:
        """Switch to training; within the first `freeze_epochs` the encoder stays as it is."""
        super().train(mode)
        frozen = self.epoch < self.freeze_epochs
        self.source.train(mode and not frozen)
        for name, parameter in self.source.named_parameters():
            if name in self._trained:
                parameter.requires_grad_(not frozen)
        return self

    # Nothing is drawn here but what the source draws, so its generator is the only one.

    def generator(self, device: torch.device) -> torch.Generator:
        """Return the generator of the source."""
        return self.source.generator(device)

    def generator_state(self) -> Tensor | None:
        """Return the state of the source's generator."""
        return self.source.generator_state()

    def set_generator_state(self, state: Tensor | None, device: torch.device) -> None:
        """Put the source's generator on `device` where `generator_state` was read."""
        self.source.set_generator_state(state, device)

    @contextmanager
    def seeded(self, seed: int) -> Iterator[None]:
        """Draw from a fresh generator for a while, and leave the source's own where it was."""
        with self.source.seeded(seed):
            yield


def _wrap_encoder(encoder: nn.Module) -> Objective:
    """Return an objective that has nothing but this encoder."""
    objective = Objective()
    objective.encoder = encoder
    return objective
