"""Data contract: layouts, shapes and signals of the input."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils import get_tags

from .._inputs._recordings import as_windows
from .._inputs._shape import Shape, check_axes, check_layout, note_or_compare_shape
from .._inputs._stored import as_stored
from .._inputs._tables import frame_channels
from .._inputs._times import compare_rate
from .._signals import Signals, agreed, check_signals, compare, note, noted
from ..windows import LazyWindows
from ._amplitude import compare_amplitude, note_amplitude
from ._precision import warn_of_lost_variation
from ._windows import CheckedWindows


def check_windows(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    groups: ArrayLike | None = None,
    stated: tuple[Any, Any] = (None, None),
    layout: str | None = None,
) -> CheckedWindows:
    """Check the input of `fit` (`reset=True`) or `transform` against the data contract.

    Parameters
    ----------
    estimator : estimator
        Has the parameters `input_layout`, `sampling_rate` and `channel_names`, and the tag
        ``input_tags.allow_nan``; its fitted attributes ``n_features_in_``, ``n_channels_in_``,
        ``n_timesteps_in_``, ``sampling_rate_in_``, ``channel_names_in_`` and ``amplitude_in_`` are
        set or compared with.
    X : array-like of shape (n_samples, n_timesteps), (n_samples, n_timesteps, n_channels) or \
            (n_samples, n_windows, n_timesteps, n_channels)
        The input.
    reset : bool
        True in `fit`.
    groups : array-like of shape (n_samples,) or None, default=None
        Recording or subject of each sample.
    stated : tuple of float or None, and sequence of str or None, default=(None, None)
        Sampling rate and channel names of X, as the caller of `transform` states them. In `fit`
        the parameters state them.
    layout : {"ntc", "nct"} or None, default=None
        Order of the last two axes; None means the parameter `input_layout`.

    Returns
    -------
    CheckedWindows
        A view of the input in the native layout.

    Raises
    ------
    TypeError
        For frames that hold series, sparse matrices, strings and objects.
    ValueError
        For complex numbers, every shape and layout that does not fit, and another sampling rate or
        other channel names than those of `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse import PulseTransformer
    >>> from sklearn_pulse.base import check_windows
    >>> windows = check_windows(PulseTransformer(), np.zeros((6, 8, 2)), reset=True)
    >>> len(windows)
    6
    """
    name = type(estimator).__name__
    layout = layout or estimator.input_layout
    check_layout(X, layout, name)
    data: Any = X if isinstance(X, LazyWindows) else as_stored(X)
    data = as_windows(X, layout) if data is None else data
    check_axes(data.shape, name, bags=not isinstance(X, LazyWindows))
    takes_nan = get_tags(estimator).input_tags.allow_nan
    windows = CheckedWindows(data, layout, groups, takes_nan=takes_nan)
    shape = Shape(windows.n_timesteps, windows.n_channels, is_table=len(data.shape) == 2)
    table = X if hasattr(X, "columns") else data
    note_or_compare_shape(estimator, shape, table, input_layout=layout, reset=reset)
    if reset:
        estimator.n_timesteps_in_ = windows.n_timesteps
        warn_of_lost_variation(windows)
        note(estimator, _signals_of(windows, X, estimator.sampling_rate, estimator.channel_names))
        note_amplitude(estimator, windows)
    else:
        fitted = noted(estimator)
        compare(_signals_of(windows, X, *stated), fitted, name)
        compare_rate(fitted.sampling_rate, X, "sampling_rate", "X", fitted=name)
        if getattr(estimator, "_reads_scale", True):
            compare_amplitude(estimator, windows)
    return windows


def check_fitted_length(estimator: Any, n_timesteps: int) -> None:
    """Raise if windows are not as long as those of `fit`, where that length is known."""
    fitted = estimator.n_timesteps_in_
    if fitted is not None and n_timesteps != fitted:
        raise ValueError(
            f"X has windows of {n_timesteps} time steps, but {type(estimator).__name__} was fitted"
            f" on windows of {fitted} and takes no other length: cut X into windows of"
            f" {fitted} steps, or fit again."
        )


def _signals_of(windows: CheckedWindows, X: Any, sampling_rate: Any, channel_names: Any) -> Signals:
    """Return what is stated or carried of the signals; raise where both contradict each other.

    Lazy windows carry a rate and names, and frames in a list, `X`, carry names.
    """
    n_channels, lazy = windows.n_channels, windows.lazy
    stated = check_signals(sampling_rate, channel_names, n_channels)
    if lazy is None:
        compare_rate(stated.sampling_rate, X, "sampling_rate", "X")
        return agreed(stated, Signals(None, frame_channels(X)))
    carried = check_signals(lazy.sampling_rate, lazy.channel_names, n_channels, owner="X.")
    compare_rate(stated.sampling_rate, lazy, "sampling_rate", "X")
    return agreed(stated, carried)
