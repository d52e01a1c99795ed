"""Cross-attention that reconstructs a window from another window (REBAR)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ._instance_norm import ReversibleNorm
from ._partial_conv import PartialConvNet, map_features
from ._tiled_conv import TiledConv
from ._time import take_rows

# Time steps of a part of a batch that passes through all layers before the next part does: few
# enough on a CPU to stay in the cache, and on a GPU to fit into its memory.
_PART_STEPS = {"cpu": 2**11, "cuda": 2**16}
_MAX_WEIGHTS = 2**22  # attention weights of a part above which they are never in memory at once


class CrossAttention(nn.Module):
    """Reconstruction of a partly hidden window from another window (paper, Appendix C).

    Queries come from the visible part of the window to reconstruct; keys and values come from the
    whole other window. Three convolutional nets compute them. One attention head without
    projections and a linear map to the channels follow. Both windows are normalised by the
    statistics of the window to reconstruct (its hidden steps included), and the same statistics
    restore the units of the reconstruction.

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    hidden_dim : int, default=256
        Width of queries, keys and values.
    kernel_size : int, default=15
        Number of taps of all convolutions, odd.
    bottleneck_dim : int, default=32
        Width that the dilated convolutions read.
    depth : int, default=1
        Number of bottleneck blocks of each net; the dilation doubles from block to block.

    References
    ----------
    Xu et al., "REBAR: retrieval-based reconstruction for time-series contrastive learning",
    ICLR 2024.

    Examples
    --------
    >>> import torch
    >>> net, x = CrossAttention(6), torch.randn(2, 128, 6)
    >>> visible = torch.rand(2, 128) < 0.5
    >>> net(x, visible, x.flip(0)).shape
    torch.Size([2, 128, 6])
    """

    def __init__(
        self,
        n_channels: int,
        hidden_dim: int = 256,
        kernel_size: int = 15,
        bottleneck_dim: int = 32,
        depth: int = 1,
    ) -> None:
        super().__init__()
        self.norm = ReversibleNorm(n_channels)
        sizes = n_channels, hidden_dim, kernel_size, bottleneck_dim, depth
        self.query = PartialConvNet(*sizes)
        self.key = PartialConvNet(*sizes)
        self.value = PartialConvNet(*sizes)
        self.output = nn.Linear(hidden_dim, n_channels)

    def forward(
        self,
        x: Tensor,
        visible: Tensor,
        other: Tensor,
        observed: Tensor | None = None,
        other_observed: Tensor | None = None,
        dropout: Callable[[Tensor], Tensor] | None = None,
        steps: Tensor | None = None,
    ) -> Tensor:
        """Reconstruct steps of `x`.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows to reconstruct; unobserved steps hold any finite value.
        visible : Tensor of bool, of shape (batch, n_timesteps)
            Steps of `x` that the queries read.
        other : Tensor of shape (batch, n_steps, n_channels)
            Windows to reconstruct from; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps of `x` were observed; None means all.
        other_observed : Tensor of bool, of shape (batch, n_steps), or None, default=None
            Which steps of `other` were observed; None means all.
        dropout : callable or None, default=None
            Dropout of the attention weights, of shape (batch, n_rebuilt, n_steps); None drops
            nothing.
        steps : Tensor of int, of shape (batch, n_rebuilt), or None, default=None
            Steps of `x` to reconstruct; None means all.

        Returns
        -------
        Tensor of shape (batch, n_rebuilt, n_channels)
            The reconstruction, in the units of `x`.
        """
        if observed is not None:
            visible = visible & observed
        convs = self.query.tiled(x), self.key.tiled(other), self.value.tiled(other)
        length = max(x.shape[1], other.shape[1])
        size = max(1, _PART_STEPS.get(x.device.type, len(x) * length) // length)
        tensors = x, visible, other, observed, other_observed, steps
        parts = ([None] * len(x) if part is None else part.split(size) for part in tensors)
        return torch.cat(
            [self._rebuild(convs, dropout, *part) for part in zip(*parts, strict=False)]
        )

    def _rebuild(
        self,
        convs: tuple[list[TiledConv | None], ...],
        dropout: Callable[[Tensor], Tensor] | None,
        x: Tensor,
        visible: Tensor,
        other: Tensor,
        observed: Tensor | None,
        other_observed: Tensor | None,
        steps: Tensor | None,
    ) -> Tensor:
        """Reconstruct steps of a part of the windows."""
        mean, std = self.norm.statistics(x, observed)
        affine = self.norm.weight, self.norm.bias
        other = (other - mean) / std
        queries = self.query((x - mean) / std, visible, observed, convs[0], affine)
        if steps is not None:
            queries = take_rows(queries, steps)
        keys = self.key(other, other_observed, other_observed, convs[1], affine)
        values = self.value(other, other_observed, other_observed, convs[2], affine)
        if dropout is None and len(x) * queries.shape[1] * keys.shape[1] > _MAX_WEIGHTS:
            mixed = self.output(_stream(queries, keys, values, other_observed))
        else:
            weights = _weights(queries, keys, other_observed)
            # The output layer is linear, so it may come before the mixture, which is then narrow.
            values = map_features(self.output.weight, None, values.permute(2, 0, 1))
            mixed = (weights if dropout is None else dropout(weights)) @ values.permute(1, 2, 0)
            mixed = mixed + self.output.bias
        return self.norm.restore(mixed, mean, std)


def _weights(queries: Tensor, keys: Tensor, allowed: Tensor | None) -> Tensor:
    """Return the softmax of the scaled dot products, (batch, n_queries, n_steps).

    `queries` has shape (batch, n_queries, dim), `keys` (batch, n_steps, dim), `allowed`
    (batch, n_steps).
    """
    scores = (queries / math.sqrt(queries.shape[-1])) @ keys.transpose(1, 2)
    if allowed is not None:
        scores = scores.masked_fill(~allowed.unsqueeze(1), -torch.inf)
    return scores.softmax(-1)


def _stream(queries: Tensor, keys: Tensor, values: Tensor, allowed: Tensor | None) -> Tensor:
    """Mix values by the same weights, of which only a few are in memory at a time."""
    # torch does so only if there is an axis for the head and the channels are contiguous:
    # (batch, 1, n_steps, dim).
    q, k, v = (part.unsqueeze(1).contiguous() for part in (queries, keys, values))
    mask = None if allowed is None else allowed[:, None, None]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).squeeze(1)
