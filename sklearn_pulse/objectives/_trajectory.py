"""Base of the objectives that reconstruct windows: system encoder, drive and dynamics decoder."""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from ..functional import dropout, keep_bits, keep_scale, pass_errors
from ..networks import (
    FixedEncoder,
    GRUDecoder,
    InitialConditionEncoder,
    SeededDropout,
    SystemEncoder,
    TimeVaryingBranch,
    chunks,
    run_parts,
)
from ..sampling import (
    aligned_steps,
    crop_starts,
    length_in_steps,
    lengths_in_steps,
    observed_span,
)
from ._base import Objective


class Encoding(NamedTuple):
    """Encoding of whole windows, before crops are drawn.

    Parameters
    ----------
    embedding : Tensor of shape (batch, embedding_dim)
        Embedding theta.
    time_varying : Tensor of shape (batch, n_timesteps, time_varying_dim)
        Time-varying drive of each step; `time_varying_dim` may be zero.
    init_input : Tensor of shape (batch, n_timesteps, ...)
        Input of the initial-condition encoder: the windows, or the encoded steps if the encoder is
        shared.

    Examples
    --------
    >>> import torch
    >>> encoding = Encoding(torch.zeros(4, 16), torch.zeros(4, 32, 1), torch.zeros(4, 32, 2))
    >>> encoding.embedding.shape
    torch.Size([4, 16])
    """

    embedding: Tensor
    time_varying: Tensor
    init_input: Tensor


class Reconstruction(NamedTuple):
    """Reconstruction passes of a batch, time first; the crops come first, the full window last.

    Parameters
    ----------
    prediction : Tensor of shape (n_timesteps - 1, n_passes, batch, n_channels)
        Predicted steps; zero past the end of a crop.
    target : Tensor of shape (n_timesteps - 1, n_passes, batch, n_channels)
        Steps of the signal.
    scored : Tensor of bool, of shape (n_timesteps - 1, n_passes, batch)
        Steps that count in the loss; False past the end of a crop and where unobserved.
    n_steps : Tensor of int, of shape (n_passes,)
        Length of the longest crop of each pass.
    starts : Tensor of int, of shape (n_passes, batch)
        Start t0 of each pass.
    condition : Tensor of shape (n_passes, batch, gru_hidden_dim)
        Initial condition of each pass.
    whole : Tensor of bool, of shape (n_timesteps - 1, n_passes, n_windows), or None, default=None
        Scored steps of all windows of a batch that several processes divide; None if the batch is
        whole.

    Examples
    --------
    >>> import torch
    >>> from sklearn_pulse.objectives import CrossReconstruction
    >>> objective = CrossReconstruction(2, embedding_dim=16, encoder_hidden_dim=8, encoder_depth=3)
    >>> passes = objective.reconstruct(torch.randn(4, 32, 2))
    >>> isinstance(passes, Reconstruction), passes.prediction.shape  # two crops and the window
    (True, torch.Size([31, 3, 4, 2]))
    """

    prediction: Tensor
    target: Tensor
    scored: Tensor
    n_steps: Tensor
    starts: Tensor
    condition: Tensor
    whole: Tensor | None = None


