"""What every estimator that trains by epochs has: checks, a history, callbacks, a split."""

from __future__ import annotations

import copy
from typing import Any

from skorch.callbacks import Callback, ProgressBar

from .._parameters import check_integer, check_real
from .._training._net import SSLNet


class TrainingMixin:
    """Parameters and attributes of a training by epochs."""

    net_: SSLNet

    def _check_training_params(self) -> None:
        """Raise if a parameter of the training is out of its range."""
        check_integer("max_epochs", self.max_epochs, 1)
        check_integer("batch_size", self.batch_size, 1)
        check_real("lr", self.lr, open_minimum=True)
        check_real("weight_decay", self.weight_decay)
        check_real("validation_fraction", self.validation_fraction, 0.0, 1.0)
        if not isinstance(self.verbose, bool):
            check_integer("verbose", self.verbose, 0)
        if not isinstance(self.callbacks, list | tuple | None):
            raise TypeError(
                f"callbacks must be a list of skorch callbacks or None, got {self.callbacks!r}"
            )

    @property
    def history_(self) -> list[dict[str, Any]]:
        """One dictionary an epoch: ``train_loss``, ``valid_loss``, ``dur`` (seconds)."""
        return [
            {key: value for key, value in epoch.items() if key != "batches"}
            for epoch in self.net_.history
        ]

    @property
    def n_iter_(self) -> int:
        """Number of epochs run."""
        return len(self.net_.history)

    def _user_callbacks(self) -> list[tuple[str, Callback] | Callback]:
        """Return the progress bar, if it is asked for, and copies of the parameter's callbacks."""
        callbacks = [("progress_bar", ProgressBar())] if self.verbose > 1 else []
        # The parameter stays as it was passed; what the callbacks learn is in net_.callbacks_.
        return callbacks + copy.deepcopy(list(self.callbacks or []))
