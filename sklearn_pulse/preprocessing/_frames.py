"""Containers of changed recordings: a frame stays a frame, a Series a Series."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._inputs._tables import has_columns, is_table
from .._inputs._times import as_times

_LARGEST_EXACT = 2**53  # of the integers up to here, each is a float


def like_source(
    values: NDArray[np.float32], source: Any, rate: float | None, ratio: float
) -> NDArray[np.float32] | Any:
    """Return the values of a recording in the container of the recording as it was.

    Parameters
    ----------
    values : ndarray of shape (n_timesteps, n_channels) or (n_timesteps,)
        The values.
    source : array-like
        The recording as the user passed it.
    rate : float or None
        Sampling rate of the values, in Hz; known if `ratio` is not 1.
    ratio : float
        Ratio of this rate to that of the source.

    Returns
    -------
    ndarray, DataFrame or Series
        A frame of pandas or polars with the columns of the source, or a Series with its name. An
        index of pandas stays if `ratio` is 1. Otherwise times go on at the new rate, or at the
        pace of their own clock, and numbers go on in their own unit.
    """
    if is_table(source):
        import pandas as pd

        index = source.index
        if rate is not None and ratio != 1:  # even if there are as many steps as before
            index = _resampled(index, len(values), rate, ratio)
        if values.ndim == 1:
            return pd.Series(values, index, name=source.name)
        return pd.DataFrame(values, index, source.columns)
    if has_columns(source):
        return type(source)(values, schema=list(source.columns))
    if hasattr(source, "to_arrow"):  # a Series of polars
        return type(source)(source.name, values)
    return values


def _resampled(index: Any, n_timesteps: int, rate: float, ratio: float) -> Any:
    """Return an index at a new rate, from the first time or number of an index on.

    Names, and a RangeIndex that counts the steps, are replaced by numbers from 0 on.
    """
    import pandas as pd

    times = as_times(index)
    kind = getattr(times.dtype, "kind", "")
    steps = np.arange(n_timesteps)
    if kind in ("M", "m"):
        # A period would be rounded to nanoseconds, an error that grows with every step.
        pace = _pace(times, rate, ratio)
        passed = pd.TimedeltaIndex((steps / pace * 1e9).round().astype("timedelta64[ns]"))
        first = _first_time(index, times)
        try:
            result = first + passed
        except (pd.errors.OutOfBoundsDatetime, OverflowError):  # nanoseconds end in 2262
            result = first + passed.as_unit("us")
        return result.rename(index.name)
    counts = isinstance(index, pd.RangeIndex) and index.step == 1
    if kind in ("i", "u", "f") and len(index) > 1 and not counts:  # seconds, or milliseconds
        # Not all integers are floats: nanoseconds since 1970 would be rounded to 256 of them.
        number = float if kind == "f" else int
        first, step = number(index[0]), (number(index[-1]) - number(index[0])) / (len(index) - 1)
        step /= ratio
        passed = steps * (int(step) if step.is_integer() else step)
        if kind != "f" and abs(first) > _LARGEST_EXACT:
            passed = passed.round().astype(np.int64)
        return pd.Index(first + passed, name=index.name)
    return pd.RangeIndex(n_timesteps, name=index.name)


def _pace(times: Any, rate: float, ratio: float) -> float:
    """Return the rate at which times go on: `rate`, unless they drift from it by more than a step.

    A recorder's clock may be a little faster than its rate says. After an hour, the steps of the
    output would be seconds away from the input steps that they lie at.
    """
    stated = (len(times) - 1) * ratio / rate
    passed = (times[-1] - times[0]).total_seconds()
    return rate * stated / passed if abs(passed - stated) > ratio / rate else rate


def _first_time(index: Any, times: Any) -> Any:
    """Return the first time of an index in its own zone; `times` of text are in UTC."""
    import pandas as pd

    if getattr(times, "tz", None) is None or index.dtype.kind == "M":
        return times[0]
    return times[0].tz_convert(pd.Timestamp(index[0]).tz)  # None: without a zone
