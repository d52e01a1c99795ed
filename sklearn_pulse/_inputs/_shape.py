"""Shape of an estimator's input, which `fit` notes and later calls compare."""

from __future__ import annotations

from typing import Any, NamedTuple

from sklearn.utils.validation import validate_data

from .._warnings import warn_user
from ._lazy import LazyWindows
from ._tables import is_table
from ._times import as_times

_AXES = {
    "ntc": "(n_samples, n_timesteps, n_channels)",
    "nct": "(n_samples, n_channels, n_timesteps)",
}
# A table with many rows, and few and long columns, is likely one recording. No univariate data set
# has windows that short: the shortest of the UCR archive have 15 steps.
_SHORT_WINDOW = 14  # time steps
_LONG_TABLE = 1000  # rows
_LONG_COLUMN = 100  # rows per column


class Shape(NamedTuple):
    """Shape of windows or recordings, whatever the order of their axes."""

    n_timesteps: int  # of the longest
    n_channels: int
    is_table: bool = False  # two axes, one column per time step


def check_axes(shape: tuple[int, ...], name: str, *, bags: bool = True) -> None:
    """Raise unless an array can be windows.

    Parameters
    ----------
    shape : tuple of int
        Shape of the array.
    name : str
        Class of the estimator.
    bags : bool, default=True
        Whether the estimator takes bags of windows.

    Raises
    ------
    ValueError
        If the array has a wrong number of axes, or an empty axis.
    """
    if shape and shape[0] == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required by"
            f" {name}."
        )
    if len(shape) not in (2, 3, 4) or (len(shape) == 4 and not bags):
        last = " or 4 (a bag of windows)" if bags else ""
        raise ValueError(
            f"X has {len(shape)} dimensions, {name} takes 2 (n_samples, n_timesteps), 3 (n_samples,"
            f" n_timesteps, n_channels){last}. Reshape your data: one univariate window is"
            " X.reshape(1, -1)."
        )
    if 0 in shape:
        axis = "feature(s)" if len(shape) == 2 else f"entries on axis {shape.index(0)}"
        raise ValueError(
            f"Found array with 0 {axis} (shape={shape}) while a minimum of 1 is required: X needs"
            " at least one time step and one channel."
        )


def check_layout(X: Any, input_layout: str, name: str) -> None:
    """Raise if lazy windows that know where their channels are would be read transposed.

    Parameters
    ----------
    X : Any
        The input.
    input_layout : {"ntc", "nct"}
        Order of the last two axes.
    name : str
        Class of the estimator.

    Raises
    ------
    ValueError
        If `X` has its channels last and the layout has them first, or the other way round.
    """
    channels_first = X._channels_first if isinstance(X, LazyWindows) else None
    if channels_first in (None, input_layout == "nct"):
        return
    place, layout = ("first", "nct") if channels_first else ("last", "ntc")
    raise ValueError(
        f"{name} has input_layout={input_layout!r}, but X is a {type(X).__name__}, whose channels"
        f" are {place}: fit with input_layout={layout!r}, a pretrained encoder too, or pass X as an"
        " array, numpy.asarray(X).swapaxes(1, 2)."
    )


def note_or_compare_shape(
    estimator: Any,
    shape: Shape,
    X: Any,
    *,
    input_layout: str,
    reset: bool,
    takes_recordings: bool = False,
) -> None:
    """Note the shape of the input of `fit`, or compare that of later input with it.

    Parameters
    ----------
    estimator : estimator
        Its fitted attributes ``n_channels_in_``, ``n_features_in_`` and, of a table with names,
        ``feature_names_in_`` are set or compared with.
    shape : Shape
        Shape of the input.
    X : Any
        The input: of a table, the frame that the user has passed or an array.
    input_layout : {"ntc", "nct"}
        Order of the last two axes, for messages.
    reset : bool
        True in `fit`.
    takes_recordings : bool, default=False
        Whether the estimator takes a list of recordings, for messages.

    Raises
    ------
    ValueError
        If the numbers of channels, or of a table's columns, differ, or the names of columns.

    Warns
    -----
    UserWarning
        In `fit`, if the axes look swapped, or a table like one recording.
    """
    if shape.is_table and (reset or estimator._fitted_on_table):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    if not reset:
        if shape.is_table:
            _refuse_single_window(estimator, X, (len(X), shape.n_timesteps), input_layout)
        _compare_channels(estimator, shape, input_layout)
        return
    _warn_if_transposed(shape, input_layout)
    if shape.is_table:
        _warn_if_recording(X, shape.n_timesteps, takes_recordings)
    note_channels(estimator, shape.n_channels, is_table=shape.is_table)


