"""Windows of recordings: cut before a pipeline, or inside it as a transformer.

scikit-learn forbids a pipeline step that changes the number of samples. So windows with a
label each are cut first (`sliding_windows`, `segment_windows`, `random_windows`), and where a
recording has one label, `SlidingWindows` turns it into a bag of windows inside the pipeline.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Bunch, check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ._recording_windows import (
    RecordingWindows,
    as_recordings,
    check_positive_int,
    has_multiindex,
    is_table,
)
from ._window_labels import (
    as_label_array,
    check_fraction,
    check_label_rule,
    parse_labels,
    window_labels,
)

__all__ = [
    "RecordingWindows",
    "SlidingWindows",
    "random_windows",
    "segment_windows",
    "sliding_windows",
]


def _check_length(length: Any) -> int:
    return check_positive_int(length, "length", "it counts time steps of a window")


def _check_stride(stride: Any, length: int) -> int:
    if stride is None:
        return length
    return check_positive_int(
        stride, "stride", "it counts time steps between windows, and None means length"
    )


def _check_grid(length: Any, stride: Any, downsample: Any) -> tuple[int, int, int]:
    length = _check_length(length)
    stride = _check_stride(stride, length)
    return length, stride, check_positive_int(downsample, "downsample", "1 keeps every step")


def _lengths(recordings: list[np.ndarray], downsample: int) -> np.ndarray:
    """Return the number of steps that ``x[::downsample]`` has, for each recording."""
    return -(-np.array([len(x) for x in recordings], dtype=np.int64) // downsample)


def _report_short(n_timesteps: np.ndarray, length: int) -> None:
    """Warn about recordings that are too short for a window; raise if all of them are."""
    n_short = int((n_timesteps < length).sum())
    if n_short == len(n_timesteps):
        longest = int(n_timesteps.argmax())
        raise ValueError(
            f"no recording is long enough for a window: the longest, recordings[{longest}], has "
            f"{n_timesteps[longest]} steps after down-sampling and length={length}; choose a "
            "smaller length."
        )
    if n_short:
        warnings.warn(
            f"{n_short} of {len(n_timesteps)} recordings are shorter than length={length} steps "
            "and give no window.",
            UserWarning,
            stacklevel=3,
        )


def _check_groups(groups: ArrayLike | None, n_recordings: int) -> np.ndarray:
    """Return one group per recording; None makes each recording its own group."""
    if groups is None:
        return np.arange(n_recordings)
    groups = np.asarray(groups)
    if groups.shape != (n_recordings,):
        raise ValueError(
            f"groups must hold one group per recording, shape ({n_recordings},), got shape "
            f"{groups.shape}; None makes each recording a group."
        )
    return groups


def _as_bunch(
    recordings: list[np.ndarray],
    recording: np.ndarray,
    start: np.ndarray,
    y: np.ndarray | None,
    groups: np.ndarray,
    *,
    length: int,
    downsample: int,
    lazy: bool,
) -> Bunch:
    X = RecordingWindows(recordings, recording, start, length, downsample)
    return Bunch(
        X=X if lazy else np.asarray(X),
        y=y,
        groups=groups[recording],
        recording=recording,
        start=start,
    )


def _join(starts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the recording index and the start of each window."""
    counts = [len(s) for s in starts]
    return np.repeat(np.arange(len(starts)), counts), np.concatenate(starts)


