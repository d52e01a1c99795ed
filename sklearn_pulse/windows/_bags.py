"""Transformer from series to bags of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_is_fitted

from .._commit import unchanged_on_failure
from .._inputs._files import recording_name
from .._inputs._lazy import LazyWindows
from .._inputs._names import carried_names
from .._inputs._numbers import as_real_array
from .._inputs._recordings import as_series, is_series_list, stacked
from .._inputs._shape import Shape, check_axes, check_layout, note_or_compare_shape
from .._parameters import LAYOUTS, check_option
from .._signals import note_or_compare_names
from .._tags import of_windows
from .._typing import InputLayout
from ._checks import check_grid


class SlidingWindows(TransformerMixin, BaseEstimator):
    """Turn each series into a bag of windows and keep the number of samples.

    Use this step in a pipeline with one label per recording. An encoder that follows it, such as
    ``PulseTransformer``, embeds every window of a bag and pools the embeddings.

    Parameters
    ----------
    length : int, default=128
        Number of time steps in a window.
    stride : int, default=None
        Number of time steps between the starts of two consecutive windows. None means `length`,
        so that windows do not overlap.
    input_layout : {"ntc", "nct"}, default="ntc"
        Order of the axes of a 3-D `X`: "ntc" means (n_samples, n_timesteps, n_channels), "nct"
        means (n_samples, n_channels, n_timesteps), as in sktime and aeon. In a list, each array
        has the last two of these axes; a frame always has a column per channel. The layout is
        never guessed. The output is always channels last.

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

    See Also
    --------
    sliding_windows : Cut windows before the pipeline, each with its own label.

    Notes
    -----
    Steps at the end of a series that do not fill a window are left out. A series shorter than
    `length` becomes one window, padded at its end with NaN. In a list of unequal series, each
    series gets as many windows as the longest one; the windows beyond its end are all NaN, and
    the estimators of this package skip such windows.

    If the series have equal length, at least `length`, the output is a read-only strided view,
    however much windows overlap: a view of `X` itself if `X` is a float32 array, otherwise, as of a
    list, of one float32 copy.

    The output has four axes, so ``set_output`` does not apply and is not available. In a pipeline
    call it on the steps behind: ``pipeline[1:].set_output(transform="pandas")``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.windows import SlidingWindows
    >>> X = np.zeros((5, 100, 3), dtype=np.float32)
    >>> SlidingWindows(length=20, stride=10).fit_transform(X).shape
    (5, 9, 20, 3)
    >>> series = [np.ones((30, 3)), np.ones((100, 3))]
    >>> bag = SlidingWindows(length=20).fit_transform(series)
    >>> bag.shape, int(np.isnan(bag[0]).all(axis=(1, 2)).sum())
    ((2, 5, 20, 3), 4)
    """

    def __init__(
        self,
        length: int = 128,
        stride: int | None = None,
        input_layout: InputLayout = "ntc",
    ) -> None:
        self.length = length
        self.stride = stride
        self.input_layout = input_layout

    def fit(self, X: ArrayLike | Sequence[ArrayLike], y: Any = None) -> SlidingWindows:
        """Validate the parameters and record the number of channels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels) or (n_samples, n_timesteps)
            The series, or a list (or 1-D array of objects) of series of shape (n_timesteps,
            n_channels) or (n_timesteps,) that may differ in length. Nested lists of numbers as long
            as one another are a table. NaN is allowed.
        y : None
            Ignored. Present because scikit-learn passes it.

        Returns
        -------
        SlidingWindows
            The fitted transformer, `self`.

        Raises
        ------
        TypeError
            If a parameter is of a wrong kind, or `X` holds no numbers.
        ValueError
            If a parameter is invalid, or if `X` has an infinite value or a wrong number of axes.

        Warns
        -----
        UserWarning
            If there are more channels than time steps, as in a transposed array, or if a 2-D `X`
            looks like one recording.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_pulse.windows import SlidingWindows
        >>> SlidingWindows(length=20).fit(np.zeros((5, 100, 3))).n_channels_in_
        3
        """
        self._check_params()
        with unchanged_on_failure(self):
            self._check_series(X, reset=True)
        return self

    def transform(self, X: ArrayLike | Sequence[ArrayLike]) -> NDArray[np.float32]:
        """Cut every series into windows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels) or (n_samples, n_timesteps)
            The series, or a list (or 1-D array of objects) of series of shape (n_timesteps,
            n_channels) or (n_timesteps,) that may differ in length. Nested lists of numbers as long
            as one another are a table. A 3-D `X` may have another number of time steps than in
            `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_windows, length, n_channels), dtype float32
            One bag per series. A read-only view if the series have equal length, at least
            `length`.

        Raises
        ------
        TypeError
            If `X` holds no numbers.
        ValueError
            If `X` has a wrong number of axes, an infinite value, or another number or other names
            of channels than in `fit`.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_pulse.windows import SlidingWindows
        >>> window = SlidingWindows(length=20).fit(np.zeros((5, 100, 3)))
        >>> window.transform(np.zeros((2, 60, 3))).shape
        (2, 3, 20, 3)
        """
        check_is_fitted(self)
        length, stride = self._check_params()
        series = self._check_series(X, reset=False)
        if isinstance(series, list) and len({*map(len, series)}) == 1:
            series = stacked(series, np.float32)
        if isinstance(series, list) or series.shape[1] < length:
            return _padded_bag(series, length, stride)
        # (n_samples, n_windows, n_channels, length), then channels last
        windows = np.lib.stride_tricks.sliding_window_view(series, length, axis=1)[:, ::stride]
        return np.moveaxis(windows, -1, 2)

    def _check_params(self) -> tuple[int, int]:
        """Raise if a parameter is out of its range; return length and stride."""
        check_option("input_layout", self.input_layout, LAYOUTS)
        return check_grid(self.length, self.stride)[:2]

    def _check_series(self, X: Any, *, reset: bool) -> NDArray[np.float32] | list[Any]:
        """Return series of shape (n_timesteps, n_channels), as one float32 array or a list.

        In a list the values keep their dtype, and files are closed again.
        """
        frame, layout = X, self.input_layout
        check_layout(X, layout, type(self).__name__)
        series: Any
        if is_series_list(X):
            series = as_series(X, layout)
            shape = Shape(max(map(len, series)), series[0].shape[1])
            for i, x in enumerate(series):
                _as_float32(np.asarray(x)[np.newaxis], X, i)
        else:
            data = as_real_array(np.asarray(X) if isinstance(X, LazyWindows) else X)
            check_axes(data.shape, type(self).__name__, bags=False)
            is_table = data.ndim == 2
            frame = X if hasattr(X, "columns") else data
            series = data[:, :, np.newaxis] if is_table else data
            series = series.swapaxes(1, 2) if layout == "nct" and not is_table else series
            shape = Shape(series.shape[1], series.shape[2], is_table)
            series = _as_float32(series, series)
        note_or_compare_shape(
            self, shape, frame, input_layout=layout, reset=reset, takes_recordings=True
        )
        note_or_compare_names(self, carried_names(X), reset=reset)
        return series

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: 2-D and 3-D input, NaN allowed, float32 output."""
        return of_windows(super().__sklearn_tags__())


def _as_float32(x: NDArray[Any], given: Any, first: int = 0) -> NDArray[np.float32]:
    """Cast series; raise if a value is infinite, or beyond the range of float32.

    The message names the series, of which `x` holds those of `given` from `first` on.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # such a value becomes an infinity
        x = x.astype(np.float32, copy=False)
        try:
            # Of a finite float64 the cast makes an infinity too, so this is checked in any case.
            with config_context(assume_finite=False):
                assert_all_finite(x, allow_nan=True)  # adds up infinities of both signs
        except ValueError:
            sample = next(i for i, values in enumerate(x, first) if np.isinf(values).any())
            name = recording_name("X", sample, given[sample])
            raise ValueError(
                f"Input {name} contains infinity or a value too large for float32: replace"
                " it, by NaN if the value is missing (missing values are kept)."
            ) from None
    return x


def _padded_bag(
    series: NDArray[np.float32] | list[Any], length: int, stride: int
) -> NDArray[np.float32]:
    """Return windows of unequal or short series; missing steps and windows are NaN."""
    counts = [max(len(x) - length, 0) // stride + 1 for x in series]
    shape = len(series), max(counts), length, series[0].shape[1]
    try:
        bag = np.full(shape, np.nan, np.float32)
    except (MemoryError, ValueError) as error:  # NumPy raises ValueError beyond its largest shape
        raise MemoryError(
            f"windows of shape {shape} do not fit into memory: choose a smaller length or a larger"
            " stride, or cut them by sliding_windows(..., lazy=True)."
        ) from error
    for windows, x, count in zip(bag, series, counts, strict=True):
        if len(x) < length:
            windows[0, : len(x)] = x
        else:
            view = np.lib.stride_tricks.sliding_window_view(np.asarray(x), length, axis=0)
            windows[:count] = np.moveaxis(view[::stride], -1, 1)
    return bag
