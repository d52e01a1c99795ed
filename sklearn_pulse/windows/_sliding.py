"""Windows at regular starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from .._typing import InputLayout
from ._alignment import align
from ._grid import join_starts, lay_grid
from ._labels import check_label_rule, parse_labels, window_labels


def sliding_windows(
    recordings: ArrayLike | Sequence[ArrayLike],
    length: int,
    stride: int | None = None,
    *,
    y: ArrayLike | Sequence[ArrayLike] | None = None,
    groups: ArrayLike | None = None,
    label: Literal["majority", "pure"] = "majority",
    min_labeled: float = 0.5,
    lazy: bool = False,
    downsample: int = 1,
    input_layout: InputLayout = "ntc",
    sampling_rate: float | None = None,
    channel_names: Sequence[str] | None = None,
) -> Bunch:
    """Cut recordings into windows at regular starts.

    Windows start at steps 0, `stride`, 2 `stride` and so on of each recording, as long as they
    fit; steps that remain at the end are left out.

    Parameters
    ----------
    recordings : array-like of shape (n_recordings, n_timesteps, n_channels), list or DataFrame
        One 3-D array; or a list with one array (or DataFrame) of shape (n_timesteps, n_channels)
        per recording; or a panel frame in a form of sktime's, with an index of instances and
        times or with series in its cells. The recordings in a list may differ in length, may be
        memory maps, and may be 1-D if they are univariate. A list may be a 1-D array of objects. A
        3-D array of sktime's, and aeon's list of arrays of shape (n_channels, n_timesteps), need
        ``input_layout="nct"``.
    length : int
        Number of time steps in a window, counted after down-sampling.
    stride : int, default=None
        Number of time steps between the starts of two consecutive windows, counted after
        down-sampling. None means `length`, so that windows touch and do not overlap.
    y : array-like of shape (n_recordings,) or (n_recordings, n_timesteps) or list, default=None
        Labels, integers or strings: one scalar per recording, or one 1-D sequence per recording
        with one label per time step. The integer -1 means unlabelled; so does NaN in a float `y`
        whose other values are whole numbers, and NA in a Series of pandas' integers or booleans.
        Strings have no unlabelled marker. If `recordings` is a panel frame, a Series has the index
        of its instances or the index of the frame.
    groups : array-like of shape (n_recordings,), default=None
        Group of each recording, for example its subject, for splitters such as
        :class:`~sklearn.model_selection.GroupKFold`. None makes each recording its own group; the
        groups of a panel frame are then the names of its instances.
    label : {"majority", "pure"}, default="majority"
        How labels per time step become the label of a window. "majority" takes the most frequent
        class of the labelled steps; the lowest class wins a tie. "pure" takes the class of the
        labelled steps if it is the same for all of them, and -1 otherwise. Labels per recording
        are repeated for each window.
    min_labeled : float, default=0.5
        A window gets a label only if at least this fraction of its steps is labelled, in (0, 1].
    lazy : bool, default=False
        If True, `X` is a `RecordingWindows`, which cuts windows when they are read.
    downsample : int, default=1
        Keep every `downsample`-th step, without a filter, before windows are cut.
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
            The windows, recording by recording.
        y : ndarray of shape (n_windows,) or None
            Label of each window, int64 or string; -1 if the label rule leaves the window
            unlabelled. None if the parameter `y` is None.
        groups : ndarray of shape (n_windows,)
            Group of each window.
        recording : ndarray of int of shape (n_windows,)
            Index of each window's recording.
        start : ndarray of int of shape (n_windows,)
            First step of each window, counted in steps of the recording before down-sampling: a
            multiple of ``stride * downsample``.
        sampling_rate : float or None
            Sampling rate of the windows, in Hz, after down-sampling; None if it is unknown.
        channel_names : tuple of str or None
            Names of the channels; None if they are unknown.

    Raises
    ------
    TypeError
        If a parameter is of a wrong kind, or a recording holds no numbers.
    ValueError
        If a parameter is invalid, if `recordings` is a bare 1-D or 2-D array or a frame with an
        irregular time index, if labels or groups do not fit the recordings, or if no recording is
        as long as a window.

    Warns
    -----
    UserWarning
        If some recordings are shorter than a window and give no window.

    See Also
    --------
    segment_windows : Windows inside labelled intervals.
    random_windows : Windows at random starts, for pre-training.
    SlidingWindows : Pipeline step that cuts the same windows, for one label per recording.

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

    One label per time step; two of the four steps of the last window carry a label:

    >>> steps = [[0, 0, 0, 0, 1, 1, 0, 1, -1, -1]]
    >>> sliding_windows([np.zeros(10)], length=4, stride=3, y=steps).y
    array([0, 0, 0])

    A panel frame, whose instances become groups:

    >>> import pandas as pd
    >>> index = pd.MultiIndex.from_product([["anna", "ben"], range(5)])
    >>> sliding_windows(pd.DataFrame({"x": range(10)}, index=index), length=2).groups
    array(['anna', 'anna', 'ben', 'ben'], dtype=object)
    """
    check_label_rule(label, min_labeled)
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
    y = align(y, recordings, "y")
    labels = None if y is None else parse_labels(y, [len(x) for x in grid.recordings])
    n_kept = grid.count_steps().tolist()

    starts = [np.arange(0, max(n - grid.length + 1, 0), grid.stride) for n in n_kept]
    recording, start = join_starts(starts)
    if isinstance(labels, list):
        labels = np.concatenate(
            [
                window_labels(steps[:: grid.downsample], s, grid.length, label, min_labeled)
                for steps, s in zip(labels, starts, strict=True)
                if len(s)
            ]
        )
    elif labels is not None:
        labels = labels[recording]
    return grid.cut(recording, start, labels)
