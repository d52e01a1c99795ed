"""Helpers of the functions that cut windows: lengths after down-sampling, starts, the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._inputs._tables import frame_channels
from .._inputs._times import compare_rate, index_rate
from .._parameters import check_boolean
from .._signals import Signals, agreed, check_signals
from .._warnings import warn_user
from ._lazy import RecordingWindows


def count_steps(recordings: list[NDArray[Any]], downsample: int) -> NDArray[np.int64]:
    """Return the number of steps of ``x[::downsample]`` for each recording ``x``."""
    # the division rounds up
    return -(-np.array([len(x) for x in recordings], dtype=np.int64) // downsample)


def report_short(n_timesteps: NDArray[np.int64], length: int) -> None:
    """Warn about recordings that are shorter than a window; raise if all of them are."""
    n_short = int((n_timesteps < length).sum())
    if n_short == len(n_timesteps):
        longest = int(n_timesteps.argmax())
        raise ValueError(
            f"no recording is long enough for a window: the longest, recordings[{longest}], has "
            f"{n_timesteps[longest]} steps after down-sampling and length={length}; choose a "
            "smaller length, or another input_layout if these are its channels."
        )
    if n_short:
        warn_user(
            f"{n_short} of {len(n_timesteps)} recordings are shorter than length={length} steps "
            "and give no window."
        )


def join_starts(starts: list[NDArray[np.int64]]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return the recording index and the start of each window, given the starts by recording."""
    counts = [len(s) for s in starts]
    return np.repeat(np.arange(len(starts)), counts), np.concatenate(starts)


def as_bunch(
    source: Any,
    recordings: list[NDArray[Any]],
    recording: NDArray[np.intp],
    start: NDArray[np.int64],
    y: NDArray[Any] | None,
    groups: NDArray[Any],
    *,
    length: int,
    downsample: int,
    lazy: bool,
    sampling_rate: float | None,
    channel_names: Sequence[str] | None,
) -> Bunch:
    """Return the Bunch of windows; `groups` has one entry per recording, `y` one per window.

    `source` holds the recordings as the user has passed them: frames name their channels, and
    their time index tells the rate.
    """
    check_boolean("lazy", lazy)
    stated = check_signals(sampling_rate, channel_names, recordings[0].shape[1])
    compare_rate(stated.sampling_rate, source, "sampling_rate", "recordings")
    indexed = index_rate(source)
    carried = Signals(None, frame_channels(source))
    X = RecordingWindows(
        recordings,
        recording,
        start,
        length,
        downsample,
        sampling_rate=stated.sampling_rate,
        channel_names=agreed(stated, carried, "recordings").channel_names,
    )
    if indexed is not None:
        X.index_rate = indexed[0] / downsample, indexed[1]
    return Bunch(
        X=X if lazy else np.asarray(X),
        y=y,
        groups=groups[recording],
        recording=recording,
        start=start,
        sampling_rate=X.sampling_rate,
        channel_names=X.channel_names,
    )
