"""Windows inside labelled segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from .._inputs._tables import is_table, refuse_other_frame, table_values
from .._parameters import is_number
from .._typing import InputLayout
from .._warnings import warn_user
from ._grid import join_starts, lay_grid
from ._labels import UNLABELED, as_label_array, unmasked

_COLUMNS = ("recording", "start", "end", "label")
_COUNTED = "count time steps, for example by recording.index.searchsorted(times)"
_ROUNDED = "count time steps, which round(seconds * sampling_rate) makes of seconds"
_NUMBERED = "give the place of the recording in the list, for example by names.index(name)"


def segment_windows(
    recordings: ArrayLike | Sequence[ArrayLike],
    segments: ArrayLike | Sequence[Sequence[Any]],
    length: int,
    *,
    stride: int | None = None,
    groups: ArrayLike | None = None,
    lazy: bool = False,
    downsample: int = 1,
    input_layout: InputLayout = "ntc",
    sampling_rate: float | None = None,
    channel_names: Sequence[str] | None = None,
) -> Bunch:
    """Cut windows that lie wholly inside labelled segments of recordings.

    Windows start at the segment's first step, `stride` steps later and so on, as long as they
    end inside the segment. A segment shorter than a window gives no window.

    Parameters
    ----------
    recordings : array-like of shape (n_recordings, n_timesteps, n_channels), list or DataFrame
        One 3-D array; or a list with one array (or DataFrame) of shape (n_timesteps, n_channels),
        or (n_timesteps,), per recording; or a panel frame, in any form that `sliding_windows`
        takes.
    segments : array-like, structured array or DataFrame of shape (n_segments, 4)
        Rows (recording, start, end, label): the index of the recording; the first step and the
        step after the last, counted from 0 in steps of the recording before down-sampling; and
        the class, an integer (-1 means unlabelled) or a string. Segments may overlap. In a frame
        or structured array whose columns have these names, they may stand in any order and beside
        others. If none has one of these names, the order counts.
    length : int
        Number of time steps in a window, counted after down-sampling.
    stride : int, default=None
        Number of time steps between the starts of two consecutive windows, counted after
        down-sampling. None means `length`.
    groups : array-like of shape (n_recordings,), default=None
        Group of each recording. None makes each recording its own group; the groups of a panel
        frame are then the names of its instances.
    lazy : bool, default=False
        If True, `X` is a `RecordingWindows`, which cuts windows when they are read.
    downsample : int, default=1
        Keep every `downsample`-th step of the recording, counted from the recording's first
        step, before windows are cut. A segment then consists of the kept steps inside it.
    input_layout : {"ntc", "nct"}, default="ntc"
        Order of the axes of a 3-D array (n recordings, t time steps, c channels), and of the 2-D
        arrays in a list. "nct" is the layout of sktime and aeon. Frames always have a column per
        channel.
    sampling_rate : float or None, default=None
        Sampling rate of the recordings, in Hz, before down-sampling. None if it is unknown. Lazy
        windows carry it, so that estimators compare it; an array carries nothing. The time index
        of frames must agree with it, to 2 %.
    channel_names : sequence of str or None, default=None
        Names of the channels, in their order, which lazy windows carry. None takes the column names
        of frames, if there are any.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        Dictionary-like object with the attributes

        X : ndarray or RecordingWindows of shape (n_windows, length, n_channels), dtype float32
            The windows, segment by segment, in the order of `segments`.
        y : ndarray of shape (n_windows,)
            Label of each window's segment, int64 or string.
        groups : ndarray of shape (n_windows,)
            Group of each window.
        recording : ndarray of int of shape (n_windows,)
            Index of each window's recording.
        start : ndarray of int of shape (n_windows,)
            First step of each window, counted in steps of the recording before down-sampling.
        sampling_rate : float or None
            Sampling rate of the windows, in Hz, after down-sampling; None if it is unknown.
        channel_names : tuple of str or None
            Names of the channels; None if they are unknown.

    Raises
    ------
    TypeError
        If a parameter is of a wrong kind, or a recording holds no numbers.
    ValueError
        If a parameter is invalid, if a segment is empty or reaches outside its recording (the
        message names the row), or if no segment is as long as a window.

    Warns
    -----
    UserWarning
        If all segments of a class, or of a recording, are shorter than a window.

    See Also
    --------
    sliding_windows : Windows of whole recordings.
    random_windows : Windows at random starts, for pre-training.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.windows import segment_windows
    >>> recording = np.arange(20.0)
    >>> segments = [(0, 1, 8, "walk"), (0, 8, 10, "walk"), (0, 12, 20, "stand")]
    >>> w = segment_windows([recording], segments, length=4, stride=2)
    >>> w.start
    array([ 1,  3, 12, 14, 16])
    >>> w.y.tolist()
    ['walk', 'walk', 'stand', 'stand', 'stand']
    """
    grid = lay_grid(
        recordings,
        length,
        stride,
        downsample,
        groups=groups,
        lazy=lazy,
        input_layout=input_layout,
        sampling_rate=sampling_rate,
        channel_names=channel_names,
    )
    intervals, labels = _parse_segments(segments, grid.recordings, input_layout)
    # Kept step k is step k * downsample of the recording, so both bounds are rounded up.
    bounds = -(-intervals[:, 1:] // grid.downsample)
    starts = [np.arange(a, max(b - grid.length + 1, a), grid.stride) for a, b in bounds.tolist()]
    segment, start = join_starts(starts)
    if not len(start):
        raise ValueError(
            f"no segment is long enough for a window: the longest has "
            f"{(bounds[:, 1] - bounds[:, 0]).max()} steps after down-sampling and "
            f"length={grid.length}; choose a smaller length, or, if start and end are in seconds,"
            " multiply them by the sampling rate."
        )
    _report_lost_classes(labels, labels[segment], grid.length)
    _report_lost_recordings(intervals[:, 0], intervals[segment, 0], grid.length)
    return grid.cut(intervals[segment, 0], start, labels[segment])


def _report_lost_classes(labels: NDArray[Any], kept: NDArray[Any], length: int) -> None:
    """Warn about classes of segments that have no window."""
    lost = [label for label in np.setdiff1d(labels, kept).tolist() if label != UNLABELED]
    if lost:
        warn_user(
            f"no segment of the class {', '.join(map(repr, lost))} is as long as length={length}"
            " steps, so that this class has no window: choose a smaller length."
        )


def _report_lost_recordings(
    recordings: NDArray[np.int64], kept: NDArray[np.int64], length: int
) -> None:
    """Warn about recordings whose segments have no window."""
    lost = np.setdiff1d(recordings, kept)
    if len(lost):
        warn_user(
            f"{len(lost)} of {len(np.unique(recordings))} recordings that have segments, the first"
            f" of them recordings[{lost[0]}], have none as long as length={length} steps, and give"
            " no window."
        )


def _segment_rows(segments: Any) -> list[Sequence[Any]]:
    """Return the rows of a table of segments, in which each value keeps its own type."""
    rows: list[Sequence[Any]]
    names = _column_names(segments)
    if names is not None:
        # Column by column, since a frame of several types has one type as an array.
        columns = (_entries(segments[name]) for name in _in_order(names))
        rows = [list(row) for row in zip(*columns, strict=True)]
    elif isinstance(segments, (list, tuple)):
        rows = list(segments)
    else:
        array = np.asarray(unmasked(segments))
        if array.ndim == 2 and array.dtype.kind == "U":
            raise ValueError(
                "segments is an array of text, which NumPy makes of numbers beside text: pass a"
                " list of rows, or a DataFrame."
            )
        rows = array.tolist()
    if not isinstance(rows, list) or not rows:
        raise ValueError(
            "segments must be a table with at least one row and the columns recording, start, "
            f"end, label; got {segments!r}."
        )
    for row, segment in enumerate(rows):
        if isinstance(segment, Mapping) and len(segment) != 4 and not set(_COLUMNS) & set(segment):
            raise ValueError(
                f"segments row {row} has the names {', '.join(map(str, segment))}; every row must"
                " be (recording, start, end, label), with start and end in time steps."
            )
        if isinstance(segment, Mapping) or is_table(segment):  # has names, which go unread
            kind = type(segment).__name__
            raise ValueError(f"segments row {row} is a {kind}: pass pandas.DataFrame(segments).")
        if isinstance(segment, str) or not hasattr(segment, "__len__") or len(segment) != 4:
            raise ValueError(
                f"segments row {row} is {segment!r}; every row must be "
                "(recording, start, end, label)."
            )
    return rows


def _entries(column: Any) -> NDArray[Any]:
    """Return the entries of a column as objects; NA among pandas' numbers becomes NaN."""
    column = unmasked(column)  # of a structured array
    values = table_values(column)
    is_number = getattr(values, "dtype", np.dtype(object)).kind in "biuf"
    return np.asarray(values if is_number else column, dtype=object)  # times stay times


