"""Transformer blocks on tensors of shape (batch, n_tokens, dim)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ._aligned import AlignedLinear
from ._autocast import compute_dtype
from ._rows import map_rows
from ._time import take_rows

Drop = Callable[[Tensor], Tensor]  # dropout with a generator of the caller

# Elements of a training batch (64 MiB of float32) above which only the input of each sub-layer is
# stored. The gradient then recomputes the inside: a third more work for half the memory.
_RECOMPUTED_SIZE = 2**24
# Tokens up to which training holds all attention weights, which is faster then.
_SHORT = 32
# Tokens from which on the feed-forward layers keep none of their hidden values.
_MIN_ROWS = 2**11

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": F.gelu, "relu": F.relu}


class MultiHeadAttention(nn.Module):
    """Multi-head attention in memory linear in the number of tokens.

    Parameters
    ----------
    dim : int
        Width of the tokens, a multiple of `n_heads`.
    n_heads : int
        Number of heads, each of width ``dim // n_heads``.

    Examples
    --------
    >>> import torch
    >>> attention = MultiHeadAttention(8, n_heads=2)
    >>> attention(torch.zeros(1, 5, 8)).shape
    torch.Size([1, 5, 8])
    >>> attention(torch.zeros(1, 3, 8), memory=torch.zeros(1, 5, 8)).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, dim: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.query = AlignedLinear(dim, dim)
        self.key = AlignedLinear(dim, dim)
        self.value = AlignedLinear(dim, dim)
        self.output = AlignedLinear(dim, dim)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        visible: Tensor | None = None,
        drop: Drop | None = None,
    ) -> Tensor:
        """Let the tokens of `x` attend to the tokens of `memory`.

        Parameters
        ----------
        x : Tensor of shape (batch, n_queries, dim)
            Tokens that the queries are made of.
        memory : Tensor of shape (batch, n_tokens, dim), or None, default=None
            Tokens that the keys and values are made of; None means `x`.
        visible : Tensor of bool, of shape (batch, n_tokens), or None, default=None
            Tokens of `memory` that may be attended to, at least one per row; None means all.
        drop : callable or None, default=None
            Dropout of the attention weights; None drops nothing. With dropout, memory holds all
            ``n_queries * n_tokens`` weights of each head.

        Returns
        -------
        Tensor of shape (batch, n_queries, dim)
            Attended values, after the output projection.
        """
        memory = x if memory is None else memory
        query = self._heads(self.query(x))
        key, value = self._heads(self.key(memory)), self._heads(self.value(memory))
        mask = None if visible is None else visible[:, None, None]
        is_short = torch.is_grad_enabled() and memory.shape[1] <= _SHORT
        if drop is None and not is_short:
            answer = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        else:
            # (batch, n_heads, n_queries, n_tokens)
            scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
            if mask is not None:
                scores = scores.masked_fill(~mask, -torch.inf)
            weights = scores.softmax(-1)
            answer = (weights if drop is None else drop(weights)) @ value
        return self.output(answer.transpose(1, 2).flatten(2))

    def _heads(self, x: Tensor) -> Tensor:
        """Split (batch, n_tokens, dim) by head: (batch, n_heads, n_tokens, dim // n_heads)."""
        return x.view(*x.shape[:2], self.n_heads, -1).transpose(1, 2)


class FeedForward(nn.Module):
    """Two linear maps with an activation between them.

    Parameters
    ----------
    dim : int
        Width of the tokens.
    hidden_dim : int
        Width between the two maps.
    activation : {"gelu", "relu"}, default="gelu"
        Activation between the two maps.

    Examples
    --------
    >>> import torch
    >>> FeedForward(8, 32)(torch.zeros(1, 5, 8)).shape
    torch.Size([1, 5, 8])
    """

    def __init__(
        self, dim: int, hidden_dim: int, activation: Literal["gelu", "relu"] = "gelu"
    ) -> None:
        super().__init__()
        self.input = AlignedLinear(dim, hidden_dim)
        self.output = AlignedLinear(hidden_dim, dim)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """Map each token on its own.

        Parameters
        ----------
        x : Tensor of shape (batch, n_tokens, dim)
            Tokens.

        Returns
        -------
        Tensor of shape (batch, n_tokens, dim)
            Mapped tokens.
        """
        dtype = compute_dtype(x)
        n_rows = x.numel() // x.shape[-1]
        is_large = n_rows >= _MIN_ROWS and x.device.type == "cpu" and torch.is_grad_enabled()
        if not is_large or self.activation != "gelu" or dtype == torch.bfloat16:
            return self.output(_ACTIVATIONS[self.activation](self.input(x)))
        first, second = self.input, self.output
        rows = x.reshape(n_rows, -1)
        mapped = map_rows(rows, first.weight, first.bias, second.weight, second.bias)
        return mapped.view(*x.shape[:-1], -1)


