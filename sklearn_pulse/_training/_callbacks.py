"""Callbacks of the training loop: gradients, draws and the choice of weights."""

from __future__ import annotations

import copy
import math
from typing import Any

from skorch import NeuralNet
from skorch.callbacks import Callback
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel


class ClipGradientValue(Callback):
    """Clip every element of the gradient, while skorch's own callback clips its norm.

    Parameters
    ----------
    value : float
        Largest absolute value of an element.
    """

    def __init__(self, value: float) -> None:
        self.value = value

    def on_grad_computed(self, net: NeuralNet, named_parameters: Any, **kwargs: Any) -> None:
        """Clip in place."""
        nn.utils.clip_grad_value_([p for _, p in named_parameters], self.value)


class LoadsWeights(Callback):
    """Base of callbacks that put other weights in the place of the last ones."""

    weights_: dict[str, Tensor] | None = None  # kept during a training

    def weights_to_load(self, net: NeuralNet) -> dict[str, Any] | None:
        """Return the weights that a training which ended now would load; None for the last ones."""
        return self.weights_

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        """Load the weights, and let go of the copy."""
        weights = self.weights_to_load(net)
        if weights is not None:
            net.module_.load_state_dict(weights)
        self.forget()

    def forget(self) -> None:
        """Let go of kept weights."""
        self.weights_ = None


class SelectWeights(LoadsWeights):
    """Keep the weights of the selected epoch and put them back when training ends.

    skorch's ``Checkpoint`` does the same for the lowest loss, through files.

    Parameters
    ----------
    rule : {"trailing_mean", "min_val"}
        "min_val" keeps the lowest validation loss. "trailing_mean" is the published rule: from
        the fifth epoch on, weights are kept when the mean of the last five recorded validation
        losses is at most the validation loss at the epoch whose weights were kept last. The last
        weights stay if no epoch's weights were kept.
    average : AverageWeights or None, default=None
        Callback whose running average is kept instead of the weights themselves. It must come
        before this callback in the list.

    Attributes
    ----------
    epoch_ : int or None
        The selected epoch, counted from 0.
    """

    rules = ("trailing_mean", "min_val")
    n_trailing = 5

    def __init__(self, rule: str, average: AverageWeights | None = None) -> None:
        self.rule = rule
        self.average = average

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        """Forget an earlier training."""
        self.best_ = math.inf
        self.epoch_: int | None = None
        self.weights_ = None

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        """Keep the weights if the rule says so."""
        recorded = net.history[:, "valid_loss"]
        if self.rule == "min_val":
            improved = recorded[-1] < self.best_
        else:
            trailing = recorded[-self.n_trailing :]
            mean = sum(trailing) / self.n_trailing
            improved = len(trailing) == self.n_trailing and mean <= self.best_
        if improved:
            self.best_ = recorded[-1]
            self.epoch_ = len(recorded) - 1
            kept = net.module_ if self.average is None else self.average.module
            self.weights_ = copy.deepcopy(kept.state_dict())


class AverageWeights(LoadsWeights):
    """Put the equal-weight average of all iterates in place of the last weights.

    The initial weights count as the first iterate, as in TS2Vec's own code.

    Attributes
    ----------
    average_ : torch.optim.swa_utils.AveragedModel or None
        The running average; None outside a training.
    """

    average_: AveragedModel | None = None

    @property
    def module(self) -> nn.Module:
        """Module that holds the running average."""
        if self.average_ is None:
            raise RuntimeError("there is an average during a training only")
        return self.average_.module

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        """Start from the weights as they are."""
        self.average_ = AveragedModel(net.module_)
        self.average_.update_parameters(net.module_)

    def on_batch_end(self, net: NeuralNet, training: bool, **kwargs: Any) -> None:
        """Add the weights after an update."""
        if training and self.average_ is not None:
            self.average_.update_parameters(net.module_)

    def weights_to_load(self, net: NeuralNet) -> dict[str, Any] | None:
        """Return the average."""
        return self.module.state_dict()

    def forget(self) -> None:
        """Let go of the average."""
        self.average_ = None


class KeepBest(LoadsWeights):
    """Load the weights of the best epoch that the ``EarlyStopping`` before it in the list has kept.

    ``EarlyStopping`` loads nothing if the last epoch was the best. But another callback may have
    put other weights in the place of the last ones.
    """

    def weights_to_load(self, net: NeuralNet) -> dict[str, Any] | None:
        """Return the weights of the best epoch."""
        callbacks = [callback for _, callback in net.callbacks_]
        best: dict[str, Any] | None = callbacks[callbacks.index(self) - 1].best_model_weights_
        return best


class KeepStored(LoadsWeights):
    """Load the weights that a ``Checkpoint`` of skorch has stored last, from memory.

    The files of the ``Checkpoint`` may be gone by then, or hold the weights of another fit. This
    callback must come right after the ``Checkpoint`` in the list.

    Parameters
    ----------
    event : str
        Name by which the history marks the epochs whose weights are stored.
    """

    def __init__(self, event: str) -> None:
        self.event = event

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        """Forget an earlier training."""
        self.weights_ = None

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        """Keep the weights if the ``Checkpoint`` has stored them."""
        if net.history[-1].get(self.event):
            self.weights_ = copy.deepcopy(net.module_.state_dict())


class MarkBest(Callback):
    """Record in which epochs a loss was the lowest so far, as skorch's own nets do.

    skorch's ``Checkpoint`` reads this by the names ``train_loss_best`` and ``valid_loss_best``.
    """

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        """Compare the losses of the epoch with those of the epochs before."""
        for name in ("train_loss", "valid_loss"):
            if name in net.history[-1]:
                *before, now = net.history[:, name]
                net.history.record(f"{name}_best", now < min(before, default=math.inf))


class SeedDraws(Callback):
    """Seed draws anew each epoch; with `deterministic_validation` validation keeps one seed."""

    def on_epoch_begin(
        self, net: NeuralNet, dataset_train: Any = None, dataset_valid: Any = None, **kwargs: Any
    ) -> None:
        """Seed the draws of the epoch."""
        epoch = net.module_.epoch
        dataset_train.stream = (net.seed, epoch)
        if dataset_valid is not None:
            dataset_valid.stream = (net.seed, 0 if net.deterministic_validation else epoch)
