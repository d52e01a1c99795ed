"""Reader of sktime's panels without sktime: frames of several series, and lists of frames."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._base import LazyWindows

# Largest distance of a time from a regular grid, in grid steps. Clocks are rounded.
_JITTER = 0.1
_CLOCKS = 0.02  # largest difference of two rates that are meant to be the same, relative


class Panel(NamedTuple):
    """Recordings of a panel, with the names of instances and channels.

    Attributes
    ----------
    arrays : sequence of ndarray of shape (n_timesteps, n_channels)
        The recordings, in the order of the panel.
    instances : pandas Index of length n_recordings, or None
        Label of each recording; None if the recordings are only numbered.
    channels : list of str or None
        Names of the channels; None unless all of them are strings.
    """

    arrays: Any
    instances: Any = None
    channels: list[str] | None = None


def is_table(X: Any) -> bool:
    """Return whether X is a pandas DataFrame or Series, without importing pandas."""
    return hasattr(X, "iloc") and hasattr(X, "index")


def has_multiindex(table: Any) -> bool:
    """Return whether the rows of a pandas object have more than one index level."""
    return bool(getattr(table.index, "nlevels", 1) > 1)


def is_nested(frame: Any) -> bool:
    """Return whether the cells of a frame hold series."""
    return hasattr(frame, "columns") and len(frame) > 0 and any(map(np.ndim, frame.iloc[0]))


def table_values(table: Any) -> Any:
    """Return the values of a frame or Series, with NaN for pandas' NA among numbers.

    Anything else is returned as it is. pandas gives numbers of its own types, and of Arrow, as
    objects.
    """
    if not hasattr(table, "to_numpy"):
        return table
    values = table.to_numpy()
    if values.dtype != object or not is_table(table):
        return values
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    types = table.dtypes if hasattr(table, "columns") else [table.dtype]
    if all(is_numeric_dtype(each) or is_bool_dtype(each) for each in types):
        return table.to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def has_columns(X: Any) -> bool:
    """Return whether X is a frame of pandas or polars."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def refuse_times(values: Any, name: str) -> None:
    """Raise if an array, a Series or a column of a frame holds times, which are no channel."""
    if has_columns(values):
        for column, dtype in zip(values.columns, values.dtypes, strict=True):
            _refuse_times(dtype, f"the column {column!r} of {name}")
    else:
        _refuse_times(getattr(values, "dtype", None), name)


def _refuse_times(dtype: Any, name: str) -> None:
    """Raise if a type of NumPy, pandas, Arrow or polars is one of times."""
    is_polars = hasattr(dtype, "is_temporal")
    is_time = dtype.is_temporal() if is_polars else getattr(dtype, "kind", "") in ("m", "M")
    # Periods and Arrow's times of a day are objects to NumPy.
    if is_time or str(dtype).startswith(("period", "time32", "time64")):
        raise ValueError(
            f"{name} holds times, which are no channel: drop it, or, in a frame of pandas, make it"
            " the index, whose gaps are then found."
        )


def is_panel_frame(X: Any) -> bool:
    """Return whether X is a pandas object that holds several series."""
    return is_table(X) and (has_multiindex(X) or is_nested(X))


def refuse_panel(X: Any) -> None:
    """Raise if X is a pandas container of many series, which would be read as a table."""
    if not is_table(X):
        return
    is_nested = len(X) > 0 and any(np.ndim(cell) > 0 for cell in np.ravel(X.iloc[:1].to_numpy()))
    if has_multiindex(X) or is_nested:
        raise ValueError(
            "X is a pandas panel (a MultiIndex or nested frame); pass a 3-D array or a list "
            "with one 2-D array per series, e.g. "
            "[part.to_numpy() for _, part in frame.groupby(level=0)]."
        )


