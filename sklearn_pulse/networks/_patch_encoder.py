"""Encoder of PatchTST: a transformer over the patches of each channel."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from ._aligned import AlignedLinear
from ._base import Encoder
from ._patches import attendable, patch_steps, sinusoidal_positions, standardize, stride_steps
from ._time import observed_or_all, pool_steps
from ._transformer import Drop, PreNormBlock


class PatchEncoder(Encoder):
    """Encoder of each channel by a transformer over its patches, shared by all channels (PatchTST).

    A window is standardised by channel and cut into patches; if they do not fill the window, its
    first steps are left out. A linear map makes a token of each patch, fixed positions are added,
    and a learnt token (CLS) is put first.

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    n_timesteps : int
        Steps of the windows.
    channel_dim : int, default=64
        Width of the tokens and hence of each channel's embedding; a multiple of `n_heads`.
    hidden_dim : int, default=512
        Width of the feed-forward layers.
    depth : int, default=3
        Number of transformer blocks.
    n_heads : int, default=4
        Attention heads of each block.
    patch_length : int or float, default=12
        Steps of a patch (int), or its fraction of the window (float).
    patch_stride : int or float, default=0.5
        Distance between the starts of two patches in steps (int), or as a fraction of the patch
        (float).
    activation : {"gelu", "relu"}, default="gelu"
        Activation of the feed-forward layers.
    pooling : {"cls", "mean", "max"}, default="cls"
        Embedding of a channel: the CLS token, or the mean or maximum of the other tokens.

    Examples
    --------
    >>> import torch
    >>> encoder = PatchEncoder(n_channels=6, n_timesteps=128)
    >>> encoder(torch.zeros(2, 128, 6)).shape
    torch.Size([2, 384])
    >>> encoder.n_patches
    20
    """

    positions: Tensor

    def __init__(
        self,
        n_channels: int,
        n_timesteps: int,
        channel_dim: int = 64,
        hidden_dim: int = 512,
        depth: int = 3,
        n_heads: int = 4,
        patch_length: int | float = 12,
        patch_stride: int | float = 0.5,
        activation: Literal["gelu", "relu"] = "gelu",
        pooling: Literal["cls", "mean", "max"] = "cls",
    ) -> None:
        super().__init__()
        self.n_channels, self.embedding_dim = n_channels, n_channels * channel_dim
        self.pooling = pooling
        self.patch_length = patch_steps(patch_length, n_timesteps)
        self.patch_stride = stride_steps(patch_stride, self.patch_length)
        self.n_patches = (n_timesteps - self.patch_length) // self.patch_stride + 1
        n_used = self.patch_length + self.patch_stride * (self.n_patches - 1)
        self.steps_read = slice(n_timesteps - n_used, n_timesteps)
        # Memory of the tokens in units of the window's; batches for inference are smaller by it.
        self.tokens_per_step = max(1, math.ceil(n_channels * self.n_patches / n_timesteps))
        self.embed = AlignedLinear(self.patch_length, channel_dim)
        self.cls_token = nn.Parameter(torch.zeros(channel_dim))
        # The table follows from the sizes, so checkpoints leave it out.
        table = sinusoidal_positions(self.n_patches + 1, channel_dim)
        self.register_buffer("positions", table, persistent=False)
        self.blocks = nn.ModuleList(
            PreNormBlock(channel_dim, n_heads, hidden_dim, activation) for _ in range(depth)
        )

    def cut(self, x: Tensor) -> Tensor:
        """Cut windows into patches.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows.

        Returns
        -------
        Tensor of shape (batch, n_channels, n_patches, patch_length)
            Patches, as a view; they end with the window.
        """
        x = x[:, self.steps_read]
        return x.unfold(1, self.patch_length, self.patch_stride).transpose(1, 2)

    def encode_patches(
        self,
        patches: Tensor,
        visible: Tensor | None = None,
        drop: Drop | None = None,
        needed: Tensor | None = None,
    ) -> Tensor:
        """Encode the patches of each channel.

        Parameters
        ----------
        patches : Tensor of shape (batch, n_channels, n_patches, patch_length)
            Standardised patches.
        visible : Tensor of bool, of shape (batch, n_patches), or None, default=None
            Patches that have an observed step; None means all. The attention and, in training, the
            normalisation leave the others out.
        drop : callable or None, default=None
            Dropout of the embedded patches and of each block's branches; None drops nothing.
        needed : Tensor of int, of shape (batch, n_channels, n_needed), or None, default=None
            Patches whose tokens are returned, without the CLS token; None means all, with it.

        Returns
        -------
        Tensor of shape (batch, n_channels, n_patches + 1, channel_dim)
            Encoded tokens; the CLS token is the first. With `needed`, the third axis is `n_needed`.
        """
        batch, n_channels = patches.shape[:2]
        # (batch * n_channels, n_patches, channel_dim)
        tokens = self.embed(patches.flatten(0, 1)) + self.positions[1:]
        if drop is not None:
            tokens = drop(tokens)
        cls = (self.cls_token + self.positions[0]).expand(tokens.shape[0], 1, -1)
        tokens = torch.cat([cls, tokens], dim=1)
        if visible is not None:
            visible = torch.cat([torch.ones_like(visible[:, :1]), attendable(visible)], dim=1)
            visible = visible.repeat_interleave(n_channels, dim=0)
        tokens_needed = None if needed is None else needed.flatten(0, 1) + 1
        for i, block in enumerate(self.blocks, start=1):
            is_last = i == len(self.blocks)
            tokens = block(tokens, visible, drop, tokens_needed if is_last else None)
        return tokens.unflatten(0, (batch, n_channels))

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
        Tensor of shape (batch, n_channels * channel_dim)
            The embeddings of the channels, side by side.

        Raises
        ------
        ValueError
            If the windows have another number of channels.
        """
        if x.shape[-1] != self.n_channels:  # whose embeddings would have another width
            raise ValueError(
                f"the windows have {x.shape[-1]} channels on their last axis, and this encoder"
                f" reads {self.n_channels}: windows are of shape (batch, n_timesteps, n_channels)."
            )
        observed = observed_or_all(x, observed)
        visible = self.visible(observed)
        tokens = self.encode_patches(self.cut(standardize(x, observed)), visible)
        if self.pooling == "cls":
            return tokens[:, :, 0].flatten(1)
        # (batch, n_patches, n_channels * channel_dim)
        patches = tokens[:, :, 1:].transpose(1, 2).flatten(2)
        return pool_steps(patches, self.pooling, attendable(visible))

    def visible(self, observed: Tensor) -> Tensor:
        """Find the patches that have an observed step.

        Parameters
        ----------
        observed : Tensor of bool, of shape (batch, n_timesteps)
            Which steps were observed.

        Returns
        -------
        Tensor of bool, of shape (batch, n_patches)
            True for patches with at least one observed step.
        """
        return self.cut(observed.unsqueeze(-1)).squeeze(1).any(-1)
