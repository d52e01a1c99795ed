"""Decoder of LFADS: a generator that a controller drives."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ._recurrent import ClippedGRUCell, scale_variance
from ._time import mask_steps


class Rollout(NamedTuple):
    """Trajectory of a generator, time first.

    Parameters
    ----------
    factors : Tensor of shape (n_timesteps, batch, factor_dim)
        Factors read from the generator's state after each step.
    input_mean : Tensor of shape (n_timesteps, batch, input_dim)
        Mean of the posterior of the inferred inputs.
    input_logvar : Tensor of shape (n_timesteps, batch, input_dim)
        Log variance of the posterior of the inferred inputs.

    Examples
    --------
    >>> import torch
    >>> zeros = torch.zeros(20, 4, 16)
    >>> Rollout(torch.zeros(20, 4, 128), zeros, zeros).factors.shape
    torch.Size([20, 4, 128])
    """

    factors: Tensor
    input_mean: Tensor
    input_logvar: Tensor


class ControlledGenerator(nn.Module):
    """Dynamical system whose inputs a controller infers (decoder of LFADS).

    At each step the controller reads its own input and the factors of the previous step, and
    outputs the mean and log variance of a normal distribution. A draw from this distribution drives
    the generator. The factors are a linear map of the generator's state; its rows have unit length.

    Parameters
    ----------
    controller_input_dim : int
        Width of the controller's own input at each step, without the factors.
    generator_dim : int
        Width of the generator's state.
    factor_dim : int
        Number of factors.
    controller_dim : int
        Width of the controller's state.
    input_dim : int
        Width of the inferred inputs.
    clip : float, default=1.0
        Largest absolute value of the generator's and the controller's state.

    Examples
    --------
    >>> import torch
    >>> generator = ControlledGenerator(128, 64, 128, 64, 16)
    >>> rollout = generator(torch.zeros(4, 64), torch.zeros(20, 4, 128), torch.zeros(20, 4, 16))
    >>> rollout.factors.shape, rollout.input_mean.shape
    (torch.Size([20, 4, 128]), torch.Size([20, 4, 16]))
    """

    def __init__(
        self,
        controller_input_dim: int,
        generator_dim: int,
        factor_dim: int,
        controller_dim: int,
        input_dim: int,
        clip: float = 1.0,
    ) -> None:
        super().__init__()
        self.controller = ClippedGRUCell(controller_input_dim + factor_dim, controller_dim, clip)
        self.controller_state = nn.Parameter(torch.zeros(1, controller_dim))
        self.posterior = scale_variance(nn.Linear(controller_dim, 2 * input_dim))
        self.generator = ClippedGRUCell(input_dim, generator_dim, clip)
        self.factors = scale_variance(nn.Linear(generator_dim, factor_dim, bias=False))

    def forward(self, state: Tensor, controller_input: Tensor, noise: Tensor) -> Rollout:
        """Run the generator over all steps.

        Parameters
        ----------
        state : Tensor of shape (batch, generator_dim)
            Initial state of the generator.
        controller_input : Tensor of shape (n_timesteps, batch, controller_input_dim)
            The controller's own input, time first.
        noise : Tensor of shape (n_timesteps, batch, input_dim)
            Standard normal draws; zeros drive the generator by the mean of the posterior.

        Returns
        -------
        Rollout
            Factors, and the posterior of the inferred inputs.
        """
        loading = F.normalize(self.factors.weight, dim=1)  # (factor_dim, generator_dim)
        # drive: (n_timesteps, batch, 3 * controller_dim), the projected input of the controller
        drive, controller_weight, controller_candidate = self._controller_weights(
            controller_input, loading
        )
        gates, generator_candidate = self.generator.recurrent_weights()
        generator_weight = torch.cat([self.generator.weight_ih.t(), gates])
        bias = self.generator.bias
        control = self.controller_state.expand(len(state), -1)
        states, posteriors = [], []
        for step, draw in zip(drive.unbind(0), noise.unbind(0), strict=True):
            # (batch, 3 * controller_dim): gates and candidate of the controller
            total = torch.addmm(step, torch.cat([state, control], dim=1), controller_weight)
            control = self.controller.advance(total, control, controller_candidate)
            posterior = self.posterior(control)
            mean, logvar = posterior.chunk(2, dim=1)
            inferred = mean + (0.5 * logvar).exp() * draw
            # (batch, 3 * generator_dim): gates and candidate of the generator
            total = torch.addmm(bias, torch.cat([inferred, state], dim=1), generator_weight)
            state = self.generator.advance(total, state, generator_candidate)
            states.append(state)
            posteriors.append(posterior)
        mean, logvar = torch.stack(posteriors).chunk(2, dim=2)
        return Rollout(F.linear(torch.stack(states), loading), mean, logvar)

    def _controller_weights(
        self, controller_input: Tensor, loading: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the parts of the controller that depend on no state, before the loop over time.

        Factors are linear in the generator's state. The loop therefore multiplies the state by the
        product of the factors' and the controller's weights.
        """
        width = controller_input.shape[2]
        own, of_factors = self.controller.weight_ih.tensor_split([width], dim=1)
        drive = F.linear(controller_input, own, self.controller.bias)
        gates, candidate = self.controller.recurrent_weights()
        return drive, torch.cat([loading.t() @ of_factors.t(), gates]), candidate


def lagged(past: Tensor, future: Tensor, lag: int, observed: Tensor | None = None) -> Tensor:
    """Hide the steps nearest to the present from a controller: delay the past, advance the future.

    Parameters
    ----------
    past : Tensor of shape (n_timesteps, batch, hidden_dim)
        States of the forward direction, time first.
    future : Tensor of shape (n_timesteps, batch, hidden_dim)
        States of the backward direction, time first.
    lag : int
        Steps by which each direction is moved; zeros fill the ends.
    observed : Tensor of bool, of shape (n_timesteps, batch), or None, default=None
        Which steps were observed; the states of the others are zeroed. None means all.

    Returns
    -------
    Tensor of shape (n_timesteps, batch, 2 * hidden_dim)
        Input of the controller.

    Examples
    --------
    >>> import torch
    >>> x = torch.arange(1.0, 5.0).view(4, 1, 1)
    >>> lagged(x, x, 1).flatten(1)
    tensor([[0., 2.],
            [1., 3.],
            [2., 4.],
            [3., 0.]])
    """
    past, future = mask_steps(past, observed), mask_steps(future, observed)
    delayed = F.pad(past, (0, 0, 0, 0, lag, 0))[: len(past)]
    advanced = F.pad(future, (0, 0, 0, 0, 0, lag))[lag:]
    return torch.cat([delayed, advanced], dim=2)
