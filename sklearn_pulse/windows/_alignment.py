"""Labels and groups in the order of recordings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._groups import check_groups
from .._inputs._tables import (
    has_multiindex,
    instance_rows,
    is_list,
    is_panel_frame,
    is_table,
    table_values,
)


def recording_groups(groups: Any, n_recordings: int, recordings: Any) -> NDArray[Any]:
    """Return one group per recording; None makes each recording (or instance) its own group."""
    if groups is not None:
        groups = check_groups(align(groups, recordings, "groups"), n_recordings, unit="recording")
    else:
        groups = instance_labels(recordings)
    return np.arange(n_recordings) if groups is None else groups


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
        of a list has another index than its frame or instance.
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
    if list(values.index) != list(instances) and (
        not _is_numbered(values.index) or set(instances) == set(values.index)
    ):
        raise ValueError(
            f"the index of {name} does not list the instances of recordings in their order: pass"
            f" {name}.loc[instances], or {name}.to_numpy() if the order is right."
        )
    return column


def _check_aligned(values: Any, recordings: Any, name: str) -> None:
    """Raise if a Series of a list has another index than the recording at its place."""
    if not is_list(values) or not any(map(is_table, values)):
        return
    if is_panel_frame(recordings):
        _check_instances(values, recordings, name)
    elif is_list(recordings):
        _check_frames(values, recordings, name)


def _check_frames(values: Any, recordings: Any, name: str) -> None:
    """Raise if a Series of a list has another index than the frame at its place."""
    for i, (steps, table) in enumerate(zip(values, recordings, strict=False)):
        if is_table(steps) and is_table(table) and len(steps) == len(table):
            if not (steps.index.equals(table.index) or _is_numbered(steps.index)):
                raise ValueError(
                    f"{name}[{i}] has another index than recordings[{i}]: pass"
                    f" {name}[{i}].loc[recordings[{i}].index], or {name}[{i}].to_numpy() if the"
                    " order is right."
                )


def _check_instances(values: Any, panel: Any, name: str) -> None:
    """Raise if a Series of a list has another index than the instance of a panel at its place."""
    for i, (steps, (label, times)) in enumerate(zip(values, _instance_times(panel), strict=False)):
        if not is_table(steps) or len(steps) != len(times):
            continue
        index, is_own = steps.index, True
        if has_multiindex(steps):  # as groupby leaves it, which sorts the instances
            is_own = bool((index.droplevel(-1) == label).all())
            index = index.get_level_values(-1)
        if not (is_own and (index.equals(times) or _is_numbered(index))):
            raise ValueError(
                f"{name}[{i}] has another index than the instance {label!r} of recordings, which is"
                f" number {i}: list the instances in the order of recordings, as"
                f" groupby(level=0, sort=False) does, or pass {name}[{i}].to_numpy() if the order"
                " is right."
            )


def _instance_times(panel: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the label of each instance of a panel frame, and the index of its steps."""
    if has_multiindex(panel):
        rows, counts, labels = instance_rows(panel.index, "recordings")
        times = panel.index.get_level_values(-1)
        for label, own in zip(labels, np.split(rows, np.cumsum(counts)[:-1]), strict=True):
            yield label, times[own]
        return
    import pandas as pd

    for label, cell in zip(panel.index, panel.iloc[:, 0], strict=True):
        yield label, cell.index if is_table(cell) else pd.RangeIndex(len(cell))


def _is_numbered(index: Any) -> bool:
    """Return whether an index is 0, 1, 2, ...; of times only the first entry is read."""
    return not len(index) or (index[0] == 0 and np.array_equal(index, np.arange(len(index))))


def instance_labels(recordings: Any) -> Any:
    """Return the labels of the instances of a panel frame; None for any other input."""
    if not is_panel_frame(recordings):
        return None
    if has_multiindex(recordings):
        return instance_rows(recordings.index, "recordings")[2].to_numpy()
    return recordings.index.to_numpy()
