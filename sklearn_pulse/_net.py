"""The one training loop, a skorch net around an objective."""

from __future__ import annotations

import contextlib
import copy
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch
from skorch import NeuralNet
from skorch.callbacks import Callback, EarlyStopping, EpochTimer, PrintLog
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import Dataset

Batch = dict[str, Tensor]

_INITIALIZATION = threading.Lock()  # torch's global generator is shared by threads


class BatchDataset(Protocol):
    """What the loop trains on: it is sized, and an index tensor takes a batch on the device."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Tensor) -> Batch: ...


class ResidentBatches(Dataset):
    """Batches indexed out of tensors that already lie on the device.

    Parameters
    ----------
    **tensors : Tensor of shape (n_samples, ...) or None
        What the objective takes; a None is left out.

    Examples
    --------
    >>> import torch
    >>> ResidentBatches(x=torch.arange(4.0), observed=None)[torch.tensor([3, 1])]
    {'x': tensor([3., 1.])}
    """

    def __init__(self, **tensors: Tensor | None) -> None:
        self.tensors = {name: tensor for name, tensor in tensors.items() if tensor is not None}

    def __len__(self) -> int:
        return len(next(iter(self.tensors.values())))

    def __getitem__(self, index: Tensor) -> Batch:
        return {name: tensor[index.to(tensor.device)] for name, tensor in self.tensors.items()}


class BatchIterator:
    """Batches by index: one permutation an epoch, nothing collated sample by sample.

    The order of an epoch depends on the seed and the epoch's number alone, so that a resumed
    run sees the batches that an uninterrupted one would have seen.

    Parameters
    ----------
    dataset : BatchDataset
        What the batches are taken from.
    batch_size : int, default=128
        The last batch may be smaller, but never smaller than `min_batch_size`.
    shuffle : bool, default=False
        Whether each epoch draws a new order.
    seed : int, default=0
        Of the order.
    min_batch_size : int, default=1
        A last batch below it joins its predecessor: contrastive methods need negatives.
    drop_last : bool, default=False
        Whether what does not fill a batch is left out of an epoch; where there is less than one
        batch, it is one all the same.
    max_batches : int or None, default=None
        Batches of all epochs together; the last epoch ends with them.

    Examples
    --------
    >>> import torch
    >>> batches = BatchIterator(ResidentBatches(x=torch.arange(5.0)), batch_size=2)
    >>> [batch["x"].tolist() for batch in batches]
    [[0.0, 1.0], [2.0, 3.0], [4.0]]
    >>> batches = BatchIterator(
    ...     ResidentBatches(x=torch.arange(5.0)), batch_size=2, min_batch_size=2
    ... )
    >>> [batch["x"].tolist() for batch in batches]
    [[0.0, 1.0], [2.0, 3.0, 4.0]]
    """

    def __init__(
        self,
        dataset: BatchDataset,
        batch_size: int = 128,
        shuffle: bool = False,
        seed: int = 0,
        min_batch_size: int = 1,
        drop_last: bool = False,
        max_batches: int | None = None,
    ) -> None:
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.min_batch_size = min_batch_size
        self.drop_last = drop_last
        self.max_batches = max_batches
        self.epoch = 0
        self.position = 0  # batches of the next epoch that a resumed run has behind it

    def __len__(self) -> int:
        """Return the number of batches in the epoch that comes next."""
        n_batches = self._n_batches
        if self.max_batches is None:
            return n_batches
        return min(n_batches, self.max_batches - self.epoch * n_batches)

    @property
    def _n_batches(self) -> int:
        """Number of batches in a whole epoch."""
        full, rest = divmod(len(self.dataset), self.batch_size)
        return max(1, full + (not self.drop_last and rest >= self.min_batch_size and rest > 0))

    def __iter__(self) -> Iterator[Batch]:
        order = self._order()
        if self.drop_last:
            order = order[: max(self.batch_size, len(order) // self.batch_size * self.batch_size)]
        first, self.position = self.position, 0
        last, n_batches = self._n_batches - 1, len(self)
        self.epoch += 1
        for i in range(first, n_batches):
            stop = None if i == last else (i + 1) * self.batch_size
            yield self.dataset[order[i * self.batch_size : stop]]

    def _order(self) -> Tensor:
        n_samples = len(self.dataset)
        if not self.shuffle:
            return torch.arange(n_samples)
        # torch reads 32 bits of a seed; the odd factors keep (seed, epoch) pairs apart in them.
        mixed = (self.seed * 0x9E3779B1 + self.epoch * 0x85EBCA77) % 2**32
        return torch.randperm(n_samples, generator=torch.Generator().manual_seed(mixed))


class ClipGradientValue(Callback):
    """Clip every element of the gradient (skorch's own callback clips the norm).

    Parameters
    ----------
    value : float
        The largest absolute value kept.
    """

    def __init__(self, value: float) -> None:
        self.value = value

    def on_grad_computed(self, net: NeuralNet, named_parameters: Any, **kwargs: Any) -> None:
        """Clip in place."""
        nn.utils.clip_grad_value_([p for _, p in named_parameters], self.value)


class SelectWeights(Callback):
    """Keep the weights of the selected epoch and put them back when training ends.

    skorch's ``Checkpoint`` does as much for the lowest loss, through files.

    Parameters
    ----------
    rule : {"trailing_mean", "min_val"}
        "min_val" keeps the lowest validation loss. "trailing_mean" is the published rule: from
        the fifth epoch on, weights are kept when the mean of the last five recorded validation
        losses is at most the validation loss that was current when weights were last kept.
        Where nothing was ever kept, the last weights stay.
    average : AverageWeights or None, default=None
        Keep its running average instead of the weights themselves; it comes before this one.

    Attributes
    ----------
    epoch_ : int or None
        The selected epoch, counted from 0.
    """

    n_trailing = 5

    def __init__(self, rule: str, average: AverageWeights | None = None) -> None:
        self.rule = rule
        self.average = average

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        """Forget an earlier training."""
        self.best_ = math.inf
        self.epoch_: int | None = None
        self.weights_: dict[str, Tensor] | None = None

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
            kept = net.module_ if self.average is None else self.average.average_.module
            self.weights_ = copy.deepcopy(kept.state_dict())

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        """Put the selected weights back."""
        if self.weights_ is not None:
            net.module_.load_state_dict(self.weights_)
            self.weights_ = None


class AverageWeights(Callback):
    """Put the equal-weight average of all iterates in place of the last weights.

    The initial weights count as the first iterate, as in TS2Vec's own code.

    Attributes
    ----------
    average_ : torch.optim.swa_utils.AveragedModel or None
        The running average; None outside a training.
    """

    average_: AveragedModel | None = None

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        """Start from the weights as they are."""
        self.average_ = AveragedModel(net.module_)
        self.average_.update_parameters(net.module_)

    def on_batch_end(self, net: NeuralNet, training: bool, **kwargs: Any) -> None:
        """Add the weights after an update."""
        if training:
            self.average_.update_parameters(net.module_)

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        """Put the average into the net."""
        net.module_.load_state_dict(self.average_.module.state_dict())
        self.average_ = None


class SSLNet(NeuralNet):
    """skorch net whose module is an :class:`Objective`, which returns its own loss.

    Batches are dictionaries that the objective takes as keyword arguments. `fit` takes a pair of
    datasets, for training and for validation (or None). The loss is read once an epoch.

    Parameters
    ----------
    module : type
        Class of the objective; its parameters as ``module__name``.
    seed : int, default=0
        Of initialisation, batches and validation.
    precision : {"float32", "bfloat16"}, default="float32"
        "bfloat16" computes under autocast; weights stay float32.
    validation_every : int, default=1
        Validate at epochs 0, k, 2k, ...; the others repeat the last value in the history.
    deterministic_validation : bool, default=True
        True draws the same crops at every validation and switches dropout off. False goes on
        drawing from the objective's generator, with dropout on unless the objective says
        ``evaluates_in_validation``, as the published code does.
    **kwargs
        Those of :class:`skorch.NeuralNet`.

    Examples
    --------
    >>> import torch
    >>> from sklearn_pulse._cross_reconstruction import CrossReconstruction
    >>> net = SSLNet(CrossReconstruction, module__n_channels=1, max_epochs=2, verbose=0)
    >>> windows = ResidentBatches(x=torch.randn(8, 16, 1))
    >>> len(net.fit((windows, None)).history)
    2
    """

    def __init__(
        self,
        module: Any,
        *,
        seed: int = 0,
        precision: str = "float32",
        validation_every: int = 1,
        deterministic_validation: bool = True,
        **kwargs: Any,
    ) -> None:
        settings = {
            "criterion": nn.Identity,  # the objective returns the loss itself
            "optimizer": torch.optim.AdamW,
            "iterator_train": BatchIterator,
            "iterator_train__shuffle": True,
            "iterator_train__seed": seed,
            "iterator_valid": BatchIterator,
            "train_split": None,
        }
        super().__init__(module, **(settings | kwargs))
        self.seed = seed
        self.precision = precision
        self.validation_every = validation_every
        self.deterministic_validation = deterministic_validation

    @property
    def _default_callbacks(self) -> list[tuple[str, Callback]]:
        return [("epoch_timer", EpochTimer()), ("print_log", PrintLog())]

    def initialize(self) -> SSLNet:
        """Build every component; weights depend on the seed alone, whatever ran before."""
        with _INITIALIZATION, torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return super().initialize()

    def torch_compile(self, module: nn.Module, name: str) -> nn.Module:
        """Compile the encoder in place, so that names of weights and pickling stay as they are."""
        if self.compile and name == "module":
            module.encoder.compile()
        return module

    def partial_fit(self, X: Any, y: None = None, classes: None = None, **kwargs: Any) -> SSLNet:
        """Train; unlike skorch's, an interruption is never swallowed."""
        if not self.initialized_:
            self.initialize()
        self.stop_training_ = False
        self.losses_ = torch.empty(0)  # of the batches that the current epoch has behind it
        self.notify("on_train_begin", X=X, y=y)
        self.fit_loop(X)
        self.notify("on_train_end", X=X, y=y)
        return self

    def get_split_datasets(self, X: Any, y: None = None, **kwargs: Any) -> Any:
        """Return the pair of datasets that `fit` was given."""
        return X

    def fit_loop(self, X: Any, y: None = None, epochs: int | None = None, **kwargs: Any) -> SSLNet:
        """Run the epochs that the history does not hold yet."""
        train, valid = self.get_split_datasets(X)
        datasets = {"dataset_train": train, "dataset_valid": valid}
        iterator_train = self.get_iterator(train, training=True)
        iterator_valid = None if valid is None else self.get_iterator(valid)
        iterator_train.epoch, iterator_train.position = len(self.history), len(self.losses_)
        for epoch in range(len(self.history), epochs or self.max_epochs):
            if self.stop_training_:
                break
            self.module_.epoch = epoch
            self.notify("on_epoch_begin", **datasets)
            self.run_single_epoch(iterator_train, True, "train", self.train_step)
            if iterator_valid is not None:
                self._validate(iterator_valid, epoch)
            self._end_epoch(datasets)
        return self

    def run_single_epoch(
        self, iterator: Any, training: bool, prefix: str, step_fn: Any, **kwargs: Any
    ) -> None:
        """Run over the batches and record the unweighted mean of their losses."""
        # One tensor for all: a small one kept for each batch would fragment the heap.
        losses = torch.zeros(len(iterator), device=self.device)
        first = len(self.losses_) if training else 0  # a resumed epoch has some behind it
        losses[:first] = self.losses_[:first]
        for i, batch in enumerate(iterator, start=first):
            self.notify("on_batch_begin", batch=batch, training=training)
            step = step_fn(batch)
            losses[i] = step["loss"]
            if training:
                self.losses_ = losses[: i + 1]
            self.notify("on_batch_end", batch=batch, training=training, **step)
        loss = losses.mean().item()
        if training:
            self.losses_ = torch.empty(0)
        self.history.record(prefix + "_loss", loss)
        self.history.record(prefix + "_batch_count", len(losses))
        if not math.isfinite(loss):
            raise FloatingPointError(
                f"the {prefix} loss became {loss} in epoch {len(self.history)}: lower lr, scale X"
                " to unit variance, or set a smaller gradient_clip_value"
            )

    def train_step_single(self, batch: Batch, **kwargs: Any) -> dict[str, Any]:
        """Compute the loss and its gradient."""
        self._set_training(True)
        loss = self._loss(batch, self.module_)
        loss.backward()
        return {"loss": loss.detach(), "y_pred": None}

    def validation_step(self, batch: Batch, **kwargs: Any) -> dict[str, Any]:
        """Compute the loss without a gradient."""
        evaluate = self.deterministic_validation or self.module_.evaluates_in_validation
        self._set_training(not evaluate)
        with torch.no_grad():
            return {"loss": self._loss(batch, self.module_.validation_loss), "y_pred": None}

    def autocast(self) -> contextlib.AbstractContextManager:
        """Autocast to bfloat16 if `precision` says so."""
        if self.precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(torch.device(self.device).type, dtype=torch.bfloat16)

    def _loss(self, batch: Batch, compute: Callable[..., Tensor]) -> Tensor:
        with self.autocast():
            return compute(**batch)

    def _validate(self, iterator: BatchIterator, epoch: int) -> None:
        if epoch % self.validation_every:
            self.history.record("valid_loss", self.history[-2, "valid_loss"])
            return
        fixed = self.module_.seeded(self.seed) if self.deterministic_validation else None
        with fixed or contextlib.nullcontext():
            self.run_single_epoch(iterator, False, "valid", self.validation_step)

    def _end_epoch(self, datasets: dict[str, Any]) -> None:
        """Notify of an epoch's end; skorch's early stopping says so by a KeyboardInterrupt."""
        self.history[-1]["batches"] = []  # one empty entry a batch would grow with the data
        self.on_epoch_end(self, **datasets)
        for _, callback in self.callbacks_:
            try:
                callback.on_epoch_end(self, **datasets)
            except KeyboardInterrupt:
                if not isinstance(callback, EarlyStopping):
                    raise
                self.stop_training_ = True


__all__ = [
    "AverageWeights",
    "BatchIterator",
    "ClipGradientValue",
    "ResidentBatches",
    "SSLNet",
    "SelectWeights",
]
