"""Lists, frames and Series, recognised without importing pandas: values, names of channels."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

_POLARS_INDEX = "__index__"  # begins the columns in which sktime's frames of polars hold an index
_DIVIDERS = (";", "\t")  # which divide the columns of a CSV file where the comma does not

# A number as a CSV file holds it: 1.5 or 1,5, .5, 1,5E-03, 1.234,5 or 1,234.5.
_GROUPS = r"\d{1,3}(\.\d{3})+,\d*|\d{1,3}(,\d{3})+\.?\d*"
_NUMBER = re.compile(rf"\s*[+-]?(\d+[.,]?\d*|[.,]\d+|{_GROUPS})(e[+-]?\d+)?\s*", re.IGNORECASE)


def is_object_list(X: Any) -> bool:
    """Return whether X is a 1-D array of objects, as which splitters return a list."""
    return isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype == object


def is_list(X: Any) -> bool:
    """Return whether X is a list, a tuple or a 1-D array of objects."""
    return isinstance(X, list | tuple) or is_object_list(X)


def is_table(X: Any) -> bool:
    """Return whether X is a pandas DataFrame or Series, without importing pandas."""
    return hasattr(X, "iloc") and hasattr(X, "index") and not hasattr(X, "compute")  # as in Dask


def has_multiindex(table: Any) -> bool:
    """Return whether the rows of a pandas object have more than one index level."""
    return bool(getattr(table.index, "nlevels", 1) > 1)


def is_nested(frame: Any) -> bool:
    """Return whether the cells of a frame hold series."""
    if not hasattr(frame, "columns") or not len(frame):
        return False
    cells = frame.iloc[0]
    return getattr(getattr(cells, "dtype", None), "kind", "O") not in "biuf" and any(
        map(np.ndim, cells)
    )


def is_panel_frame(X: Any) -> bool:
    """Return whether X is a pandas object that holds several series."""
    return is_table(X) and (has_multiindex(X) or is_nested(X))


def has_columns(X: Any) -> bool:
    """Return whether X is a frame of pandas or polars."""
    kind = type(X)  # an instance computes dtypes, and a lazy frame of polars its columns
    return not hasattr(kind, "collect") and hasattr(kind, "dtypes") and hasattr(X, "columns")


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


def column_names(frame: Any) -> list[str] | None:
    """Return the column names; None unless all are strings, as scikit-learn's feature names."""
    columns = list(getattr(frame, "columns", []))
    return columns if columns and all(isinstance(column, str) for column in columns) else None


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
    frame = next((x for x in frames if hasattr(x, "columns")), None) if is_list(frames) else None
    names = column_names(frame)
    return tuple(names) if names and len({*names}) == len(names) else None


def instance_rows(index: Any, name: str) -> tuple[NDArray[np.intp], NDArray[np.intp], Any]:
    """Return the rows sorted by instance, the number of rows and the label of each instance."""
    instances = index.droplevel(-1)
    codes, labels = instances.factorize()
    if (codes < 0).any():
        raise ValueError(
            f"{name} has rows whose instance is NaN: name the instance, or drop these rows."
        )
    return np.argsort(codes, kind="stable"), np.bincount(codes), labels.set_names(instances.names)


def series_of(panel: Any, name: str) -> str:
    """Return the line of code that makes a list of the series of a frame with a MultiIndex."""
    level = 0 if panel.index.nlevels == 2 else list(range(panel.index.nlevels - 1))
    return f"[x.droplevel({level}) for _, x in {name}.groupby(level={level}, sort=False)]"


def refuse_panel(X: Any, name: str) -> None:
    """Raise if X is a frame of many series, which would be read as a table."""
    if any(column.startswith(_POLARS_INDEX) for column in column_names(X) or ()):
        raise TypeError(
            f"{name} is a panel of sktime in a frame of polars, which would be read as a table:"
            f" convert it, by sktime.datatypes.convert_to({name}, 'pd-multiindex')."
        )
    if not is_panel_frame(X):
        return
    what, series = "whose cells hold series", f"sktime.datatypes.convert_to({name}, 'df-list')"
    if has_multiindex(X):
        what = "with a MultiIndex"
        series = series_of(X, name)
    raise TypeError(
        f"{name} is a frame {what}, which would be read as a table: pass a list of its series, as"
        f" {series}, to the steps of preprocessing and, if all have one length, to an estimator;"
        " for series of other lengths take sklearn_pulse.panel.as_panel_transformer(estimator)."
        " sliding_windows, segment_windows and random_windows take a panel as it is, outside of a"
        " list."
    )


def refuse_other_frame(X: Any, name: str) -> None:
    """Raise for a frame of Arrow, and for frames of Dask and polars that are not read yet."""
    kind = type(X).__name__
    unread = f"{name} is a {kind}, whose values are not read yet: pass its "
    if hasattr(X, "compute") and hasattr(X, "iloc"):
        raise TypeError(f"{unread}.compute().")
    if hasattr(X, "collect") and hasattr(X, "lazy"):
        raise TypeError(f"{unread}.collect().")
    if hasattr(X, "column_names") and hasattr(X, "to_pandas"):
        raise TypeError(f"{name} is a {kind} of Arrow: pass {name}.to_pandas().")


