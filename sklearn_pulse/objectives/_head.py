"""Objectives with labels: a head on an encoder, new or pretrained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from ..networks import Head, SystemEncoder, mask_steps, pool_steps
from ..networks._aligned import AlignedLinear
from ._base import Objective


class Source(NamedTuple):
    """Pretrained objective whose encoder another estimator adopts, and its sizes.

    Parameters
    ----------
    objective : Objective
        Objective that embeds by its `encode`; its own loss is never computed.
    n_channels : int
        Channels of the windows that the objective embeds.
    embedding_dim : int
        Width of the embedding.
    min_batch_size : int
        Least number of windows in a training batch of the objective.

    Examples
    --------
    >>> from sklearn_pulse.objectives import CrossReconstruction
    >>> source = Source(CrossReconstruction(3), n_channels=3, embedding_dim=320, min_batch_size=1)
    >>> source.embedding_dim
    320
    """

    objective: Objective
    n_channels: int
    embedding_dim: int
    min_batch_size: int


class HeadOnEncoder(Objective):
    """Head on the embedding of a window or a bag; a subclass adds the loss.

    The encoder is new, or comes from a pretrained objective. If a pretrained encoder takes another
    number of channels, a linear map of the channels comes before it.

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    n_outputs : int
        Number of values that the head computes per window or bag.
    source : Source or None, default=None
        Pretrained objective; it is used itself, not copied. None makes a new
        :class:`~sklearn_pulse.networks.SystemEncoder`.
    embedding_dim : int, default=320
        Width of a new encoder's embedding.
    encoder_hidden_dim : int, default=64
        Width of a new encoder's blocks, except the last.
    encoder_depth : int, default=10
        Blocks of a new encoder before the last, widening block.
    pooling : {"max", "mean"}, default="max"
        How a new encoder pools over time.
    head_hidden_dim : int or None, default=64
        Width of the head's hidden layer; None makes the head one linear map.
    train_head : bool, default=True
        Whether the head is trained; False keeps its initial weights.
    freeze_epochs : int, default=0
        Number of first epochs in which the encoder keeps its weights and drops nothing out. The
        head and the map of the channels are trained from the first epoch.
    bag_pooling : {"mean", "max"}, default="mean"
        How the embeddings of a bag's windows are pooled.
    seed : int, default=0
        Seed of the encoder's random draws in training.

    Examples
    --------
    >>> import torch
    >>> objective = HeadOnEncoder(3, n_outputs=2, embedding_dim=8, encoder_depth=2)
    >>> objective.predict(torch.randn(5, 16, 3)).shape
    torch.Size([5, 2])
    """

    freeze_epochs: int

    def __init__(
        self,
        n_channels: int,
        *,
        n_outputs: int,
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
            # The encoder is built first: the same seed gives the same weights in all methods.
            encoder = SystemEncoder(
                n_channels, encoder_hidden_dim, embedding_dim, encoder_depth, pooling
            )
            source = Source(_wrap_encoder(encoder), n_channels, embedding_dim, min_batch_size=1)
        self.source = source.objective
        drawing = _innermost(self.source)
        drawing.seed, drawing._generator = seed, None  # whatever it has drawn before
        if isinstance(self.source, HeadOnEncoder):  # `freeze_epochs` concerned its own training
            self.source.freeze_epochs = 0
        same = source.n_channels == n_channels
        self.in_head = nn.Identity() if same else AlignedLinear(n_channels, source.n_channels)
        self.head = Head(source.embedding_dim, n_outputs, head_hidden_dim)
        self.head.requires_grad_(train_head)
        self.embedding_dim = source.embedding_dim
        self.freeze_epochs = freeze_epochs
        self.bag_pooling = bag_pooling
        if not _embeds_alike(self.source):
            self.replayed = "never"
        self._trained = {name for name, p in self.source.named_parameters() if p.requires_grad}

    @property
    def encoder(self) -> nn.Module:  # type: ignore[override]  # read only: `source` owns it
        """Encoder of the pretrained objective, behind the map of the channels."""
        return self.source.encoder

    def predict(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Compute the output of the head from the embedding.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels) or \
                (batch, n_windows, n_timesteps, n_channels)
            Windows, or bags of windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of the shape of `x` without its last axis, or None, default=None
            Which steps were observed; None means all.

        Returns
        -------
        Tensor of shape (batch, n_outputs)
            Output of the head.
        """
        return self.head(self.encode(x, observed))

    def encode(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Embed windows, or bags of windows.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels) or \
                (batch, n_windows, n_timesteps, n_channels)
            Windows, or bags of windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of the shape of `x` without its last axis, or None, default=None
            Which steps were observed; None means all.

        Returns
        -------
        Tensor of shape (batch, embedding_dim)
            One embedding per window or bag.
        """
        x = mask_steps(x, observed)  # the gradient of `in_head` reads every step
        if x.ndim == 3:
            return self.source.encode(self.in_head(x), observed)
        windows = x.flatten(0, 1)
        if observed is None:
            rows, usable = self.source.encode(self.in_head(windows)), None
        else:
            # If no window of a bag is read, which `transform` refuses, all observed windows count.
            usable = observed[..., self.steps_read].any(2)  # (batch, n_windows)
            usable = usable | (observed.any(2) & ~usable.any(1, keepdim=True))
            rows = self._encode_usable(windows, observed.flatten(0, 1), usable.flatten())
        # rows: (batch * n_windows, embedding_dim)
        return pool_steps(rows.unflatten(0, x.shape[:2]), self.bag_pooling, usable)

    def _encode_usable(self, windows: Tensor, observed: Tensor, usable: Tensor) -> Tensor:
        """Embed windows, of which only the `usable` windows have an observed step that is read.

        The embeddings of the other windows are finite and mean nothing.
        """
        if not self.training:  # a fixed shape: all windows are embedded
            return self.source.encode(self.in_head(windows), observed | ~usable.unsqueeze(1))
        # In training, batch normalisation would count the other windows.
        rows = self.source.encode(self.in_head(windows[usable]), observed[usable])
        return rows.new_zeros(len(windows), rows.shape[1]).index_put((usable,), rows)

    def train(self, mode: bool = True) -> HeadOnEncoder:
        """Set the training mode; in the first `freeze_epochs` epochs the encoder does not train.

        Parameters
        ----------
        mode : bool, default=True
            True for training, False for evaluation.

        Returns
        -------
        HeadOnEncoder
            The objective itself.
        """
        super().train(mode)
        if mode and self.freeze_epochs:  # otherwise weights that a callback has frozen stay frozen
            frozen = self.epoch < self.freeze_epochs
            self.source.train(not frozen)
            for name, parameter in self.source.named_parameters():
                if name in self._trained:
                    parameter.requires_grad_(not frozen)
        return self

    # Only the pretrained objective draws random numbers, so its generator is used throughout.

    def generator(self, device: torch.device) -> torch.Generator:
        """Return the generator of the pretrained objective, the only one that is drawn from.

        Parameters
        ----------
        device : torch.device
            Device that the random numbers are drawn on.

        Returns
        -------
        torch.Generator
            The generator on `device`.
        """
        return self.source.generator(device)

    def generator_state(self) -> Tensor | None:
        """Return the state of the pretrained objective's generator.

        Returns
        -------
        Tensor of uint8, or None
            State of the generator; None before its first use.
        """
        return self.source.generator_state()

    def set_generator_state(self, state: Tensor | None, device: torch.device) -> None:
        """Set the state of the pretrained objective's generator.

        Parameters
        ----------
        state : Tensor of uint8, or None
            State that `generator_state` returned; None means that the generator is seeded at its
            next use.
        device : torch.device
            Device of the generator.
        """
        self.source.set_generator_state(state, device)

    @contextmanager
    def seeded(self, seed: int) -> Iterator[None]:
        """Draw from a newly seeded generator within a context, then restore the former one.

        Parameters
        ----------
        seed : int
            Seed of the generator within the context.

        Yields
        ------
        None
            The context has no value.
        """
        with self.source.seeded(seed):
            yield


def _innermost(objective: Objective) -> Objective:
    """Return the objective whose encoder and generator a head uses, or a head on a head."""
    while isinstance(objective, HeadOnEncoder):
        objective = objective.source
    return objective


def _embeds_alike(source: Objective) -> bool:
    """Whether a GPU may replay how a pretrained objective, which may be a user's own, embeds."""
    source = _innermost(source)
    by_encoder = type(source).encode is Objective.encode or source.replayed != "never"
    encodes = getattr(type(source.encoder), "forward", None)  # a subclass may override it
    return by_encoder and encodes is SystemEncoder.forward


def _wrap_encoder(encoder: nn.Module) -> Objective:
    """Return an objective that only embeds, by this encoder."""
    objective = Objective()
    objective.encoder = encoder
    return objective