def read_frame(frame: Any, name: str, *, hierarchical: bool = False) -> Panel:
    """Read a frame that holds several series.

    Parameters
    ----------
    frame : DataFrame
        A frame with an index of instances and times (sktime's "pd-multiindex"), or a nested frame
        with a series in each cell (sktime's "nested_univ").
    name : str
        Name of the frame in error messages.
    hierarchical : bool, default=False
        Whether more than one index level may name an instance (sktime's "pd_multiindex_hier").

    Returns
    -------
    Panel
        The recordings, with instances in order of appearance.

    Raises
    ------
    ValueError
        If a time index is irregular, the frame has aggregates, a column holds times, or cells do
        not fit together.

    Examples
    --------
    >>> import pandas as pd
    >>> index = pd.MultiIndex.from_product([["a", "b"], range(3)])
    >>> panel = read_frame(pd.DataFrame({"x": range(6)}, index=index), "X")
    >>> [x.shape for x in panel.arrays], panel.instances.tolist(), panel.channels
    ([(3, 1), (3, 1)], ['a', 'b'], ['x'])
    """
    if has_multiindex(frame):
        refuse_times(frame, name)
        return _read_multiindex(frame, name, hierarchical)
    return _read_nested(frame, name)


def read_frames(frames: list[Any], name: str) -> Panel:
    """Read a list of frames, one per recording (sktime's "df-list").

    Parameters
    ----------
    frames : list of DataFrame of shape (n_timesteps, n_channels)
        The recordings; frames of polars have no time index.
    name : str
        Name of the list in error messages.

    Returns
    -------
    Panel
        The recordings, without labels of instances.

    Raises
    ------
    ValueError
        If the frames name their channels differently, or a time index is irregular.
    """
    check_frames(frames, name)
    return Panel([table_values(frame) for frame in frames], None, _names(frames[0]))


def check_frames(recordings: Iterable[Any], name: str) -> None:
    """Raise unless the frames in a list have the same channels, and regular time indexes.

    Parameters
    ----------
    recordings : list of array-like
        The recordings, of which any may be frames or Series.
    name : str
        Name of the list in error messages.

    Raises
    ------
    ValueError
        If the frames name their channels differently, a recording or a column holds times, a
        time index is irregular, or an entry is itself a list of frames.
    """
    recordings = list(recordings)
    for i, bag in enumerate(recordings):
        if isinstance(bag, list | tuple) and bag and is_table(bag[0]):
            raise ValueError(
                f"{name}[{i}] is a list of frames, whose names and times would go unread: pass bags"
                " of windows as an array of shape (n_samples, n_windows, n_timesteps, n_channels),"
                " for example by sklearn_pulse.windows.SlidingWindows on one frame per sample."
            )
    tables = {i: x for i, x in enumerate(recordings) if is_table(x)}
    frames = {i: x for i, x in enumerate(recordings) if has_columns(x)}
    for i, recording in enumerate(recordings):
        refuse_times(recording, f"{name}[{i}]")
    first, channels = None, None
    for i, frame in frames.items():
        if channels is None:
            first, channels = i, list(frame.columns)
        if list(frame.columns) != channels:
            raise ValueError(
                f"{name}[{i}] has the channels {list(frame.columns)} but {name}[{first}] has"
                f" {channels}: give every frame the same columns, in one order."
            )
    _check_times((table.index for table in tables.values()), name, tables)


def frame_channels(recordings: Any) -> tuple[str, ...] | None:
    """Return the names of the channels that frames carry.

    Parameters
    ----------
    recordings : panel frame, sequence of array-like or Any
        The recordings, of which any may be frames with the same columns.

    Returns
    -------
    tuple of str or None
        The column names; None if there are no frames, or their columns are not different strings.
    """
    frames = [recordings] if is_panel_frame(recordings) else recordings
    is_objects = isinstance(frames, np.ndarray) and frames.dtype.kind == "O"
    is_list = isinstance(frames, list | tuple) or is_objects
    frame = next((x for x in frames if hasattr(x, "columns")), None) if is_list else None
    names = _names(frame)
    return tuple(names) if names and len({*names}) == len(names) else None


