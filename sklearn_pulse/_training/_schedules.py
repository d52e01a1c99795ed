"""Schedules of the learning rate, as callbacks."""

from __future__ import annotations

from typing import Any

from skorch import NeuralNet
from skorch.callbacks import Callback, LRScheduler
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR, ReduceLROnPlateau

_SMOOTHING = 0.3  # what a smoothed error keeps of the one before


class ReduceOnPlateau(Callback):
    """Lower the learning rate by 5 % after 7 batches in a row without a lower training loss.

    The published code follows the loss of single batches; the floor is 1e-5.

    Attributes
    ----------
    scheduler_ : torch.optim.lr_scheduler.ReduceLROnPlateau
        The schedule.
    """

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        """Start a schedule."""
        self.scheduler_ = ReduceLROnPlateau(
            net.optimizer_, factor=0.95, patience=6, threshold=0.0, min_lr=1e-5
        )

    def on_batch_end(self, net: NeuralNet, training: bool, loss: Tensor, **kwargs: Any) -> None:
        """Look at the loss of a batch."""
        if training:
            self.scheduler_.step(loss)


class ReduceOnValidationPlateau(ReduceOnPlateau):
    """Lower the learning rate by 5 % after 7 validations in a row without a lower error.

    The error is the reconstruction term of the loss alone, which no rising weight of another term
    moves: the objective keeps that of its last batch as ``last_error``. Its mean over the windows
    is smoothed over validations, ``0.3 * before + 0.7 * now`` (code of LFADS's authors).

    Attributes
    ----------
    scheduler_ : torch.optim.lr_scheduler.ReduceLROnPlateau
        The schedule.
    smoothed_ : float or None
        The smoothed error; None before the first validation.
    """

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        """Start a schedule."""
        super().on_train_begin(net, **kwargs)
        self.smoothed_: float | None = None
        self._total: Tensor | float = 0.0
        self._n_windows = 0

    def on_batch_end(
        self, net: NeuralNet, training: bool, batch: dict[str, Tensor], **kwargs: Any
    ) -> None:
        """Add up the errors of validation."""
        if not training:
            self._total = self._total + len(batch["x"]) * net.module_.last_error.float()
            self._n_windows += len(batch["x"])

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        """Look at the error, if the epoch has a validation."""
        if not self._n_windows:
            return
        error = float(self._total) / self._n_windows
        before = error if self.smoothed_ is None else self.smoothed_
        self.smoothed_ = _SMOOTHING * before + (1.0 - _SMOOTHING) * error
        self.scheduler_.step(self.smoothed_)
        self._total, self._n_windows = 0.0, 0


def one_cycle(lr: float, n_updates: int) -> list[tuple[str, Callback]]:
    """Return the callback of a learning rate that rises to `lr` and falls, a step a batch."""
    return [
        (
            "lr_scheduler",
            LRScheduler(
                OneCycleLR, step_every="batch", max_lr=float(lr), total_steps=int(n_updates)
            ),
        )
    ]