def note_channels(estimator: Any, n_channels: int, *, is_table: bool = False) -> None:
    """Set what `fit` notes of a number of channels; the columns of a table are noted apart."""
    estimator._fitted_on_table = is_table
    estimator.n_channels_in_ = n_channels
    if not is_table:
        estimator.n_features_in_ = n_channels
        vars(estimator).pop("feature_names_in_", None)


def _refuse_single_window(
    estimator: Any, X: Any, shape: tuple[int, int], input_layout: str
) -> None:
    """Raise if a table has the channels of `fit` on the axis on which a window has them."""
    fitted, axis = estimator.n_channels_in_, input_layout.index("c") - 1
    if shape[axis] != fitted:
        return
    # One row is the same in both readings; columns of one step are right if `fit` saw them.
    if fitted == 1 and (shape[0] == 1 or estimator._fitted_on_table):
        return
    remedy = "[X]" if hasattr(X, "columns") else "X[None]"
    raise ValueError(
        f"X has the shape {shape} and is read as {shape[0]} univariate windows of {shape[1]} time"
        f" steps. {type(estimator).__name__} was fitted with {fitted} channels: if it is one window"
        f" of {fitted} channels, pass {remedy}; input_layout={input_layout!r} means"
        f" {_AXES[input_layout]}."
    )


def _compare_channels(estimator: Any, shape: Shape, input_layout: str) -> None:
    fitted, name = estimator.n_channels_in_, type(estimator).__name__
    if shape.n_channels == fitted:
        return
    if shape.n_timesteps == fitted:
        raise ValueError(
            f"X looks transposed: it has {shape.n_timesteps} time steps and {shape.n_channels}"
            f" channels, {name} was fitted with {fitted} channels. Swap its last two axes;"
            f" input_layout={input_layout!r} means {_AXES[input_layout]}."
        )
    raise ValueError(
        f"X has {shape.n_channels} channels, but {name} is expecting {fitted} channels as input:"
        f" input_layout={input_layout!r} means {_AXES[input_layout]}."
    )


def _warn_if_transposed(shape: Shape, input_layout: str) -> None:
    if shape.n_channels > shape.n_timesteps:
        other = "nct" if input_layout == "ntc" else "ntc"
        warn_user(
            f"X has more channels ({shape.n_channels}) than time steps ({shape.n_timesteps}) in"
            f" input_layout={input_layout!r}, {_AXES[input_layout]}; if its last two axes are the"
            f" other way round, swap them or set input_layout={other!r}."
        )


def _warn_if_recording(X: Any, n_columns: int, takes_recordings: bool) -> None:
    """Warn of a table that looks like one recording, with a row per time step."""
    n_rows = len(X)
    times = as_times(X.index) if is_table(X) else None
    has_times = getattr(getattr(times, "dtype", None), "kind", "") in ("M", "m")
    fewest = n_columns + 1 if has_times else max(_LONG_TABLE, _LONG_COLUMN * n_columns)
    if n_columns <= _SHORT_WINDOW and n_rows >= fewest:
        remedy = (
            "pass [X]"
            if takes_recordings
            else "cut it into windows first: sklearn_pulse.windows.sliding_windows([X], length).X"
        )
        warn_user(
            f"X has the shape ({n_rows}, {n_columns}) and is read as {n_rows} univariate windows of"
            f" {n_columns} time steps. If it is one recording of {n_columns} channels, {remedy}. If"
            " it is windows indeed, pass numpy.asarray(X)[:, :, None]."
        )
