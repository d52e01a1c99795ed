"""Shell of `fit` for every estimator that trains by epochs."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.metadata_routing import MetadataRequest
from skorch.callbacks import Callback, EarlyStopping, ProgressBar
from skorch.utils import noop

from .._commit import unchanged_on_failure
from .._data._batches import WindowBatches
from .._data._candidates import DrawnBatches
from .._data._scale import warn_of_scale
from .._data._validation import check_windows
from .._data._windows import CheckedWindows
from .._parameters import (
    LARGEST_FLOAT32,
    as_path,
    check_betas_go_with,
    check_boolean,
    check_integer,
    check_option,
    check_real,
    check_schedule,
    check_verbose,
)
from .._share import Share
from .._signals import Signals, agreed, compare, note, noted
from .._threads import threads
from .._training._callbacks import (
    AverageWeights,
    ClipGradientValue,
    MarkBest,
    SeedDraws,
    SelectWeights,
)
from .._training._device import memory_errors
from .._training._history import as_if_ended, prepend_history
from .._training._iterator import BatchIterator
from .._training._net import SSLNet
from .._training._processes import among_others, callbacks_of_process
from .._training._progress import CallbackSupportMixin, ReportEpochs
from .._training._schedules import one_cycle
from .._training._torch_state import own_torch_state
from .._training._user_callbacks import (
    check_callbacks,
    check_clones,
    check_monitored,
    check_names,
    named,
    needs_best,
    own_callbacks,
    sets_learning_rate,
    with_keepers,
)
from .._warnings import warn_user
from ._complete import check_objective, check_stored
from ._encoder import WindowEmbedder
from ._fit_data import FitData, Parts
from ._run import add_checkpoint, check_others, identity_of, join_others, seed_of_run

# Values of `select` that average the weights, and the rule that picks an epoch's average.
AVERAGES: Mapping[str, str | None] = {"average": None, "average_min_val": "min_val"}

# Parameters on which the memory of a training depends most.
_HUNGRY = ("batch_size", "n_crops", "embedding_dim", "encoder_hidden_dim", "gru_hidden_dim")

Callbacks = list[tuple[str, Callback] | Callback]


class TrainedEmbedder(CallbackSupportMixin, WindowEmbedder):
    """Encoder that is trained by epochs.

    A subclass divides its input in `_prepare`, and overrides the class attributes that differ.

    Attributes
    ----------
    history_ : list of dict
        One dictionary per epoch, with ``train_loss``, ``valid_loss`` and ``dur`` (its duration in
        seconds). In an epoch without validation ``valid_loss`` repeats the last one, and
        ``valid_batch_count`` is missing. Under `warm_start` the epochs of the earlier fits come
        first, and ``fit`` counts the fits from 1: a new schedule starts where it rises.
    n_iter_ : int
        Number of epochs that the last fit has run.
    selected_epoch_ : int or None
        Epoch of `history_` whose weights were kept, counted from 1; None if none was selected: the
        weights are the last ones, or the average of all under a `select` that averages.
    n_timesteps_trained_ : int
        Number of time steps of the longest windows that the weights were trained on, including
        the windows of a pretrained encoder, and of earlier fits under `warm_start`.

    Examples
    --------
    A method that keeps its learning rate constant:

    >>> import numpy as np
    >>> from sklearn_pulse import PulseTransformer
    >>> from sklearn_pulse.base import TrainedEmbedder
    >>> class ConstantPulse(PulseTransformer):
    ...     '''PULSE with a constant learning rate.'''
    ...
    ...     def _schedule(self, train):
    ...         return []
    >>> X = np.random.default_rng(0).normal(size=(8, 32, 2))
    >>> pulse = ConstantPulse(embedding_dim=8, max_epochs=2, random_state=0).fit(X)
    >>> isinstance(pulse, TrainedEmbedder), [epoch["epoch"] for epoch in pulse.history_]
    (True, [1, 2])
    """

    # Facts about a method.
    _optimizer: ClassVar[type[torch.optim.Optimizer]] = torch.optim.AdamW
    _selections: Mapping[str, str | None] = {}  # values of `select` -> rule of SelectWeights
    _schedules: tuple[str, ...] = ("one_cycle", "constant")  # values of `schedule`
    _remedy_by_training = " If X has the scale of fit, fit again with a smaller lr."

    # Parameters that every subclass has.
    max_epochs: int
    batch_size: int
    lr: float
    weight_decay: float
    validation_fraction: float
    select: str
    callbacks: list[Any] | None
    input_layout: Any
    random_state: Any
    verbose: int

    # Parameters that some subclasses have, and what their absence means.
    schedule: str = "one_cycle"
    betas: tuple[float, float] | None = None
    max_updates: int | str | None = None
    drop_last: bool = False
    gradient_clip_value: float | None = None
    validation_every: int = 1
    deterministic_validation: bool = True
    patience: int | None = None
    checkpoint_dir: str | os.PathLike[str] | None = None
    warm_start: bool = False
    distributed: bool | str = False

    @property
    def history_(self) -> list[dict[str, Any]]:
        """One dictionary per epoch: ``train_loss``, ``valid_loss``, ``dur`` (seconds)."""
        return [
            {key: value for key, value in epoch.items() if key != "batches"}
            for epoch in self.net_.history
        ]

    @property
    def selected_epoch_(self) -> int | None:
        """Epoch of `history_` whose weights were kept, from 1; None if none was selected."""
        epoch = self.net_.selected_epoch_
        return None if epoch is None else epoch + 1

    @property
    def n_iter_(self) -> int:
        """Number of epochs that the last fit has run."""
        return len(self.net_.history) - self.net_.n_earlier_

    @property
    def _select_rule(self) -> str | None:
        """Rule of :class:`SelectWeights` that `select` names; None keeps the last weights."""
        return self._selections[self.select]

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata request; by default it holds the `groups` that keep parts disjoint.

        A method that learns from the recordings themselves asks the user, since the groups of a
        splitter are often people.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRequest
            The request.
        """
        request = super().get_metadata_routing()
        # The `fit` of a subclass may take no groups.
        if not self._uses_recordings and request.fit.requests.get("groups", False) is None:
            request.fit.add_request(param="groups", alias=True)
        return request

    def _check_input_length(self, n_timesteps: int) -> None:
        """Raise, or warn, if windows are longer or shorter than the method can embed well."""
        super()._check_input_length(n_timesteps)
        if self.n_timesteps_in_ is None:
            return
        longest = self._longest_trained()
        if any(longest <= dilation < n_timesteps for dilation in self.net_.module_.dilations):
            warn_user(
                f"X has windows of {n_timesteps} time steps, more than the {longest} of fit: they"
                " reach convolution weights that were never trained. Fit on windows at least as"
                " long, or cut X into shorter ones."
            )

    def _check_validation_length(self, n_timesteps: int) -> None:
        """Raise if windows to validate on are of another length, where the method takes one."""
        if not self._variable_length and n_timesteps != self.n_timesteps_in_:
            raise ValueError(
                f"X_val has windows of {n_timesteps} time steps, X of {self.n_timesteps_in_}, and"
                f" {type(self).__name__} takes windows of one length: cut both alike."
            )

    def _prepare(self, data: FitData, seed: int) -> Parts:
        """Check the input of `fit` and divide it into training and validation parts."""
        # Reached only if a subclass forgets to override this.
        raise NotImplementedError(f"{type(self).__name__} must override _prepare")

    def _fit(self, data: FitData) -> Self:
        """Run `fit`: check, build, train. A fit that fails leaves the estimator as it was."""
        check_stored(self)
        share, context = join_others(self), None
        if share is None or share.is_first:
            # `max_updates` gives a number of epochs only when the data is split into batches.
            counts_epochs = type(self)._n_updates is TrainedEmbedder._n_updates
            n_epochs = self.max_epochs if self.max_updates is None and counts_epochs else None
            context = self._init_callback_context(max_subtasks=n_epochs)
        seen: dict[str, Any] = {"X": data.X, "y": data.y}  # by scikit-learn's callbacks
        if data.sample_weight is not None:
            seen["metadata"] = {"sample_weight": data.sample_weight}
        with unchanged_on_failure(self):
            with among_others(share), own_torch_state():
                self._check_params()
                # A schedule of the user's own replaces ours. A loaded model has none, and is whole.
                if not sets_learning_rate(self.callbacks):
                    check_betas_go_with(self.schedule, self._schedules, self.betas)
                seed = seed_of_run(self, share)
                parts = self._prepared(data, seed)
                callbacks = self._callbacks(parts.train, parts.valid)
                if context is not None:
                    context.call_on_fit_task_begin(estimator=self, **seen)
                    fitted = partial(self._as_if_ended, parts)
                    callbacks.append(("report_epochs", ReportEpochs(self, context, seen, fitted)))
                net = self._trained_net(parts, seed, callbacks, share)
                if self.warm_start and "net_" in vars(self):
                    prepend_history(net, self.net_)
                self.net_ = net
                self._after_training(parts)
            if context is not None:
                context.call_on_fit_task_end(
                    estimator=self, reconstruction_attributes={"net_": net}, **seen
                )
        return self

    def _prepared(self, data: FitData, seed: int) -> Parts:
        """Prepare the input, and note the length of the longest windows that are trained on."""
        longest = self._longest_trained() if self._goes_on else 0
        self.__dict__.pop("n_timesteps_trained_", None)
        parts = self._prepare(data, seed)  # a pretrained encoder may have seen longer windows
        self.n_timesteps_trained_ = max(longest, self._longest_trained())
        warn_of_scale(parts.train.windows, parts.train.index)
        return parts

    @property
    def _goes_on(self) -> bool:
        """Whether `fit` goes on from an earlier fit."""
        return self.warm_start and "sampling_rate_in_" in vars(self)

    def _check_trained(
        self, X: ArrayLike, groups: ArrayLike | None, layout: str | None = None
    ) -> CheckedWindows:
        """Check windows to train on; under `warm_start` their signals are those of the last fit."""
        earlier = noted(self) if self._goes_on else Signals()
        windows = check_windows(self, X, reset=True, groups=groups, layout=layout)
        compare(noted(self), earlier, type(self).__name__)
        note(self, agreed(noted(self), earlier))
        return windows

    def _trained_net(
        self, parts: Parts, seed: int, callbacks: Callbacks, share: Share | None
    ) -> SSLNet:
        """Build a net and train it, beside other processes if there is a share."""
        settings = parts.settings
        if share is not None:
            callbacks = callbacks_of_process(callbacks, share)
            if not share.is_first:
                settings = settings | {"verbose": 0}
        with threads(self.num_threads), memory_errors(self._memory_remedy()):
            settings = self._training_params(parts.train) | settings
            net = self._build_net(seed, callbacks=callbacks, **settings).initialize()
            self._load_earlier_weights(net)
            check_objective(self, net)
            if share is not None:
                check_others(self, share, net, seed, parts)
            add_checkpoint(self, net, seed, parts, share)
            net.share = share
            self._train(net, parts.train, parts.valid)
            net.share = None
        return net

    def _check_params(self) -> None:
        super()._check_params()
        check_integer("max_epochs", self.max_epochs, 1)
        check_integer("batch_size", self.batch_size, 1)
        if self.batch_size < self._min_batch_size:
            raise ValueError(
                f"batch_size={self.batch_size} leaves a window alone in its batch, with nothing to"
                f" be contrasted with: set batch_size to {self._min_batch_size} or more."
            )
        check_real("lr", self.lr, open_minimum=True, example=1e-3)
        check_real("weight_decay", self.weight_decay)
        check_real("validation_fraction", self.validation_fraction, 0.0, 1.0)
        check_integer("validation_every", self.validation_every, 1)
        check_boolean("deterministic_validation", self.deterministic_validation)
        check_option("select", self.select, self._selections)
        if self._select_rule not in (None, *SelectWeights.rules):
            raise TypeError(
                f"{type(self).__name__}._selections maps {self.select!r} to {self._select_rule!r}:"
                f" name None or one of {', '.join(map(repr, SelectWeights.rules))}."
            )
        check_callbacks(self.callbacks)
        check_schedule(self.schedule, self._schedules, self.betas)
        check_boolean("drop_last", self.drop_last)
        check_boolean("warm_start", self.warm_start)
        if self.gradient_clip_value is not None:
            check_real(
                "gradient_clip_value",
                self.gradient_clip_value,
                float(np.finfo(np.float32).tiny),
                LARGEST_FLOAT32,
                open_maximum=False,
                meaning="gradients are float32",
                example=5.0,
            )
        if self.checkpoint_dir is not None:
            as_path("checkpoint_dir", self.checkpoint_dir, optional=True)
        if self.patience is not None:
            check_integer("patience", self.patience, 1)
        check_verbose(self.verbose)

    def _training_params(self, train: WindowBatches) -> dict[str, Any]:
        """Return the settings of the net that only training needs."""
        params: dict[str, Any] = {
            "optimizer": self._optimizer,
            "lr": self.lr,
            "batch_size": self.batch_size,
            "iterator_train__min_batch_size": self._min_batch_size,
            "iterator_train__drop_last": self.drop_last,
            "iterator_valid__min_batch_size": self._min_batch_size,
            "validation_every": self.validation_every,
            "deterministic_validation": self.deterministic_validation,
            "max_epochs": self.max_epochs,
            "verbose": int(self.verbose),
        }
        settings = inspect.signature(self._optimizer).parameters
        if "fused" in settings:
            # Early versions of PyTorch have no fused optimiser for a GPU of Apple's.
            params["optimizer__fused"] = self._device.type != "mps"
        if "weight_decay" in settings:
            params["optimizer__weight_decay"] = self.weight_decay
        elif self.weight_decay:
            raise ValueError(
                f"weight_decay={self.weight_decay!r}, but {self._optimizer.__name__} decays no"
                " weights: set weight_decay=0."
            )
        if self.betas is not None:
            if "betas" not in settings:
                raise ValueError(
                    f"betas={self.betas!r}, but {self._optimizer.__name__} has none: set betas to"
                    " None."
                )
            params["optimizer__betas"] = tuple(map(float, self.betas))
        n_updates = self._n_updates(train)
        if n_updates is not None:
            params["max_epochs"] = -(-n_updates // self._n_batches(train))
            params["iterator_train__max_batches"] = n_updates
        return params

    def _n_updates(self, train: WindowBatches) -> int | None:
        """Return the number of updates after which training ends; None counts epochs instead."""
        return None if self.max_updates is None else int(self.max_updates)

    def _n_batches(self, train: WindowBatches) -> int:
        """Return the number of updates in a whole epoch."""
        return len(self._iterator(train, self.drop_last))

    def _iterator(self, batches: WindowBatches, drop_last: bool) -> BatchIterator:
        """Return the batches of an epoch."""
        return BatchIterator(
            batches, int(self.batch_size), min_batch_size=self._min_batch_size, drop_last=drop_last
        )

    def _callbacks(self, train: WindowBatches, valid: WindowBatches | None) -> Callbacks:
        """Return the callbacks of the training, in the order in which they act."""
        # The parameter stays as it was passed; what the callbacks learn is in net_.callbacks_.
        own = own_callbacks(self.callbacks)
        callbacks: Callbacks = []
        if isinstance(train, DrawnBatches):
            callbacks.append(("seed_draws", SeedDraws()))
        if not sets_learning_rate(own):
            callbacks += self._schedule(train)
        if self.gradient_clip_value is not None:
            callbacks.append(("clip_gradient", ClipGradientValue(self.gradient_clip_value)))
        average = AverageWeights() if self.select in AVERAGES else None
        if average is not None:
            callbacks.append(("average_weights", average))
        if valid is not None and self._select_rule is not None:
            callbacks.append(("select_weights", SelectWeights(self._select_rule, average)))
        if self.patience is not None:
            sink = print if self.verbose else noop
            callbacks.append(("early_stopping", EarlyStopping(patience=self.patience, sink=sink)))
        if self.verbose > 1:
            callbacks.append(("progress_bar", ProgressBar()))
        if needs_best(own):
            callbacks.append(("mark_best", MarkBest()))
        check_names(own, [name for name, _ in named(callbacks)])
        check_monitored(own, valid is not None)
        return callbacks + with_keepers(own)

    def __sklearn_clone__(self) -> Self:
        try:
            return super().__sklearn_clone__()
        except Exception:  # an object that cannot be copied raises an error of any kind
            check_clones(self.callbacks)  # names the callback, if a callback is to blame
            raise

    def _schedule(self, train: WindowBatches) -> Callbacks:
        """Return the callbacks of the learning rate."""
        if self.schedule == "constant":
            return []
        n_updates = self._n_updates(train) or self._n_batches(train) * self.max_epochs
        settings = inspect.signature(self._optimizer).parameters
        return [*one_cycle(self.lr, n_updates, bool({"momentum", "betas"} & settings.keys()))]

    def _identity(self) -> dict[str, Any]:
        """Return what identifies a run, beside its seed, its data and its first weights."""
        return identity_of(self)

    def _load_earlier_weights(self, net: SSLNet) -> None:
        """Start from the weights of the last fit, with a new schedule, under `warm_start`."""
        if not self.warm_start or "net_" not in vars(self):
            return
        try:
            net.module_.load_state_dict(self.net_.module_.state_dict())
        except RuntimeError as error:
            raise ValueError(
                "warm_start=True starts from the weights of the last fit, which have other sizes:"
                " set warm_start=False, or keep X's channels and its number of time steps, and the"
                " parameters."
            ) from error

    def _memory_remedy(self) -> str:
        """Return what to do if the training runs out of memory."""
        names = [name for name in _HUNGRY if name in self._get_param_names()]
        settings = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"The training needs too much memory: lower one of {settings}, or cut windows short."

    def _train(self, net: SSLNet, train: WindowBatches, valid: WindowBatches | None) -> None:
        """Train the net; a method of several stages runs its earlier stages first."""
        trained = [(weight, weight.requires_grad) for weight in net.module_.parameters()]
        net.partial_fit((train.resident(), valid and valid.resident()))
        for weight, was_trained in trained:  # the next fit may train what a callback froze in this
            weight.requires_grad_(was_trained)

    def _as_if_ended(self, parts: Parts, net: SSLNet) -> dict[str, Any]:
        """Return the attributes that `fit` would leave if the training ended now."""
        ended = copy.copy(self)
        ended.net_ = as_if_ended(net)
        if self.warm_start and "net_" in vars(self):
            prepend_history(ended.net_, self.net_)
        ended._after_training(parts)
        return dict(vars(ended))

    def _after_training(self, parts: Parts) -> None:
        """Learn what follows the training, from the samples that `_prepare` kept."""