class TokenBatchNorm(nn.BatchNorm1d):
    """Batch normalisation of each feature over all visible tokens of a batch.

    Parameters
    ----------
    dim : int
        Width of the tokens.

    Examples
    --------
    >>> import torch
    >>> TokenBatchNorm(1)(torch.tensor([[[-1.0], [1.0]]])).flatten().round().tolist()
    [-1.0, 1.0]
    """

    def __init__(self, dim: int) -> None:
        super().__init__(dim)

    def forward(self, x: Tensor, visible: Tensor | None = None) -> Tensor:
        """Normalise tokens; in training, zero the tokens that are not visible.

        Parameters
        ----------
        x : Tensor of shape (batch, n_tokens, dim)
            Tokens.
        visible : Tensor of bool, of shape (batch, n_tokens), or None, default=None
            Tokens that the statistics of a training batch are taken over; None means all.

        Returns
        -------
        Tensor of shape (batch, n_tokens, dim)
            Normalised tokens.
        """
        if visible is None or not self.training:
            return super().forward(x.flatten(0, 1)).view_as(x)
        normed = torch.zeros_like(x)
        normed[visible] = super().forward(x[visible]).to(x.dtype)
        return normed


class PreNormBlock(nn.Module):
    """Transformer block with batch normalisation before each of its two branches.

    ``x = x + attention(norm(x))``, then ``x = x + feed_forward(norm(x))``.

    Parameters
    ----------
    dim : int
        Width of the tokens, a multiple of `n_heads`.
    n_heads : int
        Number of attention heads.
    hidden_dim : int
        Width of the feed-forward layer.
    activation : {"gelu", "relu"}, default="gelu"
        Activation of the feed-forward layer.

    Examples
    --------
    >>> import torch
    >>> PreNormBlock(8, n_heads=2, hidden_dim=32)(torch.zeros(1, 5, 8)).shape
    torch.Size([1, 5, 8])
    """

    def __init__(
        self, dim: int, n_heads: int, hidden_dim: int, activation: Literal["gelu", "relu"] = "gelu"
    ) -> None:
        super().__init__()
        self.norm1 = TokenBatchNorm(dim)
        self.attention = MultiHeadAttention(dim, n_heads)
        self.norm2 = TokenBatchNorm(dim)
        self.feed_forward = FeedForward(dim, hidden_dim, activation)

    def forward(
        self,
        x: Tensor,
        visible: Tensor | None = None,
        drop: Drop | None = None,
        needed: Tensor | None = None,
    ) -> Tensor:
        """Apply the block.

        Parameters
        ----------
        x : Tensor of shape (batch, n_tokens, dim)
            Tokens.
        visible : Tensor of bool, of shape (batch, n_tokens), or None, default=None
            Tokens that may be attended to, at least one per row; None means all.
        drop : callable or None, default=None
            Dropout of the output of both branches; None drops nothing.
        needed : Tensor of int, of shape (batch, n_needed), or None, default=None
            Tokens to return; None means all.

        Returns
        -------
        Tensor of shape (batch, n_needed, dim)
            Encoded tokens.
        """
        drop = drop or _keep
        x = x + drop(_run(self.attention, self.norm1(x, visible), None, visible))
        normed = self.norm2(x, visible)
        if needed is not None:
            x, normed = take_rows(x, needed), take_rows(normed, needed)
        return x + drop(_run(self.feed_forward, normed))


class ScaledPostNormBlock(nn.Module):
    """Transformer block with scaled branches and layer normalisation after each of them.

    ``x = norm(x + a * attention(x))``, then ``x = norm(x + b * feed_forward(x))``. The learnt
    scalars a and b start at 1e-8, so that the block starts as a layer normalisation.

    Parameters
    ----------
    dim : int
        Width of the tokens, a multiple of `n_heads`.
    n_heads : int
        Number of attention heads.
    hidden_dim : int
        Width of the feed-forward layer.

    Examples
    --------
    >>> import torch
    >>> block = ScaledPostNormBlock(8, n_heads=2, hidden_dim=32)
    >>> block(torch.zeros(1, 3, 8), memory=torch.zeros(1, 5, 8)).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, dim: int, n_heads: int, hidden_dim: int) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(dim, n_heads)
        self.scale1 = nn.Parameter(torch.tensor(1e-8))
        self.norm1 = nn.LayerNorm(dim)
        self.feed_forward = FeedForward(dim, hidden_dim)
        self.scale2 = nn.Parameter(torch.tensor(1e-8))
        self.norm2 = nn.LayerNorm(dim)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        visible: Tensor | None = None,
        drop: Drop | None = None,
    ) -> Tensor:
        """Apply the block.

        Parameters
        ----------
        x : Tensor of shape (batch, n_queries, dim)
            Tokens that the queries are made of.
        memory : Tensor of shape (batch, n_tokens, dim), or None, default=None
            Tokens that the keys and values are made of; None means `x`.
        visible : Tensor of bool, of shape (batch, n_tokens), or None, default=None
            Tokens of `memory` that may be attended to, at least one per row; None means all.
        drop : callable or None, default=None
            Dropout of the attention weights, of the output of the feed-forward layer and of each
            scaled branch; None drops nothing.

        Returns
        -------
        Tensor of shape (batch, n_queries, dim)
            Encoded tokens.
        """
        keep = drop or _keep
        x = self.norm1(x + keep(self.scale1 * self.attention(x, memory, visible, drop)))
        return self.norm2(x + keep(self.scale2 * keep(self.feed_forward(x))))


def _keep(x: Tensor) -> Tensor:
    """Return `x`: dropout that drops nothing."""
    return x


def _run(module: nn.Module, x: Tensor, *args: Tensor | None) -> Tensor:
    """Call a module that draws nothing; if its input is large, recompute it for the gradient."""
    if x.numel() <= _RECOMPUTED_SIZE or not torch.is_grad_enabled():
        return module(x, *args)
    return checkpoint(module, x, *args, use_reentrant=False, preserve_rng_state=False)