class TrajectoryReconstruction(Objective):
    """Base class of the losses that reconstruct windows from an embedding of their system.

    It holds the networks, and reconstructs the steps after given starts. A subclass defines which
    window each input of the decoder is read from, and the loss.

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    embedding_dim : int, default=320
        Width of the embedding.
    encoder_hidden_dim : int, default=64
        Width of the encoder's blocks, except the last.
    encoder_depth : int, default=10
        Blocks of the encoder before the last, widening block.
    pooling : {"max", "mean"}, default="max"
        How the encoder pools over time.
    time_varying_dim : int, default=1
        Width of the time-varying drive that the decoder reads beside the embedding; 0 removes it.
    time_varying_pool : int, default=1
        Number of time steps that share one value of the time-varying drive.
    init_kernel_size : int, default=3
        Number of taps of the initial-condition encoder's convolutions, odd.
    init_dilation : int, default=1
        Steps between two taps of the initial-condition encoder's second convolution.
    init_hidden_dim : int, default=64
        Width between the initial-condition encoder's convolutions.
    shared_encoder : bool, default=False
        Whether the initial-condition encoder reads the encoded steps rather than the signal (an
        ablation of the paper).
    gru_num_layers : int, default=2
        Layers of the decoder's GRU.
    gru_hidden_dim : int, default=64
        Width of the decoder's GRU.
    observation : {"mlp", "linear"}, default="mlp"
        Map from the decoder's state to the signal: two layers as in the published code ("mlp"), or
        the linear map of the paper's text ("linear").
    n_crops : int, default=2
        Number of crops per window; 0 reconstructs the full window only.
    crop : {"suffix", "fixed"}, default="suffix"
        "suffix" crops run to the end of the window (published code); "fixed" crops have
        `crop_length` steps (paper).
    crop_length : int, float or None, default=None
        Steps of a fixed crop (int), or its fraction of the window (float), from the first observed
        step to the last; None means `min_crop_length`.
    min_crop_length : int or float, default=0.5
        Smallest number of steps that a suffix crop predicts (int), or their fraction of the window
        (float).
    loss_reduction : {"published", "valid"}, default="published"
        Whether the mean squared error counts the zeros past the end of shorter crops, as the
        published code does, or valid entries only.
    dropout : float, default=0.1
        Probability of dropout of the decoder's input, in training.
    theta_dropout : {"step", "sequence"}, default="step"
        Whether the embedding's part of the decoder's input has a new dropout mask at each time step
        ("step", as published), or one mask per crop ("sequence").
    fixed_encoder : FixedEncoder or None, default=None
        Encoder that is not trained and takes the place of the system encoder. Its embedding is all
        that the decoder reads beside the initial condition: there is no time-varying drive, and
        the parameters of the system encoder and of the drive are ignored.
    seed : int, default=0
        Seed of the generator of crops, pairs and dropout.

    Examples
    --------
    >>> import torch
    >>> from sklearn_pulse.objectives import TrajectoryReconstruction
    >>> networks = TrajectoryReconstruction(
    ...     2, embedding_dim=16, encoder_hidden_dim=8, encoder_depth=3
    ... )
    >>> x = torch.randn(4, 32, 2)
    >>> networks.encode_window(x).time_varying.shape, networks.complete(x).shape
    (torch.Size([4, 32, 1]), torch.Size([4, 32, 2]))
    """

    encoder: SystemEncoder | FixedEncoder
    computes_in_parts = True

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
        loss_reduction: Literal["published", "valid"] = "published",
        dropout: float = 0.1,
        theta_dropout: Literal["step", "sequence"] = "step",
        fixed_encoder: FixedEncoder | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(seed)
        self.n_crops = n_crops
        self.crop = crop
        self.crop_length = min_crop_length if crop_length is None else crop_length
        self.min_crop_length = min_crop_length
        self.loss_reduction = loss_reduction
        self.dropout = dropout
        self.theta_dropout = theta_dropout
        if fixed_encoder is not None:  # without encoded steps
            self.replayed = "never"  # it computes in numpy
            shared_encoder, time_varying_dim = False, 0
            embedding_dim = fixed_encoder.embedding_dim
        self.shared_encoder = shared_encoder
        self.encoder = fixed_encoder or SystemEncoder(
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

    def pass_losses(self, reconstruction: Reconstruction) -> Tensor:
        """Compute the mean squared error of each pass.

        Parameters
        ----------
        reconstruction : Reconstruction
            Passes of a batch, as `reconstruct` returns them.

        Returns
        -------
        Tensor of shape (n_passes,)
            Loss of each pass; the full window comes last.
        """
        return pass_errors(
            reconstruction.prediction,
            reconstruction.target,
            reconstruction.scored,
            reconstruction.n_steps,
            self.loss_reduction,
            reconstruction.whole,
        )

    def encode_window(self, x: Tensor, observed: Tensor | None = None) -> Encoding:
        """Run the networks that read the whole window, once.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.

        Returns
        -------
        Encoding
            Embedding, time-varying drive and input of the initial-condition encoder.
        """
        if isinstance(self.encoder, FixedEncoder):
            return self._encoding(x, observed, self.encode(x, observed))
        parts = run_parts(self._encode_chunk, chunks(x, observed), self._encoding_weights())
        embedding, time_varying, init_input = map(torch.cat, zip(*parts, strict=True))
        return Encoding(embedding, time_varying, init_input)

    def _encoding(self, x: Tensor, observed: Tensor | None, embedding: Tensor | None) -> Encoding:
        """Encode windows. With a known `embedding`, by a fixed encoder, there is no drive."""
        if embedding is None:
            return self.encode_window(x, observed)
        return Encoding(embedding, time_varying=x[..., :0], init_input=x)

    def _encoding_weights(self) -> list[Tensor]:
        """Return the weights of the networks that read the whole window."""
        branch = [] if self.time_varying is None else list(self.time_varying.parameters())
        return [*self.encoder.parameters(), *branch]

    def _encode_chunk(self, x: Tensor, observed: Tensor | None) -> Encoding:
        """Encode the windows of one chunk of the batch."""
        if not isinstance(self.encoder, SystemEncoder):  # which a subclass may have set
            raise TypeError(
                f"{type(self).__name__} reads every step that its encoder encodes, and"
                f" {type(self.encoder).__name__} encodes none: derive the encoder from"
                " networks.SystemEncoder, with an `encode_steps` of its own."
            )
        steps = self.encoder.encode_steps(x, observed)
        return Encoding(
            embedding=self.encoder.pool(steps, observed),
            time_varying=(
                steps[..., :0] if self.time_varying is None else self.time_varying(steps, observed)
            ),
            init_input=steps if self.shared_encoder else x,
        )

    def _zero(self, x: Tensor, observed: Tensor | None) -> Tensor:
        """Return a loss of zero that has a gradient."""
        if isinstance(self.encoder, FixedEncoder):
            return sum((weight.sum() for weight in self.parameters()), x.new_zeros(())) * 0.0
        return self.encode(x, observed).sum() * 0.0

    def _run_passes(
        self,
        embedding: Tensor,
        drive: Tensor,
        condition: Tensor,
        starts: Tensor,
        x: Tensor,
        observed: Tensor | None,
    ) -> Reconstruction:
        """Reconstruct the windows of this process's share after each of `starts`.

        `x` is of shape (batch, n_timesteps, n_channels) and `starts` (n_passes, batch); of the
        share's windows, `embedding` is of shape (n_mine, embedding_dim), `drive` (n_mine,
        n_timesteps, time_varying_dim) and `condition` (n_passes, n_mine, gru_hidden_dim).
        """
        batch, n_timesteps, _ = x.shape
        # index, inside: (n_timesteps - 1, n_passes, batch)
        lengths = self._lengths(starts, n_timesteps, observed)
        index, inside = aligned_steps(starts, n_timesteps, lengths)
        rows, mine = torch.arange(batch, device=x.device), self.share.rows(batch)
        scored = inside if observed is None else inside & observed[rows, index]
        index = index[..., mine]
        return Reconstruction(
            prediction=self._decode(embedding, drive, condition, index, inside.sum(0)),
            target=x[rows[mine], index],
            scored=scored[..., mine],
            n_steps=inside.sum(0).amax(1),
            starts=starts[:, mine],
            condition=condition,
            whole=None if self.share.size == 1 else scored,
        )

    def complete(
        self,
        x: Tensor,
        observed: Tensor | None = None,
        start: int = 0,
        embedding: Tensor | None = None,
    ) -> Tensor:
        """Reconstruct the rest of each window from its own embedding.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows of at least two steps; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.
        start : int, default=0
            Start t0 of the pass; in a window where it is unobserved, the next observed step.
        embedding : Tensor of shape (batch, embedding_dim), or None, default=None
            Embedding of each window by a fixed encoder, if it is known; None computes it.

        Returns
        -------
        Tensor of shape (batch, n_timesteps, n_channels)
            Predictions, missing steps included; NaN up to and including t0, and infinite where a
            prediction is not finite.
        """
        batch, n_timesteps, _ = x.shape
        embedding, drive, init_input = self._encoding(x, observed, embedding)
        starts = torch.full((1, batch), start, device=x.device)
        if observed is not None:
            later = observed & (torch.arange(n_timesteps, device=x.device) >= start)
            # In a window without a later observed step nothing is predicted.
            first = later.to(torch.int64).argmax(1)
            starts = torch.where(later.any(1), first, n_timesteps - 1).unsqueeze(0)
        whole = torch.full_like(starts, n_timesteps)
        # index, inside: (n_timesteps - 1, 1, batch)
        index, inside = aligned_steps(starts, n_timesteps, whole)
        conditions = self.initial_condition(init_input, observed)  # (batch, n_timesteps, state)
        condition = conditions[torch.arange(batch, device=x.device), starts]
        # All sequences get the same length, so that shapes and hence rounding do not depend on the
        # other windows of the batch.
        lengths = torch.full_like(starts, n_timesteps - 1)
        prediction = self._decode(embedding, drive, condition, index, lengths)[:, 0]
        prediction = prediction.masked_fill(prediction.isnan(), torch.inf)
        completed = torch.full_like(x, torch.nan)
        step, row = inside[:, 0].nonzero(as_tuple=True)
        completed[row, index[step, 0, row]] = prediction[step, row].to(x.dtype)
        return completed

    def window_errors(
        self, x: Tensor, observed: Tensor | None = None, embedding: Tensor | None = None
    ) -> Tensor:
        """Compute the mean squared error of each window's reconstruction, channel by channel.

        The pass starts at the first observed step and runs to the end of the window.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows of at least two steps; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.
        embedding : Tensor of shape (batch, embedding_dim), or None, default=None
            Embedding of each window by a fixed encoder, if it is known; None computes it.

        Returns
        -------
        Tensor of shape (batch, n_channels)
            Mean over the observed steps that are predicted; NaN in a window without such a step.
        """
        if embedding is None:  # the `complete` of a subclass may take no embedding
            prediction = self.complete(x, observed)
        else:
            prediction = self.complete(x, observed, embedding=embedding)
        scored = ~prediction.isnan()
        if observed is not None:
            scored &= observed.unsqueeze(-1)
        errors = (prediction - x).square().masked_fill(~scored, 0.0)
        return errors.sum(1) / scored.sum(1)

    def _decode(
        self, embedding: Tensor, drive: Tensor, condition: Tensor, index: Tensor, lengths: Tensor
    ) -> Tensor:
        """Predict the first `lengths` steps of each pass; fill the rest with zeros.

        `index`, the window index of each predicted step, is of shape (n_timesteps - 1, n_passes,
        n_mine), for the windows of this process's share. `lengths` is of shape (n_passes, batch),
        for all windows. The result is of shape (n_timesteps - 1, n_passes, n_mine, n_channels).
        """
        n_steps, n_passes, batch = index.shape
        members = self._members(lengths)
        # The decoder reads all passes as one batch of n_passes * batch sequences.
        constant = embedding.expand(n_passes, -1, -1).flatten(0, 1)
        # (n_timesteps - 1, n_passes * batch, time_varying_dim)
        drive = drive[torch.arange(batch, device=index.device), index].flatten(1, 2)
        drop = None
        if self.training and self.dropout:
            generator = self.generator(index.device)
            if self.theta_dropout == "step":
                draw = partial(keep_bits, p=self.dropout, generator=generator)
                drop = SeededDropout(draw, keep_scale(self.dropout))
            else:
                n_all = lengths.numel()
                of = (n_all, constant.shape[1]), members
                constant = dropout(constant, self.dropout, generator, of)
                steps = slice(None)
                of_drive = (n_steps, n_all, drive.shape[2]), (steps, members)
                drive = dropout(drive, self.dropout, generator, of_drive)
        prediction = self.decoder.roll_out(
            constant,
            drive,
            condition.flatten(0, 1),
            lengths.flatten()[members],
            drop,
            None if self.share.size == 1 else (lengths.flatten(), members),
        )
        return prediction.unflatten(1, (n_passes, batch))

    def _members(self, lengths: Tensor) -> Tensor:
        """Return the numbers of the share's sequences among all, (n_passes * n_mine,)."""
        numbers = torch.arange(lengths.numel(), device=lengths.device).view(lengths.shape)
        return numbers[:, self.share.rows(lengths.shape[1])].flatten()

    def longest_crop(self, n_timesteps: int) -> int:
        """Return the largest number of steps of a crop; a suffix may be as long as the window.

        Parameters
        ----------
        n_timesteps : int
            Steps of the window.

        Returns
        -------
        int
            The number of steps.
        """
        fixed = self.crop == "fixed"
        return length_in_steps(self.crop_length, n_timesteps) if fixed else n_timesteps

    def _draw_starts(self, x: Tensor, observed: Tensor | None) -> Tensor:
        """Draw the start of each crop, (n_crops, batch)."""
        length = self.crop_length if self.crop == "fixed" else self.min_crop_length
        batch, n_timesteps, _ = x.shape
        return crop_starts(
            self.n_crops, (batch, n_timesteps), length, self.generator(x.device), observed
        )

    def _first_step(self, x: Tensor, observed: Tensor | None) -> Tensor:
        """Return the first observed step of each window, (batch,)."""
        if observed is None:
            return torch.zeros(len(x), dtype=torch.int64, device=x.device)
        return observed_span(observed)[0]

    def _lengths(self, starts: Tensor, n_timesteps: int, observed: Tensor | None = None) -> Tensor:
        """Return the maximum number of steps of each pass, (n_passes, 1) or (n_passes, batch).

        Only fixed crops end before the window does; the last pass, the full window, never does.
        `observed` is of shape (batch, n_timesteps): a window ends with its last observed step, and
        a fraction is that of the steps from the first observed one to the last, as for the starts.
        """
        if observed is not None:
            first, stop = observed_span(observed)
            lengths = stop - 1 - starts
            if self.crop == "fixed":
                crop = lengths_in_steps(self.crop_length, stop - first)
                lengths[:-1] = torch.minimum(lengths[:-1], crop)
            return lengths
        lengths = torch.full((len(starts), 1), n_timesteps, device=starts.device)
        lengths[:-1] = self.longest_crop(n_timesteps)
        return lengths
