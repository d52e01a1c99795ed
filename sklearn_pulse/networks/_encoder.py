"""The system encoder: dilated convolutions that see a whole window."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from ._time import mask_steps, pool_steps


class DilatedConv(nn.Conv1d):
    """Three-tap convolution with zero padding, channels last.

    Each tap is one matrix product over the steps that it reaches. A tap whose dilation reaches
    past the window reads nothing but padding, so it is never multiplied; its weights still get a
    gradient, of zero, and so their weight decay.

    Parameters
    ----------
    in_channels, out_channels : int
        Widths.
    dilation : int
        Distance between taps, in steps.

    Examples
    --------
    >>> import torch
    >>> DilatedConv(2, 5, dilation=4)(torch.zeros(1, 10, 2)).shape
    torch.Size([1, 10, 5])
    """

    def __init__(self, in_channels: int, out_channels: int, dilation: int) -> None:
        super().__init__(in_channels, out_channels, 3, dilation=dilation, padding=dilation)

    def forward(self, x: Tensor) -> Tensor:
        """Convolve `x` of shape (batch, n_timesteps, in_channels), keeping its length."""
        (dilation,) = self.dilation
        reached = x.shape[1] - dilation
        past, centre, future = self.weight.unbind(2)
        y = F.linear(x, centre, self.bias)
        if reached <= 0:
            return y
        y = y + F.pad(F.linear(x[:, :reached], past), (0, 0, dilation, 0))
        return y + F.pad(F.linear(x[:, dilation:], future), (0, 0, 0, dilation))


class ResidualBlock(nn.Module):
    """``conv2(GELU(conv1(GELU(x)))) + skip(x)``, both convolutions with the same dilation.

    Parameters
    ----------
    in_channels, out_channels : int
        Widths.
    dilation : int
        Of both convolutions, in steps.
    project : bool, default=False
        Whether the skip connection is a learnt projection; it must be where the widths differ.

    Examples
    --------
    >>> import torch
    >>> ResidualBlock(4, 4, dilation=2)(torch.zeros(1, 10, 4)).shape
    torch.Size([1, 10, 4])
    """

    def __init__(
        self, in_channels: int, out_channels: int, dilation: int, project: bool = False
    ) -> None:
        super().__init__()
        self.conv1 = DilatedConv(in_channels, out_channels, dilation)
        self.conv2 = DilatedConv(out_channels, out_channels, dilation)
        self.skip = nn.Linear(in_channels, out_channels) if project else nn.Identity()

    def forward(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Apply the block to `x` of shape (batch, n_timesteps, in_channels)."""
        hidden = self.conv1(mask_steps(F.gelu(x), observed))
        return self.conv2(mask_steps(F.gelu(hidden), observed)) + self.skip(x)


class SystemEncoder(nn.Module):
    """Estimate of the dynamical system behind a window (paper, Section 3.2, f_sys).

    A linear map of each step, `depth` + 1 residual blocks with dilations 1, 2, 4, ...,
    layer normalisation of each step and pooling over time.

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    hidden_dim : int, default=64
        Width of all blocks but the last.
    embedding_dim : int, default=320
        Width of the last block and of the embedding.
    depth : int, default=10
        Number of blocks before the widening one; the published encoder has 10, so 11 in all.
    pooling : {"max", "mean"}, default="max"
        Over time.

    Examples
    --------
    >>> import torch
    >>> encoder = SystemEncoder(n_channels=6)
    >>> encoder(torch.zeros(2, 128, 6)).shape
    torch.Size([2, 320])
    >>> sum(p.numel() for p in encoder.parameters())
    638208
    """

    def __init__(
        self,
        n_channels: int,
        hidden_dim: int = 64,
        embedding_dim: int = 320,
        depth: int = 10,
        pooling: str = "max",
    ) -> None:
        super().__init__()
        self.embedding_dim = embedding_dim
        self.pooling = pooling
        self.input = nn.Linear(n_channels, hidden_dim)
        self.blocks = nn.ModuleList(
            ResidualBlock(hidden_dim, hidden_dim, dilation=2**i) for i in range(depth)
        )
        self.blocks.append(ResidualBlock(hidden_dim, embedding_dim, 2**depth, project=True))
        self.norm = nn.LayerNorm(embedding_dim)

    @property
    def dilations(self) -> list[int]:
        """Dilation of each block, in steps."""
        return [2**i for i in range(len(self.blocks))]

    def encode_steps(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Encode every step.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None
            None means all.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, embedding_dim)
            After layer normalisation, before pooling.
        """
        x = self.input(x)
        for block in self.blocks:
            x = block(x, observed)
        return self.norm(x)

    def pool(self, steps: Tensor, observed: Tensor | None = None) -> Tensor:
        """Pool the per-step encoding over the observed steps to (batch, embedding_dim)."""
        return pool_steps(steps, self.pooling, observed)

    def forward(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Embed windows: `encode_steps`, then `pool`."""
        return self.pool(self.encode_steps(x, observed), observed)
