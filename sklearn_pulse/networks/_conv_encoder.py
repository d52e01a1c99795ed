"""The encoder of SimMTM: three strided convolutions with pooling between them."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from ._time import mask_steps, pool_steps
from ._transformer import Drop, TokenBatchNorm


class ConvBlock(nn.Module):
    """Convolution, batch normalisation, ReLU, and the maximum of two neighbouring steps.

    The convolution has zero padding and no bias, the maximum a step of padding at either end: a
    window of `n` steps becomes one of ``n_steps(n)``.

    Parameters
    ----------
    in_channels, out_channels : int
        Widths.
    kernel_size : int
        Taps. With an even number of them, and a stride of 1, outputs lie between the steps.
    stride : int, default=1
        Steps between two outputs of the convolution.

    Examples
    --------
    >>> import torch
    >>> steps, reached = ConvBlock(3, 8, kernel_size=25, stride=3)(torch.zeros(2, 128, 3))
    >>> steps.shape, reached is None
    (torch.Size([2, 22, 8]), True)
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1
    ) -> None:
        super().__init__()
        self.conv = nn.Conv1d(
            in_channels, out_channels, kernel_size, stride, kernel_size // 2, bias=False
        )
        self.norm = TokenBatchNorm(out_channels)
        self.kernel_size = kernel_size
        self.stride = stride

    def n_outputs(self, n_timesteps: int) -> int:
        """Return how many outputs the convolution has."""
        return (n_timesteps + 2 * (self.kernel_size // 2) - self.kernel_size) // self.stride + 1

    def n_steps(self, n_timesteps: int) -> int:
        """Return how many steps the block makes of so many."""
        return self.n_outputs(n_timesteps) // 2 + 1

    def n_taps_read(self, n_timesteps: int) -> int:
        """Return how many taps, beside the central one, ever meet more than padding."""
        past = self.kernel_size // 2
        future = self.kernel_size - 1 - past
        return min(n_timesteps - 1, future) + min(
            self.stride * (self.n_outputs(n_timesteps) - 1), past
        )

    def forward(self, x: Tensor, observed: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Apply the block.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, in_channels)
            Unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None
            None means all.

        Returns
        -------
        steps : Tensor of shape (batch, n_steps(n_timesteps), out_channels)
            Zero where nothing was observed.
        reached : Tensor of bool, of shape (batch, n_steps(n_timesteps)), or None
            Where something was.
        """
        x = self.conv(mask_steps(x, observed).transpose(1, 2)).transpose(1, 2)
        if observed is not None:
            # An output belongs to the steps from its centre to that of the next output; one that
            # lies between two steps belongs to both.
            width, left = (2, 1) if self.kernel_size % 2 == 0 else (self.stride, 0)
            observed = _any_of(observed, x.shape[1], width, self.stride, left)
        x = mask_steps(F.relu(self.norm(x, observed)), observed)
        # Nothing is below zero after the ReLU, so what was not observed is never the maximum.
        x = F.max_pool1d(x.transpose(1, 2), 2, stride=2, padding=1).transpose(1, 2)
        if observed is not None:
            observed = _any_of(observed, x.shape[1], 2, 2, 1)
        return x, observed


class ConvEncoder(nn.Module):
    """Embed windows by a few convolutions that shorten them (SimMTM).

    The first convolution has 25 taps and a stride of 3, the others have 8 taps; each is followed
    by batch normalisation, a ReLU and the maximum of two neighbouring steps.

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    hidden_dim : int, default=32
        Width of the first block; each of the next has twice that of the one before.
    embedding_dim : int, default=128
        Width of the last block and of the embedding.
    depth : int, default=3
        Number of blocks.
    pooling : {"max", "mean"}, default="max"
        Over time.

    Examples
    --------
    >>> import torch
    >>> encoder = ConvEncoder(n_channels=6)
    >>> encoder(torch.zeros(2, 128, 6)).shape
    torch.Size([2, 128])
    >>> encoder.n_steps(128)
    7
    """

    def __init__(
        self,
        n_channels: int,
        hidden_dim: int = 32,
        embedding_dim: int = 128,
        depth: int = 3,
        pooling: str = "max",
    ) -> None:
        super().__init__()
        self.embedding_dim = embedding_dim
        self.pooling = pooling
        widths = [n_channels, *(hidden_dim * 2**i for i in range(depth - 1)), embedding_dim]
        self.blocks = nn.ModuleList(
            ConvBlock(before, after, 8 if i else 25, 1 if i else 3)
            for i, (before, after) in enumerate(zip(widths, widths[1:], strict=False))
        )

    @property
    def _blocks(self) -> list[ConvBlock]:
        return [block for block in self.blocks if isinstance(block, ConvBlock)]

    def n_steps(self, n_timesteps: int) -> int:
        """Return how many steps are left of so many."""
        for block in self._blocks:
            n_timesteps = block.n_steps(n_timesteps)
        return n_timesteps

    @property
    def dilations(self) -> list[int]:
        """Lengths of windows, in steps, beyond which more taps of a convolution are read."""
        n_taps = sum(block.kernel_size - 1 for block in self._blocks)
        lengths, n_timesteps = [], 1
        while self._n_taps_read(n_timesteps) < n_taps:
            if self._n_taps_read(n_timesteps) < self._n_taps_read(n_timesteps + 1):
                lengths.append(n_timesteps)
            n_timesteps += 1
        return lengths

    def _n_taps_read(self, n_timesteps: int) -> int:
        total = 0
        for block in self._blocks:
            total += block.n_taps_read(n_timesteps)
            n_timesteps = block.n_steps(n_timesteps)
        return total

    def encode_steps(
        self, x: Tensor, observed: Tensor | None = None, drop: Drop | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Encode windows, before pooling.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None
            None means all.
        drop : callable, or None
            Dropout after the first block.

        Returns
        -------
        steps : Tensor of shape (batch, n_steps(n_timesteps), embedding_dim)
            Zero where nothing was observed.
        reached : Tensor of bool, of shape (batch, n_steps(n_timesteps)), or None
            Where something was.
        """
        for i, block in enumerate(self.blocks):
            x, observed = block(x, observed)
            if i == 0 and drop is not None:
                x = drop(x)
        return x, observed

    def pool(self, steps: Tensor, reached: Tensor | None = None) -> Tensor:
        """Pool what `encode_steps` returns to (batch, embedding_dim)."""
        return pool_steps(steps, self.pooling, reached)

    def forward(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Embed windows: `encode_steps`, then `pool`."""
        return self.pool(*self.encode_steps(x, observed))


def _any_of(observed: Tensor, n_outputs: int, width: int, stride: int, left: int) -> Tensor:
    """Return whether any of `width` steps was observed, from `left` before ``stride * output``."""
    right = (n_outputs - 1) * stride + width - left - observed.shape[1]
    return F.pad(observed, (left, right), value=False).unfold(1, width, stride).any(-1)
