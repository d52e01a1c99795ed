"""The encoder of PatchTST: a transformer over the patches of each channel."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ._base import Encoder
from ._patches import attendable, patch_steps, sinusoidal_positions, standardize, stride_steps
from ._time import pool_steps
from ._transformer import Drop, PreNormBlock


class PatchEncoder(Encoder):
    """Embed each channel by a transformer over its patches, the same for all channels.

    A window is standardised by channel and cut into patches; where they do not fill it, its first
    steps are left out. A linear map makes a token of each patch, fixed positions are added, and a
    learnt token (CLS) goes before them.

    Parameters
    ----------
    n_channels, n_timesteps : int
        Shape of the windows.
    channel_dim : int, default=64
        Width of the tokens, so of each channel's embedding; a multiple of `n_heads`.
    hidden_dim : int, default=512
        Width of the feed-forward layers.
    depth, n_heads : int, default=3 and 4
        Blocks, and heads of each.
    patch_length : int or float, default=12
        Steps of a patch, or its fraction of the window.
    patch_stride : int or float, default=0.5
        Steps between the starts of two patches, or a fraction of the patch.
    activation : {"gelu", "relu"}, default="gelu"
        Of the feed-forward layers.
    pooling : {"cls", "mean", "max"}, default="cls"
        What a channel's embedding is: the CLS token, or the mean or maximum of the other tokens.

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
        activation: str = "gelu",
        pooling: str = "cls",
    ) -> None:
        super().__init__()
        self.embedding_dim = n_channels * channel_dim
        self.pooling = pooling
        self.patch_length = patch_steps(patch_length, n_timesteps)
        self.patch_stride = stride_steps(patch_stride, self.patch_length)
        self.n_patches = (n_timesteps - self.patch_length) // self.patch_stride + 1
        # How much more there is to hold in memory than a value for each time step.
        self.tokens_per_step = max(1, math.ceil(n_channels * self.n_patches / n_timesteps))
        self.embed = nn.Linear(self.patch_length, channel_dim)
        self.cls_token = nn.Parameter(torch.zeros(channel_dim))
        # Follows from the sizes, so no checkpoint needs to hold it.
        table = sinusoidal_positions(self.n_patches + 1, channel_dim)
        self.register_buffer("positions", table, persistent=False)
        self.blocks = nn.ModuleList(
            PreNormBlock(channel_dim, n_heads, hidden_dim, activation) for _ in range(depth)
        )

    def cut(self, x: Tensor) -> Tensor:
        """Cut (batch, n_timesteps, n_channels) to (batch, n_channels, n_patches, patch_length)."""
        n_used = self.patch_length + self.patch_stride * (self.n_patches - 1)
        return x[:, -n_used:].unfold(1, self.patch_length, self.patch_stride).transpose(1, 2)

    def encode_patches(
        self, patches: Tensor, visible: Tensor | None = None, drop: Drop | None = None
    ) -> Tensor:
        """Encode the patches of each channel.

        Parameters
        ----------
        patches : Tensor of shape (batch, n_channels, n_patches, patch_length)
            Standardised.
        visible : Tensor of bool, of shape (batch, n_patches), or None
            Patches with an observed step; None means all. The others are no part of the attention
            nor, in training, of the normalisation.
        drop : callable, or None
            Dropout of the embedded patches and of each block's branches.

        Returns
        -------
        Tensor of shape (batch, n_channels, n_patches + 1, channel_dim)
            The CLS token first.
        """
        batch, n_channels = patches.shape[:2]
        tokens = self.embed(patches.flatten(0, 1)) + self.positions[1:]
        if drop is not None:
            tokens = drop(tokens)
        cls = (self.cls_token + self.positions[0]).expand(len(tokens), 1, -1)
        tokens = torch.cat([cls, tokens], dim=1)
        if visible is not None:
            visible = torch.cat([torch.ones_like(visible[:, :1]), attendable(visible)], dim=1)
            visible = visible.repeat_interleave(n_channels, dim=0)
        for block in self.blocks:
            tokens = block(tokens, visible, drop)
        return tokens.unflatten(0, (batch, n_channels))

    def forward(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Embed windows.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None
            None means all.

        Returns
        -------
        Tensor of shape (batch, n_channels * channel_dim)
            One channel after the other.
        """
        if observed is None:
            observed = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        visible = self.visible(observed)
        tokens = self.encode_patches(self.cut(standardize(x, observed)), visible)
        if self.pooling == "cls":
            return tokens[:, :, 0].flatten(1)
        patches = tokens[:, :, 1:].transpose(1, 2).flatten(2)  # channels side by side
        return pool_steps(patches, self.pooling, attendable(visible))

    def visible(self, observed: Tensor) -> Tensor:
        """Find the patches with an observed step: (batch, n_timesteps) to (batch, n_patches)."""
        return self.cut(observed.unsqueeze(-1)).squeeze(1).any(-1)
