"""Cross-attention that reconstructs a window from another window (REBAR)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._products import linear
from ._autocast import compute_dtype
from ._tiled_conv import TiledConv, saves_operations
from ._time import mask_steps, take_rows

_EPS = 1e-5  # added to the variance by both normalisations
_EPS_SCALE = 1e-10  # added to the learnt scale before dividing by it
# Time steps of a part of a batch that passes through all layers before the next part does: few
# enough on a CPU to stay in the cache, and on a GPU to fit into its memory.
_PART_STEPS = {"cpu": 2**11, "cuda": 2**16}
# Number of the block after which the dilation doubles no more. No window is as long as its
# dilation, and torch has no padding beyond 62 bits.
_LAST_DOUBLING = 30
_MAX_WEIGHTS = 2**22  # attention weights of a part above which they are never in memory at once


class ReversibleNorm(nn.Module):
    """Instance normalisation with a learnt affine map, and its inverse (RevIN).

    Parameters
    ----------
    n_channels : int
        Channels of the windows.

    References
    ----------
    Kim et al., "Reversible instance normalization for accurate time-series forecasting against
    distribution shift", ICLR 2022.

    Examples
    --------
    >>> import torch
    >>> norm, x = ReversibleNorm(2), torch.randn(3, 50, 2)
    >>> statistics = norm.statistics(x)
    >>> torch.allclose(norm.restore(norm(x, *statistics), *statistics), x, atol=1e-5)
    True
    """

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_channels))
        self.bias = nn.Parameter(torch.zeros(n_channels))

    @staticmethod
    def statistics(x: Tensor, observed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Compute the mean and standard deviation of each window and channel, without a gradient.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Steps that the statistics are taken over; None means all.

        Returns
        -------
        mean : Tensor of shape (batch, 1, n_channels)
            Mean over time.
        std : Tensor of shape (batch, 1, n_channels)
            Square root of the biased variance plus 1e-5.
        """
        mean, variance = _moments(x.detach(), observed)
        return mean, (variance + _EPS).sqrt()

    def forward(self, x: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        """Normalise windows by given statistics.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows.
        mean : Tensor of shape (batch, 1, n_channels)
            Mean to subtract; it may come from other windows.
        std : Tensor of shape (batch, 1, n_channels)
            Standard deviation to divide by; it may come from other windows.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, n_channels)
            Normalised windows, after the learnt affine map.
        """
        return (x - mean) / std * self.weight + self.bias

    def restore(self, x: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        """Map normalised windows back to the units of the signal.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Normalised windows.
        mean : Tensor of shape (batch, 1, n_channels)
            Mean that the windows were normalised by.
        std : Tensor of shape (batch, 1, n_channels)
            Standard deviation that the windows were normalised by.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, n_channels)
            Windows in the units of the signal.
        """
        return (x - self.bias) / (self.weight + _EPS_SCALE) * std + mean


class PartialConv(nn.Conv1d):
    """Convolution over the visible steps, rescaled by their number; channels last.

    ``y = conv(x * visible) * kernel_size / v + bias``, where v is the number of visible steps under
    the kernel; ``y = 0`` if v is 0. Padding counts as hidden.

    Parameters
    ----------
    in_channels : int
        Channels of the input.
    out_channels : int
        Channels of the output.
    kernel_size : int
        Number of taps, odd.

    References
    ----------
    Liu et al., "Image inpainting for irregular holes using partial convolutions", ECCV 2018.

    Examples
    --------
    >>> import torch
    >>> conv = PartialConv(1, 1, kernel_size=3)
    >>> _ = conv.weight.data.fill_(1.0), conv.bias.data.fill_(0.0)
    >>> visible = torch.tensor([[True, True, False, False, False]])
    >>> conv(torch.ones(1, 5, 1), visible).flatten()
    tensor([3., 3., 3., 0., 0.], grad_fn=<ViewBackward0>)
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int) -> None:
        super().__init__(in_channels, out_channels, kernel_size, padding=kernel_size // 2)

    def forward(
        self,
        x: Tensor,
        visible: Tensor | None = None,
        affine: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Convolve windows, keeping their length.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, in_channels)
            Windows; hidden steps hold any finite value.
        visible : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Steps that the convolution reads; None means all.
        affine : (Tensor, Tensor), each of shape (in_channels,), or None, default=None
            Scale and shift of the channels before the convolution; None means 1 and 0.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, out_channels)
            The rescaled convolution.
        """
        width, weight = self.kernel_size[0], self.weight
        if affine is not None:
            # In the weights, so that their gradient needs none of the windows.
            scaled, shifted = (weight * part.view(1, -1, 1) for part in affine)
            weight = torch.cat([scaled, shifted.sum(1, keepdim=True)], dim=1)
            x = F.pad(x, (0, 1), value=1.0)
        if visible is None:
            visible = torch.ones(1, x.shape[1], dtype=torch.bool, device=x.device)
        n_visible = _count_near(visible, width)
        scale = (width / n_visible.clamp(min=1)).to(x.dtype)
        near = _neighbours(mask_steps(x, visible).permute(2, 0, 1), width)
        y = _map_features(weight.flatten(1), None, near * scale)
        if self.bias is not None:
            y = y + self.bias.view(-1, 1, 1) * (n_visible > 0)
        return y.permute(1, 2, 0)


class BottleneckBlock(nn.Module):
    """Residual block ``norm(GELU(conv(narrow(x)) + x))``, normalised over the time of each window.

    Parameters
    ----------
    hidden_dim : int
        Width of the block's input and output.
    bottleneck_dim : int
        Width that the convolution reads.
    kernel_size : int
        Number of taps of the convolution, odd.
    dilation : int
        Steps between two taps.

    Examples
    --------
    >>> import torch
    >>> BottleneckBlock(16, 4, kernel_size=3, dilation=2)(torch.zeros(2, 10, 16)).shape
    torch.Size([2, 10, 16])
    """

    def __init__(
        self, hidden_dim: int, bottleneck_dim: int, kernel_size: int, dilation: int
    ) -> None:
        super().__init__()
        self.narrow = nn.Linear(hidden_dim, bottleneck_dim)
        reach = kernel_size // 2 * dilation
        self.conv = nn.Conv1d(
            bottleneck_dim, hidden_dim, kernel_size, dilation=dilation, padding=reach
        )

    def tiled(self, x: Tensor) -> TiledConv | None:
        """Return the tiled form of the convolution, for windows of one length.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_features)
            Windows of this length and of the data type of the products.

        Returns
        -------
        TiledConv or None
            None where the convolution is faster as it is.
        """
        n_timesteps = x.shape[1]
        if not saves_operations(self.conv, n_timesteps, compute_dtype(x)):
            return None
        return TiledConv.of(self.conv, n_timesteps)

    def forward(
        self, x: Tensor, observed: Tensor | None = None, tiled: TiledConv | None = None
    ) -> Tensor:
        """Apply the block.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, hidden_dim)
            Features; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.
        tiled : TiledConv or None, default=None
            Result of `tiled` for windows of this length; None convolves directly.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, hidden_dim)
            Features; the values at unobserved steps have no meaning.
        """
        seen = mask_steps(x, observed).permute(2, 0, 1)
        narrow = _map_features(self.narrow.weight, self.narrow.bias, seen)
        narrow = mask_steps(narrow.permute(1, 2, 0), observed).permute(2, 0, 1)
        if tiled is None:
            wide = self.conv(narrow.transpose(0, 1)).transpose(1, 2)
        else:
            wide = tiled(narrow).permute(1, 2, 0) + cast(Tensor, self.conv.bias)
        return _instance_norm(F.gelu(wide + x), observed)


class PartialConvNet(nn.Module):
    """Features of each step of a partly hidden window.

    A partial convolution is followed by `depth` bottleneck blocks with dilations 1, 2, 4, ...

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    hidden_dim : int, default=256
        Width of the features.
    kernel_size : int, default=15
        Number of taps of all convolutions, odd.
    bottleneck_dim : int, default=32
        Width that the dilated convolutions read.
    depth : int, default=1
        Number of bottleneck blocks; the dilation doubles from block to block.

    Examples
    --------
    >>> import torch
    >>> PartialConvNet(6)(torch.zeros(2, 128, 6)).shape
    torch.Size([2, 128, 256])
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
        self.conv = PartialConv(n_channels, hidden_dim, kernel_size)
        dilations = (2 ** min(i, _LAST_DOUBLING) for i in range(depth))
        self.blocks = nn.ModuleList(
            BottleneckBlock(hidden_dim, bottleneck_dim, kernel_size, dilation)
            for dilation in dilations
        )

    def tiled(self, x: Tensor) -> list[TiledConv | None]:
        """Return the tiled form of the convolution of each block, for windows of one length.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_features)
            Windows of this length and of the data type of the products.

        Returns
        -------
        list of TiledConv or None
            None where a convolution is faster as it is.
        """
        return [cast(BottleneckBlock, block).tiled(x) for block in self.blocks]

    def forward(
        self,
        x: Tensor,
        visible: Tensor | None = None,
        observed: Tensor | None = None,
        tiled: Sequence[TiledConv | None] | None = None,
        affine: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Compute the features of each step.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; hidden and unobserved steps hold any finite value.
        visible : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Steps that the first convolution reads; None means all.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Steps that have features: hidden steps do, missing steps do not. None means all.
        tiled : sequence of TiledConv or None, default=None
            Result of `tiled` for windows of this length; None computes it.
        affine : (Tensor, Tensor), each of shape (n_channels,), or None, default=None
            Scale and shift of the channels of the windows; None means 1 and 0.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, hidden_dim)
            Features; the values at unobserved steps have no meaning.
        """
        x = _instance_norm(F.gelu(self.conv(x, visible, affine)), observed)
        for block, conv in zip(self.blocks, self.tiled(x) if tiled is None else tiled, strict=True):
            x = block(x, observed, conv)
        return x


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
            values = _map_features(self.output.weight, None, values.permute(2, 0, 1))
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


def _moments(x: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor]:
    """Compute mean and biased variance over the observed steps, of shape (batch, 1, n_features)."""
    if observed is None:
        mean = x.mean(1, keepdim=True)
        return mean, (x - mean).square().mean(1, keepdim=True)
    count = observed.sum(1).view(-1, 1, 1)
    mean = mask_steps(x, observed).sum(1, keepdim=True) / count
    return mean, mask_steps((x - mean).square(), observed).sum(1, keepdim=True) / count


def _instance_norm(x: Tensor, observed: Tensor | None) -> Tensor:
    """Normalise each window and feature over its observed steps."""
    if observed is None:
        normed = F.layer_norm(x.permute(2, 0, 1), (x.shape[1],), eps=_EPS)
        return normed.permute(1, 2, 0)
    mean, variance = _moments(x, observed)
    return (x - mean) * (variance + _EPS).rsqrt()


def _map_features(weight: Tensor, bias: Tensor | None, x: Tensor) -> Tensor:
    """Map the features of each step linearly, (n_features, batch, n_timesteps)."""
    y = linear(weight, x.reshape(weight.shape[1], -1).t())
    if bias is not None:
        y = y + bias.unsqueeze(1)
    return y.view(-1, *x.shape[-2:])


def _count_near(visible: Tensor, width: int) -> Tensor:
    """Count the visible steps among the `width` around each step, (batch, n_timesteps)."""
    counts = F.pad(visible.cumsum(1), (width // 2 + 1, 0))
    counts = torch.cat([counts, counts[:, -1:].expand(-1, width // 2)], dim=1)
    return counts[:, width:] - counts[:, :-width]


def _neighbours(x: Tensor, width: int) -> Tensor:
    """Return the `width` values around each step, (n_channels, width, batch, n_timesteps)."""
    padded = F.pad(x, (width // 2, width // 2))
    return padded.unfold(2, x.shape[2], 1).permute(0, 2, 1, 3)
