"""Base class of the objectives: a loss, an embedding and a generator of random numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from .._share import Share
from ..functional import dropout
from ..networks import Encoder


class Objective(nn.Module):
    """Base class of the objectives that the training loop minimises.

    A subclass sets `encoder` and defines ``forward(**batch)``, which returns a finite scalar loss.
    It overrides `encode` if an embedding is more than the output of the encoder. It draws all
    random numbers from :meth:`generator`, never from torch's global generator, which threads share.

    Parameters
    ----------
    seed : int, default=0
        Seed of the objective's own generator.

    Attributes
    ----------
    encoder : torch.nn.Module
        Network that embeds, set by the subclass; its `embedding_dim` is the width of an embedding.
    epoch : int
        Number of the current epoch, set by the training loop.
    evaluates_in_validation : bool
        Whether validation always runs without dropout, even if its draws are random.
    computes_in_parts : bool
        Whether nearly all of a step runs in :func:`sklearn_pulse.networks.run_parts`. The rest of
        the step then has one thread.
    replayed : {"never", "whole", "always"}
        For which batches a GPU may replay the kernels of an earlier step: those without missing
        steps ("whole") or all ("always"). For these, `forward` must neither read values back from
        the device nor copy numbers to it, and its kernels must depend on shapes alone.
    reads_epoch : bool
        Whether `forward` reads `epoch`, in the current epoch.
    keeps : tuple of str
        Names of the attributes that `forward` sets to a tensor, such as a part of the loss.
    share : Share
        Rows of a batch that this process computes, set by the training loop while it computes a
        loss; all by default.
    indivisible : str or None
        Reason why several processes cannot divide a batch of this objective. None says that they
        can: `forward` then draws for the whole batch, computes the rows
        ``self.share.rows(len(x))``, and returns what they contribute to the loss of the whole batch
        (the sum over the shares is that loss).

    Notes
    -----
    A subclass that replaces a computation does not inherit the statements about it: with another
    `forward` or `encode`, `replayed` is "never", and with another `forward` or `validation_loss`, a
    batch is indivisible, unless the subclass says otherwise.

    Examples
    --------
    >>> import torch
    >>> from sklearn_pulse.networks import SystemEncoder
    >>> class Energy(Objective):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.encoder = SystemEncoder(1, hidden_dim=8, embedding_dim=8, depth=2)
    ...
    ...     def forward(self, x, observed=None):
    ...         return self.encode(x, observed).square().mean()
    >>> Energy()(x=torch.ones(2, 4, 1)).shape
    torch.Size([])
    """

    encoder: nn.Module
    epoch = 0
    evaluates_in_validation = False
    computes_in_parts = False
    replayed: Literal["never", "whole", "always"] = "never"
    keeps: tuple[str, ...] = ()
    share = Share()
    indivisible: str | None = "its loss of a batch is not written as a sum of parts"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)

        def depth(*names: str) -> int:
            """Return how far away the first class is that defines one of the names."""
            return next(i for i, base in enumerate(cls.__mro__) if vars(base).keys() & set(names))

        # What a class says of its own computation need not hold of a computation that replaces it,
        # which a class that is inherited beside it may define.
        if depth("forward", "validation_loss") < depth("indivisible"):
            cls.indivisible = Objective.indivisible
        if depth("forward", "encode") < depth("replayed"):
            cls.replayed = Objective.replayed

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.seed = seed
        self._generator: torch.Generator | None = None

    @property
    def reads_epoch(self) -> bool:
        """Whether `forward` reads `epoch`, in the current epoch."""
        return False

    @property
    def tokens_per_step(self) -> int:
        """Tokens that the encoder reads per time step; 1 for a plain module."""
        return self.encoder.tokens_per_step if isinstance(self.encoder, Encoder) else 1

    @property
    def steps_read(self) -> slice:
        """Time steps of a window that the encoder reads."""
        return self.encoder.steps_read if isinstance(self.encoder, Encoder) else slice(None)

    @property
    def dilations(self) -> Sequence[int]:
        """Distances in time steps over which the encoder's convolutions act."""
        return self.encoder.dilations if isinstance(self.encoder, Encoder) else ()

    def generator(self, device: torch.device) -> torch.Generator:
        """Return the objective's generator, which is seeded at its first use.

        Parameters
        ----------
        device : torch.device
            Device that the random numbers are drawn on.

        Returns
        -------
        torch.Generator
            The objective's generator on `device`.
        """
        if self._generator is None or self._generator.device.type != device.type:
            self._generator = torch.Generator(device).manual_seed(self.seed)
        return self._generator

    def generator_state(self) -> Tensor | None:
        """Return the state of the objective's generator.

        Returns
        -------
        Tensor of uint8, or None
            State of the generator; None before its first use.
        """
        return None if self._generator is None else self._generator.get_state()

    def set_generator_state(self, state: Tensor | None, device: torch.device) -> None:
        """Set the state of the objective's generator.

        Parameters
        ----------
        state : Tensor of uint8, or None
            State that `generator_state` returned; None means that the generator is seeded at its
            next use.
        device : torch.device
            Device of the generator.
        """
        self._generator = None
        if state is not None:
            self.generator(device).set_state(state.cpu())

    @contextmanager
    def seeded(self, seed: int) -> Iterator[None]:
        """Draw from a newly seeded generator within a context, then restore the objective's own.

        Parameters
        ----------
        seed : int
            Seed of the generator within the context.

        Yields
        ------
        None
            The context has no value.
        """
        kept = self.seed, self._generator
        self.seed, self._generator = seed, None
        try:
            yield
        finally:
            self.seed, self._generator = kept

    def _drop(self, p: float, device: torch.device) -> partial[Tensor] | None:
        """Return dropout with probability `p` in training; None in evaluation or if `p` is 0."""
        if not self.training or p == 0.0:
            return None
        return partial(dropout, p=p, generator=self.generator(device))

    def validation_loss(self, **batch: Tensor) -> Tensor:
        """Compute the loss that epochs are compared by; the training loss unless overridden.

        Parameters
        ----------
        **batch : Tensor
            Arguments of the training loss.

        Returns
        -------
        Tensor, scalar
            Validation loss; lower is better.
        """
        return self(**batch)

    def encode(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Embed windows.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows without NaN; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.

        Returns
        -------
        Tensor of shape (batch, embedding_dim)
            One embedding per window.
        """
        return self.encoder(x, observed)

    def __getstate__(self) -> dict[str, Any]:
        # A CUDA generator cannot be unpickled on a machine without CUDA. Inference draws nothing,
        # and an unpickled objective divides no batch with other processes.
        state = {**super().__getstate__(), "_generator": None}
        state.pop("share", None)
        return state
