"""LFADS's model, from an embedding to the distribution of the signal."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from ._controlled_generator import ControlledGenerator, lagged
from ._recurrent import BidirectionalClippedGRU, scale_variance

_MIN_VARIANCE = 1e-4  # added to the posterior variance of the initial condition


class LatentFactors(NamedTuple):
    """Posteriors of a batch's latent variables and distribution of its signal, time first.

    Parameters
    ----------
    signal_mean : Tensor of shape (n_timesteps, batch, n_channels)
        Mean of the signal.
    signal_logvar : Tensor of shape (n_timesteps, batch, n_channels)
        Log variance of the signal.
    initial_mean : Tensor of shape (batch, initial_condition_dim)
        Posterior mean of the initial condition.
    initial_logvar : Tensor of shape (batch, initial_condition_dim)
        Posterior log variance of the initial condition.
    input_mean : Tensor of shape (n_timesteps, batch, inferred_input_dim)
        Posterior mean of the inferred inputs.
    input_logvar : Tensor of shape (n_timesteps, batch, inferred_input_dim)
        Posterior log variance of the inferred inputs.

    Examples
    --------
    >>> import torch
    >>> signal, drive, start = torch.zeros(128, 4, 6), torch.zeros(128, 4, 64), torch.zeros(4, 64)
    >>> LatentFactors(signal, signal, start, start, drive, drive).signal_mean.shape
    torch.Size([128, 4, 6])
    """

    signal_mean: Tensor
    signal_logvar: Tensor
    initial_mean: Tensor
    initial_logvar: Tensor
    input_mean: Tensor
    input_logvar: Tensor


class LatentFactorModel(nn.Module):
    """Model of all windows by one dynamical system with initial states and inputs (LFADS).

    The embedding is mapped to the posterior of a generator's initial state. A controller reads the
    window through a bidirectional GRU, and the generator's factors, and infers the generator's
    inputs. The factors are mapped to the mean and log variance of the signal.

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    embedding_dim : int
        Width of the embedding.
    initial_condition_dim : int, default=64
        Width of the latent initial condition.
    generator_dim : int, default=64
        Width of the generator's state.
    factor_dim : int, default=128
        Number of factors.
    inferred_input_dim : int, default=64
        Width of the generator's inferred inputs.
    controller_dim : int, default=64
        Width of the controller's state.
    controller_encoder_dim : int, default=64
        Width of each direction of the GRU that the controller reads.
    controller_lag : int, default=2
        Distance, in steps, between the present and the nearest step that the controller reads.
    state_clip : float, default=1.0
        Largest absolute value of all GRU states.

    Examples
    --------
    >>> import torch
    >>> model = LatentFactorModel(6, 320)
    >>> noise = torch.zeros(4, 64), torch.zeros(128, 4, 64)
    >>> model(torch.zeros(4, 128, 6), torch.zeros(4, 320), noise).signal_mean.shape
    torch.Size([128, 4, 6])
    """

    def __init__(
        self,
        n_channels: int,
        embedding_dim: int,
        *,
        initial_condition_dim: int = 64,
        generator_dim: int = 64,
        factor_dim: int = 128,
        inferred_input_dim: int = 64,
        controller_dim: int = 64,
        controller_encoder_dim: int = 64,
        controller_lag: int = 2,
        state_clip: float = 1.0,
    ) -> None:
        super().__init__()
        self.controller_lag = controller_lag
        self.initial_condition = scale_variance(nn.Linear(embedding_dim, 2 * initial_condition_dim))
        self.initial_state = scale_variance(nn.Linear(initial_condition_dim, generator_dim))
        self.controller_encoder = BidirectionalClippedGRU(
            n_channels, controller_encoder_dim, state_clip
        )
        self.decoder = ControlledGenerator(
            2 * controller_encoder_dim,
            generator_dim,
            factor_dim,
            controller_dim,
            inferred_input_dim,
            state_clip,
        )
        self.readout = scale_variance(nn.Linear(factor_dim, 2 * n_channels))

    def forward(
        self,
        x: Tensor,
        embedding: Tensor,
        noise: tuple[Tensor, Tensor],
        observed: Tensor | None = None,
    ) -> LatentFactors:
        """Infer the latent variables of windows and run the generator.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows that the controller reads.
        embedding : Tensor of shape (batch, embedding_dim)
            Embeddings of the same windows.
        noise : tuple of two Tensors
            Standard normal draws of shapes (batch, initial_condition_dim) and (n_timesteps, batch,
            inferred_input_dim); zeros select the means of the posteriors.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all. Unobserved steps do not change the state of
            the controller's GRU; the generator runs through them.

        Returns
        -------
        LatentFactors
            Means and log variances.
        """
        mean, logvar = self.initial_condition(embedding).float().chunk(2, dim=1)
        logvar = (logvar.exp() + _MIN_VARIANCE).log()
        state = self.initial_state(mean + (0.5 * logvar).exp() * noise[0])

        seen = None if observed is None else observed.t()  # (n_timesteps, batch)
        past, future = self.controller_encoder(x.transpose(0, 1), seen)
        controller_input = lagged(past, future, self.controller_lag, seen)
        rollout = self.decoder(state, controller_input, noise[1])
        signal_mean, signal_logvar = self.readout(rollout.factors).float().chunk(2, dim=2)
        return LatentFactors(
            signal_mean,
            signal_logvar,
            mean,
            logvar,
            rollout.input_mean.float(),
            rollout.input_logvar.float(),
        )
