"""Time-varying branch: a slow, narrow drive beside the constant embedding."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..sampling import observed_span
from ._aligned import map_aligned
from ._time import mask_steps, reflect_edges


class TimeVaryingBranch(nn.Module):
    """Narrow latent that may change within a window (paper, Section 3.2).

    Two three-tap convolutions with reflect padding read the encoded steps. A maximum over each of
    ``n_timesteps // pool`` bins follows, and nearest-neighbour expansion back to every step. A
    window that misses its first or last steps is read as the window between them.

    Parameters
    ----------
    embedding_dim : int
        Width of the encoded steps.
    time_varying_dim : int, default=1
        Width of the latent.
    pool : int, default=1
        Number of steps that share one value; with 1 every step has its own.

    Examples
    --------
    >>> import torch
    >>> TimeVaryingBranch(320, pool=4)(torch.zeros(2, 128, 320)).shape
    torch.Size([2, 128, 1])
    """

    def __init__(self, embedding_dim: int, time_varying_dim: int = 1, pool: int = 1) -> None:
        super().__init__()
        self.n_pooled_steps = pool
        self.conv1 = nn.Conv1d(embedding_dim, time_varying_dim, 3)
        self.conv2 = nn.Conv1d(time_varying_dim, time_varying_dim, 3, groups=time_varying_dim)

    def forward(self, steps: Tensor, observed: Tensor | None = None) -> Tensor:
        """Compute the latent of every step.

        Parameters
        ----------
        steps : Tensor of shape (batch, n_timesteps, embedding_dim)
            Encoded steps; unobserved ones hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, time_varying_dim)
            Latent of each step.
        """
        hidden = self._narrow(mask_steps(steps, observed), observed).relu()
        latent = _same_length(self.conv2, mask_steps(hidden, observed), observed)
        return self._share(latent) if observed is None else self._share_observed(latent, observed)

    def _narrow(self, steps: Tensor, observed: Tensor | None) -> Tensor:
        """Apply the first convolution: project every step for each tap, then sum over the taps."""
        # (batch, n_timesteps, 3 * time_varying_dim)
        product = F.linear if torch.is_grad_enabled() else map_aligned
        read = product(steps, self.conv1.weight.permute(2, 0, 1).flatten(0, 1))
        past, centre, future = read.chunk(3, dim=-1)
        past, future = reflect_edges(past, observed)[:, :-2], reflect_edges(future, observed)[:, 2:]
        return past + centre + future + self.conv1.get_parameter("bias")

    def _share(self, latent: Tensor) -> Tensor:
        """Give the steps of each bin one value, their maximum."""
        n_timesteps = latent.shape[1]
        n_bins = max(1, n_timesteps // self.n_pooled_steps)
        if n_bins == n_timesteps:
            return latent
        bins = F.adaptive_max_pool1d(latent.transpose(1, 2), n_bins)  # (batch, dim, n_bins)
        return F.interpolate(bins, size=n_timesteps, mode="nearest").transpose(1, 2)

    def _share_observed(self, latent: Tensor, observed: Tensor) -> Tensor:
        """Do the same in each window from its first observed step to its last.

        The bins are those of PyTorch's pooling and interpolation, which take no mask.
        """
        if self.n_pooled_steps == 1:
            return mask_steps(latent, observed)
        batch, n_timesteps, dim = latent.shape
        rows = torch.arange(batch, device=latent.device).unsqueeze(1)
        first, stop = (step.unsqueeze(1) for step in observed_span(observed))
        length = stop - first  # (batch, 1)
        n_bins = (length // self.n_pooled_steps).clamp(min=1)
        step = torch.arange(n_timesteps, device=latent.device) - first  # (batch, n_timesteps)
        inside = (step >= 0) & (step < length)
        step = step.masked_fill(~inside, 0)
        seen = latent.masked_fill(~observed.unsqueeze(-1), -torch.inf)
        # Bin b pools the steps from floor(b * length / n_bins) on; where this is no whole number,
        # the bin before pools its first step too.
        bins = seen.new_full((batch, max(1, n_timesteps // self.n_pooled_steps), dim), -torch.inf)
        own = (step * n_bins // length).unsqueeze(-1).expand(-1, -1, dim)
        bins = bins.scatter_reduce(1, own, seen, "amax")
        begin = torch.arange(bins.shape[1], device=latent.device) * length // n_bins
        bins = torch.maximum(bins, seen[rows, torch.minimum(first + begin, stop - 1)])
        # A bin without an observed step has no maximum; like padding, it becomes zero.
        bins = bins.masked_fill(bins.isneginf(), 0.0)
        # The product is rounded as in PyTorch's interpolation.
        read = (step * (n_bins.float() / length.float())).long().minimum(n_bins - 1)
        return mask_steps(bins[rows, read], inside)


def _same_length(conv: nn.Conv1d, x: Tensor, observed: Tensor | None) -> Tensor:
    """Convolve (batch, n_timesteps, n_channels) with reflect padding, keeping the length."""
    return conv(reflect_edges(x, observed).transpose(1, 2)).transpose(1, 2)