def refuse_undivided(frame: Any, name: str) -> None:
    """Raise for a CSV file whose columns were read as one, since another character divides them.

    Where numbers have decimal commas, pandas makes an index of what stands before the last comma,
    and numbers of the decimals behind it.
    """
    columns = list(frame.columns) if has_columns(frame) else []
    if len(columns) != 1 or not len(frame):
        return
    mark = next((mark for mark in _DIVIDERS if mark in str(columns[0])), None)
    if mark is None:
        return
    if is_table(frame):
        first = [frame.iloc[0, 0], *np.atleast_1d(np.asarray(frame.index[0], dtype=object))]
        read, comma = f"pandas.read_csv(path, sep={mark!r})", "decimal=','"
    else:
        first = [frame[0, 0]]
        read, comma = f"polars.read_csv(path, separator={mark!r})", "decimal_comma=True"
    if any(isinstance(part, str) and mark in part for part in first):
        raise TypeError(
            f"{name} has the single column {columns[0]!r}, since {mark!r} divides the columns of"
            f" its file: read it by {read}, with {comma} if its numbers have decimal commas."
        )


def refuse_times(values: Any, name: str) -> None:
    """Raise if an array, a Series or a column of a frame holds times, which are not a channel."""
    is_frame = has_columns(values)
    dtypes = list(values.dtypes) if is_frame else [getattr(values, "dtype", None)]
    times = {dtype for dtype in {*dtypes} if _is_of_times(dtype)}  # few types, many columns
    if not times:
        return
    if is_frame:
        column = next(c for c, d in zip(values.columns, dtypes, strict=True) if d in times)
        name = f"the column {column!r} of {name}"
    raise ValueError(
        f"{name} holds times, which are no channel: drop it, or, in a frame of pandas, make it"
        " the index, whose gaps are then found."
    )


def refuse_text_column(values: Any, name: str) -> None:
    """Raise if a column of a frame holds text or dates, with the name of the column."""
    if not has_columns(values):
        return
    for number, (column, dtype) in enumerate(zip(values.columns, values.dtypes, strict=True)):
        if _is_of_numbers(dtype):
            continue
        entries = values.iloc[:, number] if is_table(values) else values[:, number]
        text = next((x for x in entries if isinstance(x, str) or hasattr(x, "isoformat")), None)
        if isinstance(text, str):  # behind marks of missing values, such as "-", may be a number
            numbers = (x for x in entries if isinstance(x, str) and _NUMBER.fullmatch(x))
            if (found := next(numbers, None)) is not None:
                raise TypeError(
                    f"the column {column!r} of {name} holds the number {found!r} as text: convert"
                    f" it, {_conversion(found, is_table(values))}. If it is a label, pass it as y."
                )
        if text is not None:
            raise TypeError(
                f"the column {column!r} of {name} holds {text!r}, which is no number: make times"
                " the index, as by frame.set_index(pandas.to_datetime(column)), pass labels as y,"
                " and leave other text out."
            )


def _conversion(text: str, is_pandas: bool) -> str:
    """Return how a column of text becomes numbers, one of which the text holds."""
    if not is_pandas:
        return "as by frame.cast({column: polars.Float64})"
    if "," in text and "." in text:  # the last of them is the decimal one
        decimal, thousands = (",", ".") if text.rfind(",") > text.rfind(".") else (".", ",")
        return f"as by pandas.read_csv(path, decimal={decimal!r}, thousands={thousands!r})"
    if "," in text:  # which tells by itself neither that it is a decimal comma, nor that it is not
        return (
            "as by pandas.read_csv(path, decimal=','), or thousands=',' where the comma divides"
            " thousands"
        )
    return (
        "as by pandas.to_numeric(frame[column]), or, where marks of missing values stand among the"
        " numbers, by pandas.read_csv(path, na_values=[mark])"
    )


def _is_of_numbers(dtype: Any) -> bool:
    """Return whether a type of NumPy, pandas, Arrow or polars is one of numbers for certain."""
    if hasattr(dtype, "is_numeric"):  # of polars
        return bool(dtype.is_numeric() or str(dtype) == "Boolean")
    return getattr(dtype, "kind", "O") not in "OUT" and not str(dtype).startswith("str")


def _is_of_times(dtype: Any) -> bool:
    """Return whether a type of NumPy, pandas, Arrow or polars is one of times."""
    if isinstance(dtype, np.dtype):  # mostly, and a text of each type would cost time
        return dtype.kind in ("m", "M")
    is_polars = hasattr(dtype, "is_temporal")
    is_time = dtype.is_temporal() if is_polars else getattr(dtype, "kind", "") in ("m", "M")
    # Periods and Arrow's times of a day are objects to NumPy.
    return bool(is_time) or str(dtype).startswith(("period", "time32", "time64"))
