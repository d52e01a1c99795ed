"""Training loop on skorch, around an objective."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from skorch import NeuralNet
from skorch.callbacks import Callback, EarlyStopping, EpochTimer, PrintLog
from skorch.exceptions import SkorchException
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from .._share import Share
from .._threads import workers_only
from ._callbacks import ClipGradientValue
from ._captured import CapturedStep
from ._compilation import compile_noting_failures, warn_of_failure
from ._draws import OwnDraws
from ._equal_bytes import equal_bytes
from ._gradients import SharedGradients
from ._history import selected_epoch
from ._iterator import Batch, BatchIterator
from ._monitors import check_recorded, counts_validations, skip_validation
from ._parametrized import make_picklable
from ._portable import portable, restored
from ._processes import end_alike
from ._torch_state import own_torch_state

_OF_CALLBACKS = ("callbacks", "callbacks_")
# What skorch pickles so that it loads without the device that it is on.
_OF_A_DEVICE = ("module_", "optimizer_")
_OF_A_TRAINING = ("share", "losses_", "_gradients", "_captured", "_failures")
# Where skorch reads, from bytes, the attributes that may lie on another device.
_BYTES = "__cuda_dependent_attributes__"


class SSLNet(NeuralNet):
    """skorch net whose module is an :class:`Objective`, which returns its own loss.

    Batches are dictionaries that the objective takes as keyword arguments. `fit` takes a pair of
    datasets, for training and for validation (or None). The loss is read once per epoch.

    Parameters
    ----------
    module : type
        Class of the objective; parameters of the objective are passed as ``module__name``.
    seed : int, default=0
        Seed of initialisation, batches and validation.
    precision : {"float32", "bfloat16"}, default="float32"
        "bfloat16" computes under autocast; weights stay float32.
    validation_every : int, default=1
        Number of epochs from one validation to the next, beginning with the first epoch. In
        between, the history repeats the last validation loss, without ``valid_batch_count``;
        callbacks that count the validations without a lower loss are not told of it.
    deterministic_validation : bool, default=True
        True draws the same crops at every validation and switches dropout off. False draws from
        the objective's generator, and keeps dropout on unless the objective sets
        ``evaluates_in_validation``, as the published code does.
    **kwargs : Any
        Parameters of :class:`skorch.NeuralNet`.

    Examples
    --------
    >>> import torch
    >>> from sklearn_pulse._training._iterator import ResidentBatches
    >>> from sklearn_pulse.objectives import CrossReconstruction
    >>> net = SSLNet(CrossReconstruction, module__n_channels=1, max_epochs=2, verbose=0)
    >>> windows = ResidentBatches(x=torch.randn(8, 16, 1))
    >>> len(net.fit((windows, None)).history)
    2
    """

    history: Any  # a property of skorch
    lr_name: str = "lr"  # parameter of the estimator that sets the learning rate
    share: Share | None = None  # place among the processes of a training, during the training
    _gradients: SharedGradients | None = None
    _captured: CapturedStep | None = None  # on a GPU, in a training
    _failures: Sequence[str] = ()  # reasons why the encoder was not compiled
    _is_uncompiled: bool = False  # whether a warning has said so
    selected_epoch_: int | None = None  # selected epoch, from 0; None if there is none
    n_earlier_: int = 0  # number of epochs in the history that earlier trainings have run

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
            "use_caching": False,  # of predictions, which the objective does not make
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
        with own_torch_state(), OwnDraws(self.seed):
            return super().initialize()

    def initialize_module(self) -> SSLNet:
        """Build the objective; an optimizer of an old torch takes no weight without a size."""
        super().initialize_module()
        objective = self.module_
        for name, weight in (*objective.named_parameters(), *objective.named_buffers()):
            if is_lazy(weight):
                raise TypeError(
                    f"{name} of {type(objective).__name__} takes its size from the first batch, and"
                    " no seed repeats its values: use a layer that is given its sizes in __init__,"
                    " such as torch.nn.Linear instead of LazyLinear."
                )
        return self

    def torch_compile(self, module: nn.Module, name: str) -> nn.Module:
        """Compile the encoder in place, so that names of weights and pickling stay as they are."""
        if self.compile and name == "module":
            self._failures = compile_noting_failures(module.get_submodule("encoder"))
        return module

    def report_compilation(self) -> None:
        """Warn once if the encoder was to be compiled, and torch could not."""
        # A thread that computes does not know the user's line, at which the warning points.
        if self._failures and not self._is_uncompiled:
            self._is_uncompiled = True
            warn_of_failure(self._failures[-1])

    def partial_fit(self, X: Any, y: None = None, classes: None = None, **kwargs: Any) -> SSLNet:
        """Train. Unlike in skorch, a KeyboardInterrupt is never swallowed."""
        if not self.initialized_:
            self.initialize()
        self.stop_training_ = False
        self.losses_ = torch.empty(0)  # of the batches that the current epoch has done
        train, _ = self.get_split_datasets(X)
        self.notify("on_train_begin", X=train, y=y)
        with self._training_steps():
            self.fit_loop(X)
        self.report_compilation()
        history = self.history
        self.notify("on_train_end", X=train, y=y)
        self.history = history  # skorch's Checkpoint may have loaded that of its weights
        self.selected_epoch_ = selected_epoch(self)
        if self.share is not None:
            end_alike(self, self.share)
        self._set_training(False)  # else who calls `encoder_` would move its running statistics
        return self

    def get_split_datasets(self, X: Any, y: None = None, **kwargs: Any) -> Any:
        """Return the pair of datasets that `fit` was given."""
        return X

    def fit_loop(self, X: Any, y: None = None, epochs: int | None = None, **kwargs: Any) -> SSLNet:
        """Run the epochs that are missing in the history."""
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
            repeats = iterator_valid is not None and epoch % self.validation_every != 0
            if repeats:
                self.history.record("valid_loss", self.history[-2, "valid_loss"])
            elif iterator_valid is not None:
                self._validate(iterator_valid)
            self._end_epoch(datasets, repeats)
        return self

    def run_single_epoch(
        self, iterator: Any, training: bool, prefix: str, step_fn: Any, **kwargs: Any
    ) -> None:
        """Run over the batches and record the unweighted mean of their losses."""
        # One tensor for all losses: a small tensor per batch would fragment the heap.
        losses = torch.zeros(len(iterator), device=self.device)
        first = len(self.losses_) if training else 0  # batches that a resumed epoch has done
        losses[:first] = self.losses_[:first]
        for i, batch in enumerate(iterator, start=first):
            self.notify("on_batch_begin", batch=batch, training=training)
            self.history.record_batch(prefix + "_batch_size", len(next(iter(batch.values()))))
            with workers_only() if self.module_.computes_in_parts else contextlib.nullcontext():
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
            # Not every estimator has a gradient_clip_value.
            clips = any(isinstance(callback, ClipGradientValue) for _, callback in self.callbacks_)
            names = f"{self.lr_name} or gradient_clip_value" if clips else self.lr_name
            raise FloatingPointError(
                f"the {prefix} loss became {loss} in epoch {len(self.history)}: lower {names}, or"
                " scale X to unit variance"
            )

    def train_step_single(self, batch: Batch, **kwargs: Any) -> dict[str, Any]:
        """Compute the loss and its gradient."""
        self._set_training(True)
        step = self._compute_gradient if self._captured is None else self._captured
        loss = step(batch)
        if self.share is not None:
            loss = self.share.total(loss) / self.share.size
        return {"loss": loss, "y_pred": None}

    def _compute_gradient(self, batch: Batch) -> Tensor:
        """Add the gradient of a batch's loss to the weights; return the loss without a gradient."""
        with self._divided():  # in the backward pass too, which may compute activations again
            loss = self._loss(batch, self._gradients or self.module_)
            if not loss.requires_grad:
                if all(weight.requires_grad for weight in self.module_.parameters()):
                    raise TypeError(
                        f"{type(self.module_).__name__} returns a loss without a gradient, though"
                        " none of its weights is frozen: compute the loss from the weights, and"
                        " leave out .detach(), .item() and torch.no_grad()."
                    )
                raise ValueError(
                    "every weight that the loss depends on is frozen in epoch"
                    f" {len(self.history)}, so that there is nothing to train: let callbacks, such"
                    " as skorch's Freezer, leave some weights free"
                )
            loss.backward()
        return loss.detach()

    def validation_step(self, batch: Batch, **kwargs: Any) -> dict[str, Any]:
        """Compute the loss without a gradient."""
        evaluate = self.deterministic_validation or self.module_.evaluates_in_validation
        self._set_training(not evaluate)
        with torch.no_grad(), self._divided():
            loss = self._loss(batch, self.module_.validation_loss)
        return {"loss": loss if self.share is None else self.share.total(loss), "y_pred": None}

    @contextlib.contextmanager
    def autocast(self) -> Iterator[None]:
        """Cast to bfloat16, or not at all for float32, whatever the caller has set."""
        is_half = self.precision != "float32"
        with torch.autocast(torch.device(self.device).type, torch.bfloat16, enabled=is_half):
            try:
                yield
            finally:
                # Torch forgets the weights that it has cast only when it leaves the outermost
                # autocast. Within another autocast, the next batch would use the old weights.
                torch.clear_autocast_cache()

    def _loss(self, batch: Batch, compute: Callable[..., Tensor]) -> Tensor:
        with self.autocast():
            loss = compute(**batch)
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            found = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else repr(loss)
            raise TypeError(
                f"{type(self.module_).__name__} must return the loss of a batch as a scalar tensor,"
                f" got {found}: return for example the mean over the windows."
            )
        return loss

    @contextlib.contextmanager
    def _divided(self) -> Iterator[None]:
        """Let the objective compute its share of a batch, if there is one.

        Between the batches it computes what it is given, which callbacks may ask for.
        """
        if self.share is None:
            yield
            return
        self.module_.share = self.share
        try:
            yield
        finally:
            del self.module_.share

    @contextlib.contextmanager
    def _training_steps(self) -> Iterator[None]:
        """Let several processes add up their gradients, or a GPU replay steps that are alike."""
        if self.share is not None:
            self._gradients = SharedGradients(self.module_, self.share)
        elif torch.device(self.device).type == "cuda" and not self.compile:
            self._captured = CapturedStep(self.module_, self._compute_gradient)
        try:
            yield
        finally:
            self._gradients = self._captured = None  # and the memory that they keep

    def __getstate__(self) -> dict[str, Any]:
        # A copy that is made in a training takes no part in the training.
        if self.initialized_:
            make_picklable(self.module_)
        state = {name: value for name, value in vars(self).items() if name not in _OF_A_TRAINING}
        prefixes = tuple(self.cuda_dependent_attributes_)
        moved = {name: state.pop(name) for name in list(state) if name.startswith(prefixes)}
        state[_BYTES] = equal_bytes(moved)  # unlike the bytes of skorch, the same in each process
        return state | portable(_those(state, _OF_CALLBACKS), _those(vars(self), _OF_A_DEVICE))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        own = self.__dict__
        own.update(restored(_those(own, _OF_CALLBACKS), _those(own, _OF_A_DEVICE)))

    def _validate(self, iterator: BatchIterator) -> None:
        fixed = self.module_.seeded(self.seed) if self.deterministic_validation else None
        with fixed or contextlib.nullcontext():
            self.run_single_epoch(iterator, False, "valid", self.validation_step)

    def _end_epoch(self, datasets: dict[str, Any], repeats: bool) -> None:
        """Notify the callbacks, except those that would count a repeated validation loss."""
        self.on_epoch_end(self, **datasets)
        for _, callback in self.callbacks_:
            if repeats and counts_validations(callback):
                skip_validation(self, callback)
                continue
            try:
                callback.on_epoch_end(self, **datasets)
            except KeyboardInterrupt:  # by which skorch's early stopping stops
                if not isinstance(callback, EarlyStopping):
                    raise
                self.stop_training_ = True
            except (KeyError, SkorchException) as error:
                check_recorded(self, callback, error)
                raise
        # One entry per batch would grow with the data; skorch's callbacks read the last entry.
        del self.history[-1]["batches"][:-1]


def _those(attributes: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: attributes[name] for name in names if name in attributes}