def compare_rate(stated: float | None, frames: Any, parameter: str, name: str) -> None:
    """Raise unless a stated sampling rate is that of the time index of frames.

    Parameters
    ----------
    stated : float or None
        The stated rate, in Hz; None is not compared.
    frames : Any
        The recordings or windows that the user has passed, also lazy ones. What has no times is not
        compared.
    parameter : str
        Name of the parameter that states the rate.
    name : str
        Name of the frames in the error message.

    Raises
    ------
    ValueError
        If the rates differ by more than 2 %, or by more than rounded times explain.
    """
    found = None if stated is None else index_rate(frames)
    if stated is None or found is None:
        return
    carried, tolerance = found
    if not math.isclose(stated, carried, rel_tol=tolerance):
        raise ValueError(
            f"{parameter}={stated:g}, but the time index of {name} has {carried:g} steps a second:"
            " correct one of them, or reset the index."
        )


def index_rate(frames: Any) -> tuple[float, float] | None:
    """Return the rate of the time index of frames.

    Parameters
    ----------
    frames : Any
        The recordings or windows that the user has passed, also lazy ones, whose indexes are
        known to be regular and to have one time step.

    Returns
    -------
    tuple of two floats, or None
        Rate in Hz, and the relative tolerance with which a stated rate must agree; None without
        times.
    """
    if isinstance(frames, LazyWindows):
        return frames.index_rate
    times = _longest_times(frames)
    if times is None:
        return None
    seconds = (times[-1] - times[0]).total_seconds()
    return (len(times) - 1) / seconds, _tolerance(len(times))


def _tolerance(n_times: int) -> float:
    """Return by how much the rates of two indexes, the shorter of `n_times`, may differ."""
    return max(_CLOCKS, 2 * _JITTER / (n_times - 1))


def _longest_times(frames: Any) -> Any:
    """Return the longest index of frames or Series that holds times; None if there is none."""
    indexes = (_as_times(index) for index in _time_indexes(frames) if len(index) > 1)
    kinds = ((index, getattr(getattr(index, "dtype", None), "kind", "")) for index in indexes)
    return max((index for index, kind in kinds if kind in ("m", "M")), key=len, default=None)


def _time_indexes(frames: Any) -> Iterator[Any]:
    """Yield the index of each recording in frames; of a panel that of the longest recording."""
    if is_panel_frame(frames):
        if has_multiindex(frames):
            rows, counts, _ = _instance_rows(frames.index, "X")
            longest = int(counts.argmax())
            first = counts[:longest].sum()
            yield frames.index.get_level_values(-1)[rows[first : first + counts[longest]]]
            return
        frames = list(frames.iloc[:, 0])
    is_objects = isinstance(frames, np.ndarray) and frames.dtype.kind == "O"
    if isinstance(frames, list | tuple) or is_objects:
        yield from (table.index for table in frames if is_table(table))


def align(values: Any, panel: Any, name: str) -> Any:
    """Arrange the labels or groups of a panel frame by instance.

    Parameters
    ----------
    values : array-like, Series or DataFrame of one column
        One value per time step, with the index of `panel`, or one value per instance. Objects
        other than those of pandas are returned as they are.
    panel : Any
        The recordings that the user has passed. If they are no panel frame, `values` are returned
        as they are.
    name : str
        Name of the values in error messages.

    Returns
    -------
    ndarray of shape (n_instances,), list of ndarray of shape (n_timesteps,), or `values`
        An array if there is one value per instance, a list if there is one value per time step.

    Raises
    ------
    ValueError
        If the index of `values` is neither the index of the panel nor 0, 1, 2, ..., or if a Series
        of a list has another index than its frame.
    """
    _check_aligned(values, panel, name)
    if not (is_table(values) and is_panel_frame(panel)):
        return values
    column = np.ravel(values.to_numpy())
    if len(column) != len(values):
        raise ValueError(f"{name} has {values.shape[1]} columns: pass one column, {name}[column].")
    if has_multiindex(values):
        if not values.index.equals(panel.index):
            raise ValueError(
                f"{name} has one label per step, but not the index of recordings: pass"
                f" {name}.loc[recordings.index], or, with a nested frame, a list with one"
                " sequence per instance."
            )
        rows, counts, _ = _instance_rows(values.index, name)
        return np.split(column[rows], np.cumsum(counts)[:-1])
    instances = instance_labels(panel)
    numbered = list(values.index) == list(range(len(values)))
    if list(values.index) != list(instances) and (
        not numbered or set(instances) == set(values.index)
    ):
        raise ValueError(
            f"the index of {name} does not list the instances of recordings in their order: pass"
            f" {name}.loc[instances], or {name}.to_numpy() if the order is right."
        )
    return column


