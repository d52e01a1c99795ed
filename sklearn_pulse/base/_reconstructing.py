"""Transformers that reconstruct windows from their embeddings, and score the reconstructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from .._data._pooling import pool_bags
from .._data._scale import channel_scales
from .._data._windows import CheckedWindows
from .._parameters import (
    check_boolean,
    check_integer,
    check_odd,
    check_option,
    check_steps_or_fraction,
)
from ..objectives import TrajectoryReconstruction
from ._fit_data import Parts
from ._self_supervised import BaseSSLTransformer

# Parameters of the networks of PULSE and its oracles.
NETWORK_PARAMS = (
    "embedding_dim",
    "encoder_hidden_dim",
    "encoder_depth",
    "pooling",
    "time_varying_dim",
    "time_varying_pool",
    "init_kernel_size",
    "init_dilation",
    "init_hidden_dim",
    "shared_encoder",
    "gru_num_layers",
    "gru_hidden_dim",
    "observation",
)


class ReconstructingTransformer(BaseSSLTransformer):
    """An encoder whose objective has a decoder of whole windows.

    Attributes
    ----------
    channel_scale_ : ndarray of float64, of shape (n_channels,)
        Standard deviation of each channel over all windows of `fit`; 1 for a constant channel.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse import PulseTransformer
    >>> from sklearn_pulse.base import ReconstructingTransformer
    >>> X = np.random.default_rng(0).normal(size=(20, 32, 2)) * [1, 5]
    >>> pulse = PulseTransformer(embedding_dim=8, max_epochs=1, random_state=0).fit(X)
    >>> isinstance(pulse, ReconstructingTransformer), pulse.channel_scale_.round().tolist()
    (True, [1.0, 5.0])
    >>> pulse.reconstruct(X).shape, pulse.score_samples(X).shape
    ((20, 32, 2), (20,))
    """

    _objective_class: type[TrajectoryReconstruction]
    _one_step = "there is nothing to reconstruct, so the encoder stays as it was initialised"
    channel_scale_: NDArray[np.float64]

    def reconstruct(
        self,
        X: ArrayLike,
        start: int = 0,
        *,
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> NDArray[np.float32]:
        """Reconstruct windows from their embeddings.

        The decoder starts from the initial condition at the step `start` and predicts all later
        steps from the embedding of the whole window. `pairing` and `crop` concern the training
        alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels)
            Windows of at least two time steps; 2-D data is univariate.
        start : int, default=0
            Step that the decoder starts from, at most ``n_timesteps - 2``. In a window that misses
            this step, the decoder starts from the next step that is not missing.

        Returns
        -------
        ndarray of float32, of the shape of `X`
            The reconstruction. Missing steps are filled in. The steps up to `start` are NaN, since
            they are never predicted, and so are all steps of a window that misses every step from
            `start` on. A window that is padded with missing steps has, at its other
            steps, the reconstruction of the unpadded window.

        Raises
        ------
        TypeError, ValueError
            For bags, a `start` outside the window, and inputs that :meth:`transform` refuses.

        Notes
        -----
        Source: paper, Eq. 3 (the crop that starts at `start`), without dropout.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_pulse import PulseTransformer
        >>> X = np.random.default_rng(0).normal(size=(20, 32, 2))
        >>> pulse = PulseTransformer(embedding_dim=8, max_epochs=1, random_state=0).fit(X)
        >>> int(np.isnan(pulse.reconstruct(X, start=3)[0, :, 0]).sum())
        4
        """
        check_integer("start", start, 0)
        windows = self._check_reconstructed(X, (sampling_rate, channel_names))
        if start > windows.n_timesteps - 2:
            raise ValueError(
                f"start={start} leaves no step to predict in windows of {windows.n_timesteps} time"
                f" steps: pass at most start={windows.n_timesteps - 2}."
            )
        shape = windows.n_timesteps, windows.n_channels
        complete = partial(self.net_.module_.complete, start=start)
        reconstruction, _ = self._compute(windows, complete, shape, nan_allowed=True)
        return windows.like_input(reconstruction)

    def score_samples(
        self,
        X: ArrayLike,
        *,
        per_channel: bool = False,
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> NDArray[np.float64]:
        """Score how well each window is reconstructed; higher is better.

        The decoder starts from the initial condition at the first time step that is not missing,
        and predicts all later steps from the embedding of the whole window. Nothing is drawn, so
        that a window always has the same score, whatever the other windows are.

        The score is the negative mean squared error of the predicted steps, divided by the variance
        of the channel in the data of `fit`. All windows are thus measured by one ruler, without
        units: 0 is a perfect reconstruction, and -1 an error as large as the spread of the training
        data, about what the mean of the training data would score. (The variance of the window
        itself is no such ruler: a quiet window, whose variance is that of its noise, would score
        worst.) A window that is louder than the training data scores lower.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels)
            Windows of at least two time steps. 2-D data is univariate. 4-D data are bags of
            windows, of shape (n_samples, n_windows, n_timesteps, n_channels), and the score of a
            bag is the mean over its windows. Missing steps are not scored, and a window that is
            padded with them has the score of the unpadded window.
        per_channel : bool, default=False
            Whether to score each channel. False returns the mean over the channels.

        Returns
        -------
        ndarray of float64, of shape (n_samples,) or (n_samples, n_channels)
            One score per sample, at most 0; with `per_channel`, one score per sample and channel.

        Raises
        ------
        TypeError, ValueError
            For a `per_channel` that is no boolean, windows of one time step, a sample without two
            time steps that are not missing in any of its windows, weights that do not know the
            scale of their training data, and inputs that :meth:`transform` refuses.

        See Also
        --------
        sklearn_pulse.evaluation.drift_scores : Compare the scores of two sets of windows.

        Notes
        -----
        The mean squared error is the reconstruction term of the loss (paper, Eq. 3) for the full
        window, without dropout.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_pulse import PulseTransformer
        >>> X = np.random.default_rng(0).normal(size=(20, 32, 2))
        >>> pulse = PulseTransformer(embedding_dim=8, max_epochs=1, random_state=0).fit(X)
        >>> X[3] *= 10  # an artefact
        >>> int(pulse.score_samples(X).argmin()), pulse.score_samples(X, per_channel=True).shape
        (3, (20, 2))
        """
        check_boolean("per_channel", per_channel)
        windows = self._check_predicted(X, (sampling_rate, channel_names))
        scale = self._training_scale()
        compute = self.net_.module_.window_errors
        errors, _ = self._compute(windows, compute, (windows.n_channels,), nan_allowed=True)
        scored = np.asarray(~np.isnan(errors).any(1))
        _check_scored(scored, windows.n_windows)
        scores = -errors.astype(np.float64) / scale**2
        pooled = pool_bags(scores, scored, windows.n_windows, "mean")
        return np.asarray(pooled if per_channel else pooled.mean(1))

    def _check_reconstructed(self, X: ArrayLike, stated: tuple[Any, Any]) -> CheckedWindows:
        """Check single windows that are to be reconstructed."""
        windows = self._check_predicted(X, stated)
        if windows.is_bag:
            raise ValueError(
                "X must hold single windows of at least two time steps to reconstruct: pass the"
                " windows of a bag one by one."
            )
        return windows

    def _check_predicted(self, X: ArrayLike, stated: tuple[Any, Any]) -> CheckedWindows:
        """Check windows, or bags of them, that have a step to predict."""
        windows = self._check_input(X, stated)
        if windows.n_timesteps < 2:
            raise ValueError(
                "X must hold windows of at least two time steps to reconstruct: the first step is"
                " the initial condition, which is never predicted. Pass longer windows."
            )
        return windows

    def _training_scale(self) -> NDArray[np.float64]:
        """Return the scale of the training data; raise if it is unknown for these weights."""
        if "channel_scale_" not in vars(self):
            raise ValueError(
                "These weights do not know the scale of their training data, in which scores are"
                " measured: set channel_scale_, the standard deviation of each channel over the"
                " training windows, as an array of shape (n_channels,)."
            )
        return _checked_scale(self.channel_scale_, self.n_channels_in_)

    def _after_training(self, parts: Parts) -> None:
        super()._after_training(parts)
        self.channel_scale_ = channel_scales(parts.train.windows)

    def _restore(self, weights: Mapping[str, Tensor]) -> None:
        if "channel_scale_" in vars(self):
            _checked_scale(self.channel_scale_, self.n_channels_in_)
        super()._restore(weights)


def check_reconstruction(estimator: Any) -> None:
    """Raise if a parameter that PULSE and its oracles share is out of its range."""
    for name in (
        "time_varying_pool",
        "init_dilation",
        "init_hidden_dim",
        "gru_num_layers",
        "gru_hidden_dim",
    ):
        check_integer(name, getattr(estimator, name), 1)
    check_integer("time_varying_dim", estimator.time_varying_dim, 0)
    check_odd("init_kernel_size", estimator.init_kernel_size)
    check_boolean("shared_encoder", estimator.shared_encoder)
    check_option("observation", estimator.observation, ("mlp", "linear"))
    check_option("loss_reduction", estimator.loss_reduction, ("published", "valid"))
    check_steps_or_fraction("min_crop_length", estimator.min_crop_length)


def check_fits(name: str, length: int | float | None, n_timesteps: int) -> None:
    """Raise if the crop length called `name`, in steps, leaves nothing of a window."""
    if isinstance(length, Integral) and length >= n_timesteps:
        raise ValueError(
            f"{name}={length} steps do not fit into windows of {n_timesteps} time steps,"
            f" which leave {n_timesteps - 1} to predict: set {name} to a fraction such as"
            " 0.5, or pass longer windows."
        )


def _checked_scale(scale: Any, n_channels: int) -> NDArray[np.float64]:
    """Return the scale of the channels; raise unless it is one positive number per channel."""
    scale = np.asarray(scale)
    numeric = scale.dtype.kind in "iuf" and scale.shape == (n_channels,)
    if not (numeric and np.isfinite(scale).all() and (scale > 0).all()):
        raise ValueError(
            f"channel_scale_ must hold {n_channels} positive numbers, one per channel: set it to"
            " the standard deviation of each channel over the training windows."
        )
    return scale.astype(np.float64)


def _check_scored(scored: NDArray[np.bool_], n_windows: int) -> None:
    """Raise if no window of a sample has a step that is both observed and predicted."""
    empty = ~scored.reshape(-1, n_windows).any(1)
    if empty.any():
        raise ValueError(
            f"Input X has no step to score in sample {empty.argmax()} ({int(empty.sum())} such"
            " samples): a window needs two time steps that are not missing. Drop these samples."
        )
