"""The objectives of PULSE's oracles: reconstruct windows of pairs that share their system."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from ..functional import dropout
from ..sampling import aligned_steps, observed_span
from ._cross_reconstruction import CrossReconstruction, Reconstruction


class PairReconstruction(CrossReconstruction):
    """One pass over pairs of windows of one system; a subclass says what is read from which.

    There is no dropout before the decoder, and no sum of crops and full windows.

    Parameters
    ----------
    n_channels : int
        Channels that the networks read.
    sample_init : bool, default=True
        Whether a pass starts at a random step, as PULSE's crops do, or at the first.
    **params
        The other parameters of :class:`CrossReconstruction`.
    """

    def __init__(self, n_channels: int, *, sample_init: bool = True, **params: Any) -> None:
        super().__init__(n_channels, n_crops=1, dropout=0.0, **params)
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
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None
            None means that every step was observed.
        starts : Tensor of int, of shape (1, batch), or None
            Step at which each pass starts; None draws it, or takes the first.
        partner : Tensor of the shape of `x`, or None
            A window of the same system for each; None pairs every window with itself.
        partner_observed : Tensor of bool, of shape (batch, n_timesteps), or None
            Of the partners.

        Returns
        -------
        Tensor, scalar
            The mean squared error of the pass.
        """
        if x.shape[1] == 1:  # no step is left to predict
            return self.encode(x, observed).sum() * 0.0
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
        """DOC"""
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
        raise NotImplementedError(
            f"{type(self).__name__} must define _reconstruct_pairs: use PositivePairs or"
            " NegativePairs, or derive from one of them."
        )

    def _draw_start(self, x: Tensor, observed: Tensor | None) -> Tensor:
        if self.sample_init:
            return self._draw_starts(x, observed)
        return self._first_step(x, observed).unsqueeze(0)


class PositivePairs(PairReconstruction):
    """Reconstruct a window from the system estimate of another one of the same system.

    The estimate is read from the anchor; the time-varying part, the target and the initial state
    belong to the partner (paper, Eq. 2 and Section 4).

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    init_source : {"target", "anchor"}, default="target"
        Whose initial state the pass starts from: the partner's (paper) or the anchor's (published
        code), at the same step, or where that lies in the anchor's padding, at the step next to
        it.
    **params
        Those of :class:`PairReconstruction`.

    Examples
    --------
    >>> import torch
    >>> objective = PositivePairs(2, embedding_dim=16, encoder_hidden_dim=8, encoder_depth=3)
    >>> x, partner = torch.randn(2, 4, 32, 2)
    >>> objective(x=x, partner=partner).shape, objective.encode(x).shape
    (torch.Size([]), torch.Size([4, 16]))
    """

    def __init__(
        self, n_channels: int, *, init_source: Literal["target", "anchor"] = "target", **params: Any
    ) -> None:
        super().__init__(n_channels, **params)
        self.init_source = init_source

    def _reconstruct_pairs(
        self,
        x: Tensor,
        observed: Tensor | None,
        starts: Tensor | None,
        partner: Tensor,
        partner_observed: Tensor | None,
    ) -> Reconstruction:
        """Reconstruct the partners; the parameters are those of :meth:`forward`."""
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
    """Reconstruct both windows of a pair from both, with time steps masked.

    Each window has whole steps zeroed, independently of the other one, and the two are stacked on
    the channel axis: encoder, time-varying part and initial state all read this, and the unmasked
    stack is the target (paper, Section 4). Masking goes on in validation. A single window is
    embedded as a pair with itself, unmasked.

    A step counts as observed where it is in either window; where it is missing in one of them,
    that one is zero there, as if masked, and is not scored.

    Parameters
    ----------
    n_channels : int
        Channels of the windows; the networks read twice as many.
    mask_probability : float, default=0.25
        Probability that a time step is zeroed; the others grow by ``1 / (1 - p)``.
    **params
        Those of :class:`PairReconstruction`.

    Examples
    --------
    >>> import torch
    >>> objective = NegativePairs(2, embedding_dim=16, encoder_hidden_dim=8, encoder_depth=3)
    >>> x, partner = torch.randn(2, 4, 32, 2)
    >>> objective(x=x, partner=partner).shape, objective.encode(x).shape
    (torch.Size([]), torch.Size([4, 16]))
    """

    def __init__(self, n_channels: int, *, mask_probability: float = 0.25, **params: Any) -> None:
        super().__init__(2 * n_channels, **params)
        self.mask_probability = mask_probability

    def encode(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Embed windows, each as a pair with itself."""
        return self.encoder(torch.cat([x, x], dim=-1), observed)

    def _reconstruct_pairs(
        self,
        x: Tensor,
        observed: Tensor | None,
        starts: Tensor | None,
        partner: Tensor,
        partner_observed: Tensor | None,
    ) -> Reconstruction:
        """Reconstruct both windows; the parameters are those of :meth:`forward`.

        The result holds the two windows of a pair as two samples: first all anchors, then all
        partners.
        """
        pair = torch.stack([x, partner])
        seen = None
        if observed is not None or partner_observed is not None:
            seen = torch.stack([_or_all(observed, x), _or_all(partner_observed, partner)])
            pair = pair * seen.unsqueeze(-1)
        either = None if seen is None else seen.any(0)
        embedding, drive, init_input = self.encode_window(_stacked(self._mask(pair)), either)
        if starts is None:
            starts = self._draw_start(x, either)
        condition = self.initial_condition.at(starts, init_input, either)
        passes = self._run_passes(embedding, drive, condition, starts, _stacked(pair), either)
        return self._by_window(passes, seen)

    def _mask(self, pair: Tensor) -> Tensor:
        """Zero whole steps of every window, and rescale the others."""
        steps = torch.ones_like(pair[..., :1])
        return pair * dropout(steps, self.mask_probability, self.generator(pair.device))

    def _by_window(self, passes: Reconstruction, seen: Tensor | None) -> Reconstruction:
        """Make two samples of each pair; `seen` holds the observed steps of both."""
        scored = passes.scored.repeat(1, 1, 2)
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


def _or_all(observed: Tensor | None, x: Tensor) -> Tensor:
    return torch.ones_like(x[..., 0], dtype=torch.bool) if observed is None else observed


def _stacked(pair: Tensor) -> Tensor:
    """Stack the two windows of each pair, (2, batch, ...), on the channel axis."""
    return torch.cat([pair[0], pair[1]], dim=-1)