def _check_aligned(values: Any, recordings: Any, name: str) -> None:
    """Raise if a Series of a list has another index than the frame at its place."""
    if not (isinstance(values, list | tuple) and isinstance(recordings, list | tuple)):
        return
    for i, (steps, table) in enumerate(zip(values, recordings, strict=False)):
        if is_table(steps) and is_table(table) and len(steps) == len(table):
            numbered = list(steps.index) == list(range(len(steps)))
            if not (numbered or steps.index.equals(table.index)):
                raise ValueError(
                    f"{name}[{i}] has another index than recordings[{i}]: pass"
                    f" {name}[{i}].loc[recordings[{i}].index], or {name}[{i}].to_numpy() if the"
                    " order is right."
                )


def instance_labels(recordings: Any) -> Any:
    """Return the labels of the instances of a panel frame; None for any other input."""
    if not is_panel_frame(recordings):
        return None
    if has_multiindex(recordings):
        return _instance_rows(recordings.index, "recordings")[2].to_numpy()
    return recordings.index.to_numpy()


def _names(frame: Any) -> list[str] | None:
    """Return the column names; None unless all are strings, as scikit-learn's feature names."""
    columns = list(getattr(frame, "columns", []))
    return columns if columns and all(isinstance(column, str) for column in columns) else None


def _instance_rows(index: Any, name: str) -> tuple[NDArray[np.intp], NDArray[np.intp], Any]:
    """Return the rows sorted by instance, the number of rows and the label of each instance."""
    instances = index.droplevel(-1)
    codes, labels = instances.factorize()
    if (codes < 0).any():
        raise ValueError(
            f"{name} has rows whose instance is NaN: name the instance, or drop these rows."
        )
    return np.argsort(codes, kind="stable"), np.bincount(codes), labels.set_names(instances.names)


def _read_multiindex(frame: Any, name: str, hierarchical: bool) -> Panel:
    """Read a frame whose rows have an index of instances and times."""
    n_levels = frame.index.nlevels
    if n_levels > 2 and not hierarchical:
        raise ValueError(
            f"{name} has a hierarchical index of {n_levels} levels; a panel has two, instance and"
            " time. Join all levels but the last into one, or pass a list with one 2-D array per"
            " series."
        )
    if any((frame.index.get_level_values(i) == "__total").any() for i in range(n_levels - 1)):
        raise ValueError(
            f"{name} has aggregates ('__total') beside the series that they add up, so these"
            " series would count twice: drop the aggregates."
        )
    rows, counts, labels = _instance_rows(frame.index, name)
    ends = np.cumsum(counts)
    times = frame.index.get_level_values(-1)[rows]
    _check_times((times[end - n : end] for end, n in zip(ends, counts, strict=True)), name, labels)
    values = table_values(frame)
    if not np.array_equal(rows, np.arange(len(rows))):
        values = values[rows]
    if values.ndim == 1:
        values = values[:, np.newaxis]
    return Panel(np.split(values, ends[:-1]), labels, _names(frame))


