"""Initial-condition encoder: the decoder's state at the start of a trajectory."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..sampling import observed_span
from ._aligned import ProductConv1d
from ._time import mask_steps, replicate_edges


class InitialConditionEncoder(nn.Module):
    """Encoder of the decoder's state at each step of a window (paper, Section 3.2, f_init).

    Two convolutions with replicate padding. A state depends only on the samples near its step:
    ``(kernel_size - 1) / 2 * (1 + dilation)`` on each side. A window that misses its first or last
    steps is read as the window between them.

    Parameters
    ----------
    n_channels : int
        Channels of the windows; the width of the system encoder's steps if these are read instead.
    state_dim : int
        Width of the state.
    hidden_dim : int, default=64
        Width between the convolutions. The second convolution has ``gcd(state_dim, hidden_dim)``
        groups.
    kernel_size : int, default=3
        Number of taps of both convolutions, odd.
    dilation : int, default=1
        Steps between two taps of the second convolution.

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
        self.conv1 = ProductConv1d(n_channels, hidden_dim, kernel_size)
        self.conv2 = nn.Conv1d(
            hidden_dim,
            state_dim,
            kernel_size,
            dilation=dilation,
            groups=math.gcd(state_dim, hidden_dim),
        )

    def forward(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Compute the state at every step.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, state_dim)
            State at each step.
        """
        hidden = _same_length(self.conv1, mask_steps(x, observed), observed).relu()
        return _same_length(self.conv2, mask_steps(hidden, observed), observed)

    def at(self, starts: Tensor, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Compute the states at given steps only, from the samples around these steps.

        Parameters
        ----------
        starts : Tensor of int, of shape (n_passes, batch)
            One step per pass and window.
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.

        Returns
        -------
        Tensor of shape (n_passes, batch, state_dim)
            The rows of `forward`'s result at `starts`.
        """
        # Replicate padding repeats the edge of each convolution's own input, so the steps are
        # clamped to the window once per convolution.
        n_timesteps = x.shape[1]
        outer = _around(starts, self.conv2, n_timesteps, observed)  # (n_passes, batch, n_taps)
        # (n_passes, batch, n_taps, n_taps)
        inner = _around(outer, self.conv1, n_timesteps, observed)
        rows = torch.arange(len(x), device=x.device)
        # (n_passes, batch, n_taps, n_taps, n_channels)
        near = mask_steps(x, observed)[rows.view(-1, 1, 1), inner]
        # (n_passes, batch, n_taps, hidden_dim)
        hidden = F.linear(near.mT.flatten(3), self.conv1.weight.flatten(1), self.conv1.bias).relu()
        if observed is not None:
            hidden = mask_steps(hidden, observed[rows.view(-1, 1), outer])
        hidden = hidden.flatten(0, 1).mT  # (n_passes * batch, hidden_dim, n_taps)
        state = F.conv1d(hidden, self.conv2.weight, self.conv2.bias, groups=self.conv2.groups)
        return state.view(*starts.shape, -1)


def _around(steps: Tensor, conv: nn.Conv1d, n_timesteps: int, observed: Tensor | None) -> Tensor:
    """Return the steps that the taps read, (..., kernel_size), clamped to the window.

    `steps` is of shape (n_passes, batch, ...). A window runs from its first observed step to its
    last.
    """
    (n_taps,), (dilation,) = conv.kernel_size, conv.dilation
    offsets = torch.arange(n_taps, device=steps.device) - n_taps // 2
    around = steps.unsqueeze(-1) + dilation * offsets
    if observed is None:
        return around.clamp(0, n_timesteps - 1)
    shape = -1, *[1] * (steps.ndim - 1)
    first, stop = (step.view(shape) for step in observed_span(observed))
    return around.clamp(first, stop - 1)


def _same_length(conv: nn.Conv1d, x: Tensor, observed: Tensor | None) -> Tensor:
    """Convolve (batch, n_timesteps, n_channels) with replicate padding, keeping the length."""
    reach = conv.dilation[0] * (conv.kernel_size[0] - 1) // 2
    return conv(replicate_edges(x, reach, observed).transpose(1, 2)).transpose(1, 2)
