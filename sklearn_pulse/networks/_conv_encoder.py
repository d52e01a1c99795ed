"""Convolutional encoder of SimMTM."""

from __future__ import annotations

from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from ._aligned import ProductConv1d
from ._base import Encoder
from ._exporting import is_exporting
from ._time import mask_steps, observed_or_all, pool_steps
from ._transformer import Drop, TokenBatchNorm


class ConvBlock(nn.Module):
    """Convolution, batch normalisation, ReLU, and maximum over pairs of neighbouring steps.

    The convolution has zero padding and no bias. The maximum pads one step at each end. The block
    shortens a window of `n` steps to ``n_steps(n)``.

    Parameters
    ----------
    in_channels : int
        Channels of the input.
    out_channels : int
        Channels of the output.
    kernel_size : int
        Number of taps. With an even number and a stride of 1, outputs lie between two steps.
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
        self.conv = ProductConv1d(
            in_channels, out_channels, kernel_size, stride, kernel_size // 2, bias=False
        )
        self.norm = TokenBatchNorm(out_channels)
        self.kernel_size = kernel_size
        self.stride = stride

    def n_outputs(self, n_timesteps: int) -> int:
        """Return the number of outputs of the convolution, before the maximum."""
        return (n_timesteps + 2 * (self.kernel_size // 2) - self.kernel_size) // self.stride + 1

    def n_steps(self, n_timesteps: int) -> int:
        """Return the number of steps that the block outputs, after the maximum."""
        return self.n_outputs(n_timesteps) // 2 + 1

    def n_taps_read(self, n_timesteps: int) -> int:
        """Return the number of taps, beside the central one, that read more than padding.

        They read a step of the window for at least one output.
        """
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
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.

        Returns
        -------
        steps : Tensor of shape (batch, n_steps(n_timesteps), out_channels)
            Outputs; an output is zero if all of its steps are unobserved.
        reached : Tensor of bool, of shape (batch, n_steps(n_timesteps)), or None
            Which outputs have an observed step; None if `observed` is None.
        """
        x = self.conv(mask_steps(x, observed).transpose(1, 2)).transpose(1, 2)
        if observed is not None:
            # An output belongs to the steps from its centre up to the centre of the next output.
            # With an even kernel it lies between two steps and belongs to both.
            width, left = (2, 1) if self.kernel_size % 2 == 0 else (self.stride, 0)
            observed = _any_of(observed, x.shape[1], width, self.stride, left)
        x = mask_steps(F.relu(self.norm(x, observed)), observed)
        # After the ReLU no value is below zero, so the zeros of unobserved steps never win.
        x = _maxima(x.transpose(1, 2), 2, stride=2, padding=1).transpose(1, 2)
        if observed is not None:
            observed = _any_of(observed, x.shape[1], 2, 2, 1)
        return x, observed


