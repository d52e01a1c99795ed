"""REBAR's first objective: reconstruction of a hidden block of a window."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..functional import dropout
from ..networks import CrossAttention, mask_steps
from ..networks._time import take_rows
from ..sampling import lengths_in_steps, observed_span, random_integers
from ._base import Objective


class REBARReconstruction(Objective):
    """Loss of REBAR's first stage: reconstruction of a hidden block of a window from the window.

    The loss is the sum of the squared errors on the hidden block (paper, Appendix C).

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    attention : dict
        Sizes of the :class:`~sklearn_pulse.networks.CrossAttention`: its keyword arguments
        `hidden_dim`, `kernel_size`, `bottleneck_dim` and `depth`.
    mask_length : int or float, default=0.12
        Steps of the hidden block (int), or their fraction of the steps from the first observed one
        to the last (float). At least one of these steps stays.
    attention_dropout : float, default=0.1
        Probability of dropout of the attention weights, in training.
    seed : int, default=0
        Seed of the generator of blocks and dropout.

    Examples
    --------
    >>> import torch
    >>> sizes = {"hidden_dim": 8, "kernel_size": 3, "bottleneck_dim": 4, "depth": 1}
    >>> REBARReconstruction(2, attention=sizes)(x=torch.randn(4, 16, 2)).shape
    torch.Size([])
    """

    encoder: CrossAttention

    def __init__(
        self,
        n_channels: int,
        *,
        attention: dict[str, int],
        mask_length: int | float = 0.12,
        attention_dropout: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__(seed)
        self.mask_length = mask_length
        self.attention_dropout = attention_dropout
        self.encoder = CrossAttention(n_channels, **attention)

    def forward(
        self, x: Tensor, observed: Tensor | None = None, hidden: Tensor | None = None
    ) -> Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.
        hidden : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Steps to hide and reconstruct; None draws a block of each window.

        Returns
        -------
        Tensor, scalar
            Sum of the squared errors over the batch.
        """
        if hidden is None:
            hidden = self._draw_block(x, observed)
        drop = self._dropout if self.training and self.attention_dropout else None
        return squared_errors(self.encoder, x, hidden, x, observed, observed, drop).sum()

    def validation_loss(  # type: ignore[override]  # names the keys of its batch, as `forward` does
        self, x: Tensor, observed: Tensor | None = None
    ) -> Tensor:
        """Compute the mean squared error of a hidden entry, comparable across batch sizes.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.

        Returns
        -------
        Tensor, scalar
            Mean squared error over the hidden and observed entries.
        """
        hidden = self._draw_block(x, observed)
        scored = hidden if observed is None else hidden & observed
        return self(x, observed, hidden) / (scored.sum() * x.shape[2]).clamp(min=1)

    def _draw_block(self, x: Tensor, observed: Tensor | None) -> Tensor:
        """Draw a block of steps of each window between its first and last observed step."""
        first = torch.zeros(len(x), dtype=torch.int64, device=x.device)
        stop = torch.full_like(first, x.shape[1])
        if observed is not None:
            first, stop = observed_span(observed)
        length = lengths_in_steps(self.mask_length, stop - first)
        start = random_integers(first, stop - length, self.generator(x.device))
        steps = torch.arange(x.shape[1], device=x.device)
        return (steps >= start.unsqueeze(1)) & (steps < (start + length).unsqueeze(1))

    def _dropout(self, weights: Tensor) -> Tensor:
        """Drop attention weights out."""
        return dropout(weights, self.attention_dropout, self.generator(weights.device))


def squared_errors(
    attention: CrossAttention,
    x: Tensor,
    hidden: Tensor,
    other: Tensor,
    observed: Tensor | None,
    other_observed: Tensor | None,
    drop: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Compute the sum of squared errors on the hidden steps of each window.

    Parameters
    ----------
    attention : CrossAttention
        Network that reconstructs.
    x : Tensor of shape (batch, n_timesteps, n_channels)
        Windows to reconstruct; unobserved steps hold any finite value.
    hidden : Tensor of bool, of shape (batch, n_timesteps)
        Steps of `x` that are hidden from the network and scored.
    other : Tensor of shape (batch, n_steps, n_channels)
        Windows to reconstruct from; unobserved steps hold any finite value.
    observed : Tensor of bool, of shape (batch, n_timesteps), or None
        Which steps of `x` were observed; None means all.
    other_observed : Tensor of bool, of shape (batch, n_steps), or None
        Which steps of `other` were observed; None means all.
    drop : callable or None, default=None
        Dropout of the attention weights; None drops nothing.

    Returns
    -------
    Tensor of shape (batch,)
        Sum of squared errors of each window.

    Examples
    --------
    >>> import torch
    >>> net, x = CrossAttention(2, hidden_dim=8, kernel_size=3), torch.randn(4, 16, 2)
    >>> hidden = torch.arange(16).expand(4, -1) < 3
    >>> squared_errors(net, x, hidden, x.flip(0), None, None).shape
    torch.Size([4])
    """
    scored = hidden if observed is None else hidden & observed
    # Scored steps first: only these are reconstructed.
    n_most = max(1, int(scored.sum(1).max()))
    steps = scored.byte().sort(dim=1, descending=True, stable=True).indices[:, :n_most]
    rebuilt = attention(x, ~hidden, other, observed, other_observed, drop, steps)
    errors = (rebuilt - take_rows(x, steps)).float()
    return mask_steps(errors, scored.gather(1, steps)).square().sum((1, 2))
