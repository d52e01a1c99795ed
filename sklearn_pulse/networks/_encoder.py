"""System encoder: dilated convolutions whose reach covers a whole window."""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._products import uses_onednn
from .._threads import n_workers
from ._aligned import AlignedLinear
from ._autocast import compute_dtype
from ._base import Encoder
from ._dilated_conv import DilatedConv, activate
from ._exporting import is_exporting
from ._fused_conv import convolve, convolves
from ._parts import run_parts
from ._row_pieces import recurring_length
from ._time import in_memory_order, mask_steps, observed_or_all, pool_steps

# Largest number of time steps of a chunk of a batch; a longer window is a chunk of its own. On the
# CPU a thread takes a chunk through all blocks before it takes the next chunk, so that the output
# of a block is still in the cache when the next block reads it. Products of bfloat16 are fast on
# larger chunks only.
_CHUNK_STEPS, _CHUNK_STEPS_BFLOAT16 = 2**12, 2**14
_MIN_CHUNK_STEPS = 2**10  # fewer steps are computed faster than they reach another thread


class ResidualBlock(nn.Module):
    """Residual block ``conv2(GELU(conv1(GELU(x)))) + skip(x)``, time first.

    Parameters
    ----------
    in_channels : int
        Channels of the input.
    out_channels : int
        Channels of the output.
    dilation : int
        Steps between two taps of both convolutions.
    project : bool, default=False
        Whether the skip connection is a learnt projection; required if `in_channels` and
        `out_channels` differ.

    Examples
    --------
    >>> import torch
    >>> ResidualBlock(4, 4, dilation=2)(torch.zeros(10, 1, 4)).shape
    torch.Size([10, 1, 4])
    """

    def __init__(
        self, in_channels: int, out_channels: int, dilation: int, project: bool = False
    ) -> None:
        super().__init__()
        self.conv1 = DilatedConv(in_channels, out_channels, dilation)
        self.conv2 = DilatedConv(out_channels, out_channels, dilation)
        self.skip = AlignedLinear(in_channels, out_channels) if project else nn.Identity()

    def forward(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Apply the block.

        Parameters
        ----------
        x : Tensor of shape (n_timesteps, batch, in_channels)
            Features of each step.
        observed : Tensor of shape (n_timesteps, batch, 1), or None, default=None
            1 for observed steps, 0 for the others; None means that all were observed.

        Returns
        -------
        Tensor of shape (n_timesteps, batch, out_channels)
            Output of the block.
        """
        if convolves(x):
            return self._fused(x, observed)
        y = self.conv2(self.conv1(x, observed), observed)
        skip = in_memory_order(self.skip, x)
        return y + skip if torch.is_grad_enabled() else y.add_(skip)

    def _fused(self, x: Tensor, observed: Tensor | None) -> Tensor:
        """Apply the block by convolutions that activate, or add, in the pass that convolves."""
        active = activate(x.to(compute_dtype(x)), observed)
        first, second = self.conv1, self.conv2
        inner = convolve(active, first.weight, first.bias, first.dilation[0], activate=True)
        if observed is not None:
            inner = inner.mul_(observed)
        skip = in_memory_order(self.skip, x)
        return convolve(inner, second.weight, second.bias, second.dilation[0], add=skip)


class SystemEncoder(Encoder):
    """Estimator of the dynamical system behind a window (paper, Section 3.2, f_sys).

    A linear map of each step, `depth` + 1 residual blocks with dilations 1, 2, 4, ...,
    layer normalisation of each step and pooling over time.

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    hidden_dim : int, default=64
        Width of all blocks except the last.
    embedding_dim : int, default=320
        Width of the last block and of the embedding.
    depth : int, default=10
        Number of blocks before the last, widening block. The published encoder has 10, hence 11
        blocks in total.
    pooling : {"max", "mean"}, default="max"
        How the embedding pools over time.

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
        pooling: Literal["max", "mean"] = "max",
    ) -> None:
        super().__init__()
        self.embedding_dim = embedding_dim
        self.pooling = pooling
        self.input = AlignedLinear(n_channels, hidden_dim)
        self.blocks = nn.ModuleList(
            ResidualBlock(hidden_dim, hidden_dim, dilation=2**i) for i in range(depth)
        )
        self.blocks.append(ResidualBlock(hidden_dim, embedding_dim, 2**depth, project=True))
        self.norm: nn.Module = nn.LayerNorm(embedding_dim)

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
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, embedding_dim)
            Encoded steps, after layer normalisation and before pooling; where products convolve,
            as a view of a tensor with time first.
        """
        hidden = self.input(mask_steps(x, observed))  # a skip connection carries huge values on
        return in_memory_order(self.norm, self.run_blocks(hidden, observed))

    def run_blocks(self, hidden: Tensor, observed: Tensor | None, recurring: bool = True) -> Tensor:
        """Apply the residual blocks.

        Parameters
        ----------
        hidden : Tensor of shape (batch, n_timesteps, hidden_dim)
            Output of the input layer.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None
            Which steps were observed; None means all.
        recurring : bool, default=True
            Whether most batches have windows of this length. If not, and if kernels are compiled
            for a length, windows are filled up to one that recurs.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, embedding_dim)
            Features before layer normalisation; where products convolve, as a view of a tensor with
            time first.
        """
        n_timesteps = hidden.shape[1]
        if not recurring and uses_onednn(hidden):
            added = recurring_length(n_timesteps) - n_timesteps
            observed = F.pad(observed_or_all(hidden, observed), (0, added), value=False)
            hidden = F.pad(hidden, (0, 0, 0, added))
        seen = None
        if observed is not None:
            seen = observed.t().unsqueeze(-1).to(compute_dtype(hidden))  # (n_timesteps, batch, 1)
        hidden = hidden.transpose(0, 1)  # (n_timesteps, batch, hidden_dim)
        if not (convolves(hidden) or uses_onednn(hidden)):
            hidden = hidden.contiguous()
        for block in self.blocks:
            hidden = block(hidden, seen)
        return hidden[:n_timesteps].transpose(0, 1)

    def pool(self, steps: Tensor, observed: Tensor | None = None) -> Tensor:
        """Pool encoded steps over time.

        Parameters
        ----------
        steps : Tensor of shape (batch, n_timesteps, embedding_dim)
            Encoded steps, as `encode_steps` returns them.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Steps to pool over; None means all.

        Returns
        -------
        Tensor of shape (batch, embedding_dim)
            One embedding per window.
        """
        return pool_steps(steps, self.pooling, observed)

    def forward(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Embed windows: `encode_steps`, then `pool`.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.

        Returns
        -------
        Tensor of shape (batch, embedding_dim)
            One embedding per window.
        """
        parts = run_parts(self._embed, chunks(x, observed), self.parameters())
        return torch.cat([embedding for (embedding,) in parts])

    def _embed(self, x: Tensor, observed: Tensor | None) -> tuple[Tensor]:
        """Embed the windows of one part of the batch."""
        return (self.pool(self.encode_steps(x, observed), observed),)


