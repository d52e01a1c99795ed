"""PULSE's objective: reconstruct random crops from the system estimate of the whole window."""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from ..functional import dropout, keep_bits, keep_scale, pass_errors
from ..networks import (
    GRUDecoder,
    InitialConditionEncoder,
    SeededDropout,
    SystemEncoder,
    TimeVaryingBranch,
    chunks,
)
from ..sampling import aligned_steps, crop_starts, length_in_steps, observed_span
from ._base import Objective


class Encoding(NamedTuple):
    """What is read off the whole window, before any crop is drawn."""

    embedding: Tensor  # (batch, embedding_dim), theta
    time_varying: Tensor  # (batch, n_timesteps, time_varying_dim)
    init_input: Tensor  # (batch, n_timesteps, ...), what the initial condition is read from


class Reconstruction(NamedTuple):
    """Every pass of a batch, time first; the crops come first and the full window last."""

    prediction: Tensor  # (n_timesteps - 1, n_passes, batch, n_channels), zero past a crop's end
    target: Tensor  # of the same shape
    scored: Tensor  # (n_timesteps - 1, n_passes, batch), False past a crop's end or unobserved
    n_steps: Tensor  # (n_passes,), length of the longest crop
    starts: Tensor  # (n_passes, batch), t0
    condition: Tensor  # (n_passes, batch, gru_hidden_dim)


