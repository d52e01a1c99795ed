"""Encoder of TimeMAE: a transformer over segments of all channels together."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from ._aligned import ProductConv1d
from ._base import Encoder
from ._patches import attendable, patch_steps
from ._time import mask_steps, observed_or_all, pool_steps
from ._transformer import Drop, ScaledPostNormBlock


class SegmentTransformer(nn.Module):
    """Stack of `ScaledPostNormBlock`.

    Parameters
    ----------
    dim : int
        Width of the tokens, a multiple of `n_heads`.
    n_heads : int
        Attention heads of each block.
    hidden_dim : int
        Width of the feed-forward layers.
    depth : int
        Number of blocks.

    Examples
    --------
    >>> import torch
    >>> SegmentTransformer(8, 2, 32, depth=2)(torch.zeros(1, 5, 8)).shape
    torch.Size([1, 5, 8])
    """

    def __init__(self, dim: int, n_heads: int, hidden_dim: int, depth: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            ScaledPostNormBlock(dim, n_heads, hidden_dim) for _ in range(depth)
        )

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        visible: Tensor | None = None,
        drop: Drop | None = None,
    ) -> Tensor:
        """Apply the blocks.

        Parameters
        ----------
        x : Tensor of shape (batch, n_queries, dim)
            Tokens to encode.
        memory : Tensor of shape (batch, n_tokens, dim), or None, default=None
            Tokens that every block attends to; None means the block's own input.
        visible : Tensor of bool, of shape (batch, n_tokens), or None, default=None
            Tokens that may be attended to, at least one per row; None means all.
        drop : callable or None, default=None
            Dropout of the attention weights and of each block's branches; None drops nothing.

        Returns
        -------
        Tensor of shape (batch, n_queries, dim)
            Encoded tokens.
        """
        for block in self.blocks:
            x = block(x, memory, visible, drop)
        return x


class SegmentEncoder(Encoder):
    """Encoder of windows by a transformer over segments that do not overlap (TimeMAE).

    One convolution makes a token of each segment, and learnt positions are added. If the segments
    do not fill the window, its last steps are left out.

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    n_timesteps : int
        Steps of the windows.
    embedding_dim : int, default=128
        Width of the tokens and of the embedding; a multiple of `n_heads`.
    hidden_dim : int, default=512
        Width of the feed-forward layers.
    depth : int, default=8
        Number of transformer blocks.
    n_heads : int, default=4
        Attention heads of each block.
    patch_length : int or float, default=8
        Steps of a segment (int), or its fraction of the window (float).
    pooling : {"mean", "max"}, default="mean"
        How the embedding pools over the tokens.

    Examples
    --------
    >>> import torch
    >>> encoder = SegmentEncoder(n_channels=6, n_timesteps=128)
    >>> encoder(torch.zeros(2, 128, 6)).shape
    torch.Size([2, 128])
    >>> encoder.n_patches
    16
    """

    def __init__(
        self,
        n_channels: int,
        n_timesteps: int,
        embedding_dim: int = 128,
        hidden_dim: int = 512,
        depth: int = 8,
        n_heads: int = 4,
        patch_length: int | float = 8,
        pooling: Literal["mean", "max"] = "mean",
    ) -> None:
        super().__init__()
        self.embedding_dim = embedding_dim
        self.pooling = pooling
        self.patch_length = patch_steps(patch_length, n_timesteps)
        self.n_patches = n_timesteps // self.patch_length
        self.steps_read = slice(self.n_patches * self.patch_length)
        self.projection = ProductConv1d(
            n_channels, embedding_dim, self.patch_length, stride=self.patch_length
        )
        self.positions = nn.Parameter(torch.randn(self.n_patches, embedding_dim))
        self.transformer = SegmentTransformer(embedding_dim, n_heads, hidden_dim, depth)

    def project(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Make a token of each segment, without its position.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.

        Returns
        -------
        Tensor of shape (batch, n_patches, embedding_dim)
            One token per segment.
        """
        return self.projection(mask_steps(x, observed).transpose(1, 2)).transpose(1, 2)

    def visible(self, observed: Tensor) -> Tensor:
        """Find the segments that have an observed step.

        Parameters
        ----------
        observed : Tensor of bool, of shape (batch, n_timesteps)
            Which steps were observed.

        Returns
        -------
        Tensor of bool, of shape (batch, n_patches)
            True for segments with at least one observed step.
        """
        return observed.unfold(1, self.patch_length, self.patch_length).any(-1)

    def forward(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Embed windows.

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
        observed = observed_or_all(x, observed)
        visible = attendable(self.visible(observed))
        tokens = self.transformer(self.project(x, observed) + self.positions, visible=visible)
        return pool_steps(tokens, self.pooling, visible)
