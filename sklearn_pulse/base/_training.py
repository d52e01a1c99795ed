"""Shell of `fit` for every estimator that trains by epochs."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
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
    as_path,
    check_boolean,
    check_distributed,
    check_integer,
    check_option,
    check_real,
    check_schedule,
    check_verbose,
)
from .._seeds import draw_seed
from .._share import Share
from .._signals import Signals, agreed, compare, note, noted
from .._threads import threads
from .._training._callback_state import callbacks_fingerprint
from .._training._callbacks import (
    AverageWeights,
    ClipGradientValue,
    MarkBest,
    SeedDraws,
    SelectWeights,
)
from .._training._checkpoint import Checkpoint, data_fingerprint, run_folder
from .._training._device import memory_errors
from .._training._history import prepend_history
from .._training._identity import fingerprint
from .._training._iterator import BatchIterator
from .._training._net import SSLNet
from .._training._processes import (
    among_others,
    check_agreement,
    check_batches,
    check_divisible,
    is_launched,
    join,
    muted,
)
from .._training._progress import ReportEpochs, may_stop
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
    with_stored_kept,
)
from ._complete import check_objective, check_stored
from ._encoder import WindowEmbedder
from ._fit_data import FitData, Parts

# Values of `select` that average the weights, and the rule that picks an epoch's average.
AVERAGES: Mapping[str, str | None] = {"average": None, "average_min_val": "min_val"}

# Parameters that leave the result of a training as it is.
_WITHOUT_EFFECT = (
    "bag_pooling",
    "channel_names",
    "checkpoint_dir",
    "distributed",
    "random_state",
    "sampling_rate",
    "verbose",
)

# Parameters that processes which train together may set each for itself; seeds are compared apart.
_OF_A_PROCESS = ("callbacks", "checkpoint_dir", "device", "distributed", "random_state", "verbose")

# Float32 holds no larger number and, to full precision, no smaller one.
_FLOAT32 = np.finfo(np.float32)

# Parameters on which the memory of a training depends most.
_HUNGRY = ("batch_size", "n_crops", "embedding_dim", "encoder_hidden_dim", "gru_hidden_dim")

Callbacks = list[tuple[str, Callback] | Callback]


class TrainedEmbedder(WindowEmbedder):
    """Encoder that is trained by epochs.

    A subclass divides its input in `_prepare` and sets the facts below that differ.

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
        Epoch of `history_` whose weights were kept, counted from 1; None where those of the last
        epoch were.
    n_timesteps_trained_ : int
        Number of time steps of the longest windows that the weights were trained on, those of a
        pretrained encoder and of earlier fits under `warm_start` included.

    Examples
    --------
    >>> from sklearn_pulse.base import TrainedEmbedder
    >>> from sklearn_pulse import PulseTransformer
    >>> issubclass(PulseTransformer, TrainedEmbedder)
    True
    >>> from sklearn_pulse import RandomEncoderTransformer
    >>> issubclass(RandomEncoderTransformer, TrainedEmbedder)  # it trains nothing
    False
    """

    # Facts about a method.
    _optimizer: ClassVar[type[torch.optim.Optimizer]] = torch.optim.AdamW
    _selections: Mapping[str, str | None] = {}  # values of `select` -> rule of SelectWeights
    _schedules: tuple[str, ...] = ("one_cycle", "constant")  # values of `schedule`

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
        """Epoch of `history_` whose weights were kept, from 1; None for those of the last."""
        epoch = self.net_.selected_epoch_
        return None if epoch is None else epoch + 1

    @property
    def n_iter_(self) -> int:
        """Number of epochs that the last fit has run."""
        return len(self.net_.history) - self.net_.n_earlier_

    @property
    def _select_rule(self) -> str | None:
        """Rule of :class:`SelectWeights` that `select` stands for, None to keep the last."""
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
        # A subclass may have a `fit` without groups.
        if not self._uses_recordings and request.fit.requests.get("groups", False) is None:
            request.fit.add_request(param="groups", alias=True)
        return request

    def _prepare(self, data: FitData, seed: int) -> Parts:
        """Check the input of `fit` and divide it into training and validation parts."""
        # Reached only if a subclass forgets to override this.
        raise NotImplementedError(f"{type(self).__name__} must override _prepare")

    def _fit(self, data: FitData) -> Self:
        """Run `fit`: check, build, train. A fit that fails leaves the estimator as it was."""
        check_stored(self)
        # The number of epochs is unknown until the data is split into batches.
        n_epochs = self.max_epochs if self.max_updates is None else None
        share, context = self._join_others(), None
        if share is None or share.is_first:
            context = self._init_callback_context(max_subtasks=n_epochs)
        seen = {"X": data.X, "y": data.y}  # by scikit-learn's callbacks
        with unchanged_on_failure(self), among_others(share), own_torch_state():
            self._check_params()
            seed = self._draw_seed(share)
            parts = self._prepare_alike(data, seed)
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

    def _prepare_alike(self, data: FitData, seed: int) -> Parts:
        """Prepare the input; under `warm_start` keep the length that was trained on before."""
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
            callbacks = muted(callbacks, share)
            if not share.is_first:
                settings = settings | {"verbose": 0}
        with threads(self.num_threads), memory_errors(self._memory_remedy()):
            settings = self._training_params(parts.train) | settings
            net = self._build_net(seed, callbacks=callbacks, **settings).initialize()
            self._load_earlier_weights(net)
            check_objective(self, net)
            if share is not None:
                self._check_others(share, net, seed, parts)
            self._add_checkpoint(net, seed, parts, share)
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
        check_schedule(self.schedule, self._schedules, self.betas)
        check_boolean("drop_last", self.drop_last)
        check_boolean("warm_start", self.warm_start)
        if self.gradient_clip_value is not None:
            check_real(
                "gradient_clip_value",
                self.gradient_clip_value,
                float(_FLOAT32.tiny),
                float(_FLOAT32.max),
                open_maximum=False,
                meaning="gradients are float32",
                example=5.0,
            )
        if self.checkpoint_dir is not None:
            as_path("checkpoint_dir", self.checkpoint_dir, optional=True)
        if self.patience is not None:
            check_integer("patience", self.patience, 1)
        check_verbose(self.verbose)
        check_callbacks(self.callbacks)

    def _draw_seed(self, share: Share | None) -> int:
        """Draw the integer that seeds everything in a fit, in all processes."""
        unseeded = self.random_state is None or self.random_state is np.random
        if self.checkpoint_dir is not None and unseeded:
            raise ValueError(
                "checkpoint_dir needs a random_state: without a seed no run repeats another, and"
                " there is nothing to resume. Pass for example random_state=0."
            )
        seed = draw_seed(self.random_state)
        if share is None:
            return seed
        first = share.of_first(seed)  # asked by all, also where one alone has no seed
        return first if unseeded else seed

    def _training_params(self, train: WindowBatches) -> dict[str, Any]:
        """Return the settings of the net that only training needs."""
        params: dict[str, Any] = {
            "optimizer": self._optimizer,
            "optimizer__weight_decay": self.weight_decay,
            # Early versions of PyTorch have no fused optimiser for a GPU of Apple's.
            "optimizer__fused": self._device.type != "mps",
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
        if self.betas is not None:
            params["optimizer__betas"] = tuple(map(float, self.betas))
        n_updates = self._n_updates(train)
        if n_updates is not None:
            params["max_epochs"] = -(-n_updates // self._n_batches(train))
            params["iterator_train__max_batches"] = n_updates
        return params

    def _n_updates(self, train: WindowBatches) -> int | None:
        """Return the number of updates after which training ends, None to count epochs."""
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
        return callbacks + with_stored_kept(own)

    def __sklearn_clone__(self) -> Self:
        try:
            return super().__sklearn_clone__()
        except Exception:  # of whatever kind: an object that cannot be copied raises what it likes
            check_clones(self.callbacks)  # names the callback, if one is to blame
            raise

    def _schedule(self, train: WindowBatches) -> Callbacks:
        """Return the callbacks of the learning rate."""
        if self.schedule == "constant":
            return []
        n_updates = self._n_updates(train) or self._n_batches(train) * self.max_epochs
        return [*one_cycle(self.lr, n_updates)]

    def _identity(self) -> dict[str, Any]:
        """Return what a run is known by, beside its seed, its data and its first weights."""
        ignored = set(_WITHOUT_EFFECT) - set(self._objective_names)
        params = self._all_params()
        identity = {name: value for name, value in params.items() if name not in ignored}
        identity["callbacks"] = callbacks_fingerprint(named(self.callbacks))
        others = may_stop(self)
        if others:
            identity["callbacks of scikit-learn"] = others
        return identity | {"class": type(self)}

    def _all_params(self) -> dict[str, Any]:
        """Return the parameters, those included that a subclass sets without exposing them."""
        classes: list[Any] = [cls for cls in type(self).__mro__ if issubclass(cls, BaseEstimator)]
        names = sorted({name for cls in classes for name in cls._get_param_names()})
        return {name: getattr(self, name) for name in names}

    def _join_others(self) -> Share | None:
        """Meet the processes that `distributed` asks for; None to train alone."""
        check_distributed(self.distributed)
        if not self.distributed:
            return None
        reason = self._objective_class.indivisible
        if reason is None or (self.distributed == "auto" and not is_launched()):
            return join(self.distributed, self.device)
        raise ValueError(
            f"{type(self).__name__} cannot train in several processes, since {reason}: set"
            " distributed=False."
        )

    def _check_others(self, share: Share, net: SSLNet, seed: int, parts: Parts) -> None:
        """Raise a ValueError unless all processes train the same net on the same data."""
        check_divisible(net.module_)
        for name, batches in (("train", parts.train), ("validate", parts.valid)):
            if batches is not None:
                drop_last = self.drop_last and name == "train"
                check_batches(share, name, self._iterator(batches, drop_last).smallest)
        facts = {
            "the data": data_fingerprint(parts.train, parts.valid),
            "random_state": fingerprint(seed),
            "the weights at the start": fingerprint(dict(net.module_.state_dict())),
            "whether checkpoint_dir is None": fingerprint(self.checkpoint_dir is None),
        }
        for name, value in self._all_params().items():
            if name not in _OF_A_PROCESS:
                # Some objects cannot be told from others; they show in the weights.
                with contextlib.suppress(TypeError):
                    facts[name] = fingerprint(value)
        check_agreement(share, torch.device(net.device), facts)

    def _add_checkpoint(
        self, net: SSLNet, seed: int, parts: Parts, share: Share | None = None
    ) -> None:
        """Add the callback that stores the run, if `checkpoint_dir` names a folder."""
        if self.checkpoint_dir is None:
            return
        folder = None
        if share is None or share.is_first:
            identity = self._identity() | {"seed": seed}
            datasets = parts.train, parts.valid
            directory = as_path("checkpoint_dir", self.checkpoint_dir)
            folder = run_folder(directory, identity, net.module_, *datasets)
        checkpoint = Checkpoint(folder, share)
        checkpoint.check(net)
        # It comes last, since it stores what the other callbacks have done.
        net.callbacks_.append(("checkpoint", checkpoint))

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
                f" parameters. {error}"
            ) from error

    def _memory_remedy(self) -> str:
        """Return what to do if the training runs out of memory."""
        names = [name for name in _HUNGRY if name in self._get_param_names()]
        settings = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"The training needs too much memory: lower one of {settings}, or cut windows short."

    def _train(self, net: SSLNet, train: WindowBatches, valid: WindowBatches | None) -> None:
        """Run the net; a method of several stages runs the earlier ones first."""
        trained = [(weight, weight.requires_grad) for weight in net.module_.parameters()]
        net.partial_fit((train.resident(), valid and valid.resident()))
        for weight, was_trained in trained:  # what is frozen in this fit may be trained in another
            weight.requires_grad_(was_trained)

    def _as_if_ended(self, parts: Parts, net: SSLNet) -> dict[str, Any]:
        """Return the attributes that `fit` would leave if the training ended now."""
        ended = copy.copy(self)
        ended.net_ = net
        ended._after_training(parts)
        return dict(vars(ended))

    def _after_training(self, parts: Parts) -> None:
        """Learn what follows the training, from the samples that `_prepare` kept."""
