"""Objectives of PULSE's oracles: reconstruction of pairs of windows that share their system."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from ..functional import dropout
from ..networks import mask_steps, observed_or_all
from ..sampling import aligned_steps, observed_span
from ._trajectory import Reconstruction, TrajectoryReconstruction


class PairReconstruction(TrajectoryReconstruction):
    """Base class of the losses that reconstruct pairs of windows of one system in one pass.

    A subclass defines which window the embedding, the drive and the initial condition are read
    from, and which window is the target. In contrast to :class:`CrossReconstruction`, there is no
    dropout before the decoder, and the loss has a single pass.

    Parameters
    ----------
    n_channels : int
        Channels that the networks read.
    sample_init : bool, default=True
        Whether a pass starts at a random step, as PULSE's crops do; False starts it at the first
        observed step.
    **params : dict
        Further parameters of :class:`TrajectoryReconstruction`, except `n_crops`, `crop`,
        `crop_length` and `dropout`.

    Examples
    --------
    >>> import torch
    >>> from sklearn_pulse.objectives import PositivePairs
    >>> objective = PositivePairs(2, sample_init=False, embedding_dim=16, encoder_depth=3)
    >>> isinstance(objective, PairReconstruction)
    True
    >>> x, partner = torch.randn(2, 4, 32, 2)
    >>> objective.reconstruct(x, partner=partner).starts
    tensor([[0, 0, 0, 0]])
    """

    replayed = "always"

    def __init__(self, n_channels: int, *, sample_init: bool = True, **params: Any) -> None:
        super().__init__(
            n_channels, n_crops=1, crop="suffix", crop_length=None, dropout=0.0, **params
        )
        self.sample_init = sample_init

    def forward(
        self,
        x: Tensor,
        observed: Tensor | None = None,
        starts: Tensor | None = None,
        partner: Tensor | None = None,
        partner_observed: Tensor | None = None,
    ) -> Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows, the anchors; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps of `x` were observed; None means all.
        starts : Tensor of int, of shape (1, batch), or None, default=None
            Start of each pass; None draws it, or takes the first observed step if `sample_init` is
            False.
        partner : Tensor of shape (batch, n_timesteps, n_channels), or None, default=None
            A window of the same system for each anchor; None pairs every window with itself.
        partner_observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps of `partner` were observed; None means all.

        Returns
        -------
        Tensor, scalar
            Mean squared error of the pass; zero for windows of one step.
        """
        if x.shape[1] == 1:  # no step is left to predict
            return self._zero(x, observed)
        passes = self.reconstruct(x, observed, starts, partner, partner_observed)
        return self.pass_losses(passes).squeeze(0)

    def reconstruct(
        self,
        x: Tensor,
        observed: Tensor | None = None,
        starts: Tensor | None = None,
        partner: Tensor | None = None,
        partner_observed: Tensor | None = None,
    ) -> Reconstruction:
        """Reconstruct the target windows of the pairs.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows of at least two steps, the anchors; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps of `x` were observed; None means all.
        starts : Tensor of int, of shape (1, batch), or None, default=None
            Start of each pass; None draws it, or takes the first observed step if `sample_init` is
            False.
        partner : Tensor of shape (batch, n_timesteps, n_channels), or None, default=None
            A window of the same system for each anchor; None pairs every window with itself.
        partner_observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps of `partner` were observed; None means all.

        Returns
        -------
        Reconstruction
            Predictions, targets and mask of the scored steps of one pass, time first.
        """
        if partner is None:
            partner, partner_observed = x, observed
        return self._reconstruct_pairs(x, observed, starts, partner, partner_observed)

    def _reconstruct_pairs(
        self,
        x: Tensor,
        observed: Tensor | None,
        starts: Tensor | None,
        partner: Tensor,
        partner_observed: Tensor | None,
    ) -> Reconstruction:
        """Reconstruct the target windows of the pairs; a subclass must override this."""
        # Reached only if a subclass forgets to override this.
        raise NotImplementedError(
            f"{type(self).__name__} must define _reconstruct_pairs: use PositivePairs or"
            " NegativePairs, or derive from one of them."
        )

    def _draw_start(self, x: Tensor, observed: Tensor | None) -> Tensor:
        """Return the start of each pass, (1, batch)."""
        if self.sample_init:
            return self._draw_starts(x, observed)
        return self._first_step(x, observed).unsqueeze(0)


