"""Conversion of recordings to a list of 2-D arrays, without a copy or cast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._parameters import LAYOUTS, check_option
from .._warnings import warn_user
from ._files import RecordingFile, recording_name
from ._numbers import as_real_array
from ._panel import check_frames, read_frame
from ._tables import is_list, is_panel_frame, is_table

_READINGS = (
    "for one multichannel recording pass [X]; for many univariate recordings of equal length "
    "pass numpy.asarray(X)[:, :, None]"
)


def number_of_axes(X: Any) -> int | None:
    """Return the number of axes; None for a ragged sequence."""
    if hasattr(X, "ndim"):
        return int(X.ndim)
    try:
        return np.asarray(X).ndim
    except ValueError:
        return None


def is_series_list(X: Any) -> bool:
    """Return whether X is a list of series of shape (n_timesteps, n_channels) or (n_timesteps,).

    Lists of numbers as long as one another are the rows of a table; arrays, Series and tensors with
    one axis are series, however long.
    """
    if not is_list(X) or not len(X):
        return False
    axes = {number_of_axes(x) for x in X}
    if axes == {1}:
        return all(hasattr(x, "__array__") for x in X) or len({len(x) for x in X}) > 1
    return axes in ({2}, {1, 2})


def has_own_layout(recording: Any) -> bool:
    """Return whether a recording, a file or a frame, has a row per time step in every layout."""
    return isinstance(recording, RecordingFile) or hasattr(recording, "columns")  # a frame


def _layout(recording: Any, input_layout: str) -> str:
    """Return the order of the axes of a recording, which a file knows by itself."""
    return recording.input_layout if isinstance(recording, RecordingFile) else input_layout


def channels_last(recording: NDArray[Any], source: Any, input_layout: str) -> NDArray[Any]:
    """Return a recording of a list as a view of shape (n_timesteps, n_channels).

    `input_layout` is the layout of arrays. A frame, which `source` may be, always has a row per
    time step and a column per channel, and a 1-D recording has one channel.
    """
    if recording.ndim == 1:
        return recording[:, np.newaxis]
    return recording.T if input_layout == "nct" and not has_own_layout(source) else recording


def as_windows(X: Any, input_layout: str) -> NDArray[Any]:
    """Return windows as one array with the axes of a layout.

    Parameters
    ----------
    X : array-like, or list of array-like or frames
        The windows. In a list, a frame has a column per channel whatever the layout.
    input_layout : {"ntc", "nct"}
        Order of the last two axes of arrays, and of the result.

    Returns
    -------
    ndarray or memory map
        Real numbers, without a copy if they are an array already. Masked values are NaN.

    Raises
    ------
    TypeError, ValueError
        If `X` is ragged, or holds no real numbers.
    """
    if not is_list(X):
        return as_real_array(X)
    own = [has_own_layout(x) for x in X] if input_layout == "nct" else [False]
    if any(own) and not all(own):  # brings arrays into the layout of the frames
        X = [x if has else as_real_array(x).T for x, has in zip(X, own, strict=True)]
    if all(isinstance(x, RecordingFile) for x in X) and len({x.shape for x in X}) == 1:
        windows = stacked(X, np.result_type(*{x.dtype for x in X}))
    else:
        windows = as_real_array(X)
    return windows.swapaxes(1, 2) if any(own) and windows.ndim == 3 else windows


def stacked(recordings: Sequence[Any], dtype: DTypeLike) -> NDArray[Any]:
    """Return arrays or files of one shape as one array; only one file is open at a time."""
    result = np.empty((len(recordings), *recordings[0].shape), dtype)
    for row, recording in zip(result, recordings, strict=True):
        row[:] = recording
    return result


def _read(recording: Any, name: str) -> Any:
    """Return the values of a recording; a file is returned as it is, and read later."""
    return recording if isinstance(recording, RecordingFile) else as_real_array(recording, name)


def _as_recording(values: Any, name: str, input_layout: str) -> NDArray[Any]:
    """Return one recording as an array of shape (n_timesteps, n_channels)."""
    array = _read(values, name)
    if array.ndim == 0 and values is None:  # as a reader may return for a damaged file
        raise ValueError(f"{name} is None: leave it out, or pass an array of its values.")
    if array.ndim == 0:
        raise ValueError(f"recordings is a plain sequence of numbers (1-D); {_READINGS}.")
    if array.ndim > 2:
        raise ValueError(
            f"{name} must have shape (n_timesteps, n_channels) or (n_timesteps,), got "
            f"{array.shape}; pass one 2-D array per recording."
        )
    return channels_last(array, values, input_layout)


def _split_recordings(array: NDArray[Any], input_layout: str) -> list[NDArray[Any]]:
    """Split a 3-D array into its recordings; raise if it has another number of axes."""
    if array.ndim in (1, 2):
        raise ValueError(
            f"recordings is a bare {array.ndim}-D array of shape {array.shape}, which can be "
            f"read in two ways; {_READINGS}."
        )
    if array.ndim != 3:
        raise ValueError(
            "recordings must be an array of shape (n_recordings, n_timesteps, n_channels) or a "
            f"list of arrays of shape (n_timesteps, n_channels), got {array.ndim} axes."
        )
    if input_layout == "nct":
        array = array.swapaxes(1, 2)
    if array.shape[2] > array.shape[1]:
        other = "nct" if input_layout == "ntc" else "ntc"
        warn_user(
            f"recordings have more channels ({array.shape[2]}) than time steps ({array.shape[1]}); "
            "if its last two axes are the other way round, swap them or set"
            f" input_layout={other!r}."
        )
    return list(array)


def as_series(X: Any, input_layout: str) -> list[NDArray[Any]]:
    """Return each series of a list that an estimator was given.

    Parameters
    ----------
    X : list of array-like of shape (n_timesteps, n_channels) or (n_timesteps,)
        The series.
    input_layout : {"ntc", "nct"}
        Order of the axes of arrays; a frame always has a column per channel.

    Returns
    -------
    list of ndarray or RecordingFile of shape (n_timesteps, n_channels)
        The series, without a copy where they are arrays; files are not opened.

    Raises
    ------
    TypeError, ValueError
        If a series does not hold real numbers, has no step, or other channels than the first.
    """
    check_frames(X, "X")
    series: list[NDArray[Any]] = []
    for i, source in enumerate(X):
        x = channels_last(_read(source, f"X[{i}]"), source, input_layout)
        n_channels = (series or [x])[0].shape[1]
        if 0 in x.shape or x.shape[1] != n_channels:
            name = recording_name("X", i, source)
            raise ValueError(
                f"{name} has {x.shape[0]} steps and {x.shape[1]} channels;"
                f" every series needs at least one step and the {n_channels} channels of X[0]"
                f" (input_layout={_layout(source, input_layout)!r})."
            )
        series.append(x)
    return series


def as_recordings(recordings: Any, input_layout: str = "ntc") -> list[NDArray[Any]]:
    """Return recordings as a list of 2-D arrays that share the memory of the input.

    Parameters
    ----------
    recordings : array-like of shape (n_recordings, n_timesteps, n_channels), list or DataFrame
        One 3-D array; or a list, tuple or 1-D array of objects with one array or frame of shape
        (n_timesteps, n_channels) or (n_timesteps,) per recording; or a frame that holds several
        series (sktime's "pd-multiindex" and "nested_univ").
    input_layout : {"ntc", "nct"}, default="ntc"
        Order of the last two axes of a 3-D array and of the arrays in a list; "nct" is sktime's
        "numpy3D", and aeon's collections. Frames always have a column per channel.

    Returns
    -------
    list of ndarray of shape (n_timesteps, n_channels)
        The recordings, neither copied nor cast (of frames, and of objects, they may be copies).

    Raises
    ------
    TypeError
        If a recording holds no numbers.
    ValueError
        If the input is empty, ambiguous (1-D or 2-D) or complex, if the recordings have different
        numbers of channels, or if a frame has an irregular time index.

    Examples
    --------
    >>> import numpy as np
    >>> [x.shape for x in as_recordings([np.zeros((5, 2)), np.zeros((7, 2))])]
    [(5, 2), (7, 2)]
    """
    check_option("input_layout", input_layout, LAYOUTS)
    if is_panel_frame(recordings):
        recordings = list(read_frame(recordings, "recordings").arrays)
        input_layout = "ntc"  # a frame has a column per channel
    if is_table(recordings):
        if not hasattr(recordings, "columns") and recordings.dtype == object:
            raise ValueError(
                "recordings is a Series of recordings: pass the list of its entries,"
                " recordings.to_list()."
            )
        raise ValueError(
            "recordings is a bare pandas object; pass [frame] for one recording with a column "
            "per channel, or a list with one frame or array per recording."
        )
    if is_list(recordings):
        check_frames(recordings, "recordings")
        arrays = [
            _as_recording(x, f"recordings[{i}]", input_layout) for i, x in enumerate(recordings)
        ]
    else:
        arrays = _split_recordings(as_real_array(recordings, "recordings"), input_layout)
    if not arrays:
        raise ValueError("recordings is empty; pass at least one recording.")
    n_channels = arrays[0].shape[1]
    if n_channels == 0:
        raise ValueError("recordings has no channel; every recording needs at least one column.")
    for i, array in enumerate(arrays):
        if array.shape[1] != n_channels:
            name, layout = recording_name("recordings", i, array), _layout(array, input_layout)
            axis, other = ("last", "nct") if layout == "ntc" else ("first", "ntc")
            raise ValueError(
                f"{name} has {array.shape[1]} channels but recordings[0] has "
                f"{n_channels}; all recordings need the same channels, on the {axis} axis of arrays"
                f" (for the other order, set input_layout={other!r})."
            )
    return arrays
