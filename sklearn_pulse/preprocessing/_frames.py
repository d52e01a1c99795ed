"""Frames and Series for recordings that were frames or Series."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..windows._tables import has_columns, is_table


def like_source(
    values: NDArray[np.float32], source: Any, rate: float | None
) -> NDArray[np.float32] | Any:
    """Return the values of a recording in the container of the recording as it was.

    Parameters
    ----------
    values : ndarray of shape (n_timesteps, n_channels) or (n_timesteps,)
        The values.
    source : array-like
        The recording as the user passed it.
    rate : float or None
        Sampling rate of the values, in Hz, if the step has changed it.

    Returns
    -------
    ndarray, DataFrame or Series
        A frame of pandas or polars with the columns of the source, or a Series with its name. The
        index of pandas stays if there are as many steps; times go on at the new rate if not.
    """
    if is_table(source):
        import pandas as pd

        index = source.index
        index = index if len(index) == len(values) else _resampled(index, len(values), rate)
        if values.ndim == 1:
            return pd.Series(values, index, name=source.name)
        return pd.DataFrame(values, index, source.columns)
    if has_columns(source):
        return type(source)(values, schema=list(source.columns))
    return values


def _resampled(index: Any, n_timesteps: int, rate: float | None) -> Any:
    """Return an index from the first time of an index on; without times, numbers from 0 on."""
    import pandas as pd

    kind = getattr(index.dtype, "kind", "")
    if rate is None or kind not in ("M", "m"):
        return pd.RangeIndex(n_timesteps)
    make: Any = pd.date_range if kind == "M" else pd.timedelta_range
    return make(index[0], periods=n_timesteps, freq=pd.Timedelta(seconds=1 / rate))
