"""The initial-condition encoder: where a sample's trajectory starts."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ._time import mask_steps, replicate_edges


class InitialConditionEncoder(nn.Module):
    """State of the decoder at each step of a window (paper, Section 3.2, f_init).

    Two convolutions with replicate padding, so that it sees a few samples around a step and no
    more: ``(kernel_size - 1) / 2 * (1 + dilation)`` on each side.

    Parameters
    ----------
    n_channels : int
        Channels of the windows (or width of the system encoder that is shared with it).
    state_dim : int
        Width of the state.
    hidden_dim : int, default=64
        Width between the convolutions; the second is grouped by ``gcd(state_dim, hidden_dim)``.
    kernel_size : int, default=3
        Odd.
    dilation : int, default=1
        Of the second convolution.

    Examples
    --------
    >>> import torch
    >>> InitialConditionEncoder(6, state_dim=64)(torch.zeros(2, 128, 6)).shape
    torch.Size([2, 128, 64])
    """

    def __init__(
        self,
        n_channels: int,
        state_dim: int,
        hidden_dim: int = 64,
        kernel_size: int = 3,
        dilation: int = 1,
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(n_channels, hidden_dim, kernel_size)
        self.conv2 = nn.Conv1d(
            hidden_dim,
            state_dim,
            kernel_size,
            dilation=dilation,
            groups=math.gcd(state_dim, hidden_dim),
        )

    def forward(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Map `x` of shape (batch, n_timesteps, n_channels) to (batch, n_timesteps, state_dim)."""
        hidden = _same_length(self.conv1, mask_steps(x, observed)).relu()
        return _same_length(self.conv2, mask_steps(hidden, observed))

    def at(self, starts: Tensor, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Return the states at some steps alone, computed from the samples around them.

        Parameters
        ----------
        starts : Tensor of int, of shape (n_passes, batch)
            A step of each window and pass.
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None
            None means all.

        Returns
        -------
        Tensor of shape (n_passes, batch, state_dim)
            Those rows of what `forward` returns.
        """
        # Padding repeats the edge of what a convolution reads, so steps are clamped before each.
        outer = _around(starts, self.conv2, x.shape[1])
        inner = _around(outer, self.conv1, x.shape[1])
        rows = torch.arange(len(x), device=x.device)
        near = mask_steps(x, observed)[rows.view(-1, 1, 1), inner]
        hidden = F.linear(near.mT.flatten(3), self.conv1.weight.flatten(1), self.conv1.bias).relu()
        if observed is not None:
            hidden = mask_steps(hidden, observed[rows.view(-1, 1), outer])
        hidden = hidden.flatten(0, 1).mT
        state = F.conv1d(hidden, self.conv2.weight, self.conv2.bias, groups=self.conv2.groups)
        return state.view(*starts.shape, -1)


def _around(steps: Tensor, conv: nn.Conv1d, n_timesteps: int) -> Tensor:
    """Return the steps that the taps read, (..., kernel_size), inside the window."""
    (n_taps,), (dilation,) = conv.kernel_size, conv.dilation
    offsets = torch.arange(n_taps, device=steps.device) - n_taps // 2
    return (steps.unsqueeze(-1) + dilation * offsets).clamp(0, n_timesteps - 1)


def _same_length(conv: nn.Conv1d, x: Tensor) -> Tensor:
    reach = conv.dilation[0] * (conv.kernel_size[0] - 1) // 2
    return conv(replicate_edges(x, reach).transpose(1, 2)).transpose(1, 2)
