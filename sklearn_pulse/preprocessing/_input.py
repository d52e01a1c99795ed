"""Checks of what a step is given."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from .._groups import nan_where_masked
from .._signals import note_or_compare_names
from .._warnings import warn_user
from ..windows import LazyWindows
from ..windows._panel import (
    check_frames,
    compare_rate,
    frame_channels,
    refuse_panel,
    refuse_times,
    table_values,
)
from ..windows._recordings import (
    has_own_layout,
    is_object_list,
    is_series_list,
    warn_if_recording,
)
from ._source import ArrayWindows, LazySource, RecordingList, WindowSource

_OPTIONS: dict[str, Any] = {"dtype": "numeric", "ensure_all_finite": False}  # values: when read


def check_input(estimator: Any, X: Any, *, reset: bool) -> WindowSource:
    """Check the input of `fit` (`reset=True`) or `transform`.

    Parameters
    ----------
    estimator : estimator
        Has the parameter `input_layout`; ``n_channels_in_`` and ``n_features_in_`` are set or
        compared with.
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
    ValueError
        If `X` has a wrong number of axes or channels, or holds no real numbers.
    """
    layout = estimator.input_layout
    X = list(X) if is_object_list(X) else nan_where_masked(X)
    windows: WindowSource
    is_table = False
    if isinstance(X, LazyWindows):
        windows = LazySource(X, layout)
    elif is_series_list(X):
        windows = RecordingList(_check_recordings(X, layout), layout, list(X))
    else:
        values = X
        if isinstance(X, list | tuple):
            check_frames(X, "X")  # Series have times too
            values = [table_values(x) for x in X]
        data = _check_windows(values)
        is_table = data.ndim == 2
        if is_table and (reset or estimator._fitted_on_table):
            frame = X if hasattr(X, "columns") else data
            validate_data(estimator, frame, reset=reset, skip_check_array=True)
        if is_table and reset:
            warn_if_recording(*data.shape)
        windows = ArrayWindows(data, layout)
        axes = {getattr(x, "ndim", 0) for x in values} if isinstance(values, list) else set()
        windows.is_list = axes == {1}  # recordings of one channel may happen to be as long
    if reset:
        _warn_if_transposed(windows, layout)
        estimator._fitted_on_table = is_table
        estimator.n_channels_in_ = windows.n_channels
        if not is_table:
            estimator.n_features_in_ = windows.n_channels
            vars(estimator).pop("feature_names_in_", None)
    elif windows.n_channels != estimator.n_channels_in_:
        _refuse_channels(estimator, windows)
    rate = estimator._rate_name
    if rate is not None:
        stated = getattr(estimator, rate) if reset else estimator._fitted(rate)
        compare_rate(stated, X, rate, "X")
    names = X.channel_names if isinstance(X, LazyWindows) else frame_channels(X)
    note_or_compare_names(estimator, None if names is None else tuple(names), reset=reset)
    return windows


def _check_windows(X: Any) -> NDArray[Any]:
    """Return an array of two to four axes, without a copy where X is an array."""
    refuse_panel(X)
    refuse_times(X, "X")
    data = check_array(X, allow_nd=True, **_OPTIONS)
    if data.ndim > 4:
        raise ValueError(
            f"X has {data.ndim} axes; pass (n_samples, n_timesteps), (n_samples, n_timesteps,"
            " n_channels), (n_samples, n_windows, n_timesteps, n_channels) or a list of recordings."
        )
    if 0 in data.shape:
        raise ValueError(f"X has an empty axis, shape {data.shape}; pass at least one time step.")
    return data


def _check_recordings(X: Any, input_layout: str) -> list[NDArray[Any]]:
    """Return the recordings of a list as arrays, without a copy where they are arrays."""
    channels = 0 if input_layout == "nct" else 1  # axis
    recordings: list[NDArray[Any]] = []
    n_channels = None
    check_frames(X, "X")
    for i, source in enumerate(X):
        refuse_panel(source)
        x = nan_where_masked(table_values(source))
        x = check_array(x, ensure_2d=False, ensure_min_samples=0, input_name=f"X[{i}]", **_OPTIONS)
        if input_layout == "nct" and has_own_layout(source):
            x = x.T
        n_own = 1 if x.ndim == 1 else x.shape[channels]
        n_channels = n_own if n_channels is None else n_channels
        if 0 in x.shape or n_own != n_channels:
            raise ValueError(
                f"X[{i}] has shape {x.shape}; every recording needs at least one step and the"
                f" {n_channels} channels of X[0], on axis {channels} (input_layout="
                f"{input_layout!r})."
            )
        recordings.append(x)
    return recordings


def _warn_if_transposed(windows: WindowSource, input_layout: str) -> None:
    """Warn if there are more channels than time steps."""
    if windows.n_channels > windows.n_timesteps:
        other = "nct" if input_layout == "ntc" else "ntc"
        warn_user(
            f"X, to be preprocessed, has more channels ({windows.n_channels}) than time steps"
            f" ({windows.n_timesteps}); if its last two axes are the other way round, set"
            f" input_layout={other!r}."
        )


def _refuse_channels(estimator: Any, windows: WindowSource) -> None:
    """Raise an error about channels other than those of `fit`."""
    name, fitted = type(estimator).__name__, estimator.n_channels_in_
    hint = f"pass the channels seen in fit (input_layout={estimator.input_layout!r})"
    if windows.n_timesteps == fitted:
        hint = "X looks transposed, see the parameter input_layout"
    raise ValueError(
        f"X has {windows.n_channels} channels, but {name} was fitted with {fitted}; {hint}."
    )
