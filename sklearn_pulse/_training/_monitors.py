"""Callbacks that follow a value of the history, in epochs that do not measure or record it."""

from __future__ import annotations

from typing import Any

from skorch import NeuralNet
from skorch.callbacks import Callback, Checkpoint, EarlyStopping, LRScheduler
from torch.optim.lr_scheduler import ReduceLROnPlateau


def counts_validations(callback: Callback) -> bool:
    """Whether a callback counts the validations in which the loss has not fallen.

    It must not be told of a loss that repeats the last one, which would count.
    """
    if getattr(callback, "monitor", None) != "valid_loss":
        return False
    plateau = isinstance(getattr(callback, "lr_scheduler_", None), ReduceLROnPlateau)
    return plateau or isinstance(callback, EarlyStopping)


def skip_validation(net: NeuralNet, callback: Callback) -> None:
    """Record what a callback records at the end of an epoch, which it is not told of."""
    if isinstance(callback, LRScheduler) and callback.event_name is not None:
        net.history.record(callback.event_name, net.optimizer_.param_groups[0]["lr"])


def check_recorded(net: NeuralNet, callback: Callback, error: Exception) -> None:
    """Raise a ValueError if a callback follows a value that the epoch does not record."""
    monitor: Any = getattr(callback, "monitor", None)
    epoch = net.history[-1]
    if isinstance(monitor, str) and monitor not in epoch:
        # A Checkpoint asks whether the epoch is the best so far.
        ending = "_best" if isinstance(callback, Checkpoint) else ""
        known = sorted(name + ending for name in epoch if name.endswith("_loss"))
        raise ValueError(
            f"callbacks holds a {type(callback).__name__} with monitor={monitor!r}, which this"
            f" training does not record: let it follow one of {known}, or put the callback that"
            " records it before."
        ) from error
