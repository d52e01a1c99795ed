"""Features of each step of a partly hidden window: a partial convolution and bottleneck blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._products import linear
from ._autocast import compute_dtype
from ._instance_norm import instance_norm
from ._tiled_conv import TiledConv, saves_operations
from ._time import mask_steps

# Number of the block after which the dilation doubles no more. No window is as long as its
# dilation, and torch has no padding beyond 62 bits.
_LAST_DOUBLING = 30


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
        y = map_features(weight.flatten(1), None, near * scale)
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
        """Return the tiled form of the convolution, for windows of the length and data type of `x`.

        None stands for a convolution that is faster as it is.
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
        narrow = map_features(self.narrow.weight, self.narrow.bias, seen)
        narrow = mask_steps(narrow.permute(1, 2, 0), observed).permute(2, 0, 1)
        if tiled is None:
            wide = self.conv(narrow.transpose(0, 1)).transpose(1, 2)
        else:
            wide = tiled(narrow).permute(1, 2, 0) + cast(Tensor, self.conv.bias)
        return instance_norm(F.gelu(wide + x), observed)


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
        x = instance_norm(F.gelu(self.conv(x, visible, affine)), observed)
        for block, conv in zip(self.blocks, self.tiled(x) if tiled is None else tiled, strict=True):
            x = block(x, observed, conv)
        return x


def map_features(weight: Tensor, bias: Tensor | None, x: Tensor) -> Tensor:
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
