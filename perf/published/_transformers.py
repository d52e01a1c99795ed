"""PatchTST and TimeMAE as published, with attention weights in memory."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from perf.published._base import Published, batch_norm
from sklearn_pulse.baselines._patchtst import draw_hidden
from sklearn_pulse.networks._transformer import MultiHeadAttention
from sklearn_pulse.objectives import Objective


def attend(
    layer: MultiHeadAttention, x: Tensor, memory: Tensor, dropout: float, training: bool
) -> Tensor:
    """Let tokens (batch, n_queries, dim) attend to others, all weights at once."""
    batch, width = len(x), x.shape[2] // layer.n_heads
    query, key, value = (
        part.view(batch, -1, layer.n_heads, width).transpose(1, 2)
        for part in (layer.query(x), layer.key(memory), layer.value(memory))
    )
    weights = torch.softmax(query @ key.transpose(2, 3) / math.sqrt(width), dim=-1)
    answer = F.dropout(weights, dropout, training) @ value
    return layer.output(answer.transpose(1, 2).reshape(x.shape))


class LiteralPatchTST(Published):
    """Patches of each channel through blocks with batch normalisation."""

    def __init__(self, objective: Objective) -> None:
        super().__init__(objective)
        self.encoder = self.objective.encoder
        self.head = self.objective.head

    def forward(self, x: Tensor) -> Tensor:
        """Compute the loss of windows (batch, time, channels)."""
        ours, encoder = self.objective, self.encoder
        mean = x.mean(1, keepdim=True)
        x = (x - mean) / (x.var(1, correction=0, keepdim=True) + 1e-5).sqrt()
        patches = encoder.cut(x).contiguous()  # (batch, channels, patches, length)
        hidden = draw_hidden(patches.shape[:3], ours.mask_ratio, self.generator)
        tokens = encoder.embed(patches.masked_fill(hidden.unsqueeze(-1), 0.0))
        cls = (encoder.cls_token + encoder.positions[0]).expand(*tokens.shape[:2], 1, -1)
        tokens = torch.cat([cls, tokens + encoder.positions[1:]], dim=2).flatten(0, 1)
        for block in encoder.blocks:
            normed = _batch_norm(block.norm1, tokens)
            tokens = tokens + attend(block.attention, normed, normed, 0.0, self.training)
            forward = block.feed_forward
            normed = _batch_norm(block.norm2, tokens)
            tokens = tokens + forward.output(F.gelu(forward.input(normed)))
        rebuilt = self.head(tokens.unflatten(0, patches.shape[:2]))[:, :, 1:]
        errors = ((rebuilt - patches) ** 2).mean(-1)
        return (errors * hidden).sum() / hidden.sum()


def _batch_norm(norm: nn.BatchNorm1d, tokens: Tensor) -> Tensor:
    """Normalise each feature over the batch and the tokens, features last."""
    return batch_norm(norm, tokens.transpose(1, 2)).transpose(1, 2)


class LiteralTimeMAE(Published):
    """Codes and representations of hidden segments."""

    def __init__(self, objective: Objective) -> None:
        super().__init__(objective)
        ours = self.objective
        self.encoder, self.slow = ours.encoder, ours.momentum_encoder
        self.regressor, self.tokenizer = ours.regressor, ours.tokenizer
        self.mask_token = ours.mask_token

    def forward(self, x: Tensor) -> Tensor:
        """Compute the loss of windows (batch, time, channels)."""
        ours, encoder = self.objective, self.encoder
        order = torch.randperm(encoder.n_patches, generator=self.generator)
        shown, hidden = order[: -ours.n_hidden], order[-ours.n_hidden :]
        projected = encoder.projection(x.transpose(1, 2)).transpose(1, 2)
        codes = ours.draw_codes(projected)[:, hidden]
        tokens = projected + encoder.positions
        memory = self._run(encoder.transformer, tokens[:, shown], None, ours.dropout)
        with torch.no_grad():
            target = self._run(self.slow, tokens[:, hidden], None, ours.dropout)
        queries = self.mask_token.expand(len(x), len(hidden), -1) + encoder.positions[hidden]
        predicted = self._run(self.regressor, queries, memory, ours.regressor_dropout)
        logits = self.tokenizer(predicted).flatten(0, 1)
        entropy = F.cross_entropy(logits, codes.flatten(), label_smoothing=ours.label_smoothing)
        error = F.mse_loss(predicted, target)
        return ours.regression_weight * error + ours.classification_weight * entropy

    def _run(self, blocks: nn.Module, x: Tensor, memory: Tensor | None, p: float) -> Tensor:
        def drop(y: Tensor) -> Tensor:
            return F.dropout(y, p, self.training)

        for block in blocks.blocks:
            seen = x if memory is None else memory
            attended = attend(block.attention, x, seen, p, self.training)
            x = block.norm1(x + drop(block.scale1 * attended))
            forward = block.feed_forward
            fed = drop(forward.output(F.gelu(forward.input(x))))
            x = block.norm2(x + drop(block.scale2 * fed))
        return x
