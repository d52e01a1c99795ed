"""Both stages of REBAR as published."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from perf.literal import LiteralEncoder
from perf.published._base import Published
from sklearn_pulse.networks import CrossAttention
from sklearn_pulse.networks._partial_conv import PartialConvNet
from sklearn_pulse.objectives import Objective


class LiteralCrossAttention(nn.Module):
    """Reconstruction of every step, with torch's layers, channels first."""

    def __init__(self, attention: CrossAttention, dropout: float = 0.0) -> None:
        super().__init__()
        self.ours = attention
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, hidden: Tensor, other: Tensor) -> Tensor:
        """Reconstruct windows (batch, time, channels) from others."""
        norm, visible = self.ours.norm, ~hidden
        mean = x.mean(1, keepdim=True)
        std = (x.var(1, correction=0, keepdim=True) + 1e-5).sqrt()
        x, other = ((part - mean) / std * norm.weight + norm.bias for part in (x, other))
        everything = torch.ones_like(visible)
        queries = _features(self.ours.query, x, visible)
        keys = _features(self.ours.key, other, everything)
        values = _features(self.ours.value, other, everything)
        scores = queries @ keys.transpose(1, 2) / math.sqrt(queries.shape[2])
        mixed = self.dropout(scores.softmax(-1)) @ values
        return (self.ours.output(mixed) - norm.bias) / (norm.weight + 1e-10) * std + mean


def _features(net: PartialConvNet, x: Tensor, visible: Tensor) -> Tensor:
    """Run a convolutional net on windows whose visible steps it reads."""
    x, mask = x.transpose(1, 2), visible.unsqueeze(1).expand(-1, x.shape[2], -1).float()
    width = net.conv.kernel_size[0]
    norm = nn.InstanceNorm1d(net.conv.out_channels)
    count = F.conv1d(mask, torch.ones(1, mask.shape[1], width), padding=width // 2)
    h = F.conv1d(x * mask, net.conv.weight, padding=width // 2)
    h = h * (mask.shape[1] * width / (count + 1e-8)) + net.conv.bias.view(-1, 1)
    h = norm(F.gelu(h * (count > 0)))
    for block in net.blocks:
        narrow = F.conv1d(h, block.narrow.weight.unsqueeze(-1), block.narrow.bias)
        h = norm(F.gelu(block.conv(narrow) + h))
    return h.transpose(1, 2)


class LiteralREBARReconstruction(Published):
    """First stage: a hidden block of a window, from the window itself."""

    def __init__(self, objective: Objective) -> None:
        super().__init__(objective)
        self.attention = LiteralCrossAttention(
            self.objective.encoder, self.objective.attention_dropout
        )

    def forward(self, x: Tensor) -> Tensor:
        """Compute the loss of windows (batch, time, channels)."""
        hidden = self.objective._draw_block(x, None)
        return (self.attention(x, hidden, x) - x)[hidden].square().sum()


class LiteralREBAR(Published):
    """Second stage: one candidate after the other, each reconstructed from and embedded."""

    def __init__(self, objective: Objective) -> None:
        super().__init__(objective)
        self.encoder = LiteralEncoder.of(self.objective.encoder)
        self.attention = LiteralCrossAttention(self.objective.cross_attention)

    def forward(self, x: Tensor, candidates: Tensor, numbers: Tensor | None = None) -> Tensor:
        """Compute the loss of anchors (batch, time, channels) and their candidates."""
        distances = torch.stack([self._distances(x, c) for c in candidates.unbind(1)], dim=1)
        anchors = self.encoder(x)
        embedded = torch.stack([self.encoder(c) for c in candidates.unbind(1)], dim=1)
        similarity = F.cosine_similarity(anchors.unsqueeze(1), embedded, dim=2)
        return F.cross_entropy(similarity / self.objective.temperature, distances.argmin(1))

    @torch.no_grad()
    def _distances(self, x: Tensor, candidate: Tensor) -> Tensor:
        hidden = self.objective._draw_half(x).expand(len(x), -1)
        errors = (self.attention(x, hidden, candidate) - x).square() * hidden.unsqueeze(-1)
        return errors.sum((1, 2))
