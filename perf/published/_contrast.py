"""SimCLR and TS2Vec as published."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from perf.literal import LiteralEncoder
from perf.published._base import Published
from sklearn_pulse.objectives import Objective


class LiteralSimCLR(Published):
    """Anchors and positives in a pass each; the augmentation is ours."""

    def __init__(self, objective: Objective) -> None:
        super().__init__(objective)
        self.encoder = LiteralEncoder.of(self.objective.encoder)

    def forward(self, x: Tensor, context: Tensor, room: Tensor, data_std: Tensor) -> Tensor:
        """Compute the loss of windows (batch, time, channels) within their surroundings."""
        ours, draws = self.objective, self.generator
        positive, _ = ours._shift_along(context, None, room, x.shape[1], draws)
        positive = ours.jitter(ours.scale(positive, draws), draws, unit=data_std)
        vectors = F.normalize(torch.cat([self.encoder(x), self.encoder(positive)]), dim=1)
        similarity = vectors @ vectors.T / ours.temperature
        losses = []
        for i in range(len(x)):
            others = [j for j in range(len(vectors)) if j != i]
            target = torch.tensor([others.index(i + len(x))])
            losses.append(F.cross_entropy(similarity[i, others].unsqueeze(0), target))
        return torch.stack(losses).mean()


class LiteralTS2Vec(Published):
    """Two crops in a pass each, and the loss of every scale in turn."""

    def __init__(self, objective: Objective) -> None:
        super().__init__(objective)
        self.encoder = LiteralEncoder.of(self.objective.encoder)
        self.encoder.norm.requires_grad_(False)  # the published loss leaves it out

    def forward(self, x: Tensor) -> Tensor:
        """Compute the loss of windows (batch, time, channels)."""
        crops = self.objective.draw_crops(x)
        first = self._encode(x, crops.offset, crops.outer_left, crops.right)
        second = self._encode(x, crops.offset, crops.left, crops.outer_right)
        n_shared = crops.right - crops.left
        return _hierarchical(first[:, -n_shared:], second[:, :n_shared])

    def _encode(self, x: Tensor, offset: Tensor, start: int, stop: int) -> Tensor:
        crop = torch.stack([x[i, o + start : o + stop] for i, o in enumerate(offset.tolist())])
        hidden = self.encoder.input(crop)
        visible = self.objective.draw_visible(len(x), stop - start, self.generator)
        hidden = hidden.masked_fill(~visible.unsqueeze(-1), 0.0)
        return self.encoder.blocks(hidden.transpose(1, 2)).transpose(1, 2)


def _hierarchical(first: Tensor, second: Tensor) -> Tensor:
    """Average the two contrasts over the scales of time."""
    total, n_scales = torch.zeros(()), 0
    while True:
        total = total + 0.5 * _contrast(first.transpose(0, 1), second.transpose(0, 1))
        if first.shape[1] > 1:
            total = total + 0.5 * _contrast(first, second)
        n_scales += 1
        if first.shape[1] == 1:
            return total / n_scales
        first, second = (
            F.max_pool1d(view.transpose(1, 2), 2).transpose(1, 2) for view in (first, second)
        )


def _contrast(first: Tensor, second: Tensor) -> Tensor:
    """Tell each row's counterpart from all other rows of its group, (groups, rows, dim)."""
    n = first.shape[1]
    rows = torch.cat([first, second], dim=1)
    similarity = rows @ rows.transpose(1, 2)
    # Without the diagonal: (groups, 2 * n, 2 * n - 1).
    logits = torch.tril(similarity, -1)[:, :, :-1] + torch.triu(similarity, 1)[:, :, 1:]
    entropy, i = -F.log_softmax(logits, dim=-1), torch.arange(n)
    return 0.5 * (entropy[:, i, n + i - 1].mean() + entropy[:, n + i, i].mean())