def _column_names(segments: Any) -> list[Any] | None:
    """Return the names of the columns of a frame or a structured array; None for other tables."""
    if hasattr(segments, "column_names"):  # a Table of Arrow, whose columns are arrays
        return list(segments.column_names)
    refuse_other_frame(segments, "segments")
    if hasattr(segments, "columns"):
        return list(segments.columns)
    names = getattr(getattr(segments, "dtype", None), "names", None)
    return None if names is None else list(names)


def _in_order(names: list[Any]) -> list[Any]:
    """Return the names of the four columns of segments; with other names they stand in order."""
    lacking = [column for column in _COLUMNS if column not in names]
    wanted = names if len(lacking) == len(_COLUMNS) else list(_COLUMNS)
    repeated = [name for name in wanted if names.count(name) > 1]
    if repeated:
        raise ValueError(
            f"segments has more than one column named {repeated[0]!r}: rename or drop the others."
        )
    if wanted is not names and lacking:
        raise ValueError(
            f"segments has the columns {names}, without {', '.join(lacking)}: rename those that"
            " mean the same, segments.rename(columns={...}), and compute an end from a duration."
        )
    return wanted


def _as_whole(value: Any, row: int, name: str) -> int:
    """Return a whole number as an int, floats such as 3.0 included; raise for anything else."""
    counts = is_number(value)  # which NumPy's durations do not, whatever their unit
    if not counts or not float(value).is_integer():
        remedy = f": {_NUMBERED if name == 'recording' else _COUNTED}"
        if counts:
            remedy = f": {_ROUNDED}" if name != "recording" and np.isfinite(value) else ""
        raise ValueError(f"segments row {row}: {name} must be an integer, got {value!r}{remedy}.")
    return int(value)