def sliding_windows(
    recordings: ArrayLike | Sequence[ArrayLike],
    length: int,
    stride: int | None = None,
    *,
    y: ArrayLike | Sequence[ArrayLike] | None = None,
    groups: ArrayLike | None = None,
    label: str = "majority",
    min_labeled: float = 0.5,
    lazy: bool = False,
    downsample: int = 1,
) -> Bunch:
    """Cut recordings into windows at regular starts.

    Windows start at steps 0, `stride`, 2 `stride` and so on of each recording, as long as they
    fit; steps that remain at the end are left out.

    Parameters
    ----------
    recordings : array-like of shape (n_recordings, n_timesteps, n_channels) or list
        One 3-D array, or a list with an array (or DataFrame) of shape
        (n_timesteps, n_channels) per recording; these may differ in length, may be memory maps
        and may be 1-D if univariate.
    length : int
        Steps in a window, counted after down-sampling.
    stride : int, default=None
        Steps between the starts of two windows, counted after down-sampling. None means
        `length`: windows that touch and do not overlap.
    y : array-like of shape (n_recordings,) or (n_recordings, n_timesteps) or list, default=None
        Labels: a scalar per recording, or a 1-D sequence with a label per step of the
        recording. Integers or strings. Among integers -1 is unlabelled, and so is NaN in a
        float `y` that is integral elsewhere; strings have no unlabelled marker.
    groups : array-like of shape (n_recordings,), default=None
        A group per recording, say its subject, for splitters such as
        :class:`~sklearn.model_selection.GroupKFold`. None makes each recording a group.
    label : {"majority", "pure"}, default="majority"
        How a window is labelled by its steps. "majority": by the most frequent class of its
        labelled steps, ties going to the lowest. "pure": the same, but -1 if its labelled steps
        are of more than one class. Labels per recording are repeated as they are.
    min_labeled : float, default=0.5
        A window is labelled only if at least this fraction of its steps is, in (0, 1].
    lazy : bool, default=False
        If True, `X` is a `RecordingWindows`, which cuts windows when they are read.
    downsample : int, default=1
        Keep every `downsample`-th step, without a filter, before windows are cut.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        With the attributes

        X : ndarray or RecordingWindows of shape (n_windows, length, n_channels), float32
            The windows, recording by recording.
        y : ndarray of shape (n_windows,) or None
            Labels, int64 or strings; -1 where the label rule leaves a window unlabelled.
        groups : ndarray of shape (n_windows,)
            Groups of the windows.
        recording : ndarray of int of shape (n_windows,)
            Index of each window's recording.
        start : ndarray of int of shape (n_windows,)
            First step of each window, in steps of the recording as given: a multiple of
            ``stride * downsample``.

    Raises
    ------
    ValueError
        If a parameter is invalid, if `recordings` is a bare 1-D or 2-D array, if labels or
        groups do not fit the recordings, or if no recording is as long as a window.

    Warns
    -----
    UserWarning
        If some recordings are shorter than a window and give none.

    See Also
    --------
    segment_windows : Windows inside labelled intervals.
    random_windows : Windows at random starts, for pre-training.
    SlidingWindows : The same as a pipeline step, for labels per recording.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.windows import sliding_windows
    >>> recordings = [np.zeros((10, 2)), np.ones((7, 2))]
    >>> w = sliding_windows(recordings, length=4, stride=3, y=["walk", "sit"])
    >>> w.X.shape
    (5, 4, 2)
    >>> w.recording, w.start
    (array([0, 0, 0, 1, 1]), array([0, 3, 6, 0, 3]))
    >>> w.y.tolist()
    ['walk', 'walk', 'walk', 'sit', 'sit']

    A label per step; two of the four steps of the last window carry a label:

    >>> steps = [[0, 0, 0, 0, 1, 1, 0, 1, -1, -1]]
    >>> sliding_windows([np.zeros(10)], length=4, stride=3, y=steps).y
    array([0, 0, 0])
    """
    length, stride, downsample = _check_grid(length, stride, downsample)
    check_label_rule(label, min_labeled)
    arrays = as_recordings(recordings)
    group_of = _check_groups(groups, len(arrays))
    labels = None if y is None else parse_labels(y, [len(x) for x in arrays])
    n_timesteps = _lengths(arrays, downsample)
    _report_short(n_timesteps, length)

    starts = [np.arange(0, max(n - length + 1, 0), stride) for n in n_timesteps.tolist()]
    recording, start = _join(starts)
    if isinstance(labels, list):
        labels = np.concatenate(
            [
                window_labels(steps[::downsample], s, length, label, min_labeled)
                for steps, s in zip(labels, starts, strict=True)
                if len(s)
            ]
        )
    elif labels is not None:
        labels = labels[recording]
    return _as_bunch(
        arrays,
        recording,
        start * downsample,
        labels,
        group_of,
        length=length,
        downsample=downsample,
        lazy=lazy,
    )


