"""Base of transformers that compute fixed features of windows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .._commit import unchanged_on_failure
from .._data._pooling import collect, pooled
from .._data._validation import check_fitted_length, check_windows
from .._data._windows import Block, CheckedWindows
from .._docstrings import complete_docstring
from .._inputs._shape import note_channels
from .._parameters import LAYOUTS, check_option, check_spelled_out
from .._persistence import PretrainedMixin, check_params_unchanged
from .._signals import Signals, SignalTransformerMixin, check_signals, note
from .._tags import WindowTags, of_windows

CHUNK = 256  # windows whose features are in memory at once

# Parameters that act at `transform`, on this machine, or only while something is drawn.
_NOT_LEARNT = (
    "bag_pooling",
    "channel_names",
    "device",
    "input_layout",
    "memory",
    "num_threads",
    "random_state",
    "sampling_rate",
    "verbose",
)


@complete_docstring
class BaseFeatureTransformer(
    PretrainedMixin, ClassNamePrefixFeaturesOutMixin, SignalTransformerMixin, BaseEstimator, ABC
):
    """Windows to features, with the input contract of the estimators that train an encoder.

    A subclass stores its parameters, among them `bag_pooling` and `input_layout`, checks them in
    `_check_params`, and computes the features of a few windows in `_features`. What follows from
    the parameters and the shape of the windows it derives in `_fit_shape`. A subclass that learns
    more overrides `_fit`, `_weights` and `_restore`. Its docstring describes what is its own; the
    decorator `complete_docstring` fills in the parameters and attributes below.

    Parameters
    ----------
    bag_pooling : {"mean", "max"}, default="mean"
        How the features of the windows of a bag are pooled.
    input_layout : {"ntc", "nct"}, default="ntc"
        Order of the axes of 3-D and 4-D data: channels last ("ntc") or channels first ("nct").
    sampling_rate : float or None, default=None
        Sampling rate of the windows, in Hz. The fitted transformer refuses windows that are known
        to have another rate. None takes the rate that lazy windows carry, if they do.
    channel_names : sequence of str or None, default=None
        Names of the channels, in their order. The fitted transformer refuses windows that are known
        to have other channels or another order. None takes the names that lazy windows carry.

    Attributes
    ----------
    n_timesteps_in_ : int
        Number of time steps of a window at `fit`.
    n_channels_in_ : int
        Number of channels of a window at `fit`.
    sampling_rate_in_ : float or None
        Sampling rate of the windows at `fit`, in Hz; None if it is unknown.
    channel_names_in_ : ndarray of str of shape (n_channels,) or None
        Names of the channels at `fit`; None if they are unknown.
    amplitude_in_ : ndarray of float64, of shape (2, n_channels), or None
        The 5th and the 95th percentile of the root mean squares of 64 windows of `fit`. A warning
        tells of windows that are thirty times larger or smaller, as if they had another unit. NaN
        for a channel that is zero throughout; None if the fit is not known.
    n_features_in_ : int
        Number of columns of 2-D data at `fit`, or of channels of 3-D and 4-D data.
    feature_names_in_ : ndarray of str of shape (n_features,)
        Names of the columns at `fit`. Only present if `X` was a frame with names.
    """

    bag_pooling: str
    input_layout: str
    sampling_rate: float | None = None  # for subclasses without these parameters
    channel_names: Sequence[str] | None = None
    n_timesteps_in_: int
    n_channels_in_: int
    n_features_in_: int
    _fitted_on_table: bool
    _allow_nan = True  # whether a window may have missing time steps
    _variable_length = True  # whether `transform` takes windows of another length than `fit`
    _uses_recordings = False  # whether `fit` reads which recording a window comes from
    _reads_scale = True  # whether windows in another unit have other features
    _dtype: type[np.floating[Any]] = np.float32  # of the features

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        check_spelled_out(cls)

    def _check_params(self) -> None:
        """Raise if a parameter is out of its range."""
        self._check_params_read_later()
        check_signals(self.sampling_rate, self.channel_names)

    def _check_params_read_later(self) -> None:
        """Raise if a parameter that is read after `fit` too is out of its range."""
        check_option("bag_pooling", self.bag_pooling, ("mean", "max"))
        check_option("input_layout", self.input_layout, LAYOUTS)

    def _fit_shape(self) -> None:
        """Derive what follows from the parameters and the shape of the windows."""

    def _fit(self, windows: CheckedWindows, usable: NDArray[np.intp]) -> None:
        """Learn what the features depend on from the windows with an observed time step."""
        self._fit_shape()

    def _fit_part(self, windows: Any, usable: NDArray[np.intp]) -> None:
        """Fit on windows that another estimator, which this transformer is a part of, checked."""
        self._check_params()
        self._note_part(windows.n_timesteps, windows.n_channels)
        self._fit(windows, usable)
        self._note_params()

    def _note_part(self, n_timesteps: int, n_channels: int) -> None:
        """Note the shape of windows that another estimator checks."""
        self.n_timesteps_in_ = n_timesteps
        note_channels(self, n_channels)
        note(self, Signals())

    def _note_params(self) -> None:
        """Note the parameters that the fitted state depends on."""
        params = self.get_params(deep=False).items()
        self._fit_params = {
            name: deepcopy(value) for name, value in params if name not in _NOT_LEARNT
        }

    def _weights(self) -> dict[str, Tensor]:
        return {}

    def _restore(self, weights: Mapping[str, Tensor]) -> None:
        self._fit_shape()
        self._note_params()

    def _check_unchanged(self, twin: Any) -> None:
        check_params_unchanged(self._fit_params, twin.get_params(deep=False))

    @abstractmethod
    def _features(self, block: Block) -> NDArray[np.floating[Any]]:
        """Return the features of a few windows, shape (n, n_features)."""

    def _computation(self) -> Callable[[Block], NDArray[np.floating[Any]]]:
        """Return :meth:`_features`, or what computes the same for one block after another."""
        return self._features

    def _check_input_length(self, n_timesteps: int) -> None:
        """Raise if windows of this length have other features than those of `fit`."""
        if not self._variable_length:
            check_fitted_length(self, n_timesteps)

    def _check_complete(self, observed: NDArray[np.bool_] | None) -> None:
        """Raise if a time step is missing; for methods that know no missing values."""
        if observed is not None and not observed.all():
            raise ValueError(
                f"Input X contains NaN, and {type(self).__name__} knows no missing values: drop"
                " the windows with missing time steps, or fill the steps, for example by"
                " interpolation."
            )

    @property
    @abstractmethod
    def _n_features_out(self) -> int:
        """Number of features."""

    @property
    def _spread_has_unit(self) -> NDArray[np.bool_]:
        """Whether the spread of each feature changes with the unit of the signal, (n_features,)."""
        return np.zeros(self._n_features_out, dtype=bool)

    def _feature_names(self, channels: Sequence[str]) -> list[str] | None:
        """Return a name per feature; None takes the name of the transformer and a number."""
        return None

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Return the names of the features.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns or channels of `fit`, which are only compared with those of `fit`.

        Returns
        -------
        ndarray of str of shape (n_features,)
            One name per feature, such as "channel0_mean" of `StatisticsTransformer`,
            "channel2_speed_lag5" of `AutocorrelationTransformer`,
            "channel0_delay2_channel1_delay0" of `CovarianceTransformer` and
            "channel0_change_radius8" of `RhythmTransformer`, with `channel_names_in_` in the place
            of "channel0" where they are known, as in "ecg_mean"; otherwise the name of the
            transformer and a number.

        Raises
        ------
        NotFittedError
            If the transformer is not fitted.
        ValueError
            If `input_features` has another length, or other names, than `fit` found.
        """
        numbered = super().get_feature_names_out(input_features)
        names = self._feature_names([f"channel{c}" for c in range(self.n_channels_in_)])
        if self.channel_names_in_ is not None and names is not None:
            stated = self._feature_names(self.channel_names_in_.tolist()) or []
            if len(set(stated)) == len(names):  # else a name of a channel ends as one of a feature
                names = stated
        return numbered if names is None else np.asarray(names, dtype=object)

    def fit(self, X: ArrayLike, y: None = None) -> BaseFeatureTransformer:
        """Learn the shape of the windows, and what else the features depend on.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels)
            Windows. 2-D data of shape (n_samples, n_timesteps) is univariate; 4-D data of shape
            (n_samples, n_windows, n_timesteps, n_channels) are bags of windows.
        y : None
            Ignored; present for pipelines.

        Returns
        -------
        BaseFeatureTransformer
            The fitted transformer.

        Raises
        ------
        TypeError
            If a parameter or `X` is of a wrong kind.
        ValueError
            If a parameter is out of its range, or `X` holds an infinity, a sample without an
            observed time step, values so large that what is learnt is not finite, or no windows at
            all.
        """
        self._check_params()
        with unchanged_on_failure(self), overflow_is_found():
            windows = check_windows(self, X, reset=True)
            self._fit(windows, np.flatnonzero(windows.scan()))
            self._note_params()
        return self

    def transform(
        self,
        X: ArrayLike,
        *,
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> NDArray[np.float32]:
        """Compute the features of windows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels)
            Windows, also 2-D or 4-D as in `fit`. The features of a bag are those of its windows,
            pooled.

        Returns
        -------
        ndarray of float32, of shape (n_samples, n_features)
            One row per sample, which depends on no other sample.

        Raises
        ------
        NotFittedError
            If the transformer is not fitted.
        TypeError
            If `X` or a parameter is of a wrong kind.
        ValueError
            If a parameter is out of its range, or `X` holds windows of other channels, of another
            sampling rate, or of a length that has other features; an infinity, a sample without an
            observed time step, or values so large that a feature is not finite.
        """
        check_is_fitted(self)
        self._check_params_read_later()
        stated = sampling_rate, channel_names
        windows = check_windows(self, X, reset=False, stated=stated)
        self._check_input_length(windows.n_timesteps)
        compute = self._computation()
        blocks = ((index, block, compute(block)) for index, block in windows.blocks())
        shape = (self._n_features_out,)
        with overflow_is_found():
            features, usable = collect(windows, blocks, shape, dtype=self._dtype)
        return pooled(windows, features, usable, self.bag_pooling)

    def __sklearn_tags__(self) -> WindowTags:
        """Return scikit-learn's tags: 2-D and 3-D input, float32 out."""
        tags = WindowTags.of(
            super().__sklearn_tags__(),
            variable_length=self._variable_length,
            uses_recordings=self._uses_recordings,
        )
        return of_windows(tags, allow_nan=self._allow_nan)


def overflow_is_found() -> np.errstate:
    """Return a context without NumPy's warnings of overflow; an error names the windows instead."""
    return np.errstate(over="ignore", invalid="ignore")


def check_features(features: NDArray[np.floating[Any]], windows: Any, index: Any) -> None:
    """Raise a ValueError if what comes from the windows with these numbers is not finite."""
    if np.isfinite(features).all():
        return
    # A threshold that one window has set may spoil the features of the others.
    largest = np.abs(windows.take(index).x).max((1, 2))
    raise ValueError(
        f"The values of X lead to features that are not finite: window {index[largest.argmax()]}"
        f" reaches {largest.max():.3g}, too large for float32. Scale X, or replace outliers by NaN,"
        " which masks their time steps."
    )