class CrossReconstruction(Objective):
    """Loss of PULSE (paper, Eq. 3, as published: half the mean over crops plus half the window).

    The encoder runs once a batch, and all crops and the full window go through the decoder in
    one call. The parameters are those of :class:`~sklearn_pulse.PulseTransformer`, which
    describes them.

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    embedding_dim, encoder_hidden_dim, encoder_depth, pooling
        The system encoder.
    time_varying_dim, time_varying_pool
        The time-varying branch; 0 leaves it out.
    init_kernel_size, init_dilation, init_hidden_dim, shared_encoder
        The initial-condition encoder.
    gru_num_layers, gru_hidden_dim, observation, dropout
        The decoder.
    n_crops, crop, crop_length, min_crop_length, pairing, loss_reduction, theta_dropout
        The objective.
    seed : int, default=0
        Of the generator of crops, pairs and dropout.

    Examples
    --------
    >>> import torch
    >>> objective = CrossReconstruction(2, embedding_dim=16, encoder_hidden_dim=8, encoder_depth=3)
    >>> x = torch.randn(4, 32, 2)
    >>> loss = objective(x=x)
    >>> loss.shape, objective.encode(x).shape
    (torch.Size([]), torch.Size([4, 16]))
    >>> starts = torch.tensor([[0, 1, 2, 3], [4, 5, 6, 7]])  # (n_crops, batch)
    >>> objective.eval()(x=x, starts=starts).item() == objective(x=x, starts=starts).item()
    True
    """

    encoder: SystemEncoder

    def __init__(
        self,
        n_channels: int,
        *,
        embedding_dim: int = 320,
        encoder_hidden_dim: int = 64,
        encoder_depth: int = 10,
        pooling: Literal["max", "mean"] = "max",
        time_varying_dim: int = 1,
        time_varying_pool: int = 1,
        init_kernel_size: int = 3,
        init_dilation: int = 1,
        init_hidden_dim: int = 64,
        shared_encoder: bool = False,
        gru_num_layers: int = 2,
        gru_hidden_dim: int = 64,
        observation: Literal["mlp", "linear"] = "mlp",
        n_crops: int = 2,
        crop: Literal["suffix", "fixed"] = "suffix",
        crop_length: int | float | None = None,
        min_crop_length: int | float = 0.5,
        pairing: Literal["crops", "random"] = "crops",
        loss_reduction: Literal["published", "valid"] = "published",
        dropout: float = 0.1,
        theta_dropout: Literal["step", "sequence"] = "step",
        seed: int = 0,
    ) -> None:
        super().__init__(seed)
        self.n_crops = n_crops
        self.crop = crop
        self.crop_length = min_crop_length if crop_length is None else crop_length
        self.min_crop_length = min_crop_length
        self.pairing = pairing
        self.loss_reduction = loss_reduction
        self.dropout = dropout
        self.theta_dropout = theta_dropout
        self.shared_encoder = shared_encoder
        self.encoder = SystemEncoder(
            n_channels, encoder_hidden_dim, embedding_dim, encoder_depth, pooling
        )
        self.initial_condition = InitialConditionEncoder(
            embedding_dim if shared_encoder else n_channels,
            gru_hidden_dim,
            init_hidden_dim,
            init_kernel_size,
            init_dilation,
        )
        self.time_varying = (
            TimeVaryingBranch(embedding_dim, time_varying_dim, time_varying_pool)
            if time_varying_dim
            else None
        )
        self.decoder = GRUDecoder(
            embedding_dim + time_varying_dim,
            n_channels,
            gru_hidden_dim,
            gru_num_layers,
            observation,
        )

    def forward(
        self, x: Tensor, observed: Tensor | None = None, starts: Tensor | None = None
    ) -> Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None
            None means that every step was observed.
        starts : Tensor of int, of shape (n_crops, batch), or None
            Start of each crop; None draws them.

        Returns
        -------
        Tensor, scalar
            The total loss.
        """
        if x.shape[1] == 1:  # no step is left to predict
            return self.encode(x, observed).sum() * 0.0
        return self.total(self.pass_losses(self.reconstruct(x, observed, starts)))

    def pass_losses(self, reconstruction: Reconstruction) -> Tensor:
        """Mean squared error of each pass, of shape (n_crops + 1,), the full window last."""
        return pass_errors(
            reconstruction.prediction,
            reconstruction.target,
            reconstruction.scored,
            reconstruction.n_steps,
            self.loss_reduction,
        )

    @staticmethod
    def total(pass_losses: Tensor) -> Tensor:
        """Half the mean over the crops plus half the full window; without crops, half of that."""
        crops, full = pass_losses[:-1], pass_losses[-1]
        return 0.5 * (crops.mean() + full) if len(crops) else 0.5 * full

    def encode_window(self, x: Tensor, observed: Tensor | None = None) -> Encoding:
        """Run everything that reads the whole window, once."""
        parts = [self._encode_chunk(*chunk) for chunk in chunks(x, observed)]
        embedding, time_varying, init_input = map(torch.cat, zip(*parts, strict=True))
        return Encoding(embedding, time_varying, init_input)

    def _encode_chunk(self, x: Tensor, observed: Tensor | None) -> Encoding:
        steps = self.encoder.encode_steps(x, observed)
        return Encoding(
            embedding=self.encoder.pool(steps, observed),
            time_varying=(
                steps[..., :0] if self.time_varying is None else self.time_varying(steps, observed)
            ),
            init_input=steps if self.shared_encoder else x,
        )

    def reconstruct(
        self, x: Tensor, observed: Tensor | None = None, starts: Tensor | None = None
    ) -> Reconstruction:
        """Reconstruct each crop, and the full window, from the embedding of the whole window.

        Parameters
        ----------
        x, observed, starts
            As in :meth:`forward`; at least two time steps.

        Returns
        -------
        Reconstruction
            Predictions, targets and what is scored, time first.
        """
        batch = len(x)
        embedding, drive, init_input = self.encode_window(x, observed)
        if self.pairing == "random":  # everything but theta comes from another window
            partner = torch.randperm(batch, generator=self.generator(x.device), device=x.device)
            x, drive, init_input = x[partner], drive[partner], init_input[partner]
            observed = None if observed is None else observed[partner]
        if starts is None:
            starts = self._draw_starts(x, observed)
        starts = torch.cat([starts, self._first_step(x, observed).unsqueeze(0)])
        condition = self.initial_condition.at(starts, init_input, observed)
        return self._run_passes(embedding, drive, condition, starts, x, observed)

    def _run_passes(
        self,
        embedding: Tensor,
        drive: Tensor,
        condition: Tensor,
        starts: Tensor,
        x: Tensor,
        observed: Tensor | None,
    ) -> Reconstruction:
        """Reconstruct `x` after each of `starts`, of shape (n_passes, batch)."""
        batch, n_timesteps, _ = x.shape
        index, inside = aligned_steps(starts, n_timesteps, self._lengths(starts, n_timesteps))
        rows = torch.arange(batch, device=x.device)
        prediction = self._decode(embedding, drive, condition, index, inside.sum(0))
        scored = inside if observed is None else inside & observed[rows, index]
        return Reconstruction(
            prediction=prediction,
            target=x[rows, index],
            scored=scored,
            n_steps=inside.sum(0).amax(1),
            starts=starts,
            condition=condition,
        )

    def complete(self, x: Tensor, observed: Tensor | None = None, start: int = 0) -> Tensor:
        """Reconstruct the rest of each window, from its own embedding.

        Parameters
        ----------
        x, observed
            As in :meth:`forward`; at least two time steps.
        start : int, default=0
            t0; where it is not observed, the next step that is.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, n_channels)
            Predictions, missing steps included; NaN up to t0.
        """
        batch, n_timesteps, _ = x.shape
        embedding, drive, init_input = self.encode_window(x, observed)
        starts = torch.full((1, batch), start, device=x.device)
        if observed is not None:
            later = observed & (torch.arange(n_timesteps, device=x.device) >= start)
            # Without such a step nothing is predicted.
            first = later.to(torch.int64).argmax(1)
            starts = torch.where(later.any(1), first, n_timesteps - 1).unsqueeze(0)
        whole = torch.full_like(starts, n_timesteps)
        index, inside = aligned_steps(starts, n_timesteps, whole)
        conditions = self.initial_condition(init_input, observed)
        condition = conditions[torch.arange(batch, device=x.device), starts]
        # All of one length: shapes, and so rounding, do not depend on which windows come together.
        lengths = torch.full_like(starts, n_timesteps - 1)
        prediction = self._decode(embedding, drive, condition, index, lengths)[:, 0]
        completed = torch.full_like(x, torch.nan)
        step, row = inside[:, 0].nonzero(as_tuple=True)
        completed[row, index[step, 0, row]] = prediction[step, row].to(x.dtype)
        return completed

    def _decode(
        self, embedding: Tensor, drive: Tensor, condition: Tensor, index: Tensor, lengths: Tensor
    ) -> Tensor:
        """Predict so many of the numbered steps of every pass, zeros after them.

        `index` is of shape (n_timesteps - 1, n_passes, batch), `lengths` (n_passes, batch).
        """
        _, n_passes, batch = index.shape
        constant = embedding.expand(n_passes, -1, -1).flatten(0, 1)
        drive = drive[torch.arange(batch, device=index.device), index].flatten(1, 2)
        drop = None
        if self.training and self.dropout:
            generator = self.generator(index.device)
            if self.theta_dropout == "step":
                draw = partial(keep_bits, p=self.dropout, generator=generator)
                drop = SeededDropout(draw, keep_scale(self.dropout))
            else:
                constant = dropout(constant, self.dropout, generator)
                drive = dropout(drive, self.dropout, generator)
        prediction = self.decoder.roll_out(
            constant, drive, condition.flatten(0, 1), lengths.flatten(), drop
        )
        return prediction.unflatten(1, (n_passes, batch))

    def _draw_starts(self, x: Tensor, observed: Tensor | None) -> Tensor:
        length = self.crop_length if self.crop == "fixed" else self.min_crop_length
        batch, n_timesteps, _ = x.shape
        return crop_starts(
            self.n_crops, (batch, n_timesteps), length, self.generator(x.device), observed
        )

    def _first_step(self, x: Tensor, observed: Tensor | None) -> Tensor:
        if observed is None:
            return torch.zeros(len(x), dtype=torch.int64, device=x.device)
        return observed_span(observed)[0]

    def _lengths(self, starts: Tensor, n_timesteps: int) -> Tensor:
        """Most steps each pass predicts; only fixed crops end before the window does."""
        lengths = torch.full((len(starts), 1), n_timesteps, device=starts.device)
        if self.crop == "fixed":
            lengths[:-1] = length_in_steps(self.crop_length, n_timesteps)
        return lengths
