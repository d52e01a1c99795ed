"""SimMTM as published: masks value by value, positives by a loop over the views."""

from __future__ import annotations

import random

import torch
import torch.nn.functional as F
from torch import Tensor

from perf.published._base import Published, batch_norm
from sklearn_pulse.objectives import Objective


class LiteralSimMTM(Published):
    """Views through strided convolutions, and each window from all other views."""

    def __init__(self, objective: Objective) -> None:
        super().__init__(objective)
        ours = self.objective
        self.encoder, self.projector, self.head = ours.encoder, ours.projector, ours.head
        self.loss_scale = ours.loss_scale

    def forward(self, x: Tensor, masked: Tensor | None = None) -> Tensor:
        """Compute the loss of windows (batch, time, channels)."""
        ours, batch = self.objective, len(x)
        if masked is None:
            masked = self._draw_masks(x)
        copies = x.repeat(ours.n_masks, 1, 1).masked_fill(masked, 0.0)
        steps = torch.cat([x, copies]).transpose(1, 2)
        for i, block in enumerate(self.encoder.blocks):
            steps = F.relu(batch_norm(block.norm, block.conv(steps)))
            steps = F.max_pool1d(steps, 2, stride=2, padding=1)
            if i == 0:
                steps = F.dropout(steps, ours.dropout, self.training)
        steps = steps.transpose(1, 2).flatten(1)
        rows = F.normalize(self.projector(steps), dim=1)
        logits = rows @ rows.T / ours.temperature
        logits = logits.masked_fill(torch.eye(len(rows), dtype=torch.bool), -torch.inf)
        constraint = []
        for i, shares in enumerate(logits.log_softmax(1)):
            own = [j for j in range(i % batch, len(rows), batch) if j != i]
            constraint.append(-shares[own].sum())
        rebuilt = self.head(logits.softmax(1) @ steps)[:batch].view_as(x)
        losses = torch.stack([torch.stack(constraint).mean(), F.mse_loss(rebuilt, x)])
        variances = self.loss_scale**2
        return (losses / (2 * variances) + torch.log(1 + variances)).sum()

    def _draw_masks(self, x: Tensor) -> Tensor:
        """Draw a chain of masked and unmasked runs for each channel of each copy."""
        ours = self.objective
        leave_masked = 1.0 / ours.mean_mask_length
        leave = leave_masked * ours.mask_ratio / (1.0 - ours.mask_ratio), leave_masked
        n_timesteps, n_channels = x.shape[1:]
        chains = []
        for _ in range(ours.n_masks * len(x) * n_channels):
            masked, chain = random.random() < ours.mask_ratio, []
            for _ in range(n_timesteps):
                chain.append(masked)
                if random.random() < leave[masked]:
                    masked = not masked
            chains.append(chain)
        drawn = torch.tensor(chains).view(-1, n_channels, n_timesteps)
        return drawn.transpose(1, 2)
