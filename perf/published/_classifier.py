"""Supervised classifier, and fine-tuning, with the published encoder."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from perf.literal import LiteralEncoder
from perf.published._base import Published
from sklearn_pulse.objectives import Objective


class LiteralClassifier(Published):
    """Cross-entropy of a head on the pooled output of the encoder."""

    def __init__(self, objective: Objective) -> None:
        super().__init__(objective)
        self.encoder = LiteralEncoder.of(self.objective.encoder)
        self.head = self.objective.head

    def forward(self, x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """Compute the loss of windows (batch, time, channels)."""
        return (weight * F.cross_entropy(self.head(self.encoder(x)), y, reduction="none")).mean()
