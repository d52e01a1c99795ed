"""Base of the steps that keep the number of windows and channels."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._commit import unchanged_on_failure
from .._inputs._recordings import is_series_list, number_of_axes
from .._parameters import LAYOUTS, check_option, check_spelled_out
from .._signals import same_rate
from .._tags import of_windows
from ._input import check_input
from ._source import WindowSource
from ._values import WindowMap


def _gives_tables(estimator: Any) -> bool:
    """Return whether the output has columns with names; before `fit` it may have."""
    return bool(estimator._fitted_on_table)


def _contained_if_table(transform: Callable[..., Any]) -> Callable[..., Any]:
    """Return `transform`, which scikit-learn has wrapped, with containers for tables alone.

    scikit-learn would turn a list, or an array of three axes, into a frame too.
    """
    plain = vars(transform)["__wrapped__"]

    @wraps(transform)
    def transformed(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        is_table = not is_series_list(X) and number_of_axes(X) == 2
        return (transform if is_table else plain)(self, X, *args, **kwargs)

    return transformed


class _TableOutput(TransformerMixin):
    """``set_output`` for 2-D input alone, also if a step takes other input besides."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        check_spelled_out(cls)
        if "transform" in vars(cls):
            setattr(cls, "transform", _contained_if_table(vars(cls)["transform"]))  # noqa: B010


