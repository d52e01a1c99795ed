"""Estimators whose encoder is trained without labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit

from .._data._batches import WindowBatches
from .._data._validation import check_windows
from .._data._windows import CheckedWindows
from .._parameters import plain
from .._training._progress import with_callbacks
from .._warnings import warn_user
from ._encoder import BaseEncoderTransformer
from ._fit_data import FitData, Parts, errors_of, rows_of
from ._training import TrainedEmbedder


class BaseSSLTransformer(TrainedEmbedder, BaseEncoderTransformer):
    """An encoder trained without labels by a self-supervised objective.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse import PulseTransformer
    >>> from sklearn_pulse.base import BaseSSLTransformer
    >>> X = np.random.default_rng(0).normal(size=(12, 32, 2))
    >>> people = np.repeat(["anna", "ben", "carl"], 4)
    >>> pulse = PulseTransformer(embedding_dim=8, max_epochs=1, random_state=0)
    >>> pulse = pulse.fit(X, groups=people)  # it validates on the windows of one person
    >>> isinstance(pulse, BaseSSLTransformer), "valid_loss" in pulse.history_[0]
    (True, True)
    """

    _selections: Mapping[str, str | None] = {
        "trailing_mean": "trailing_mean",
        "min_val": "min_val",
        "last": None,
    }
    _one_step = "there are no dynamics to learn from"  # consequence of windows of one time step

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
        y : Ignored
            Present for pipelines.

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
        return self._fit(FitData(X, y, groups, X_val))

    def _prepare(self, data: FitData, seed: int) -> Parts:
        windows = self._check_samples(data.X, data.groups, reset=True)
        self._take_labels(windows, data.y, "y")
        self._check_window_length(windows.n_timesteps)
        usable = windows.scan()
        if data.X_val is None:
            one_class = np.zeros(windows.n_samples, dtype=np.intp)
            train, valid = map(rows_of, self._hold_out(one_class, windows.groups, seed))
            if windows.groups is None and len(valid) and self._shares_steps(windows):
                _warn_of_shared_steps()
            validation = self._batches(windows, windows.numbers(valid, usable))
        else:
            train = np.arange(windows.n_samples)
            validation = self._validation_batches(data.X_val, data.y_val)
        training = self._batches(windows, windows.numbers(train, usable))
        self._check_enough(len(training), "training")
        self._check_two_parts(training, None if data.X_val is None else validation)
        # Skip validation when there are too few windows to contrast.
        parts = Parts(training, validation if len(validation) >= self._min_batch_size else None)
        self._check_parts(parts)
        return parts

    def _validation_batches(self, X_val: ArrayLike, y_val: ArrayLike | None) -> WindowBatches:
        """Return `X_val`, checked, as batches."""
        with errors_of("X_val"):
            windows = self._check_samples(X_val, None, reset=False)
            usable = windows.scan()
        self._take_labels(windows, y_val, "y_val")
        self._check_validation_length(windows.n_timesteps)
        with errors_of("X_val"):
            self._check_window_length(windows.n_timesteps)
            batches = self._batches(windows, windows.numbers(np.arange(windows.n_samples), usable))
        self._check_enough(len(batches), "validation", " of X_val")
        return batches

    def _check_enough(self, n_samples: int, use: str, of: str = "") -> None:
        """Raise if there are too few windows to contrast with one another."""
        if n_samples < self._min_batch_size:
            raise ValueError(
                f"{type(self).__name__} contrasts windows, so n_samples={n_samples}{of} is too"
                f" few: pass at least {self._min_batch_size} for {use}."
            )

    def _check_samples(
        self, X: ArrayLike, groups: ArrayLike | None, *, reset: bool
    ) -> CheckedWindows:
        """Check windows to train on or, without `reset`, to validate on."""
        if reset:
            return self._check_trained(X, groups)
        return check_windows(self, X, reset=False, groups=groups)

    def _take_labels(self, windows: CheckedWindows, y: ArrayLike | None, name: str) -> None:
        """Check labels and keep them with the windows, if the method learns from labels."""

    def _check_window_length(self, n_timesteps: int) -> None:
        """Raise, or warn, if the parameters do not suit the length of the windows."""

    def _part_length(self, n_timesteps: int) -> int:
        """Return the number of time steps of a part; a window's parts predict one another."""
        return 1

    def _check_two_parts(self, train: WindowBatches, valid: WindowBatches | None) -> None:
        """Warn if no window has two observed parts, so that no part is predicted from another.

        `valid` holds the windows of `X_val`, or is None. Raise if they alone have no two parts.
        """
        length = self._part_length(train.windows.n_timesteps)
        if not train.windows.hold_two_parts(train.index, length):
            what, remedy = _one_part(train.windows, length)
            warn_user(f"X has windows of one {what}: {self._one_step}. Pass {remedy}.")
        elif valid is not None and not valid.windows.hold_two_parts(valid.index, length):
            what, remedy = _one_part(valid.windows, length)
            raise ValueError(
                f"X_val has windows of one {what}, which leave nothing to predict: pass {remedy}."
            )

    def _check_parts(self, parts: Parts) -> None:
        """Raise, or warn, if the divided input teaches nothing."""

    def _batches(self, windows: CheckedWindows, index: NDArray[np.intp]) -> WindowBatches:
        """Return the numbered windows as batches on the device."""
        return WindowBatches(windows, index, self._device)

    def _shares_steps(self, windows: CheckedWindows) -> bool:
        """Whether a time step that is read for one window belongs to another window too."""
        return windows.overlaps

    def _hold_out(
        self, y: NDArray[np.intp], groups: NDArray[Any] | None, seed: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        everything, nothing = np.arange(len(y)), np.arange(0)
        if self.validation_fraction == 0 or len(y) <= self._min_batch_size:
            return everything, nothing
        fraction = plain(self.validation_fraction)
        if groups is None:
            splitter = ShuffleSplit(1, test_size=fraction, random_state=seed)
        elif len(np.unique(groups)) > 1:
            splitter = GroupShuffleSplit(1, test_size=fraction, random_state=seed)
        else:
            warn_user(
                "groups holds one group only, so nothing is left to validate on: the last weights"
                " are kept. Pass X_val, or set validation_fraction=0 to say that this is meant."
            )
            return everything, nothing
        try:
            return next(splitter.split(everything, groups=groups))
        except ValueError as error:
            raise ValueError(
                f"validation_fraction={self.validation_fraction} leaves nothing to train on"
                f" ({error}): lower it, or pass X_val."
            ) from error


def _one_part(windows: CheckedWindows, length: int) -> tuple[str, str]:
    """Return the name of the only observed part of each window, and the remedy."""
    if windows.n_timesteps == 1:
        return "time step", "longer windows"
    part = "time step" if length == 1 else f"segment of {length} time steps"
    remedy = "windows that miss less; a time step counts only if all its channels are finite"
    return f"{part} that is not missing", remedy


def _warn_of_shared_steps() -> None:
    """Warn of validation windows that share time steps with training windows."""
    warn_user(
        "groups is None, and windows of X lie so close together that validation shares time steps"
        " with training: pass groups (the recording of each window), or X_val."
    )
