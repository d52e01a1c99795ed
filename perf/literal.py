"""Literal form of the published training step, which ours must equal and outrun.

The encoder runs once for every crop and once for the full window, convolutions multiply all their
taps, and a Python loop over samples shifts the crops.
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sklearn_pulse.objectives import CrossReconstruction


class LiteralBlock(nn.Module):
    """Residual block of the encoder, channels first."""

    def __init__(self, in_channels: int, out_channels: int, dilation: int, last: bool) -> None:
        super().__init__()
        conv = {"kernel_size": 3, "dilation": dilation, "padding": dilation}
        self.conv1 = nn.Conv1d(in_channels, out_channels, **conv)
        self.conv2 = nn.Conv1d(out_channels, out_channels, **conv)
        self.skip = nn.Conv1d(in_channels, out_channels, 1) if last else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, in_channels, time) to (batch, out_channels, time)."""
        return self.conv2(F.gelu(self.conv1(F.gelu(x)))) + self.skip(x)


class LiteralEncoder(nn.Module):
    """System encoder with PyTorch's convolutions."""

    def __init__(self, n_channels: int, hidden_dim: int, embedding_dim: int, depth: int) -> None:
        super().__init__()
        widths = [hidden_dim] * (depth + 1) + [embedding_dim]
        self.input = nn.Linear(n_channels, hidden_dim)
        self.blocks = nn.Sequential(
            *(
                LiteralBlock(widths[i], widths[i + 1], 2**i, last=i == depth)
                for i in range(depth + 1)
            )
        )
        self.norm = nn.LayerNorm(embedding_dim)

    @classmethod
    def of(cls, encoder: nn.Module) -> LiteralEncoder:
        """Return a literal encoder with the sizes and weights of ours."""
        embedding_dim, hidden_dim = encoder.blocks[-1].skip.weight.shape
        n_channels, depth = encoder.input.in_features, len(encoder.blocks) - 1
        literal = cls(n_channels, hidden_dim, embedding_dim, depth)
        copy_weights(encoder, literal)
        return literal

    def encode_steps(self, x: Tensor) -> Tensor:
        """Map (batch, time, channels) to (batch, time, embedding_dim)."""
        return self.norm(self.blocks(self.input(x).transpose(1, 2)).transpose(1, 2))

    def forward(self, x: Tensor) -> Tensor:
        """Embed windows: (batch, time, channels) to (batch, embedding_dim)."""
        return self.encode_steps(x).max(dim=1).values


