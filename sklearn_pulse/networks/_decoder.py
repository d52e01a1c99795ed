"""The decoder: a GRU driven by the system estimate from a sample's initial condition."""

from __future__ import annotations

from torch import Tensor, nn


class GRUDecoder(nn.Module):
    """Roll a trajectory out from an initial state (paper, Eq. 2).

    Parameters
    ----------
    input_dim : int
        Width of the drive of each step.
    n_channels : int
        Channels of the reconstruction.
    hidden_dim : int, default=64
        Width of the GRU.
    num_layers : int, default=2
        Layers of the GRU; the initial condition enters the first, the others start at zero.
    observation : {"mlp", "linear"}, default="mlp"
        Map from state to signal: two layers as in the published code, or the linear one of the
        paper's text.

    Examples
    --------
    >>> import torch
    >>> decoder = GRUDecoder(321, n_channels=6)
    >>> decoder(torch.zeros(127, 8, 321), torch.zeros(8, 64)).shape
    torch.Size([127, 8, 6])
    """

    def __init__(
        self,
        input_dim: int,
        n_channels: int,
        hidden_dim: int = 64,
        num_layers: int = 2,
        observation: str = "mlp",
    ) -> None:
        super().__init__()
        self.gru = nn.GRU(input_dim, hidden_dim, num_layers)
        self.observation: nn.Module = nn.Linear(hidden_dim, n_channels)
        if observation == "mlp":
            self.observation = nn.Sequential(
                nn.Linear(hidden_dim, hidden_dim), nn.ReLU(), self.observation
            )

    def initial_state(self, condition: Tensor) -> Tensor:
        """Put a condition of shape (batch, hidden_dim) in the first of (num_layers, batch, ...)."""
        state = condition.new_zeros(self.gru.num_layers, *condition.shape)
        state[0] = condition
        return state

    def forward(self, drive: Tensor, condition: Tensor) -> Tensor:
        """Reconstruct.

        Parameters
        ----------
        drive : Tensor of shape (n_steps, batch, input_dim)
            Time first: PyTorch's CPU kernel is fastest so.
        condition : Tensor of shape (batch, hidden_dim)
            Initial condition.

        Returns
        -------
        Tensor of shape (n_steps, batch, n_channels)
            The reconstruction.
        """
        states, _ = self.gru(drive, self.initial_state(condition))
        return self.observation(states)
