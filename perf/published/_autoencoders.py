"""DSVAE and LFADS as published, step by step where one step needs the one before."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from perf.literal import LiteralEncoder
from perf.published._base import Published
from sklearn_pulse.networks._recurrent import ClippedGRUCell
from sklearn_pulse.objectives import Objective


class LiteralDSVAE(Published):
    """Posterior by torch's recurrent layers, prior by a cell in a loop."""

    def __init__(self, objective: Objective) -> None:
        super().__init__(objective)
        self.encoder = LiteralEncoder.of(self.objective.encoder)
        self.model = self.objective.model
        lstm = self.model.prior_lstm
        self.cell = nn.LSTMCell(lstm.input_size, lstm.hidden_size)
        state = {name.removesuffix("_l0"): value for name, value in lstm.state_dict().items()}
        self.cell.load_state_dict(state)

    def forward(self, x: Tensor) -> Tensor:
        """Compute the loss of windows (batch, time, channels)."""
        noise, model = self.objective.draw_noise(x), self.model
        static_mean, static_logvar = model.static(self.encoder(x)).chunk(2, dim=1)
        static = static_mean + (static_logvar / 2).exp() * noise.static
        repeated = static.unsqueeze(1).expand(-1, x.shape[1], -1)  # (batch, time, static_dim)
        inputs = torch.cat([x, repeated], dim=2).transpose(0, 1)
        mean, logvar = model.dynamic(model.rnn(model.lstm(inputs)[0])[0]).chunk(2, dim=2)
        dynamic = mean + (logvar / 2).exp() * noise.dynamic  # (time, batch, dynamic_dim)
        prior_mean, prior_logvar = self._prior(dynamic)
        rebuilt = model.decoder(torch.cat([repeated, dynamic.transpose(0, 1)], dim=2))
        static_kl = -0.5 * (static_logvar - static_mean**2 - static_logvar.exp()).sum()
        squared = (mean - prior_mean) ** 2
        ratio = (logvar.exp() + squared) / prior_logvar.exp()
        dynamic_kl = 0.5 * (prior_logvar - logvar + ratio).sum()
        return F.mse_loss(rebuilt, x) + self.objective.kl_weight * (static_kl + dynamic_kl)

    def _prior(self, dynamic: Tensor) -> tuple[Tensor, Tensor]:
        before, state = torch.zeros_like(dynamic[0]), None
        means, logvars = [], []
        for step in dynamic:
            state = self.cell(before, state)
            mean, logvar = self.model.prior(state[0]).chunk(2, dim=1)
            means.append(mean)
            logvars.append(logvar)
            before = step
        return torch.stack(means), torch.stack(logvars)


class LiteralLFADS(Published):
    """Every recurrent network as a cell in a loop over time."""

    def __init__(self, objective: Objective) -> None:
        super().__init__(objective)
        ours = self.objective
        self.encoder = LiteralEncoder.of(ours.encoder)
        self.model = ours.model
        self.prior_mean, self.prior_log_tau = ours.prior_mean, ours.prior_log_tau
        self.prior_logvar = ours.prior_logvar

    def forward(self, x: Tensor) -> Tensor:
        """Compute the loss of windows (batch, time, channels)."""
        noise, model = self.objective.draw_noise(x), self.model
        mean, logvar = model.initial_condition(self.encoder(x)).chunk(2, dim=1)
        std = (logvar.exp() + 1e-4).sqrt()
        prior = Normal(self.prior_mean, 0.1**0.5)
        kl_initial = kl_divergence(Normal(mean, std), prior).sum(1).mean()

        decoder = model.decoder
        rows = F.normalize(decoder.factors.weight, dim=1)
        generator = model.initial_state(mean + std * noise.initial)
        control = decoder.controller_state.expand(len(x), -1)
        factors = generator @ rows.T
        alpha, variance = (-1 / self.prior_log_tau.exp()).exp(), self.prior_logvar.exp()
        errors, kl_inputs, before = [], torch.zeros(()), None
        for t, drive in enumerate(self._controller_inputs(x)):
            control = _cell(decoder.controller, torch.cat([drive, factors], dim=1), control)
            co_mean, co_logvar = decoder.posterior(control).chunk(2, dim=1)
            co_std = (co_logvar / 2).exp()
            generator = _cell(decoder.generator, co_mean + co_std * noise.inputs[t], generator)
            factors = generator @ rows.T
            signal_mean, signal_logvar = model.readout(factors).chunk(2, dim=1)
            error = (x[:, t] - signal_mean) ** 2 / signal_logvar.exp()
            errors.append(0.5 * (signal_logvar + error))
            sample = co_mean + co_std * noise.divergence[t]
            expected = 0.0 if before is None else alpha * before
            spread = variance / (1 - alpha**2) if before is None else variance
            log_prior = Normal(expected, spread.sqrt().expand_as(sample)).log_prob(sample)
            log_posterior = Normal(co_mean, co_std).log_prob(sample)
            kl_inputs = kl_inputs + (log_posterior - log_prior).sum(1).mean()
            before = sample
        ours = self.objective
        ramp = min((ours.epoch + 1) / (ours.ramp_epochs + 1), 1.0)
        divergence = ramp * ours.kl_weight * (kl_initial + kl_inputs)
        return ours.loss_scale * (torch.stack(errors).mean() + divergence)

    def _controller_inputs(self, x: Tensor) -> list[Tensor]:
        """Read the window in both directions, and hide the nearest steps from the controller."""
        encoder, lag, n = self.model.controller_encoder, self.model.controller_lag, x.shape[1]
        cells = encoder.forward_cell, encoder.backward_cell
        states = []
        for cell, start, order in zip(
            cells, encoder.initial_state, (range(n), reversed(range(n))), strict=True
        ):
            state, found = start.expand(len(x), -1), {}
            for t in order:
                found[t] = state = _cell(cell, x[:, t], state)
            states.append(found)
        zero = torch.zeros_like(state)
        past, future = states
        return [
            torch.cat([past.get(t - lag, zero), future.get(t + lag, zero)], dim=1) for t in range(n)
        ]


def _cell(cell: ClippedGRUCell, x: Tensor, state: Tensor) -> Tensor:
    """Advance a GRU whose reset gate acts before the recurrent product."""
    width = cell.hidden_dim
    gates, candidate = cell.weight_hh.split([2 * width, width])
    inputs = F.linear(x, cell.weight_ih, cell.bias)
    opened = torch.sigmoid(inputs[:, : 2 * width] + F.linear(state, gates))
    update, reset = opened.chunk(2, dim=1)
    new = torch.tanh(inputs[:, 2 * width :] + F.linear(reset * state, candidate))
    return torch.clamp(update * state + (1 - update) * new, -cell.clip, cell.clip)