def _read_nested(frame: Any, name: str) -> Panel:
    """Read a frame whose cells hold series."""
    arrays, times = [], []
    for label, cells in zip(frame.index, frame.to_numpy(), strict=True):
        if any(np.ndim(cell) != 1 for cell in cells):
            raise ValueError(
                f"{name} has cells without a series, in instance {label!r}: drop this instance."
            )
        for column, cell in zip(frame.columns, cells, strict=True):
            refuse_times(cell, f"the column {column!r} of {name}")
        indexes = [cell.index for cell in cells if is_table(cell)]
        same_length = len({len(cell) for cell in cells}) == 1
        if not same_length or any(not index.equals(indexes[0]) for index in indexes):
            raise ValueError(
                f"{name} has channels with different times in instance {label!r}: reindex them to"
                " the same times (missing values may be NaN)."
            )
        arrays.append(np.column_stack([np.asarray(table_values(cell)) for cell in cells]))
        times.append(indexes[0] if indexes else range(0))
    _check_times(times, name, frame.index)
    return Panel(arrays, frame.index, _names(frame))


def _check_times(indexes: Iterable[Any], name: str, labels: Iterable[Any]) -> None:
    """Raise unless each time index is regular, and all have the same time step."""
    known = None  # step and index that the others are compared with
    for label, index in zip(labels, indexes, strict=True):
        step = _time_step(index, f"{name} has an irregular time index in instance {label!r}")
        if step is None:
            continue
        if known is None:
            known = step, index
        first, other = known
        tolerance = _tolerance(min(len(index), len(other)))
        if abs(step - first) > tolerance * first and _calendar(index) != _calendar(other):
            raise ValueError(
                f"{name} has instances with different time steps, {first:g} and, in instance"
                f" {label!r}, {step:g}: resample them to one time step."
            )


def _calendar(index: Any) -> Any:
    """Return what repeats in an index, such as a month; the index itself if nothing is known."""
    frequency = getattr(_as_times(index), "inferred_freq", None)
    return id(index) if frequency is None else frequency


def _time_step(index: Any, problem: str) -> float | None:
    """Return the step of a time index, in seconds for dates; None if it cannot be told."""
    if len(index) < 2:
        return None
    index = _as_times(index)
    times = _as_numbers(index)
    if times is None:
        return None
    step = (times[-1] - times[0]) / (len(times) - 1)
    grid = times[0] + step * np.arange(len(times))
    # Months and business days are regular in a calendar, though not in seconds.
    is_regular = (np.abs(times - grid) <= _JITTER * step).all() or (
        getattr(index, "inferred_freq", None) is not None
    )
    if not (is_regular and step > 0):
        raise ValueError(
            f"{problem}: reindex it on a regular grid (missing steps become NaN, which is masked),"
            " or reset it if the steps are regular and the times in the index are wrong."
        )
    return float(step)


def _as_times(index: Any) -> Any:
    """Return an index as pandas' index of times if it holds times in another form.

    They may be text, objects, of Arrow, or periods of one length; months stay what they are.
    """
    kind = getattr(getattr(index, "dtype", None), "kind", None)
    if kind is None or not hasattr(index, "inferred_type"):
        return index
    import pandas as pd

    if kind == "M":
        return pd.DatetimeIndex(index)
    if kind == "m":
        return pd.TimedeltaIndex(index)
    if isinstance(index, pd.PeriodIndex) and isinstance(index.freq, pd.offsets.Tick):
        return index.to_timestamp()
    if kind in "OUT" or isinstance(index.dtype, pd.StringDtype):
        if len(index) and isinstance(index[0], str) and not {*index[0]} & {*"-:T"}:
            return index  # names, such as numbers that could be years
        try:
            return pd.to_datetime(index, utc=True, format="ISO8601")
        except (TypeError, ValueError):
            return index  # names, or months
    return index


def _as_numbers(index: Any) -> NDArray[Any] | None:
    """Return times as numbers; None if an index holds neither numbers nor dates nor periods."""
    kind = getattr(index, "dtype", np.dtype(int)).kind
    if kind in "mM":
        return np.asarray((index - index[0]).total_seconds())
    if hasattr(index, "asi8"):  # a PeriodIndex
        return np.asarray(index.asi8, dtype=np.float64)
    return np.asarray(index, dtype=np.float64) if kind in "iuf" else None
