"""What every self-supervised method is to the training loop: a loss and an embedding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..functional import dropout
from ..networks import Encoder


class Objective(nn.Module):
    """A self-supervised objective.

    A subclass defines ``forward(**batch)``, which returns a finite scalar loss, and `encode`.
    Everything random in it is drawn from :meth:`generator`, never from torch's global one, which
    threads share.

    Parameters
    ----------
    seed : int, default=0
        Seed of the objective's own generator.

    Examples
    --------
    >>> import torch
    >>> class Energy(Objective):
    ...     def forward(self, x, observed=None):
    ...         return x.square().mean()
    ...
    ...     def encode(self, x, observed=None):
    ...         return x.mean(1)
    >>> Energy()(x=torch.ones(2, 4, 1))
    tensor(1.)
    """

    encoder: nn.Module
    epoch = 0  # the loop counts here, for losses that change in the course of a training
    evaluates_in_validation = False  # True drops nothing out there, even where draws are new

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.seed = seed
        self._generator: torch.Generator | None = None

    @property
    def tokens_per_step(self) -> int:
        """Tokens that the encoder reads per time step; 1 for an encoder that does not say."""
        return self.encoder.tokens_per_step if isinstance(self.encoder, Encoder) else 1

    @property
    def dilations(self) -> Sequence[int]:
        """Distances in time steps over which the encoder's convolutions act."""
        return self.encoder.dilations if isinstance(self.encoder, Encoder) else ()

    def generator(self, device: torch.device) -> torch.Generator:
        """Return the objective's generator on `device`, seeded at its first use."""
        if self._generator is None or self._generator.device.type != device.type:
            self._generator = torch.Generator(device).manual_seed(self.seed)
        return self._generator

    def generator_state(self) -> Tensor | None:
        """Return the state of the generator, None before its first use."""
        return None if self._generator is None else self._generator.get_state()

    def set_generator_state(self, state: Tensor | None, device: torch.device) -> None:
        """Put the generator on `device` where `generator_state` was read."""
        self._generator = None
        if state is not None:
            self.generator(device).set_state(state.cpu())

    @contextmanager
    def seeded(self, seed: int) -> Iterator[None]:
        """Draw from a fresh generator for a while, and leave the objective's own where it was."""
        kept = self.seed, self._generator
        self.seed, self._generator = seed, None
        try:
            yield
        finally:
            self.seed, self._generator = kept

    def _drop(self, p: float, device: torch.device) -> partial[Tensor] | None:
        """Return what drops elements out with probability `p` in training, None elsewhere."""
        if not self.training or p == 0.0:
            return None
        return partial(dropout, p=p, generator=self.generator(device))

    def validation_loss(self, **batch: Tensor) -> Tensor:
        """Compute what epochs are compared by: the loss, unless a method says otherwise.

        Parameters
        ----------
        **batch : Tensor
            As for the loss.

        Returns
        -------
        Tensor, scalar
            Lower is better.
        """
        return self(**batch)

    def encode(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Embed windows.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows without NaN: missing steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None
            The steps that were observed; None means all.

        Returns
        -------
        Tensor of shape (batch, embedding_dim)
            One embedding a window.
        """
        return self.encoder(x, observed)

    def __getstate__(self) -> dict[str, Any]:
        # A CUDA generator cannot be unpickled where there is no CUDA, and inference needs none.
        return {**super().__getstate__(), "_generator": None}
