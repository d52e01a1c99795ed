"""The estimator around an objective: validate, build, train, encode."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit
from sklearn.utils import check_random_state
from skorch.callbacks import Callback

from .._data._batches import WindowBatches
from .._data._labels import check_groups
from .._data._validation import Windows, check_windows
from .._parameters import check_boolean, check_integer, check_option, check_real, check_schedule
from .._training._callbacks import AverageWeights, ClipGradientValue, SelectWeights
from .._training._checkpoint import Checkpoint, run_folder
from .._training._device import resolve_device, threads
from .._training._iterator import BatchIterator
from .._training._net import SSLNet
from .._training._progress import ReportEpochs, with_callbacks
from .._training._schedules import one_cycle
from ._encoder import BaseEncoderTransformer
from ._training import TrainingMixin

AVERAGES = ("average", "average_min_val")  # what `select` may be where weights are averaged


class BaseSSLTransformer(TrainingMixin, BaseEncoderTransformer):
    """An encoder trained without labels by a self-supervised objective."""

    _min_batch_size = 1  # a method that needs negatives asks for two
    _select_rules: tuple[str, ...] = ("trailing_mean", "min_val", "last")  # or "average" too
    _schedules: tuple[str, ...] = ("one_cycle", "constant")  # where there is a `schedule`
    _drop_last = False  # whether an epoch leaves out what does not fill a batch
    _one_step = "there are no dynamics to learn from"  # what a window of one step means

    def _check_params(self) -> None:
        super()._check_params()
        self._check_training_params()
        if self.batch_size < self._min_batch_size:
            raise ValueError(
                f"batch_size={self.batch_size} leaves a window alone in its batch, with nothing to"
                f" be contrasted with: set batch_size to {self._min_batch_size} or more."
            )
        check_integer("validation_every", self.validation_every, 1)
        if self.gradient_clip_value is not None:
            check_real("gradient_clip_value", self.gradient_clip_value, open_minimum=True)
        check_option("select", self.select, self._select_rules)
        if hasattr(self, "schedule"):
            check_schedule(self.schedule, self._schedules, getattr(self, "betas", None))
        check_boolean("deterministic_validation", self.deterministic_validation)
        check_boolean("warm_start", self.warm_start)

    def _check_windows(self, n_timesteps: int) -> None:
        """Raise, or warn, where the parameters do not go with the length of the windows."""
        if n_timesteps == 1:
            warnings.warn(
                f"X has windows of one time step: {self._one_step}. Pass longer windows.",
                stacklevel=4,
            )

    @with_callbacks
    def fit(
        self,
        X: ArrayLike,
        y: None = None,
        *,
        groups: ArrayLike | None = None,
        X_val: ArrayLike | None = None,
    ) -> BaseSSLTransformer:
        """Train the encoder; labels are never used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels)
            Windows; 2-D data is univariate, 4-D data are bags of windows, of shape (n_samples,
            n_windows, n_timesteps, n_channels).
        y : Ignored
            Present for pipelines.
        groups : array-like of shape (n_samples,), default=None
            Recording or subject of each sample; none is in both the training and the validation
            part.
        X_val : array-like, default=None
            Windows to validate on, in the layout of `X`; then `validation_fraction` and `groups`
            are not used.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            For a parameter out of its range or an input outside the data contract.
        FloatingPointError
            If a loss becomes NaN or infinite.
        """
        return self._fit(X, y, groups=groups, X_val=X_val)

    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        *,
        groups: ArrayLike | None,
        X_val: ArrayLike | None,
        y_val: ArrayLike | None = None,
    ) -> BaseSSLTransformer:
        # How many epochs so many updates are is known once the windows are.
        n_epochs = self.max_epochs if getattr(self, "max_updates", None) is None else None
        context = self._init_callback_context(max_subtasks=n_epochs)
        self._check_params()
        seed = self._draw_seed()
        windows = self._check_samples(X, y, reset=True)
        self._check_windows(windows.n_timesteps)
        held_out = None if X_val is None else self._check_samples(X_val, y_val, reset=False)
        train, valid = self._split(windows, groups, held_out, seed)

        callbacks = self._callbacks(train, valid)
        if context is not None:
            data = {"X": X, "y": y}
            context.call_on_fit_task_begin(estimator=self, **data)
            callbacks.append(("report_epochs", ReportEpochs(self, context, data)))
        if self.checkpoint_dir is not None:  # last, so that it sees what the others have done
            folder = run_folder(self.checkpoint_dir, self._run_identity(seed), train, valid)
            callbacks.append(("checkpoint", Checkpoint(folder)))

        with threads(self.num_threads):
            settings = self._training_params() | self._length(train)
            net = self._build_net(seed, callbacks=callbacks, **settings)
            self._load_earlier_weights(net)
            self._train(net, train, valid)
        self.net_ = net
        if context is not None:
            context.call_on_fit_task_end(
                estimator=self, reconstruction_attributes={"net_": net}, **data
            )
        return self

    def _check_samples(self, X: ArrayLike, y: ArrayLike | None, *, reset: bool) -> Windows:
        """Check what `fit` is given, to train on or (without `reset`) to validate on."""
        return check_windows(self, X, reset=reset)

    def _train(self, net: SSLNet, train: WindowBatches, valid: WindowBatches | None) -> None:
        """Run the net; a method of several stages runs the earlier ones first."""
        net.partial_fit((train.resident(), valid and valid.resident()))

    def _batches(self, windows: Windows, index: NDArray[np.intp]) -> WindowBatches:
        """Return what batches are taken from: the numbered windows, on the device."""
        return WindowBatches(windows, index, resolve_device(self.device))

    def _split(
        self, windows: Windows, groups: ArrayLike | None, held_out: Windows | None, seed: int
    ) -> tuple[WindowBatches, WindowBatches | None]:
        """Choose the windows to train and to validate on; whole bags, and whole groups."""
        windows.groups = groups
        usable = windows.scan()
        if held_out is not None:
            train = np.arange(windows.n_samples)
        else:
            train, valid = self._split_samples(windows.n_samples, groups, seed)
            if groups is None and len(valid) and self._shares_steps(windows):
                _warn_of_shared_steps()
        training = self._batches(windows, windows.numbers(train, usable))
        if len(training) < self._min_batch_size:
            raise ValueError(
                f"{type(self).__name__} contrasts windows, so n_samples={len(training)} is too"
                f" few: pass at least {self._min_batch_size} for training."
            )
        if held_out is not None:
            windows = held_out
            self._check_validation_length(windows.n_timesteps)
            usable, valid = windows.scan(), np.arange(windows.n_samples)
        validation = self._batches(windows, windows.numbers(valid, usable))
        # Too few to contrast say nothing of the weights.
        return training, validation if len(validation) >= self._min_batch_size else None

    def _shares_steps(self, windows: Windows) -> bool:
        """Whether what is read of one window belongs to another one too."""
        return getattr(windows.data, "overlaps", False)

    def _split_samples(
        self, n_samples: int, groups: ArrayLike | None, seed: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        everything, nothing = np.arange(n_samples), np.arange(0)
        groups = check_groups(groups, n_samples)
        if self.validation_fraction == 0 or n_samples <= self._min_batch_size:
            return everything, nothing
        if groups is None:
            splitter = ShuffleSplit(1, test_size=self.validation_fraction, random_state=seed)
        elif len(np.unique(groups)) > 1:
            splitter = GroupShuffleSplit(1, test_size=self.validation_fraction, random_state=seed)
        else:
            warnings.warn(
                "groups holds one group only, so nothing is left to validate on: the last weights"
                " are kept. Pass X_val, or set validation_fraction=0 to say that this is meant.",
                stacklevel=5,
            )
            return everything, nothing
        return next(splitter.split(everything, groups=groups))

    def _training_params(self) -> dict[str, Any]:
        """Return the settings of the net that only training needs."""
        params = {
            "lr": self.lr,
            "optimizer__weight_decay": self.weight_decay,
            "optimizer__fused": True,
            "batch_size": self.batch_size,
            "iterator_train__min_batch_size": self._min_batch_size,
            "iterator_train__drop_last": self._drop_last,
            "iterator_valid__min_batch_size": self._min_batch_size,
            "validation_every": self.validation_every,
            "deterministic_validation": self.deterministic_validation,
            "verbose": int(self.verbose),
        }
        if getattr(self, "betas", None) is not None:
            params["optimizer__betas"] = tuple(map(float, self.betas))
        return params

    def _length(self, train: WindowBatches) -> dict[str, Any]:
        """Return the settings of the net that say when training ends."""
        n_updates = self._n_updates(train)
        if n_updates is None:
            return {"max_epochs": self.max_epochs}
        n_epochs = -(-n_updates // self._n_batches(train))
        return {"max_epochs": n_epochs, "iterator_train__max_batches": n_updates}

    @property
    def _select_rule(self) -> str:
        """What `select` asks of :class:`SelectWeights`."""
        return "min_val" if self.select == "average_min_val" else self.select

    def _callbacks(
        self, train: WindowBatches, valid: WindowBatches | None
    ) -> list[tuple[str, Callback] | Callback]:
        callbacks = self._schedule(train)
        if self.gradient_clip_value is not None:
            callbacks.append(("clip_gradient", ClipGradientValue(self.gradient_clip_value)))
        average = AverageWeights() if self.select in AVERAGES else None
        if average is not None:
            callbacks.append(("average_weights", average))
        if valid is not None and self._select_rule not in ("last", "average"):
            callbacks.append(("select_weights", SelectWeights(self._select_rule, average)))
        return callbacks + self._user_callbacks()

    def _schedule(self, train: WindowBatches) -> list[tuple[str, Callback] | Callback]:
        """Return the callback of the learning rate: one cycle, a step a batch, or none."""
        if getattr(self, "schedule", "one_cycle") == "constant":
            return []
        n_updates = self._n_updates(train) or self._n_batches(train) * self.max_epochs
        return one_cycle(self.lr, n_updates)

    def _n_batches(self, train: WindowBatches) -> int:
        """Return the number of updates in a whole epoch."""
        return len(
            BatchIterator(
                train,
                int(self.batch_size),
                min_batch_size=self._min_batch_size,
                drop_last=self._drop_last,
            )
        )

    def _n_updates(self, train: WindowBatches) -> int | None:
        """Return after how many updates training ends, whatever `max_epochs` says, or None."""
        return None

    def _load_earlier_weights(self, net: SSLNet) -> None:
        """Start from the weights of the last fit, with a new schedule, under `warm_start`."""
        net.initialize()
        if not (self.warm_start and hasattr(self, "net_")):
            return
        try:
            net.module_.load_state_dict(self.net_.module_.state_dict())
        except RuntimeError as error:
            raise ValueError(
                "warm_start=True starts from the weights of the last fit, which have other sizes:"
                " set warm_start=False, or keep X's channels and its number of time steps, and the"
                f" parameters. {error}"
            ) from error

    def _draw_seed(self) -> int:
        if self.checkpoint_dir is not None and self.random_state is None:
            raise ValueError(
                "checkpoint_dir needs a random_state: without one no run repeats another, and"
                " there is nothing to resume. Pass for example random_state=0."
            )
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _run_identity(self, seed: int) -> dict[str, Any]:
        """Return what makes two runs the same: class, parameters and seed."""
        params = self.get_params(deep=False)
        for name in ("callbacks", "checkpoint_dir", "verbose", "random_state", "bag_pooling"):
            params.pop(name)
        return {"class": type(self).__name__, "seed": seed, **params}


def _warn_of_shared_steps() -> None:
    """Warn of a validation part whose windows share steps with those that are trained on."""
    warnings.warn(
        "groups is None, and X holds windows so near to each other that what is read to validate"
        " on shares time steps with what is trained on: pass groups (the recording of each"
        " window), or X_val.",
        stacklevel=6,
    )
