"""Checks of the input of a step."""

from __future__ import annotations

from typing import Any

from .._inputs._names import carried_names
from .._inputs._numbers import as_real_array
from .._inputs._recordings import as_series, is_series_list
from .._inputs._shape import Shape, check_axes, check_layout, note_or_compare_shape
from .._inputs._stored import as_stored
from .._inputs._times import compare_rate
from .._signals import check_signals, note_or_compare_names
from ..windows import LazyWindows
from ._source import ArrayWindows, LazySource, RecordingList, WindowSource


def check_input(estimator: Any, X: Any, *, reset: bool) -> WindowSource:
    """Check the input of `fit` (`reset=True`) or `transform`.

    Parameters
    ----------
    estimator : estimator
        Has the parameter `input_layout`; ``n_channels_in_``, ``n_features_in_`` and
        ``channel_names_in_`` are set or compared with.
    X : array-like, list of recordings or LazyWindows
        The input.
    reset : bool
        True in `fit`.

    Returns
    -------
    WindowSource
        The input, read a few windows at a time.

    Raises
    ------
    TypeError
        If `X` holds no numbers.
    ValueError
        If `X` has a wrong number of axes or channels, another layout, or numbers that are not
        real.
    """
    windows, frame = _read(X, type(estimator).__name__, estimator.input_layout)
    shape = Shape(windows.n_timesteps, windows.n_channels, windows.is_table)
    layout = estimator.input_layout
    note_or_compare_shape(
        estimator, shape, frame, input_layout=layout, reset=reset, takes_recordings=True
    )
    rate = estimator._rate_name
    if rate is not None:
        stated = getattr(estimator, rate) if reset else estimator._fitted(rate)
        compare_rate(stated, X, rate, "X", fitted=None if reset else type(estimator).__name__)
    note_or_compare_names(estimator, carried_names(X), reset=reset)
    return windows


def _read(X: Any, name: str, input_layout: str) -> tuple[WindowSource, Any]:
    """Return the input as a source, and, of a table, the frame or array that it came in."""
    if isinstance(X, LazyWindows):
        check_layout(X, input_layout, name)
        _check_lazy(X.shape, name)
        source = LazySource(X, input_layout)
        check_signals(X.sampling_rate, X.channel_names, source.n_channels, owner="X.")
        return source, X
    if is_series_list(X):
        return RecordingList(as_series(X, input_layout), X, input_layout), X
    stored = as_stored(X)
    data: Any = as_real_array(X) if stored is None else stored
    check_axes(data.shape, name)
    return ArrayWindows(data, input_layout), X if hasattr(X, "columns") else data


def _check_lazy(shape: tuple[int, ...], name: str) -> None:
    """Raise unless lazy windows have three axes, none of them empty."""
    if len(shape) != 3:
        raise ValueError(
            f"X.shape is {shape}, but lazy windows have three axes, (n_windows, n_timesteps,"
            " n_channels): give each window the last two of them in `take`."
        )
    check_axes(shape, name)
