"""Reader of sktime's panels without sktime: frames of several series, and lists of frames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ._tables import (
    column_names,
    has_columns,
    has_multiindex,
    instance_rows,
    is_panel_frame,
    is_table,
    refuse_times,
    table_values,
)
from ._times import check_times


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
    return Panel([table_values(frame) for frame in frames], None, column_names(frames[0]))


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
    check_times((table.index for table in tables.values()), name, tables)


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
    column = np.ravel(table_values(values))
    if len(column) != len(values):
        raise ValueError(f"{name} has {values.shape[1]} columns: pass one column, {name}[column].")
    if has_multiindex(values):
        if not values.index.equals(panel.index):
            raise ValueError(
                f"{name} has one label per step, but not the index of recordings: pass"
                f" {name}.loc[recordings.index], or, with a nested frame, a list with one"
                " sequence per instance."
            )
        rows, counts, _ = instance_rows(values.index, name)
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
    # Lists become 1-D arrays of objects, for example in a splitter.
    lists = (
        isinstance(x, list | tuple) or (isinstance(x, np.ndarray) and x.dtype == object)
        for x in (values, recordings)
    )
    if not all(lists):
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
        return instance_rows(recordings.index, "recordings")[2].to_numpy()
    return recordings.index.to_numpy()


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
    rows, counts, labels = instance_rows(frame.index, name)
    ends = np.cumsum(counts)
    times = frame.index.get_level_values(-1)[rows]
    check_times((times[end - n : end] for end, n in zip(ends, counts, strict=True)), name, labels)
    values = table_values(frame)
    if not np.array_equal(rows, np.arange(len(rows))):
        values = values[rows]
    if values.ndim == 1:
        values = values[:, np.newaxis]
    return Panel(np.split(values, ends[:-1]), labels, column_names(frame))


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
    check_times(times, name, frame.index)
    return Panel(arrays, frame.index, column_names(frame))