class PositivePairs(PairReconstruction):
    """Loss of reconstructing a window from the embedding of another window of the same system.

    The embedding is read from the anchor. The time-varying drive, the target and the initial
    condition belong to the partner (paper, Eq. 2 and Section 4).

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    init_source : {"target", "anchor", "published"}, default="target"
        Window that the initial condition is read from: the partner ("target", paper) or the
        "anchor". "published" is what the published code does: the partner with `shared_encoder`,
        the anchor without. The anchor is read at the step at which the pass starts; if this step
        lies in the anchor's padding, at the nearest observed step.
    **params : dict
        Further parameters of :class:`PairReconstruction`, and those of
        :class:`TrajectoryReconstruction` that it takes.

    Examples
    --------
    >>> import torch
    >>> objective = PositivePairs(2, embedding_dim=16, encoder_hidden_dim=8, encoder_depth=3)
    >>> x, partner = torch.randn(2, 4, 32, 2)
    >>> objective(x=x, partner=partner).shape, objective.encode(x).shape
    (torch.Size([]), torch.Size([4, 16]))
    """

    def __init__(
        self,
        n_channels: int,
        *,
        init_source: Literal["target", "anchor", "published"] = "target",
        **params: Any,
    ) -> None:
        super().__init__(n_channels, **params)
        if init_source == "published":
            init_source = "target" if self.shared_encoder else "anchor"
        self.init_source = init_source

    def _reconstruct_pairs(
        self,
        x: Tensor,
        observed: Tensor | None,
        starts: Tensor | None,
        partner: Tensor,
        partner_observed: Tensor | None,
    ) -> Reconstruction:
        """Reconstruct the partners from the embeddings of the anchors."""
        anchor = self.encode_window(x, observed)
        target = self.encode_window(partner, partner_observed)
        if starts is None:
            starts = self._draw_start(partner, partner_observed)
        if self.init_source == "target":
            condition = self.initial_condition.at(starts, target.init_input, partner_observed)
        else:
            inside = _within(starts, observed)
            condition = self.initial_condition.at(inside, anchor.init_input, observed)
        return self._run_passes(
            anchor.embedding, target.time_varying, condition, starts, partner, partner_observed
        )