class LiteralInitialCondition(nn.Module):
    """Initial-condition encoder with PyTorch's padding."""

    def __init__(self, objective: CrossReconstruction) -> None:
        super().__init__()
        self.conv1, self.conv2 = (
            nn.Conv1d(
                conv.in_channels,
                conv.out_channels,
                conv.kernel_size,
                dilation=conv.dilation,
                groups=conv.groups,
                padding="same",
                padding_mode="replicate",
            )
            for conv in (objective.initial_condition.conv1, objective.initial_condition.conv2)
        )
        copy_weights(objective.initial_condition, self)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, time, channels) to (batch, time, state)."""
        return self.conv2(F.relu(self.conv1(x.transpose(1, 2)))).transpose(1, 2)


class LiteralTimeVarying(nn.Module):
    """Time-varying branch with PyTorch's padding."""

    def __init__(self, objective: CrossReconstruction) -> None:
        super().__init__()
        branch = objective.time_varying
        dim = branch.conv2.out_channels
        same = {"padding": "same", "padding_mode": "reflect"}
        self.conv1 = nn.Conv1d(branch.conv1.in_channels, dim, 3, **same)
        self.conv2 = nn.Conv1d(dim, dim, 3, groups=dim, **same)
        self.pool = branch.n_pooled_steps
        copy_weights(branch, self)

    def forward(self, steps: Tensor) -> Tensor:
        """Map (batch, time, embedding_dim) to (batch, time, time_varying_dim)."""
        latent = self.conv2(F.relu(self.conv1(steps.transpose(1, 2))))
        n_timesteps = latent.shape[2]
        bins = F.adaptive_max_pool1d(latent, max(1, n_timesteps // self.pool))
        return F.interpolate(bins, size=n_timesteps, mode="nearest").transpose(1, 2)


def with_plain_products(module: nn.Module) -> nn.Module:
    """Return a copy of our module whose linear layers leave the choice of library to torch."""
    module = copy.deepcopy(module)
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            layer.__class__ = nn.Linear
    return module


def copy_weights(ours: nn.Module, literal: nn.Module) -> None:
    """Copy our weights into a literal module; names agree, shapes of skip connections do not."""
    shapes = {name: value.shape for name, value in literal.state_dict().items()}
    state = {name: value.reshape(shapes[name]) for name, value in ours.state_dict().items()}
    literal.load_state_dict(state)


class LiteralPulse(nn.Module):
    """Loss of the published step, with the sizes and weights of an objective.

    Parameters
    ----------
    objective : CrossReconstruction
        Objective to take sizes and weights from.
    """

    def __init__(self, objective: CrossReconstruction) -> None:
        super().__init__()
        self.encoder = LiteralEncoder.of(objective.encoder)
        self.initial_condition = LiteralInitialCondition(objective)
        self.time_varying = objective.time_varying and LiteralTimeVarying(objective)
        self.gru = nn.GRU(
            objective.decoder.gru.input_size,
            objective.decoder.gru.hidden_size,
            objective.decoder.gru.num_layers,
            batch_first=True,
        )
        self.gru.load_state_dict(objective.decoder.gru.state_dict())
        self.observation = with_plain_products(objective.decoder.observation)
        self.dropout = nn.Dropout(objective.dropout)

    def forward(self, x: Tensor, starts: Tensor) -> Tensor:
        """Compute half the mean over crops plus half the full window."""
        full = self.one_pass(x, torch.zeros(len(x), dtype=torch.int64, device=x.device))
        if not len(starts):
            return 0.5 * full
        crops = [self.one_pass(x, t0) for t0 in starts]
        return 0.5 * (torch.stack(crops).mean() + full)

    def one_pass(self, x: Tensor, t0: Tensor) -> Tensor:
        """Compute the loss of one crop of each sample; `t0` is of shape (batch,)."""
        batch, n_timesteps, n_channels = x.shape
        steps = self.encoder.encode_steps(x)
        theta = steps.max(dim=1).values
        condition = self.initial_condition(x)
        left = [n_timesteps - start - 1 for start in t0.tolist()]
        n = max(left)

        inputs = theta.unsqueeze(1).repeat(1, n, 1)
        if self.time_varying is not None:
            drive = _shift(self.time_varying(steps), t0, left, n)
            inputs = torch.cat([inputs, drive], dim=2)
        state = x.new_zeros(self.gru.num_layers, batch, self.gru.hidden_size)
        state[0] = torch.stack([condition[i, start] for i, start in enumerate(t0)])
        hidden, _ = self.gru(self.dropout(inputs), state)
        prediction = self.observation(hidden)
        inside = x.new_zeros(batch, n, 1)
        for i in range(batch):
            inside[i, : left[i]] = 1
        errors = (prediction * inside - _shift(x, t0, left, n)) ** 2
        return errors.sum() / (batch * n * n_channels)


def _shift(x: Tensor, t0: Tensor, left: list[int], n: int) -> Tensor:
    """Roll each sample left by t0 + 1, keep n steps, and zero the steps past the window's end."""
    rows = []
    for i, start in enumerate(t0):
        row = torch.roll(x[i], -(int(start) + 1), dims=0)[:n]
        keep = (torch.arange(n, device=x.device) < left[i]).unsqueeze(1)
        rows.append(row * keep)
    return torch.stack(rows)
