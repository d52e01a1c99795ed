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
    is_table,
    refuse_text_column,
    refuse_times,
    refuse_undivided,
    series_of,
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
    TypeError
        If a column holds text.

    Examples
    --------
    >>> import pandas as pd
    >>> index = pd.MultiIndex.from_product([["a", "b"], range(3)])
    >>> panel = read_frame(pd.DataFrame({"x": range(6)}, index=index), "X")
    >>> [x.shape for x in panel.arrays], panel.instances.tolist(), panel.channels
    ([(3, 1), (3, 1)], ['a', 'b'], ['x'])
    """
    refuse_undivided(frame, name)
    if has_multiindex(frame):
        refuse_times(frame, name)
        refuse_text_column(frame, name)
        return _read_multiindex(frame, name, hierarchical)
    return _read_nested(frame, name)


def read_frames(frames: list[Any], name: str) -> Panel:
    """Read a list of frames, one per recording (sktime's "df-list").

    Errors, which are those of :func:`check_frames`, call the list by `name`.
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
        refuse_undivided(recording, f"{name}[{i}]")
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


def _read_multiindex(frame: Any, name: str, hierarchical: bool) -> Panel:
    """Read a frame whose rows have an index of instances and times."""
    n_levels = frame.index.nlevels
    if n_levels > 2 and not hierarchical:
        raise ValueError(
            f"{name} has a hierarchical index of {n_levels} levels; a panel has two, instance and"
            f" time. Pass a list of its series, {series_of(frame, name)}."
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
                f"{name} has cells without a series of one channel, in instance {label!r}: drop"
                " this instance, or, if a cell holds several channels, pass the list of a column's"
                " cells."
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