class NegativePairs(PairReconstruction):
    """Loss of reconstructing both windows of a pair from both, with time steps masked.

    Whole steps of each window are zeroed, independently in the two windows, and the windows are
    stacked on the channel axis. The encoder, the time-varying branch and the initial-condition
    encoder read the masked stack; the unmasked stack is the target (paper, Section 4). Validation
    masks steps too. A single window is embedded as an unmasked pair with itself.

    A step counts as observed if it is observed in at least one window. In a window where it is
    missing, the step is zero, as if masked, and is not scored.

    Parameters
    ----------
    n_channels : int
        Channels of the windows; the networks read twice as many.
    mask_probability : float, default=0.25
        Probability p that a time step is zeroed; the other steps are multiplied by ``1 / (1 - p)``.
    **params : dict
        Further parameters of :class:`PairReconstruction`, and those of
        :class:`TrajectoryReconstruction` that it takes.

    Examples
    --------
    >>> import torch
    >>> objective = NegativePairs(2, embedding_dim=16, encoder_hidden_dim=8, encoder_depth=3)
    >>> x, partner = torch.randn(2, 4, 32, 2)
    >>> objective(x=x, partner=partner).shape, objective.encode(x).shape
    (torch.Size([]), torch.Size([4, 16]))
    """

    replayed = "always"

    def __init__(self, n_channels: int, *, mask_probability: float = 0.25, **params: Any) -> None:
        super().__init__(2 * n_channels, **params)
        self.mask_probability = mask_probability

    def encode(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Embed windows, each as a pair with itself.

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
        return self.encoder(torch.cat([x, x], dim=-1), observed)

    def complete(
        self,
        x: Tensor,
        observed: Tensor | None = None,
        start: int = 0,
        embedding: Tensor | None = None,
    ) -> Tensor:
        """Reconstruct the rest of each window, as an unmasked pair with itself.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows of at least two steps; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.
        start : int, default=0
            Start t0 of the pass; in a window where it is unobserved, the next observed step.
        embedding : Tensor of shape (batch, embedding_dim), or None, default=None
            Embedding of each window by a fixed encoder, if it is known; None computes it.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, n_channels)
            Mean of the two predictions of a pair; NaN up to and including t0.
        """
        pair = torch.cat([x, x], dim=-1)
        first, second = super().complete(pair, observed, start, embedding).chunk(2, -1)
        return (first + second) / 2

    def _reconstruct_pairs(
        self,
        x: Tensor,
        observed: Tensor | None,
        starts: Tensor | None,
        partner: Tensor,
        partner_observed: Tensor | None,
    ) -> Reconstruction:
        """Reconstruct both windows of each pair.

        The result holds the two windows of a pair as two samples: first all anchors, then all
        partners.
        """
        pair = torch.stack([x, partner])  # (2, batch, n_timesteps, n_channels)
        seen = None
        if observed is not None or partner_observed is not None:
            masks = observed_or_all(x, observed), observed_or_all(partner, partner_observed)
            seen = torch.stack(masks)
            pair = mask_steps(pair, seen)
        either = None if seen is None else seen.any(0)  # (batch, n_timesteps)
        embedding, drive, init_input = self.encode_window(_stacked(self._mask(pair)), either)
        if starts is None:
            starts = self._draw_start(x, either)
        condition = self.initial_condition.at(starts, init_input, either)
        passes = self._run_passes(embedding, drive, condition, starts, _stacked(pair), either)
        return self._by_window(passes, seen)

    def _mask(self, pair: Tensor) -> Tensor:
        """Zero whole steps of each window of (2, batch, time, channels), and rescale the others."""
        steps = torch.ones_like(pair[..., :1])
        return pair * dropout(steps, self.mask_probability, self.generator(pair.device))

    def _by_window(self, passes: Reconstruction, seen: Tensor | None) -> Reconstruction:
        """Split each pair into two samples.

        `seen`, of shape (2, batch, n_timesteps), tells which steps of either window were observed.
        """
        scored = passes.scored.repeat(1, 1, 2)  # (n_timesteps - 1, 1, 2 * batch)
        if seen is not None:
            n_timesteps = seen.shape[-1]
            lengths = self._lengths(passes.starts, n_timesteps)
            index, inside = aligned_steps(passes.starts, n_timesteps, lengths)
            rows = torch.arange(seen.shape[1], device=seen.device)
            scored = torch.cat([inside & observed[rows, index] for observed in seen], dim=2)
        return Reconstruction(
            prediction=torch.cat(passes.prediction.chunk(2, dim=-1), dim=2),
            target=torch.cat(passes.target.chunk(2, dim=-1), dim=2),
            scored=scored,
            n_steps=passes.n_steps,
            starts=passes.starts.repeat(1, 2),
            condition=passes.condition.repeat(1, 2, 1),
        )


def _within(starts: Tensor, observed: Tensor | None) -> Tensor:
    """Move steps that lie in a window's padding to its first or last observed step."""
    if observed is None:
        return starts
    first, stop = observed_span(observed)
    return starts.clamp(first, stop - 1)


def _stacked(pair: Tensor) -> Tensor:
    """Stack the windows of each pair, (2, batch, time, channels), on the channel axis."""
    return torch.cat([pair[0], pair[1]], dim=-1)