def _remedy(interval: tuple[int, int], shape: tuple[int, int], input_layout: str) -> str:
    """Return what may help where a segment lies outside a recording."""
    if -1 in interval:
        return f" -1 is no step; pandas returns it for a time that is not in an index: {_COUNTED}."
    if input_layout == "ntc" and shape[0] < shape[1]:
        return " If channels come first, set input_layout='nct'."
    if interval[1] > shape[0]:
        return " If the recording was resampled, multiply starts and ends by up_ / down_."
    return ""


def _parse_segments(
    segments: Any, recordings: list[NDArray[Any]], input_layout: str
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return intervals (recording, start, end), shape (n_segments, 3), and labels of segments."""
    rows = _segment_rows(segments)
    intervals = np.empty((len(rows), 3), dtype=np.int64)
    for row, segment in enumerate(rows):
        recording, start, end = (
            _as_whole(v, row, name) for v, name in zip(segment[:3], _COLUMNS[:3], strict=True)
        )
        if not 0 <= recording < len(recordings):
            raise ValueError(
                f"segments row {row} names recording {recording}, but there are "
                f"{len(recordings)} recordings, counted from 0."
            )
        n_timesteps, n_channels = recordings[recording].shape
        if not 0 <= start < end <= n_timesteps:
            raise ValueError(
                f"segments row {row} runs from {start} to {end} (exclusive); it must have "
                f"0 <= start < end <= {n_timesteps}, the length of recording {recording} as passed."
                + _remedy((start, end), (n_timesteps, n_channels), input_layout)
            )
        intervals[row] = recording, start, end
    labels = np.empty(len(rows), dtype=object)
    labels[:] = [segment[3] for segment in rows]
    return intervals, as_label_array(labels, "the label column of segments")