def _segment_rows(segments: Any) -> list[Sequence[Any]]:
    """Return the rows of a table of segments, each value with a type of its own."""
    if is_table(segments):
        rows = segments.to_numpy(dtype=object).tolist()
    elif isinstance(segments, (list, tuple)):
        rows = list(segments)
    else:
        rows = np.asarray(segments).tolist()
    if not isinstance(rows, list) or not rows:
        raise ValueError(
            "segments must be a table with at least one row and the columns recording, start, "
            f"end, label; got {segments!r}."
        )
    for row, segment in enumerate(rows):
        if isinstance(segment, str) or not hasattr(segment, "__len__") or len(segment) != 4:
            raise ValueError(
                f"segments row {row} is {segment!r}; every row must be "
                "(recording, start, end, label)."
            )
    return rows


def _as_whole(value: Any, row: int, name: str) -> int:
    is_number = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    if not is_number or not float(value).is_integer():
        raise ValueError(f"segments row {row}: {name} must be an integer, got {value!r}.")
    return int(value)


def _parse_segments(segments: Any, n_timesteps: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the intervals, shape (n_segments, 3), and labels of a table of segments."""
    rows = _segment_rows(segments)
    intervals = np.empty((len(rows), 3), dtype=np.int64)
    for row, segment in enumerate(rows):
        names = ("recording", "start", "end")
        recording, start, end = (
            _as_whole(v, row, name) for v, name in zip(segment[:3], names, strict=True)
        )
        if not 0 <= recording < len(n_timesteps):
            raise ValueError(
                f"segments row {row} names recording {recording}, but there are "
                f"{len(n_timesteps)} recordings, counted from 0."
            )
        if not 0 <= start < end <= n_timesteps[recording]:
            raise ValueError(
                f"segments row {row} runs from {start} to {end} (exclusive); it must have "
                f"0 <= start < end <= {n_timesteps[recording]}, the length of recording "
                f"{recording} as passed."
            )
        intervals[row] = recording, start, end
    labels = np.empty(len(rows), dtype=object)
    labels[:] = [segment[3] for segment in rows]
    return intervals, as_label_array(labels, "the label column of segments")


def segment_windows(
    recordings: ArrayLike | Sequence[ArrayLike],
    segments: ArrayLike | Sequence[Sequence[Any]],
    length: int,
    *,
    stride: int | None = None,
    groups: ArrayLike | None = None,
    lazy: bool = False,
    downsample: int = 1,
) -> Bunch:
    """Cut windows that lie wholly inside labelled segments of recordings.

    Windows start at the segment's first step, `stride` steps later and so on, as long as they
    end inside the segment; a segment shorter than a window gives none.

    Parameters
    ----------
    recordings : array-like of shape (n_recordings, n_timesteps, n_channels) or list
        The recordings, as in `sliding_windows`.
    segments : array-like or DataFrame of shape (n_segments, 4)
        Rows (recording, start, end, label): the index of the recording, the first step and the
        step after the last, counted from 0 in steps of the recording as given, and the class,
        an integer (-1 for unlabelled) or a string. Segments may overlap.
    length : int
        Steps in a window, counted after down-sampling.
    stride : int, default=None
        Steps between the starts of two windows, counted after down-sampling. None means
        `length`.
    groups : array-like of shape (n_recordings,), default=None
        A group per recording. None makes each recording a group.
    lazy : bool, default=False
        If True, `X` is a `RecordingWindows`, which cuts windows when they are read.
    downsample : int, default=1
        Keep every `downsample`-th step of the recording, counted from the recording's first
        step, before windows are cut. A segment then holds the kept steps inside it.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        With `X`, `y`, `groups`, `recording` and `start` as in `sliding_windows`; the windows
        are in the order of the segments.

    Raises
    ------
    ValueError
        If a parameter is invalid, if a segment is empty or reaches outside its recording (the
        message names the row), or if no segment is as long as a window.

    See Also
    --------
    sliding_windows : Windows of whole recordings.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.windows import segment_windows
    >>> recording = np.arange(20.0)
    >>> segments = [(0, 1, 8, "walk"), (0, 8, 10, "sit"), (0, 12, 20, "stand")]
    >>> w = segment_windows([recording], segments, length=4, stride=2)
    >>> w.start
    array([ 1,  3, 12, 14, 16])
    >>> w.y.tolist()
    ['walk', 'walk', 'stand', 'stand', 'stand']
    """
    length, stride, downsample = _check_grid(length, stride, downsample)
    arrays = as_recordings(recordings)
    group_of = _check_groups(groups, len(arrays))
    intervals, labels = _parse_segments(segments, [len(x) for x in arrays])
    # the kept step k is step k * downsample of the recording; so both bounds are rounded up
    bounds = -(-intervals[:, 1:] // downsample)
    starts = [np.arange(a, max(b - length + 1, a), stride) for a, b in bounds.tolist()]
    segment, start = _join(starts)
    if not len(start):
        raise ValueError(
            f"no segment is long enough for a window: the longest has "
            f"{(bounds[:, 1] - bounds[:, 0]).max()} steps after down-sampling and "
            f"length={length}; choose a smaller length."
        )
    return _as_bunch(
        arrays,
        intervals[segment, 0],
        start * downsample,
        labels[segment],
        group_of,
        length=length,
        downsample=downsample,
        lazy=lazy,
    )


def _draw_seed(random_state: Any) -> int:
    """Return an integer seed as it is, or draw one of 31 bits."""
    is_integer = isinstance(random_state, numbers.Integral)
    if is_integer and not isinstance(random_state, (bool, np.bool_)):
        if not 0 <= random_state < 2**32:
            raise ValueError(
                f"random_state must be an integer from 0 to 2**32 - 1, got {random_state}; or "
                "pass a RandomState or None."
            )
        return int(random_state)
    if random_state is not None and not isinstance(random_state, np.random.RandomState):
        raise ValueError(
            f"random_state must be an integer, a numpy.random.RandomState or None, got "
            f"{random_state!r}; pass an integer for windows that can be drawn again."
        )
    return int(check_random_state(random_state).randint(2**31, dtype=np.int64))


def _permuted_starts(
    n_timesteps: int, length: int, stride: int, fraction: float, seed: int
) -> np.ndarray:
    """Return random distinct starts in one recording, in the order of the permutation."""
    if n_timesteps < length:
        return np.empty(0, dtype=np.int64)
    n_candidates = n_timesteps - length - 2
    if n_candidates <= 0:
        return np.zeros(1, dtype=np.int64)
    starts = np.random.RandomState(seed % 2**32).permutation(n_candidates)[::stride]
    return starts[: int(fraction * len(starts))].astype(np.int64)


def random_windows(
    recordings: ArrayLike | Sequence[ArrayLike],
    length: int,
    stride: int | None,
    fraction: float = 1.0,
    random_state: int | np.random.RandomState | None = None,
    *,
    groups: ArrayLike | None = None,
    lazy: bool = False,
    downsample: int = 1,
) -> Bunch:
    """Cut windows at random starts of recordings, as the published pre-training does.

    Recording i, counted from 0, permutes its starts 0, ..., n_timesteps - length - 3 with
    ``numpy.random.RandomState(seed + i)``, takes every `stride`-th of the permutation, and of
    these the first ``int(fraction * n)``. So a recording gives about ``n_timesteps / stride``
    distinct windows that overlap at random, and the same ones for the same integer seed.

    Parameters
    ----------
    recordings : array-like of shape (n_recordings, n_timesteps, n_channels) or list
        The recordings, as in `sliding_windows`.
    length : int
        Steps in a window, counted after down-sampling.
    stride : int or None
        One of `stride` possible starts is taken; None means `length`.
    fraction : float, default=1.0
        Part of these windows that is kept, in (0, 1].
    random_state : int, RandomState instance or None, default=None
        An integer is the seed itself and gives the published windows. A RandomState instance
        (None is numpy's global one) draws a seed of 31 bits from it.
    groups : array-like of shape (n_recordings,), default=None
        A group per recording. None makes each recording a group.
    lazy : bool, default=False
        If True, `X` is a `RecordingWindows`, which cuts windows when they are read.
    downsample : int, default=1
        Keep every `downsample`-th step, without a filter, before windows are cut.

    Returns
    -------
    :class:`~sklearn.utils.Bunch`
        With `X`, `groups`, `recording` and `start` as in `sliding_windows`, and `y` None. The
        windows of a recording are in the order of its permutation.

    Raises
    ------
    ValueError
        If a parameter is invalid, if no recording is as long as a window, or if `fraction`
        keeps no window at all.

    Warns
    -----
    UserWarning
        If some recordings give no window, being too short or because `fraction` keeps none.

    Notes
    -----
    The published rule leaves a recording of less than ``length + 3`` steps without a window;
    here it gives the one that starts at step 0, if it holds one at all.

    References
    ----------
    The pre-training windows of the paper's released code.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.windows import random_windows
    >>> w = random_windows([np.zeros((15038, 6))], 128, 32, random_state=0, lazy=True)
    >>> w.X.shape
    (466, 128, 6)
    """
    length, stride, downsample = _check_grid(length, stride, downsample)
    check_fraction(fraction, "fraction")
    arrays = as_recordings(recordings)
    group_of = _check_groups(groups, len(arrays))
    n_timesteps = _lengths(arrays, downsample)
    _report_short(n_timesteps, length)

    seed = _draw_seed(random_state)
    starts = [
        _permuted_starts(n, length, stride, fraction, seed + i)
        for i, n in enumerate(n_timesteps.tolist())
    ]
    recording, start = _join(starts)
    _report_dropped(starts, n_timesteps >= length, fraction)
    return _as_bunch(
        arrays,
        recording,
        start * downsample,
        None,
        group_of,
        length=length,
        downsample=downsample,
        lazy=lazy,
    )


def _report_dropped(starts: list[np.ndarray], long_enough: np.ndarray, fraction: float) -> None:
    """Warn about recordings that `fraction` leaves without a window; raise if it is all."""
    empty = np.array([len(s) == 0 for s in starts])
    if empty.all():
        raise ValueError(
            f"fraction={fraction!r} keeps no window of any recording; raise it or lower stride."
        )
    n_dropped = int((empty & long_enough).sum())
    if n_dropped:
        warnings.warn(
            f"fraction={fraction!r} keeps no window of {n_dropped} of {len(starts)} recordings.",
            UserWarning,
            stacklevel=3,
        )


def _n_axes(X: Any) -> int | None:
    """Return the number of axes, or None for a ragged sequence."""
    if hasattr(X, "ndim"):
        return X.ndim
    try:
        return np.asarray(X).ndim
    except ValueError:
        return None


def _is_series_list(X: Any) -> bool:
    """Tell a list of series, (T_i, C) or unequal (T_i,), from nested lists of one table."""
    if not isinstance(X, (list, tuple)) or not X:
        return False
    axes = {_n_axes(x) for x in X}
    return axes == {2} or (axes == {1} and len({len(x) for x in X}) > 1)


def _refuse_panel(X: Any) -> None:
    """Refuse pandas containers of many series, which would be read as a table."""
    if not is_table(X):
        return
    is_nested = len(X) > 0 and any(np.ndim(cell) > 0 for cell in np.ravel(X.iloc[:1].to_numpy()))
    if has_multiindex(X) or is_nested:
        raise ValueError(
            "X is a pandas panel (a MultiIndex or nested frame); pass a 3-D array or a list "
            "with one 2-D array per series, e.g. "
            "[part.to_numpy() for _, part in frame.groupby(level=0)]."
        )


class SlidingWindows(TransformerMixin, BaseEstimator):
    """Turn each series into a bag of windows, without changing the number of samples.

    A step for pipelines with one label per recording: the number of samples stays, and an
    encoder that follows, such as ``PulseTransformer``, embeds every window of a bag and pools.

    Parameters
    ----------
    length : int, default=128
        Steps in a window.
    stride : int, default=None
        Steps between the starts of two windows. None means `length`.
    input_layout : {"ntc", "nct"}, default="ntc"
        Order of the axes of a 3-D `X`: "ntc" is (n_samples, n_timesteps, n_channels), "nct" is
        channels first, as in sktime and aeon. In a list it holds for each series, (T, C) or
        (C, T). Nothing is guessed. The output is always channels last.

    Attributes
    ----------
    n_channels_in_ : int
        Number of channels seen in `fit`.
    n_features_in_ : int
        Number of channels, or of time steps if `X` was 2-D.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Column names, if `X` was a DataFrame with string column names.

    See Also
    --------
    sliding_windows : Cut windows before the pipeline, each with a label of its own.

    Notes
    -----
    Steps at the end of a series that do not fill a window are left out. A series shorter than
    `length` becomes one window, padded at its end with NaN. In a list of unequal series each
    gets as many windows as the longest; those it lacks are wholly NaN, and the estimators of
    this package skip wholly missing windows in a bag.

    For arrays with at least `length` steps the output is a read-only strided view, however
    much windows overlap: of `X` itself if that is float32, else of one float32 copy.

    The output has four axes, so ``set_output`` does not apply and is not available.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.windows import SlidingWindows
    >>> X = np.zeros((5, 100, 3), dtype=np.float32)
    >>> SlidingWindows(length=20, stride=10).fit_transform(X).shape
    (5, 9, 20, 3)
    >>> series = [np.ones((30, 3)), np.ones((100, 3))]
    >>> bag = SlidingWindows(length=20).fit_transform(series)
    >>> bag.shape, int(np.isnan(bag[0]).all(axis=(1, 2)).sum())
    ((2, 5, 20, 3), 4)
    """

    def __init__(
        self, length: int = 128, stride: int | None = None, input_layout: str = "ntc"
    ) -> None:
        self.length = length
        self.stride = stride
        self.input_layout = input_layout

    def fit(self, X: ArrayLike | Sequence[ArrayLike], y: Any = None) -> SlidingWindows:
        """Validate the parameters and record the number of channels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels) or (n_samples, n_timesteps)
            The series, or a list of series of shape (n_timesteps, n_channels) that may differ
            in length. NaN is allowed.
        y : None
            Ignored.

        Returns
        -------
        self : SlidingWindows
            The fitted transformer.

        Raises
        ------
        ValueError
            If a parameter is invalid or `X` has an infinite value or a wrong number of axes.

        Warns
        -----
        UserWarning
            If there are more channels than time steps, as in a transposed array.
        """
        self._check_parameters()
        series = self._check_series(X, reset=True)
        n_timesteps = max(len(x) for x in series)
        if self.n_channels_in_ > n_timesteps:
            warnings.warn(
                f"X has more channels ({self.n_channels_in_}) than time steps ({n_timesteps}); "
                f"if it is transposed, set input_layout (now {self.input_layout!r}).",
                UserWarning,
                stacklevel=2,
            )
        return self

    def transform(self, X: ArrayLike | Sequence[ArrayLike]) -> np.ndarray:
        """Cut every series into windows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timesteps, n_channels) or (n_samples, n_timesteps)
            The series, or a list of series of shape (n_timesteps, n_channels) that may differ
            in length. A 3-D `X` may have another number of time steps than in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_windows, length, n_channels), float32
            The bags; a read-only view where series are of equal length, at least `length`.

        Raises
        ------
        ValueError
            If `X` has an infinite value, or another number of channels than in `fit`.
        """
        check_is_fitted(self)
        length, stride = self._check_parameters()
        series = self._check_series(X, reset=False)
        if isinstance(series, list) or series.shape[1] < length:
            return _padded_bag(series, length, stride)
        windows = np.lib.stride_tricks.sliding_window_view(series, length, axis=1)[:, ::stride]
        return np.moveaxis(windows, -1, 2)

    def _check_parameters(self) -> tuple[int, int]:
        if not isinstance(self.input_layout, str) or self.input_layout not in ("ntc", "nct"):
            raise ValueError(
                f"input_layout must be 'ntc' or 'nct', got {self.input_layout!r}; 'ntc' is "
                "(n_samples, n_timesteps, n_channels)."
            )
        length = _check_length(self.length)
        return length, _check_stride(self.stride, length)

    def _check_series(self, X: Any, *, reset: bool) -> np.ndarray | list[np.ndarray]:
        """Return float32 series of shape (n_timesteps, n_channels), as one array or a list."""
        series: np.ndarray | list[np.ndarray]
        with np.errstate(over="ignore"):  # a value beyond float32 is refused as an infinity
            if _is_series_list(X):
                series, is_tabular = self._check_series_list(X), False
            else:
                series, is_tabular = self._check_array(X, reset=reset)
        if reset:
            if not is_tabular:  # forgets feature names that an earlier fit has seen
                validate_data(self, X, skip_check_array=True)
                self.n_features_in_ = series[0].shape[1]
            self.n_channels_in_ = series[0].shape[1]
            self._is_tabular = is_tabular
        self._check_channels(series)
        return series

    def _check_array(self, X: Any, *, reset: bool) -> tuple[np.ndarray, bool]:
        """Return X with three axes, channels last, and whether it was a 2-D table."""
        _refuse_panel(X)
        n_axes = _n_axes(X)
        if n_axes is not None and n_axes > 3:
            raise ValueError(
                f"X has {n_axes} axes; pass (n_samples, n_timesteps, n_channels), "
                "(n_samples, n_timesteps) or a list of series. SlidingWindows makes the bag."
            )
        options = {"dtype": np.float32, "ensure_all_finite": "allow-nan"}
        if n_axes == 3:
            X = check_array(X, allow_nd=True, **options)
            if 0 in X.shape:
                raise ValueError(f"X has an empty axis, shape {X.shape}; pass at least one step.")
            return (np.moveaxis(X, 1, 2) if self.input_layout == "nct" else X), False
        if reset or self._is_tabular:
            X = validate_data(self, X, reset=reset, **options)
        else:
            X = check_array(X, **options)
        return X[:, :, np.newaxis], True

    def _check_series_list(self, X: Sequence[ArrayLike]) -> list[np.ndarray]:
        """Return each series of a list as a float32 array of shape (n_timesteps, n_channels)."""
        series: list[np.ndarray] = []
        for i, x in enumerate(X):
            _refuse_panel(x)
            x = check_array(
                x,
                dtype=np.float32,
                ensure_2d=False,
                ensure_all_finite="allow-nan",
                input_name=f"X[{i}]",
            )
            if x.ndim == 1:
                x = x[:, np.newaxis]
            elif self.input_layout == "nct":
                x = x.T
            if 0 in x.shape or x.shape[1] != (series or [x])[0].shape[1]:
                raise ValueError(
                    f"X[{i}] has {x.shape[0]} steps and {x.shape[1]} channels; every series "
                    f"needs at least one step and the {(series or [x])[0].shape[1]} channels of "
                    "X[0]."
                )
            series.append(x)
        return series

    def _check_channels(self, series: np.ndarray | list[np.ndarray]) -> None:
        n_timesteps, n_channels = series[0].shape
        if n_channels == self.n_channels_in_:
            return
        hint = "pass the channels seen in fit"
        if n_timesteps == self.n_channels_in_:
            hint = "it looks transposed, see the parameter input_layout"
        raise ValueError(
            f"X has {n_channels} channels, but SlidingWindows was fitted with "
            f"{self.n_channels_in_}; {hint}."
        )

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: 2-D and 3-D input, NaN allowed, float32 out."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _padded_bag(series: np.ndarray | list[np.ndarray], length: int, stride: int) -> np.ndarray:
    """Return windows of unequal or short series; what a series lacks is NaN."""
    counts = [max(len(x) - length, 0) // stride + 1 for x in series]
    bag = np.full((len(series), max(counts), length, series[0].shape[1]), np.nan, np.float32)
    for windows, x, count in zip(bag, series, counts, strict=True):
        if len(x) < length:
            windows[0, : len(x)] = x
        else:
            view = np.lib.stride_tricks.sliding_window_view(x, length, axis=0)
            windows[:count] = np.moveaxis(view[::stride], -1, 1)
    return bag
