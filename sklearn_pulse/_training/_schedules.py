"""Schedules of the learning rate, as callbacks."""

from __future__ import annotations

from typing import Any

from skorch import NeuralNet
from skorch.callbacks import Callback, LRScheduler
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR, ReduceLROnPlateau

_SMOOTHING = 0.3  # weight of the previous smoothed error


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

    def on_batch_end(self, net: NeuralNet, training: bool, **kwargs: Any) -> None:
        """Pass the loss of a training batch to the schedule."""
        if training:
            self.scheduler_.step(kwargs["loss"])


class ReduceOnValidationPlateau(ReduceOnPlateau):
    """Lower the learning rate by 5 % after 7 validations in a row without a lower error.

    The error is the reconstruction term of the loss, since the rising weight of another term does
    not change it. The objective keeps the error of its last batch as ``last_error``. The mean
    over windows is smoothed over validations, ``0.3 * before + 0.7 * now`` (code of LFADS's
    authors).

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

    def on_batch_end(self, net: NeuralNet, training: bool, **kwargs: Any) -> None:
        """Add up the errors of validation."""
        if not training:
            n_windows = len(kwargs["batch"]["x"])
            self._total = self._total + n_windows * net.module_.last_error.float()
            self._n_windows += n_windows

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        """Pass the mean error to the schedule if the epoch was validated."""
        if not self._n_windows:
            return
        error = float(self._total) / self._n_windows
        before = error if self.smoothed_ is None else self.smoothed_
        self.smoothed_ = _SMOOTHING * before + (1.0 - _SMOOTHING) * error
        self.scheduler_.step(self.smoothed_)
        self._total, self._n_windows = 0.0, 0


def one_cycle(lr: float, n_updates: int, has_momentum: bool = True) -> list[tuple[str, Callback]]:
    """Return the callback of a learning rate that rises to `lr` and falls, stepped per batch.

    The momentum of an optimiser that has one falls and rises. A single update has the rate `lr`,
    without a callback: torch's schedule would begin with its last rate, 4e-6 of `lr`, which trains
    nothing.
    """
    if n_updates == 1:
        return []
    settings: dict[str, Any] = {"max_lr": float(lr), "total_steps": int(n_updates)}
    if not has_momentum:
        settings["cycle_momentum"] = False
    return [("lr_scheduler", LRScheduler(OneCycleLR, step_every="batch", **settings))]
