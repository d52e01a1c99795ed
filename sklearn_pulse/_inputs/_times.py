"""Time indexes of frames: whether they are regular, and which rate they have."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._warnings import warn_user
from ._tables import has_multiindex, instance_rows, is_list, is_panel_frame, is_table

_JITTER = 0.1  # largest distance of a time from a regular grid, in steps
_CLOCKS = 0.02  # largest difference of two rates that are meant to be the same, relative
_SET_BACK = 1800, 3600  # by how much clocks are set back or forward, in seconds
_GAP = 1.5  # smallest distance of two times that is a gap, in steps
_OFTEN = 0.05  # share of rows behind a gap from which on rounding is likelier than missing rows

_WRONG = "the steps are regular and the times in the index are wrong"

_INTERPOLATION = (
    "interpolate the frame on a regular grid, as by frame.reindex(frame.index.union(grid))"
    ".interpolate('index', limit=2).reindex(grid)"
)

# What pandas calls indexes of objects that are differences of times, or numbers.
_OBJECTS = ("timedelta", "timedelta64", "integer", "floating", "mixed-integer-float")

_CLOCK = r"\d{1,2}:\d\d(:\d\d)?([.,]\d+)?( ?[AP]M|Z| [A-Z]+| ?[+-]\d\d:?\d\d)?"
_DAY = r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|\d{1,2}[ ./-][A-Z]{3,9}[ ./-]\d{2,4}|\d+ days?"
_DATE = r"\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{4}"
_TIME = re.compile(rf"(({_DAY}),?[ T])?{_CLOCK}|{_DATE}", re.IGNORECASE)  # in any form


class _Grid(NamedTuple):
    """Regular times."""

    n_times: int
    step: float  # in seconds for dates
    rounding: float  # unit to which the times are rounded, in steps


def compare_rate(
    stated: float | None, frames: Any, parameter: str, name: str, *, fitted: str | None = None
) -> None:
    """Raise unless a stated sampling rate is that of the time index of frames.

    Parameters
    ----------
    stated : float or None
        The stated rate, in Hz; None is not compared.
    frames : Any
        The recordings or windows that the user has passed, also lazy windows. Without times,
        nothing is compared.
    parameter : str
        Name of the parameter that states the rate.
    name : str
        Name of the frames in the error message.
    fitted : str or None, default=None
        Class of the estimator that was fitted on the stated rate; None in `fit` and in cutting,
        where the user can still state another.

    Raises
    ------
    ValueError
        If the rates differ by more than 2 %, or by more than rounded times explain.
    """
    found = None if stated is None else index_rate(frames)
    if stated is None or found is None:
        return
    carried, tolerance = found
    if math.isclose(stated, carried, rel_tol=tolerance):
        return
    if fitted is None:
        raise ValueError(
            f"{parameter}={stated:g}, but the time index of {name} has {carried:g} steps a second:"
            " correct one of them, or reset the index."
        )
    raise ValueError(
        f"{name} has {carried:g} steps a second by its time index, but {fitted} was fitted on"
        f" {stated:g} Hz: resample {name} by sklearn_pulse.preprocessing.Resampler("
        f"from_rate={carried:g}, to_rate={stated:g}), or correct the times in the index."
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
    if hasattr(frames, "index_rate"):  # lazy windows, which build on this module
        return frames.index_rate
    longest = _longest_times(frames)
    times = None if longest is None else _as_numbers(longest)
    if times is None:
        return None
    grid = _as_grid(times)
    return 1 / grid.step, _tolerance(grid)


def _tolerance(*grids: _Grid) -> float:
    """Return by how much rates of indexes may differ from each other or a stated rate, relative."""
    shortest = min(grid.n_times for grid in grids)
    rounding = sum(grid.rounding / (grid.n_times - 1) for grid in grids)
    return max(_CLOCKS, 2 * _JITTER / (shortest - 1), rounding)


def _longest_times(frames: Any) -> Any:
    """Return the longest index of frames or Series that holds times; None if there is none."""
    # The longest comes first, of several the first, so that mostly one index has to be read.
    indexes = sorted(_time_indexes(frames), key=len, reverse=True)
    times = (as_times(index) for index in indexes if len(index) > 1)
    return next((index for index in times if _kind(index) in ("m", "M")), None)


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
    if is_list(frames):
        yield from (table.index for table in frames if is_table(table))


def check_times(indexes: Iterable[Any], name: str, labels: Iterable[Any]) -> None:
    """Raise unless each time index is regular, and all have the same time step.

    Warns
    -----
    UserWarning
        If an index looks like times, but is not read.
    """
    # Grid and index that the others are compared with, one of times and one of counts.
    known: dict[bool, tuple[_Grid, Any]] = {}
    unread = None  # index that looks like times
    for label, index in zip(labels, indexes, strict=True):
        times = as_times(index)
        unread = index if unread is None and _is_unread(index, times) else unread
        grid = _time_grid(index, times, f"{name} has an irregular time index in instance {label!r}")
        if grid is None:
            continue
        first, other = known.setdefault(_counts_steps(index), (grid, index))
        is_far = abs(grid.step - first.step) > _tolerance(grid, first) * first.step
        if is_far and _calendar(index) != _calendar(other):
            in_one_unit = _holds_times(index) == _holds_times(other)
            unit = "" if in_one_unit else "give numbers beside times in seconds, or "
            raise ValueError(
                f"{name} has instances with different time steps, {first.step:g} and, in instance"
                f" {label!r}, {grid.step:g}: {unit}bring the recordings of each rate to one rate,"
                " by a sklearn_pulse.preprocessing.Resampler of their own."
            )
    if unread is not None:
        warn_user(
            f"{name} has an index with entries such as {unread[0]!r}, which look like times, but"
            " are not dates, nor text in ISO format, so that neither gaps nor rates are checked:"
            " convert it by pandas.to_datetime(index, format=...), or, for durations and times of a"
            " day, by pandas.to_timedelta(index.astype(str))."
        )


def _holds_times(index: Any) -> bool:
    """Return whether an index is read as dates or durations, and not as numbers."""
    return _kind(as_times(index)) in ("m", "M")


def _counts_steps(index: Any) -> bool:
    """Return whether an index is pandas' own count of the rows, which says nothing about times."""
    return hasattr(index, "step")  # a RangeIndex, as an index becomes that was reset