class BasePreprocessor(_TableOutput, BaseEstimator):
    """A step from windows to windows.

    A subclass stores its parameters, among them `input_layout`, checks them in `_check_params` and
    its input in `_check_windows`, learns in `_derive` and `_learn`, and returns what it does to
    windows from `_function`. After `fit` it reads parameters by `_fitted`, since the user may have
    changed them. The decorator `complete_docstring` fills in the parameter and attributes below.

    Parameters
    ----------
    input_layout : {"ntc", "nct"}, default="ntc"
        Order of the last two axes of `X`: time before channels ("ntc"), or channels before time
        ("nct"). The layout is never guessed. The output has the layout of the input.

    Attributes
    ----------
    n_channels_in_ : int
        Number of channels seen in `fit`.
    channel_names_in_ : ndarray of str of shape (n_channels,) or None
        Names of the channels that frames or lazy windows had in `fit`; None if they are unknown.
    n_features_in_ : int
        Number of channels; number of time steps if `X` was 2-D.
    feature_names_in_ : ndarray of str of shape (n_features,)
        Column names. Defined only if `X` was a DataFrame with string column names.
    """

    _names_of: ClassVar[type] = OneToOneFeatureMixin  # the columns of 2-D output
    _rate_name: ClassVar[str | None] = None  # the parameter that is the sampling rate of X
    _fitted_on_table = True
    input_layout: str
    n_channels_in_: int
    n_features_in_: int

    def _check_params(self) -> None:
        """Raise if a parameter is out of its range."""
        check_option("input_layout", self.input_layout, LAYOUTS)

    def _length(self, n_timesteps: int) -> int:
        """Return the number of time steps that a window has afterwards."""
        return n_timesteps

    def _rate(self, sampling_rate: float | None) -> float | None:
        """Return the sampling rate that a window has afterwards."""
        return sampling_rate

    def _rate_ratio(self) -> float:
        """Return the ratio of the sampling rate afterwards to that before."""
        return 1.0

    def _check_windows(self, windows: WindowSource) -> None:
        """Raise if the step cannot act on checked windows; `fit` and `transform` call it."""
        self._check_rate(windows)

    def _learn(self, windows: WindowSource) -> None:
        """Set the fitted attributes that follow from the windows."""

    def _derive(self) -> None:
        """Set the fitted attributes that follow from the parameters alone."""
        params = self.get_params(deep=False)
        del params["input_layout"]  # the layout of the X of each call, so its present value counts
        self._fit_params = params

    def _fitted(self, name: str) -> Any:
        """Return a parameter as it was in `fit`."""
        return self._fit_params[name]

    def _function(self, windows: WindowSource) -> WindowMap:
        """Return what the fitted step does to windows of shape (n, n_channels, n_timesteps)."""
        # Reached only if a subclass forgets to override this.
        raise NotImplementedError(f"{type(self).__name__} must override _function")

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Check the windows, and learn from them what the step needs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels), list or LazyWindows
            Windows; also 2-D (univariate), 4-D (bags), or a list of recordings of shape
            (n_timesteps, n_channels) or (n_timesteps,) that may differ in length. Nested lists of
            numbers as long as one another are 2-D. NaN is allowed.
        y : None
            Ignored. Present because scikit-learn passes it.

        Returns
        -------
        self
            The fitted step.

        Raises
        ------
        TypeError
            If a parameter is of a wrong kind, or `X` holds no numbers.
        ValueError
            If a parameter is invalid, if `X` has a wrong number of axes or an infinite value that
            is read, or if it carries another sampling rate or shorter windows than the step takes.

        Warns
        -----
        UserWarning
            If there are more channels than time steps, as in a transposed array, or if a 2-D `X`
            looks like one recording.
        """
        self._check_params()
        with unchanged_on_failure(self):
            windows = check_input(self, X, reset=True)
            self._derive()
            self._check_windows(windows)
            self._learn(windows)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float32] | Any:
        """Change windows or recordings.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels), list or LazyWindows
            Windows as in `fit`; 3-D windows may have another number of time steps.

        Returns
        -------
        ndarray, list of ndarray or of frames, or LazyWindows
            The changed windows, float32. A list gives a list, in which frames and Series stay
            frames and Series with their names and times; lazy windows give lazy windows.

        Raises
        ------
        TypeError
            If `X` holds no numbers.
        ValueError
            If `X` has an infinite value, or another number or other names of channels than in
            `fit`, or if it carries another sampling rate or shorter windows than the step takes.
        """
        windows = self._read(X)
        return self._map(windows, self._function(windows))

    def _map(self, windows: WindowSource, function: WindowMap) -> Any:
        windows.sampling_rate = self._rate(windows.sampling_rate)
        windows.rate_ratio = self._rate_ratio()
        return windows.mapped(function, self._length)

    def _read(self, X: Any) -> WindowSource:
        """Check what a fitted step is given."""
        check_is_fitted(self)
        self._check_params()
        windows = check_input(self, X, reset=False)
        self._check_windows(windows)
        return windows

    def _check_rate(self, windows: WindowSource) -> None:
        """Raise if X carries another sampling rate than the parameter says."""
        stated = None if self._rate_name is None else self._fitted(self._rate_name)
        if not same_rate(stated, windows.sampling_rate):
            raise ValueError(
                f"{self._rate_name}={stated!r}, but X carries a sampling rate of"
                f" {windows.sampling_rate:g} Hz: resample X, fit {type(self).__name__} with"
                f" {self._rate_name}={windows.sampling_rate:g}, or correct the rate of X."
            )

    def set_output(self, *, transform: Any = None) -> Self:
        """Choose the container of 2-D output; other output stays as it is.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            The container. None leaves the choice as it is.

        Returns
        -------
        BasePreprocessor
            The step, `self`.
        """
        # scikit-learn's method hides itself once the output has no column names; the choice holds
        # for the next fit all the same.
        fitted = self._fitted_on_table
        self._fitted_on_table = True
        try:
            super().set_output(transform=transform)
        finally:
            self._fitted_on_table = fitted
        return self

    @available_if(_gives_tables)
    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of 2-D output.

        Parameters
        ----------
        input_features : array-like of str of shape (n_features,), default=None
            Names of the columns of `X`; None takes the names seen in `fit`, or "x0", "x1", ...

        Returns
        -------
        ndarray of str
            The names: those of the input, or "resampler0", "resampler1", ... of a `Resampler`,
            whose columns are other time steps. Windows of several channels have no columns, and
            this method is missing.

        Raises
        ------
        ValueError
            If the step is not fitted, or `input_features` are not the names seen in `fit`, or not
            as many as there are columns.
        """
        check_is_fitted(self)
        names: Any = self._names_of
        return names.get_feature_names_out(self, input_features)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: 2-D and 3-D input, NaN allowed, float32 output."""
        return of_windows(super().__sklearn_tags__())
