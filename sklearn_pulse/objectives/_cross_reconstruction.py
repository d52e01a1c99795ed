"""PULSE's objective: reconstruction of random crops from the embedding of the whole window."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from ._trajectory import Reconstruction, TrajectoryReconstruction


class CrossReconstruction(TrajectoryReconstruction):
    """Loss of PULSE: half the mean over crops (paper, Eq. 3) plus half the full window.

    The second term, and the weights of both, are those of the published code. The encoder runs once
    per batch. All crops and the full window go through the decoder in one call.

    Parameters
    ----------
    n_channels : int
        Channels of the windows.
    pairing : {"crops", "random"}, default="crops"
        "random" reconstructs another window of the batch (an ablation of the paper).
    **params : dict
        Further parameters of :class:`TrajectoryReconstruction`.

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

    indivisible: str | None = None
    replayed = "always"

    def __init__(
        self, n_channels: int, *, pairing: Literal["crops", "random"] = "crops", **params: Any
    ) -> None:
        super().__init__(n_channels, **params)
        self.pairing = pairing

    def forward(
        self,
        x: Tensor,
        observed: Tensor | None = None,
        starts: Tensor | None = None,
        embedding: Tensor | None = None,
    ) -> Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.
        starts : Tensor of int, of shape (n_crops, batch), or None, default=None
            Start of each crop; None draws the starts.
        embedding : Tensor of shape (batch, embedding_dim), or None, default=None
            Embedding of each window by a fixed encoder, if it is known; None computes it.

        Returns
        -------
        Tensor, scalar
            Total loss; zero for windows of one step.
        """
        if x.shape[1] == 1:  # no step is left to predict
            mine = self.share.rows(len(x))
            return self._zero(x[mine], None if observed is None else observed[mine])
        return self.total(self.pass_losses(self.reconstruct(x, observed, starts, embedding)))

    @staticmethod
    def total(pass_losses: Tensor) -> Tensor:
        """Combine the losses of the passes: half the mean over the crops plus half the full window.

        Parameters
        ----------
        pass_losses : Tensor of shape (n_crops + 1,)
            Loss of each pass; the full window comes last.

        Returns
        -------
        Tensor, scalar
            Total loss; without crops, half the loss of the full window.
        """
        crops, full = pass_losses[:-1], pass_losses[-1]
        return 0.5 * (crops.mean() + full) if len(crops) else 0.5 * full

    def reconstruct(
        self,
        x: Tensor,
        observed: Tensor | None = None,
        starts: Tensor | None = None,
        embedding: Tensor | None = None,
    ) -> Reconstruction:
        """Reconstruct each crop, and the full window, from the embedding of the whole window.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows of at least two steps; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.
        starts : Tensor of int, of shape (n_crops, batch), or None, default=None
            Start of each crop; None draws the starts.
        embedding : Tensor of shape (batch, embedding_dim), or None, default=None
            Embedding of each window by a fixed encoder, if it is known; None computes it.

        Returns
        -------
        Reconstruction
            Predictions, targets and mask of the scored steps, time first; of the windows of this
            process's share where several processes divide the batch.
        """
        batch, mine = len(x), self.share.rows(len(x))
        seen = None if observed is None else observed[mine]
        known = None if embedding is None else embedding[mine]
        embedding, drive, init_input = self._encoding(x[mine], seen, known)
        if self.pairing == "random":  # everything except the embedding comes from another window
            partner = torch.randperm(batch, generator=self.generator(x.device), device=x.device)
            drive = self.share.gather(drive, batch)[partner[mine]]
            init_input = self.share.gather(init_input, batch)[partner[mine]]
            x = x[partner]
            observed = None if observed is None else observed[partner]
            seen = None if observed is None else observed[mine]
        if starts is None:
            starts = self._draw_starts(x, observed)
        starts = torch.cat([starts, self._first_step(x, observed).unsqueeze(0)])
        # (n_passes, n_mine, gru_hidden_dim)
        condition = self.initial_condition.at(starts[:, mine], init_input, seen)
        return self._run_passes(embedding, drive, condition, starts, x, observed)

    def exchanged_losses(
        self, x: Tensor, observed: Tensor | None = None, embedding: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Compute the loss with each input of the decoder taken from another window.

        Window i + 1 of the batch lends its input to window i, and the first window to the last.

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
        dict of str to Tensor
            Scalar losses. ``"own"`` is the loss with every window's own inputs; ``"embedding"``,
            ``"time_varying"`` and ``"initial_condition"`` name the input that is exchanged. Without
            a time-varying drive, ``"time_varying"`` is missing.
        """
        embedding, drive, init_input = self._encoding(x, observed, embedding)
        starts = self._draw_starts(x, observed)
        starts = torch.cat([starts, self._first_step(x, observed).unsqueeze(0)])
        condition = self.initial_condition.at(starts, init_input, observed)
        variants = {
            "own": (embedding, drive, condition),
            "embedding": (embedding.roll(-1, 0), drive, condition),
            "time_varying": (embedding, drive.roll(-1, 0), condition),
            "initial_condition": (embedding, drive, condition.roll(-1, 1)),
        }
        if self.time_varying is None:
            del variants["time_varying"]
        return {
            name: self.total(self.pass_losses(self._run_passes(*inputs, starts, x, observed)))
            for name, inputs in variants.items()
        }