def _calendar(index: Any) -> Any:
    """Return the frequency of an index, such as a month; if it is unknown, a mark of this index."""
    frequency = getattr(as_times(index), "inferred_freq", None)
    return id(index) if frequency is None else frequency


def _time_grid(index: Any, times: Any, problem: str) -> _Grid | None:
    """Return the grid of the times of an index; None without times. Raise if it is irregular."""
    if len(index) < 2:
        return None
    numbers = _as_numbers(times)
    if numbers is None:
        return None
    if not np.isfinite(numbers).all():
        raise ValueError(f"{problem}: {_remedy(index, numbers)}.")
    grid = _as_grid(numbers)
    deviation = numbers - numbers[0] - grid.step * np.arange(len(numbers))
    deviation -= (deviation.max() + deviation.min()) / 2
    limit = max(_JITTER, (1 + 1e-6) * grid.rounding) * grid.step
    # Months and business days are regular in a calendar, though not in seconds.
    is_regular = (np.abs(deviation) <= limit).all() or (
        getattr(times, "inferred_freq", None) is not None
    )
    if not (is_regular and grid.step > 0):
        raise ValueError(f"{problem}: {_remedy(index, numbers)}.")
    return grid


def _as_grid(times: NDArray[Any]) -> _Grid:
    """Return the grid that times lie on if they are regular."""
    step = float(times[-1] - times[0]) / (len(times) - 1)
    return _Grid(len(times), step, _rounding(times, step))


def _rounding(times: NDArray[Any], step: float) -> float:
    """Return the unit to which times are rounded, in steps; 0 if rounding does not explain them.

    Rounded times are multiples of a unit, and their differences are at most two neighbouring
    multiples, or at most three if times are cut off to a unit and just miss it. Units above half a
    step would hide a gap.
    """
    if not 0 < step < math.inf:
        return 0.0
    power = math.floor(math.log10(step / 2))
    multiples = (times - times[0]) / 10.0**power
    spread = float(np.ptp(np.diff(np.rint(multiples))))
    if not (np.abs(multiples - np.rint(multiples)) < 1e-3).all() or spread > 2:
        return 0.0
    if spread > 1 and _distance_from_line(multiples) > 1.5:  # 1 if cut off, 2 at a missing row
        return 0.0
    # Even differences show no unit: seconds, milliseconds and so on are usual.
    return float(10.0 ** (power if spread else power - power % 3) / step)


def _distance_from_line(numbers: NDArray[np.float64]) -> float:
    """Return the range of the residuals from the line of least squares."""
    steps = np.arange(len(numbers)) - (len(numbers) - 1) / 2
    slope = steps @ numbers / (steps @ steps)
    return float(np.ptp(numbers - slope * steps))


def _remedy(index: Any, times: NDArray[Any]) -> str:
    """Return what is wrong with an irregular time index, at its first wrong row, and the remedy."""
    if not np.isfinite(times).all():
        row = int(np.isfinite(times).argmin())
        return f"row {row} has no time; drop it, or reset the index if {_WRONG}"
    steps = np.diff(times)
    usual = np.median(steps[steps > 0]) if (steps > 0).any() else math.inf
    # The remedy of a gap needs sorted times, and none of them twice.
    kinds = steps < 0, steps == 0, steps > _GAP * usual
    rows = np.flatnonzero(next((kind for kind in kinds if kind.any()), [])) + 1
    if not len(rows):
        return (
            f"its times are {steps.min():g} to {steps.max():g} apart; if they are noisy, or the"
            f" clock of the recorder drifts, {_INTERPOLATION}, or reset it if the steps are regular"
            " and the times are rounded"
        )
    is_local = _kind(as_times(index)) == "M" and getattr(index, "tz", None) is None
    forward = [row for row in rows if is_local and _is_set_forward(steps[row - 1], usual)]
    row = int((forward or rows)[0])
    where = f"row {row} ({index[row]})"
    if is_local and -_SET_BACK[1] <= steps[row - 1] <= usual - _SET_BACK[0]:
        return (
            f"{where} goes back in time; if the clocks were set back there, name the zone before"
            " anything is sorted or dropped, as by frame.index.tz_localize('Europe/Berlin',"
            " ambiguous='infer'); else sort the frame by its index, or reset it if"
            f" {_WRONG}"
        )
    if steps[row - 1] < 0:
        return (
            f"{where} goes back in time; if another recording begins there, pass a frame for each"
            f" recording; else sort the frame by its index, or reset it if {_WRONG}"
        )
    if steps[row - 1] == 0:
        return _remedy_of_repeats(steps, where)
    return _remedy_of_gap(steps, steps[row - 1], usual, where, is_local)