class ConvEncoder(Encoder):
    """Encoder of windows by strided convolutions with pooling between them (SimMTM).

    The first convolution has 25 taps and a stride of 3; the others have 8 taps and a stride of 1.
    Each is followed by batch normalisation, a ReLU and the maximum over pairs of neighbouring
    steps.

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    hidden_dim : int, default=32
        Width of the first block; the width doubles from block to block.
    embedding_dim : int, default=128
        Width of the last block and of the embedding.
    depth : int, default=3
        Number of blocks.
    pooling : {"max", "mean"}, default="max"
        How the embedding pools over time.

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
        pooling: Literal["max", "mean"] = "max",
    ) -> None:
        super().__init__()
        self.embedding_dim = embedding_dim
        self.pooling = pooling
        self.blocks = nn.ModuleList()
        before = n_channels
        for i in range(depth):  # widths block by block: those of a million blocks fill no memory
            after = hidden_dim * 2**i if i < depth - 1 else embedding_dim
            self.blocks.append(ConvBlock(before, after, 8 if i else 25, 1 if i else 3))
            before = after

    @property
    def _blocks(self) -> list[ConvBlock]:
        return [block for block in self.blocks if isinstance(block, ConvBlock)]

    def n_steps(self, n_timesteps: int) -> int:
        """Return the number of steps that the blocks leave of a window.

        Parameters
        ----------
        n_timesteps : int
            Steps of the window.

        Returns
        -------
        int
            Steps after the last block.
        """
        for block in self._blocks:
            n_timesteps = block.n_steps(n_timesteps)
        return n_timesteps

    @property
    def dilations(self) -> list[int]:
        """Window lengths, in steps, beyond which more taps of a convolution read the window."""
        n_taps = sum(block.kernel_size - 1 for block in self._blocks)
        lengths, n_timesteps = [], 1
        while self._n_taps_read(n_timesteps) < n_taps:
            if self._n_taps_read(n_timesteps) < self._n_taps_read(n_timesteps + 1):
                lengths.append(n_timesteps)
            n_timesteps += 1
        return lengths

    def _n_taps_read(self, n_timesteps: int) -> int:
        """Return the number of taps of all blocks that read more than padding."""
        total = 0
        for block in self._blocks:
            total += block.n_taps_read(n_timesteps)
            n_timesteps = block.n_steps(n_timesteps)
        return total

    def encode_steps(
        self, x: Tensor, observed: Tensor | None = None, drop: Drop | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Encode windows, before pooling over time.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.
        drop : callable or None, default=None
            Dropout after the first block, from a tensor to a tensor of the same shape; None drops
            nothing.

        Returns
        -------
        steps : Tensor of shape (batch, n_steps(n_timesteps), embedding_dim)
            Encoded steps; an encoded step is zero if no step of the signal behind it was observed.
        reached : Tensor of bool, of shape (batch, n_steps(n_timesteps)), or None
            Which encoded steps have an observed step; None if `observed` is None.
        """
        if is_exporting():
            # Torch takes an axis of one step for an axis that always has one. With unobserved steps
            # behind each window, no block leaves a single step.
            added = self._blocks[0].stride
            observed = F.pad(observed_or_all(x, observed), (0, added), value=False)
            x = F.pad(x, (0, 0, 0, added))
        for i, block in enumerate(self.blocks):
            x, observed = block(x, observed)
            if i == 0 and drop is not None:
                x = drop(x)
        return x, observed

    def pool(self, steps: Tensor, reached: Tensor | None = None) -> Tensor:
        """Pool encoded steps over time.

        Parameters
        ----------
        steps : Tensor of shape (batch, n_steps, embedding_dim)
            Encoded steps, the first result of `encode_steps`.
        reached : Tensor of bool, of shape (batch, n_steps), or None, default=None
            Which encoded steps count, the second result of `encode_steps`; None means all.

        Returns
        -------
        Tensor of shape (batch, embedding_dim)
            One embedding per window.
        """
        return pool_steps(steps, self.pooling, reached)

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
        return self.pool(*self.encode_steps(x, observed))


def _any_of(observed: Tensor, n_outputs: int, width: int, stride: int, left: int) -> Tensor:
    """Return whether any of the `width` steps of each output was observed.

    The steps of output i begin `left` steps before step ``stride * i``. The result has shape
    (batch, n_outputs).
    """
    right = (n_outputs - 1) * stride + width - left - observed.shape[1]
    if not is_exporting():
        return F.pad(observed, (left, right), value=False).unfold(1, width, stride).any(-1)
    padded = F.pad(observed.float(), (left, right))
    return _maxima(padded.unsqueeze(1), width, stride).squeeze(1) > 0


def _maxima(x: Tensor, width: int, stride: int, padding: int = 0) -> Tensor:
    """Return the maxima over `width` steps of windows (batch, n_channels, n_timesteps)."""
    if not is_exporting():
        return F.max_pool1d(x, width, stride=stride, padding=padding)
    # In one dimension torch takes the length of the example for the length of all windows.
    pooled = F.max_pool2d(x.unsqueeze(2), (1, width), stride=(1, stride), padding=(0, padding))
    return pooled.squeeze(2)
