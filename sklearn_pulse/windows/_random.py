"""Windows at random starts, drawn as in the published pre-training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from .._parameters import check_seed, check_share
from .._seeds import as_seed
from .._typing import InputLayout, RandomState
from .._warnings import warn_user
from ._grid import join_starts, lay_grid


def random_windows(
    recordings: ArrayLike | Sequence[ArrayLike],
    length: int,
    stride: int | None,
    fraction: float = 1.0,
    random_state: RandomState = None,
    *,
    groups: ArrayLike | None = None,
    lazy: bool = False,
    downsample: int = 1,
    input_layout: InputLayout = "ntc",
    sampling_rate: float | None = None,
    channel_names: Sequence[str] | None = None,
) -> Bunch:
    """Cut windows at random starts of recordings, as in the published pre-training.

    The starts 0, ..., n_timesteps - length - 3 of recording i, counted from 0, are permuted with
    ``numpy.random.RandomState(seed + i)``. Every `stride`-th start of the permutation is taken,
    and the first ``int(fraction * n)`` of these n starts are kept. A recording thus gives about
    ``n_timesteps / stride`` distinct windows that overlap at random. The same integer seed gives
    the same windows.

    Parameters
    ----------
    recordings : array-like of shape (n_recordings, n_timesteps, n_channels), list or DataFrame
        One 3-D array; or a list with one array (or DataFrame) of shape (n_timesteps, n_channels),
        or (n_timesteps,), per recording; or a panel frame, in any form that `sliding_windows`
        takes.
    length : int
        Number of time steps in a window, counted after down-sampling.
    stride : int or None
        One of `stride` possible starts is taken. None means `length`.
    fraction : float, default=1.0
        Fraction of the windows of each recording that is kept, in (0, 1].
    random_state : int, RandomState instance or None, default=None
        An integer is the seed itself and gives the published windows. From a RandomState
        instance, a seed of 31 bits is drawn. None draws it from numpy's global RandomState.
    groups : array-like of shape (n_recordings,), default=None
        Group of each recording. None makes each recording its own group; the groups of a panel
        frame are then the names of its instances.
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
            The windows, recording by recording, each in the order of its permutation.
        y : None
            Windows at random starts have no labels.
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
        If a parameter is invalid, if no recording is as long as a window, or if `fraction`
        keeps no window at all.

    Warns
    -----
    UserWarning
        If some recordings give no window, because they are too short or `fraction` keeps no
        window of them.

    See Also
    --------
    sliding_windows : Windows at regular starts.
    segment_windows : Windows inside labelled intervals.

    Notes
    -----
    The published rule leaves a recording of less than ``length + 3`` steps without a window.
    Here such a recording gives the window that starts at step 0, if it has at least `length`
    steps.

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
    meaning = "1.0 keeps all of them"
    check_share("fraction", fraction, meaning=meaning)
    check_seed("random_state", random_state)
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
    n_kept = grid.count_steps()

    seed = as_seed(random_state, 2**31)
    starts = [
        _permuted_starts(n, grid.length, grid.stride, fraction, seed + i)
        for i, n in enumerate(n_kept.tolist())
    ]
    recording, start = join_starts(starts)
    _report_dropped(starts, n_kept >= grid.length, fraction)
    return grid.cut(recording, start, None)


def _permuted_starts(
    n_timesteps: int, length: int, stride: int, fraction: float, seed: int
) -> NDArray[np.int64]:
    """Return random distinct starts in one recording, in the order of the permutation."""
    if n_timesteps < length:
        return np.empty(0, dtype=np.int64)
    n_candidates = n_timesteps - length - 2
    if n_candidates <= 0:
        return np.zeros(1, dtype=np.int64)
    starts = np.random.RandomState(seed % 2**32).permutation(n_candidates)[::stride]
    return starts[: int(fraction * len(starts))].astype(np.int64)


def _report_dropped(
    starts: list[NDArray[np.int64]], long_enough: NDArray[np.bool_], fraction: float
) -> None:
    """Warn about recordings that `fraction` leaves without a window; raise if all are."""
    empty = np.array([len(s) == 0 for s in starts])
    if empty.all():
        raise ValueError(
            f"fraction={fraction!r} keeps no window of any recording; raise fraction or lower "
            "stride."
        )
    n_dropped = int((empty & long_enough).sum())
    if n_dropped:
        warn_user(
            f"fraction={fraction!r} keeps no window of {n_dropped} of {len(starts)} recordings.",
        )