def chunks(x: Tensor, observed: Tensor | None) -> list[tuple[Tensor, Tensor | None]]:
    """Split a batch into parts that fit into the CPU's caches; on other devices keep it whole.

    Parameters
    ----------
    x : Tensor of shape (batch, n_timesteps, n_channels)
        Windows.
    observed : Tensor of bool, of shape (batch, n_timesteps), or None
        Which steps were observed; None means all.

    Returns
    -------
    list of (x, observed)
        Views of the windows and of their masks, in the order of the batch.

    Examples
    --------
    >>> import torch
    >>> [len(part) for part, _ in chunks(torch.zeros(10, 1000, 2), None)]
    [4, 4, 2]
    """
    if x.device.type != "cpu" or is_exporting():
        return [(x, observed)]
    is_bfloat16 = compute_dtype(x) == torch.bfloat16
    size = max(1, (_CHUNK_STEPS_BFLOAT16 if is_bfloat16 else _CHUNK_STEPS) // x.shape[1])
    least = math.ceil(_MIN_CHUNK_STEPS / x.shape[1])
    size = min(size, max(least, math.ceil(len(x) / n_workers())))  # a part for each thread
    parts = x.split(size)
    if observed is None:
        return [(part, None) for part in parts]
    return list(zip(parts, observed.split(size), strict=True))
