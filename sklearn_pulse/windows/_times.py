"""Time indexes of frames: whether they are regular, and which rate they have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._base import LazyWindows
from ._tables import has_multiindex, instance_rows, is_panel_frame, is_table

# Largest distance of a time from a regular grid, in grid steps. Clocks are rounded.
_JITTER = 0.1
_CLOCKS = 0.02  # largest difference of two rates that are meant to be the same, relative


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
            rows, counts, _ = instance_rows(frames.index, "X")
            longest = int(counts.argmax())
            first = counts[:longest].sum()
            yield frames.index.get_level_values(-1)[rows[first : first + counts[longest]]]
            return
        frames = list(frames.iloc[:, 0])
    is_objects = isinstance(frames, np.ndarray) and frames.dtype.kind == "O"
    if isinstance(frames, list | tuple) or is_objects:
        yield from (table.index for table in frames if is_table(table))


def check_times(indexes: Iterable[Any], name: str, labels: Iterable[Any]) -> None:
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
        # With a format, pandas 2.1 reads datetimes as local times, and fails where the clock is set
        # back.
        written = None if index.inferred_type in ("datetime", "datetime64") else "ISO8601"
        try:
            return pd.to_datetime(index, utc=True, format=written)
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