def _remedy_of_repeats(steps: NDArray[Any], where: str) -> str:
    """Return what is wrong with an index whose times repeat from a row on, and the remedy."""
    if (steps == 0).sum() > (steps > 0).sum():
        return (
            f"{where} repeats the time of the row before, as most rows do: reset the index if the"
            " times are rounded to more than a step, or name the instance of each row if several"
            " recordings share them"
        )
    return (
        f"{where} repeats the time of the row before; drop repeated times, as by"
        f" frame[~frame.index.duplicated()], or reset the index if {_WRONG}"
    )


def _remedy_of_gap(
    steps: NDArray[Any], step: float, usual: float, where: str, is_local: bool
) -> str:
    """Return what is wrong with an index that has a gap of `step` before a row, and the remedy."""
    if is_local and _is_set_forward(step, usual):
        return (
            f"{where} comes {step:.6g} seconds after the row before; if the clocks were set forward"
            " there, name the zone, as by frame.index.tz_localize('Europe/Berlin'); else reindex"
            f" the frame on a regular grid (missing steps become NaN), or reset it if {_WRONG}"
        )
    n_gaps = int((steps > _GAP * usual).sum())
    if n_gaps > max(10, _OFTEN * len(steps)) and steps.max() < (1 + _GAP) * usual:
        return (
            f"{where} comes after a gap of {step / usual:.3g} steps, as {n_gaps} rows do:"
            " reset the index if the steps are regular and the times are rounded to more than half"
            " a step, as 700 rows per second are in milliseconds; else reindex it on a regular grid"
        )
    if 2 * int((steps < (2 - _GAP) * usual).sum()) > n_gaps:  # behind a gap no row is early
        return (
            f"{where} comes {step / usual:.3g} steps after the row before, and other rows come"
            f" early: if the times in the index are noisy, {_INTERPOLATION}, or reset it if"
            f" {_WRONG}"
        )
    # The median of rounded times is rounded too.
    n_steps = step / steps[steps < _GAP * usual].mean()
    return (
        "reindex it on a regular grid, with method='nearest' and a tolerance of half a step so that"
        " no row between its steps is lost (missing steps become NaN, which is masked), since"
        f" {where} comes after a gap of {n_steps:.3g} steps, or reset it if {_WRONG}"
    )


def _is_set_forward(step: float, usual: float) -> bool:
    """Return whether a step is as long as if the clocks were set forward in it."""
    return any(abs(step - usual - shift) < 1 for shift in _SET_BACK)


def _is_unread(index: Any, times: Any) -> bool:
    """Return whether an index looks like times, but is not read as `times`."""
    if getattr(times, "inferred_type", None) == "time":  # times of a day, as objects
        return True
    if not len(index) or not all(isinstance(entry, str) for entry in (index[0], index[-1])):
        return False
    looks = all(_TIME.fullmatch(entry.strip()) for entry in (index[0], index[-1]))
    return looks and _kind(times) != "M"


def _kind(index: Any) -> str:
    """Return the kind of the type of an index, such as "M" for dates; "" if it has no type."""
    return getattr(getattr(index, "dtype", None), "kind", "")


def as_times(index: Any) -> Any:
    """Return an index as pandas' index of times if it holds times in another form.

    The times may be text, objects, times of Arrow, or periods of one length; periods of months
    stay as they are.
    """
    kind = _kind(index)
    if not kind or not hasattr(index, "inferred_type"):
        return index
    import pandas as pd

    if kind == "M":
        return pd.DatetimeIndex(index)
    if kind == "m":
        return pd.TimedeltaIndex(index)
    if isinstance(index, pd.PeriodIndex) and isinstance(index.freq, pd.offsets.Tick):
        return index.to_timestamp()
    if kind == "O" and index.inferred_type in _OBJECTS:
        return as_times(index.infer_objects())
    if kind in "OUT" or isinstance(index.dtype, pd.StringDtype):
        is_text = len(index) and isinstance(index[0], str)
        if is_text and not {*index[0]} & {*"-:T"} and not _TIME.fullmatch(index[0].strip()):
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
    if kind not in "iuf":
        return None
    numbers = np.asarray(index)
    if numbers.dtype.kind in "iu":  # not all of them are floats, but their differences are
        numbers = numbers.astype(np.int64) - numbers[:1].astype(np.int64)
    return numbers.astype(np.float64) if numbers.dtype != object else np.asarray(index, np.float64)
