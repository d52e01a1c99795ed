"""REBAR's second objective: contrast, whose positives are chosen by errors of reconstruction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import repeat
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ..functional import info_nce
from ..networks import CrossAttention, observed_or_all
from ..sampling import random_integers
from ._contrastive import ContrastiveObjective
from ._loss_parts import sum_losses
from ._rebar_reconstruction import squared_errors

# A batch whose windows have more time steps is embedded part by part.
_MAX_JOINT_STEPS = {"cpu": 2**15, "cuda": 2**18, "mps": 2**16}
# Time steps of a part. On a GPU a part takes about 3 GB: smaller parts would launch more kernels.
_PART_STEPS = {"cpu": 2**13, "cuda": 2**18, "mps": 2**16}
# Most windows that all parts together embed, per distinct window, for parts to be worth it.
_MOST_TWICE = 1.1


def _distinct(numbers: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first place of each distinct number, and which distinct number each number is.

    :func:`torch.unique` does not return the first places.
    """
    order = numbers.argsort(stable=True)
    is_new = torch.ones_like(order, dtype=torch.bool)
    is_new[1:] = numbers[order].diff() != 0
    which = torch.empty_like(order)
    which[order] = is_new.cumsum(0) - 1
    return order[is_new], which


def _recomputed(compute: Callable[..., Tensor], *arguments: Any) -> Tensor:
    """Compute without storing activations; the gradient computes them again."""
    if not torch.is_grad_enabled():
        return compute(*arguments)
    # Nothing draws from torch's global generator.
    return checkpoint(compute, *arguments, use_reentrant=False, preserve_rng_state=False)


class _Anchors(NamedTuple):
    """Anchors with their candidates, as :meth:`REBARContrast.forward` takes them."""

    x: Tensor
    observed: Tensor | None
    candidates: Tensor
    candidates_observed: Tensor | None
    numbers: Tensor | None

    def with_one(self, chosen: Tensor) -> _Anchors:
        """Keep of each anchor's candidates the one at the place `chosen`."""
        rows = torch.arange(len(self.x), device=self.x.device)
        mask, numbers = self.candidates_observed, self.numbers
        if mask is not None:
            mask = mask[rows, chosen].unsqueeze(1)
        if numbers is not None:
            numbers = torch.stack([numbers[:, 0], numbers[rows, chosen + 1]], dim=1)
        candidates = self.candidates[rows, chosen].unsqueeze(1)
        return self._replace(candidates=candidates, candidates_observed=mask, numbers=numbers)

    def split(self, size: int) -> Iterator[_Anchors]:
        """Yield the anchors with their candidates, `size` anchors at a time."""
        parts = (repeat(None) if t is None else t.split(size) for t in self)
        return map(_Anchors._make, zip(*parts, strict=False))

    def windows(self) -> tuple[Tensor, Tensor | None]:
        """Return anchors and candidates, (batch, 1 + n_candidates, ...), and their mask."""
        windows = torch.cat([self.x.unsqueeze(1), self.candidates], dim=1)
        if self.observed is None and self.candidates_observed is None:
            return windows, None
        anchors = observed_or_all(self.x, self.observed)
        candidates = observed_or_all(self.candidates, self.candidates_observed)
        return windows, torch.cat([anchors.unsqueeze(1), candidates], dim=1)


