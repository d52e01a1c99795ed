"""The initial-condition encoder: where a sample's trajectory starts."""

from __future__ import annotations

import math

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


def _same_length(conv: nn.Conv1d, x: Tensor) -> Tensor:
    reach = conv.dilation[0] * (conv.kernel_size[0] - 1) // 2
    return conv(replicate_edges(x, reach).transpose(1, 2)).transpose(1, 2)
