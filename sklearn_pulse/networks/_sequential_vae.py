"""DSVAE's model, from an embedding to the reconstruction of a window."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ._autocast import recurrent_autocast


class SequentialLatents(NamedTuple):
    """Posteriors and prior of the latents of a batch, and the reconstruction, time first.

    Parameters
    ----------
    reconstruction : Tensor of shape (n_timesteps, batch, n_channels)
        Reconstruction of the windows.
    static_mean : Tensor of shape (batch, static_dim)
        Posterior mean of the static latent.
    static_logvar : Tensor of shape (batch, static_dim)
        Posterior log variance of the static latent.
    dynamic_mean : Tensor of shape (n_timesteps, batch, dynamic_dim)
        Posterior mean of the dynamic latents.
    dynamic_logvar : Tensor of shape (n_timesteps, batch, dynamic_dim)
        Posterior log variance of the dynamic latents.
    prior_mean : Tensor of shape (n_timesteps, batch, dynamic_dim)
        Prior mean of the dynamic latents.
    prior_logvar : Tensor of shape (n_timesteps, batch, dynamic_dim)
        Prior log variance of the dynamic latents.

    Examples
    --------
    >>> import torch
    >>> signal, static, steps = torch.zeros(128, 4, 6), torch.zeros(4, 64), torch.zeros(128, 4, 64)
    >>> latents = SequentialLatents(signal, static, static, steps, steps, steps, steps)
    >>> latents.reconstruction.shape
    torch.Size([128, 4, 6])
    """

    reconstruction: Tensor
    static_mean: Tensor
    static_logvar: Tensor
    dynamic_mean: Tensor
    dynamic_logvar: Tensor
    prior_mean: Tensor
    prior_logvar: Tensor


class SequentialVAE(nn.Module):
    """Variational autoencoder with one static latent per window and one dynamic latent per step.

    The embedding is mapped to the posterior of the static latent. A bidirectional LSTM over the
    signal and the static latent, and an RNN over the LSTM's output, give the posterior of the
    dynamic latents. The prior of a dynamic latent is an LSTM over the earlier dynamic latents. Each
    step is reconstructed from its static and dynamic latent only.

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    embedding_dim : int
        Width of the embedding.
    static_dim : int, default=64
        Width of the static latent.
    dynamic_dim : int, default=64
        Width of the dynamic latents.
    posterior_hidden_dim : int, default=64
        Width of the posterior's RNN and of each direction of its LSTM.
    prior_hidden_dim : int, default=16
        Width of the prior's LSTM.
    decoder_hidden_dim : int, default=64
        Width of the two hidden layers of the decoder.

    Examples
    --------
    >>> import torch
    >>> model = SequentialVAE(6, 320)
    >>> noise = torch.zeros(4, 64), torch.zeros(128, 4, 64)
    >>> model(torch.zeros(128, 4, 6), torch.zeros(4, 320), noise).reconstruction.shape
    torch.Size([128, 4, 6])
    """

    def __init__(
        self,
        n_channels: int,
        embedding_dim: int,
        *,
        static_dim: int = 64,
        dynamic_dim: int = 64,
        posterior_hidden_dim: int = 64,
        prior_hidden_dim: int = 16,
        decoder_hidden_dim: int = 64,
    ) -> None:
        super().__init__()
        self.static = nn.Linear(embedding_dim, 2 * static_dim)
        self.lstm = nn.LSTM(n_channels + static_dim, posterior_hidden_dim, bidirectional=True)
        self.rnn = nn.RNN(2 * posterior_hidden_dim, posterior_hidden_dim)
        self.dynamic = nn.Linear(posterior_hidden_dim, 2 * dynamic_dim)
        self.prior_lstm = nn.LSTM(dynamic_dim, prior_hidden_dim)
        self.prior = nn.Linear(prior_hidden_dim, 2 * dynamic_dim)
        self.decoder = nn.Sequential(
            nn.Linear(static_dim + dynamic_dim, decoder_hidden_dim),
            nn.Tanh(),
            nn.Linear(decoder_hidden_dim, decoder_hidden_dim),
            nn.Tanh(),
            nn.Linear(decoder_hidden_dim, n_channels),
        )

    def forward(
        self,
        x: Tensor,
        embedding: Tensor,
        noise: tuple[Tensor, Tensor],
        lengths: Tensor | None = None,
    ) -> SequentialLatents:
        """Infer the latents of windows and reconstruct the windows from them.

        Parameters
        ----------
        x : Tensor of shape (n_timesteps, batch, n_channels)
            Windows, time first.
        embedding : Tensor of shape (batch, embedding_dim)
            Embeddings of the same windows.
        noise : tuple of two Tensors
            Standard normal draws of shapes (batch, static_dim) and (n_timesteps, batch,
            dynamic_dim); zeros select the means of the posteriors.
        lengths : Tensor of int, of shape (batch,), or None, default=None
            Number of steps of each window that count, from its first step on; later steps do not
            affect these. None means all.

        Returns
        -------
        SequentialLatents
            Means, log variances and the reconstruction.
        """
        static_mean, static_logvar = self.static(embedding).float().chunk(2, dim=1)
        static = static_mean + (0.5 * static_logvar).exp() * noise[0]
        repeated = static.expand(len(x), -1, -1)  # (n_timesteps, batch, static_dim)

        # (n_timesteps, batch, 2 * posterior_hidden_dim)
        features = self._read(torch.cat([x, repeated], dim=2), lengths)
        with recurrent_autocast(features):
            states = self.rnn(features.to(next(self.rnn.parameters()).dtype))[0]
        mean, logvar = self.dynamic(states).float().chunk(2, dim=2)
        dynamic = mean + (0.5 * logvar).exp() * noise[1]

        # The prior of a step reads the latents of earlier steps; at the first step it reads zeros.
        before = F.pad(dynamic[:-1], (0, 0, 0, 0, 1, 0))
        with recurrent_autocast(before):
            remembered = self.prior_lstm(before)[0]
        prior_mean, prior_logvar = self.prior(remembered).float().chunk(2, dim=2)
        reconstruction = self.decoder(torch.cat([repeated, dynamic], dim=2)).float()
        return SequentialLatents(
            reconstruction, static_mean, static_logvar, mean, logvar, prior_mean, prior_logvar
        )

    def _read(self, inputs: Tensor, lengths: Tensor | None) -> Tensor:
        """Run the LSTM in both directions, backwards from the end of each window."""
        with recurrent_autocast(inputs):
            if lengths is None:
                return self.lstm(inputs)[0]
            packed = pack_padded_sequence(inputs, lengths.cpu(), enforce_sorted=False)
            return pad_packed_sequence(self.lstm(packed)[0], total_length=len(inputs))[0]