class REBARContrast(ContrastiveObjective):
    """Loss of REBAR's second stage: contrast of an anchor's best candidate with the others.

    The positive of an anchor is the candidate from which the frozen cross-attention best
    reconstructs a random half of the anchor (paper, Appendix C). ``alpha`` is the weight of the
    contrast of the positive with the other anchors of the batch, ``1 - alpha`` that of the contrast
    with the other candidates.

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    attention : dict
        Sizes of the :class:`~sklearn_pulse.networks.CrossAttention`: its keyword arguments
        `hidden_dim`, `kernel_size`, `bottleneck_dim` and `depth`.
    n_candidates : int, default=10
        Number of candidates per anchor that are drawn from the batch if `forward` gets no
        candidates.
    alpha : float, default=0.0
        Weight of the contrast with the other anchors, in [0, 1].
    temperature : float, default=1.0
        Temperature of both contrasts.
    loss_reduction : {"mean", "published"}, default="mean"
        "published" divides the mean over the batch by the batch size once more.
    **representation : dict
        Further parameters of :class:`ContrastiveObjective`: those of the encoder, its normalisation
        and dropout, and the seed.

    Examples
    --------
    >>> import torch
    >>> sizes = {"hidden_dim": 8, "kernel_size": 3, "bottleneck_dim": 4, "depth": 1}
    >>> objective = REBARContrast(2, attention=sizes, encoder_depth=3)
    >>> x, candidates = torch.randn(4, 16, 2), torch.randn(4, 10, 16, 2)
    >>> objective(x=x, candidates=candidates).shape, objective.encode(x).shape
    (torch.Size([]), torch.Size([4, 320]))
    """

    def __init__(
        self,
        n_channels: int,
        *,
        attention: dict[str, int],
        n_candidates: int = 10,
        alpha: float = 0.0,
        temperature: float = 1.0,
        loss_reduction: Literal["mean", "published"] = "mean",
        **representation: Any,
    ) -> None:
        super().__init__(n_channels, **representation)
        self.n_candidates = n_candidates
        self.alpha = alpha
        self.temperature = temperature
        self.loss_reduction = loss_reduction
        self.cross_attention = CrossAttention(n_channels, **attention).requires_grad_(False)

    def forward(
        self,
        x: Tensor,
        observed: Tensor | None = None,
        candidates: Tensor | None = None,
        candidates_observed: Tensor | None = None,
        numbers: Tensor | None = None,
    ) -> Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Anchors; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps of the anchors were observed; None means all.
        candidates : Tensor of shape (batch, n_candidates, n_timesteps, n_channels), or None, \
                default=None
            Candidates of each anchor; None draws other windows of the batch.
        candidates_observed : Tensor of bool or None, default=None
            Which steps of the candidates were observed, of shape (batch, n_candidates,
            n_timesteps); None means all.
        numbers : Tensor of int, of shape (batch, 1 + n_candidates), or None, default=None
            Number of the window of each anchor and of its candidates. Windows of the same number
            are embedded once; None means that all windows differ.

        Returns
        -------
        Tensor, scalar
            Weighted sum of both contrasts.
        """
        if candidates is None:
            index = self._draw_candidates(x)
            numbers = torch.cat([torch.arange(len(x), device=x.device).unsqueeze(1), index], dim=1)
            candidates = x[index]
            candidates_observed = None if observed is None else observed[index]
        distances = self.distances(x, candidates, observed, candidates_observed)
        positive = distances.argmin(1)
        anchors = _Anchors(x, observed, candidates, candidates_observed, numbers)
        if self.alpha == 1.0:  # the loss reads no other candidates
            anchors, positive = anchors.with_one(positive), torch.zeros_like(positive)
        if self._drops:
            return self.contrast(*self._embed_with_dropout(anchors), positive)
        size = self._anchors_apart(anchors)
        if size < len(x):
            return self._contrast_apart(size, positive, anchors)
        return self.contrast(*self._embed_once(anchors), positive)

    def _anchors_apart(self, anchors: _Anchors) -> int:
        """Return the number of anchors whose loss and gradient are computed at a time.

        It is smaller than the batch if the loss compares no anchors, the batch is large, and few
        windows belong to several parts.
        """
        batch, n_candidates, n_timesteps = anchors.candidates.shape[:3]
        numbers = anchors.numbers
        steps = (1 + n_candidates) * n_timesteps  # of an anchor and its candidates
        size = max(1, _PART_STEPS[anchors.x.device.type] // steps)
        if self.alpha > 0.0 or size >= batch or not torch.is_grad_enabled():
            return batch
        if numbers is not None:
            n_embedded = sum(len(part.unique()) for part in numbers.split(size))
            if n_embedded > _MOST_TWICE * len(numbers.unique()):
                return batch
        return size

    def _contrast_apart(self, size: int, positive: Tensor, anchors: _Anchors) -> Tensor:
        """Contrast a few anchors with their candidates at a time."""

        def loss(part: _Anchors, chosen: Tensor) -> Tensor:
            share = len(chosen) / len(positive)
            if self.loss_reduction == "published":  # divides by the number of anchors again
                share *= share
            return share * self.contrast(*self._embed_once(part), chosen)

        parts = zip(anchors.split(size), positive.split(size), strict=True)
        losses = [partial(loss, *part) for part in parts]
        return sum_losses(losses, list(self.encoder.parameters()))

    def _embed_once(self, anchors: _Anchors) -> tuple[Tensor, Tensor]:
        """Embed anchors and candidates, each distinct window once.

        Storing the encoder's activations for ten times a batch would take gigabytes. If there are
        many windows, they are embedded part by part, and recomputed for the gradients.
        """
        windows, mask = anchors.windows()
        shape, windows = windows.shape[:2], windows.flatten(0, 1)
        mask = None if mask is None else mask.flatten(0, 1)
        which = None
        if anchors.numbers is not None:
            first, which = _distinct(anchors.numbers.flatten())
            windows, mask = windows[first], None if mask is None else mask[first]
        embedded = self._represent_parts(windows, mask)
        embedded = (embedded if which is None else embedded[which]).unflatten(0, shape)
        return embedded[:, 0], embedded[:, 1:]

    def _represent_parts(self, windows: Tensor, observed: Tensor | None) -> Tensor:
        """Embed windows; many windows part by part, whose activations are recomputed."""
        n_timesteps, kind = windows.shape[1], windows.device.type
        if len(windows) * n_timesteps <= _MAX_JOINT_STEPS[kind]:
            return self.represent(windows, observed)
        size = max(1, _PART_STEPS[kind] // n_timesteps)
        parts = windows.split(size)
        masks = [None] * len(parts) if observed is None else observed.split(size)
        return torch.cat(
            [_recomputed(self.represent, *part) for part in zip(parts, masks, strict=True)]
        )

    def _embed_with_dropout(self, anchors: _Anchors) -> tuple[Tensor, Tensor]:
        """Embed anchors and candidates, each with its own dropout; candidates one at a time."""
        candidates, candidates_observed = anchors.candidates, anchors.candidates_observed
        represent: Callable[..., Tensor] = self._represent_seeded
        if candidates.shape[:3].numel() > _MAX_JOINT_STEPS[candidates.device.type]:
            represent = partial(_recomputed, represent)
        columns = []  # n_candidates tensors of shape (batch, embedding_dim)
        for k in range(candidates.shape[1]):
            mask = None if candidates_observed is None else candidates_observed[:, k]
            columns.append(represent(candidates[:, k], mask, self._draw_seed(candidates.device)))
        return self.represent(anchors.x, anchors.observed), torch.stack(columns, dim=1)

    def _represent_seeded(self, x: Tensor, observed: Tensor | None, seed: int) -> Tensor:
        """Embed windows with dropout that is the same when it is recomputed."""
        return self.represent(x, observed, torch.Generator(x.device).manual_seed(seed))

    def _draw_seed(self, device: torch.device) -> int:
        """Draw the seed for a generator of dropout."""
        generator = self.generator(device)
        return int(torch.randint(2**31, (), generator=generator, device=device))

    @torch.no_grad()
    def distances(
        self,
        x: Tensor,
        candidates: Tensor,
        observed: Tensor | None = None,
        candidates_observed: Tensor | None = None,
    ) -> Tensor:
        """Compute the errors of reconstructing half of each anchor from each of its candidates.

        Half of the steps (``n_timesteps // 2``) are hidden, drawn anew for every candidate and
        shared by the anchors of the batch. An anchor may miss more of one half than of another, so
        the sum over the observed hidden steps is scaled up to all hidden steps.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Anchors; unobserved steps hold any finite value.
        candidates : Tensor of shape (batch, n_candidates, n_timesteps, n_channels)
            Candidates of each anchor; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps of the anchors were observed; None means all.
        candidates_observed : Tensor of bool or None, default=None
            Which steps of the candidates were observed, of shape (batch, n_candidates,
            n_timesteps); None means all.

        Returns
        -------
        Tensor of shape (batch, n_candidates)
            Sum of squared errors, without a gradient; infinite if all hidden steps are missing.
        """
        n_candidates = candidates.shape[1]
        halves = torch.stack([self._draw_half(x) for _ in range(n_candidates)])

        def per_pair(anchors: Tensor) -> Tensor:  # (batch * n_candidates, ...)
            return anchors.unsqueeze(1).expand(-1, n_candidates, *anchors.shape[1:]).flatten(0, 1)

        errors = squared_errors(
            self.cross_attention,
            per_pair(x),
            halves.repeat(len(x), 1),
            candidates.flatten(0, 1),
            None if observed is None else per_pair(observed),
            None if candidates_observed is None else candidates_observed.flatten(0, 1),
        )
        errors = errors.unflatten(0, (len(x), n_candidates))
        if observed is None:
            return errors
        n_scored = (observed.unsqueeze(1) & halves).sum(2)  # (batch, n_candidates)
        return (errors * (halves.sum(1) / n_scored)).masked_fill(n_scored == 0, torch.inf)

    def contrast(self, anchors: Tensor, candidates: Tensor, positive: Tensor) -> Tensor:
        """Contrast the embeddings of anchors and candidates.

        Parameters
        ----------
        anchors : Tensor of shape (batch, dim)
            Embedded anchors.
        candidates : Tensor of shape (batch, n_candidates, dim)
            Embedded candidates of each anchor.
        positive : Tensor of int, of shape (batch,)
            Index of the positive of each anchor among its candidates.

        Returns
        -------
        Tensor, scalar
            ``alpha`` times the contrast with the other anchors plus ``1 - alpha`` times the
            contrast with the other candidates.
        """
        rows = torch.arange(len(anchors), device=anchors.device)
        loss = torch.zeros((), device=anchors.device)
        if self.alpha > 0.0:
            # (batch, batch, dim): row i holds the anchors, with the positive of anchor i in place i
            own = torch.eye(len(anchors), dtype=torch.bool, device=anchors.device).unsqueeze(-1)
            others = torch.where(own, candidates[rows, positive].unsqueeze(1), anchors)
            loss = loss + self.alpha * info_nce(anchors, others, rows, self.temperature)
        if self.alpha < 1.0:
            within = info_nce(anchors, candidates, positive, self.temperature)
            loss = loss + (1.0 - self.alpha) * within
        return loss / len(anchors) if self.loss_reduction == "published" else loss

    def _draw_half(self, x: Tensor) -> Tensor:
        """Draw a random half of the steps: a mask of shape (n_timesteps,)."""
        n_timesteps = x.shape[1]
        order = torch.randperm(n_timesteps, generator=self.generator(x.device), device=x.device)
        return order < n_timesteps // 2

    def _draw_candidates(self, x: Tensor) -> Tensor:
        """Draw indices of other windows of the batch, (batch, n_candidates)."""
        rows = torch.arange(len(x), device=x.device).unsqueeze(1)
        low = torch.zeros(len(x), self.n_candidates, dtype=torch.int64, device=x.device)
        other = random_integers(low, low + max(len(x) - 2, 0), self.generator(x.device))
        return other + (other >= rows) if len(x) > 1 else other
