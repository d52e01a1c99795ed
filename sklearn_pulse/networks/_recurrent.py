"""Gated recurrent networks of LFADS, with clipped states."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def scale_variance(linear: nn.Linear) -> nn.Linear:
    """Draw the weights from N(0, 1 / fan-in) and zero the bias, in place.

    Parameters
    ----------
    linear : torch.nn.Linear
        Layer to initialise, with or without a bias.

    Returns
    -------
    torch.nn.Linear
        The same layer.

    Examples
    --------
    >>> layer = scale_variance(nn.Linear(100, 200))
    >>> round(layer.weight.std().item(), 1), layer.bias.abs().sum().item()
    (0.1, 0.0)
    """
    nn.init.normal_(linear.weight, std=1.0 / math.sqrt(linear.in_features))
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)
    return linear


class ClippedGRUCell(nn.Module):
    """GRU cell whose state is clipped.

    In contrast to :class:`torch.nn.GRUCell`, the reset gate acts on the state before the recurrent
    product, and there is no recurrent bias. The rows of the weights belong to the update gate, the
    reset gate and the candidate, in this order. The bias starts at one for the gates, so that the
    cell starts by remembering, and at zero for the candidate.

    Parameters
    ----------
    input_dim : int
        Width of the input.
    hidden_dim : int
        Width of the state.
    clip : float, default=1.0
        Largest absolute value of the state.
    joint_fan : bool, default=False
        Whether the variance of the initial weights is ``1 / (input_dim + hidden_dim)`` for both
        matrices, rather than one over the fan-in of each.

    Examples
    --------
    >>> import torch
    >>> ClippedGRUCell(3, 5)(torch.zeros(2, 3), torch.full((2, 5), 4.0)).max().item()
    1.0
    """

    def __init__(
        self, input_dim: int, hidden_dim: int, clip: float = 1.0, joint_fan: bool = False
    ) -> None:
        super().__init__()
        self.hidden_dim = hidden_dim
        self.clip = clip
        fan_input = input_dim + hidden_dim if joint_fan else input_dim
        fan_hidden = input_dim + hidden_dim if joint_fan else hidden_dim
        self.weight_ih = nn.Parameter(torch.randn(3 * hidden_dim, input_dim) / fan_input**0.5)
        self.weight_hh = nn.Parameter(torch.randn(3 * hidden_dim, hidden_dim) / fan_hidden**0.5)
        self.bias = nn.Parameter(torch.cat([torch.ones(2 * hidden_dim), torch.zeros(hidden_dim)]))

    def project(self, x: Tensor) -> Tensor:
        """Project inputs (..., input_dim) to the gates and the candidate (..., 3 * hidden_dim)."""
        return F.linear(x, self.weight_ih, self.bias)

    def recurrent_weights(self) -> tuple[Tensor, Tensor]:
        """Split the recurrent weights into maps to the gates and to the candidate, for `advance`.

        Their shapes are (hidden_dim, 3 * hidden_dim), where the columns of the candidate are zero,
        and (hidden_dim, hidden_dim).
        """
        gates, candidate = self.weight_hh.tensor_split([2 * self.hidden_dim])
        return F.pad(gates.t(), (0, self.hidden_dim)), candidate.t()

    def advance(self, total: Tensor, state: Tensor, candidate: Tensor) -> Tensor:
        """Compute the next state.

        Parameters
        ----------
        total : Tensor of shape (..., batch, 3 * hidden_dim)
            Contributions of the input and the state to the gates and the candidate, without that of
            the reset state.
        state : Tensor of shape (..., batch, hidden_dim)
            State before the step.
        candidate : Tensor of shape (..., hidden_dim, hidden_dim)
            Map from the reset state to the candidate, the second result of `recurrent_weights`.

        Returns
        -------
        Tensor of shape (..., batch, hidden_dim)
            State after the step.
        """
        width = self.hidden_dim
        gates = total[..., : 2 * width].sigmoid()
        update, reset = gates[..., :width], gates[..., width:]
        new = torch.tanh(total[..., 2 * width :] + (reset * state) @ candidate)
        return (new + update * (state - new)).clamp(-self.clip, self.clip)

    def forward(self, x: Tensor, state: Tensor) -> Tensor:
        """Advance the state by one input.

        Parameters
        ----------
        x : Tensor of shape (batch, input_dim)
            Input of the step.
        state : Tensor of shape (batch, hidden_dim)
            State before the step.

        Returns
        -------
        Tensor of shape (batch, hidden_dim)
            State after the step.
        """
        gates, candidate = self.recurrent_weights()
        return self.advance(self.project(x) + state @ gates, state, candidate)


class BidirectionalClippedGRU(nn.Module):
    """Pair of clipped GRUs that read a window forwards and backwards, from learnt initial states.

    Both directions take their steps together, so the loop over time runs once. An unobserved step
    does not change the states.

    Parameters
    ----------
    input_dim : int
        Width of the input.
    hidden_dim : int
        Width of the state of each direction.
    clip : float, default=1.0
        Largest absolute value of the states.

    Examples
    --------
    >>> import torch
    >>> past, future = BidirectionalClippedGRU(6, 64)(torch.zeros(128, 4, 6))
    >>> past.shape, future.shape
    (torch.Size([128, 4, 64]), torch.Size([128, 4, 64]))
    """

    def __init__(self, input_dim: int, hidden_dim: int, clip: float = 1.0) -> None:
        super().__init__()
        self.initial_state = nn.Parameter(torch.zeros(2, 1, hidden_dim))
        self.forward_cell = ClippedGRUCell(input_dim, hidden_dim, clip, joint_fan=True)
        self.backward_cell = ClippedGRUCell(input_dim, hidden_dim, clip, joint_fan=True)

    def forward(self, x: Tensor, observed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run over time in both directions.

        Parameters
        ----------
        x : Tensor of shape (n_timesteps, batch, input_dim)
            Windows, time first.
        observed : Tensor of bool, of shape (n_timesteps, batch), or None, default=None
            Which steps were observed; None means all.

        Returns
        -------
        past : Tensor of shape (n_timesteps, batch, hidden_dim)
            State of the forward direction after each step.
        future : Tensor of shape (n_timesteps, batch, hidden_dim)
            State of the backward direction after each step.
        """
        cells = self.forward_cell, self.backward_cell
        # (n_timesteps, 2, batch, 3 * hidden_dim), the directions on the second axis
        projected = torch.stack([cells[0].project(x), cells[1].project(x.flip(0))], dim=1)
        weights = [cell.recurrent_weights() for cell in cells]
        gates, candidate = (torch.stack(pair) for pair in zip(*weights, strict=True))
        seen: tuple[Tensor | None, ...] = (None,) * len(x)
        if observed is not None:
            # n_timesteps tensors of shape (2, batch, 1)
            seen = torch.stack([observed, observed.flip(0)], dim=1).unsqueeze(-1).unbind(0)
        state = self.initial_state.expand(-1, x.shape[1], -1)  # (2, batch, hidden_dim)
        states = []
        # `unbind` rather than indexing: the gradient of each index is a whole tensor of zeros.
        for step, here in zip(projected.unbind(0), seen, strict=True):
            new = cells[0].advance(torch.baddbmm(step, state, gates), state, candidate)
            state = new if here is None else torch.where(here, new, state)
            states.append(state)
        forwards, backwards = torch.stack(states).unbind(1)
        return forwards, backwards.flip(0)
