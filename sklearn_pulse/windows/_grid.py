"""What the functions that cut windows share: checked recordings, starts, the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._inputs._recordings import as_recordings
from .._inputs._tables import frame_channels
from .._inputs._times import compare_rate, index_rate
from .._parameters import check_boolean
from .._signals import Signals, agreed, check_signals
from .._warnings import warn_user
from ._alignment import recording_groups
from ._checks import check_grid
from ._lazy import RecordingWindows


@dataclass(frozen=True, eq=False)
class Grid:
    """Checked recordings, and the steps of them on which windows lie."""

    recordings: list[NDArray[Any]]
    groups: NDArray[Any]  # one of each recording
    length: int
    stride: int
    downsample: int
    lazy: bool
    signals: Signals  # of the recordings, before down-sampling
    index_rate: tuple[float, float] | None  # what the time index of frames tells, likewise

    def count_steps(self) -> NDArray[np.int64]:
        """Return the number of kept steps of each recording; warn about those without a window."""
        n_steps = np.array([len(x) for x in self.recordings], dtype=np.int64)
        n_kept = -(-n_steps // self.downsample)  # rounded up
        n_short = int((n_kept < self.length).sum())
        if n_short == len(n_kept):
            longest = int(n_kept.argmax())
            raise ValueError(
                f"no recording is long enough for a window: the longest, recordings[{longest}], "
                f"has {n_kept[longest]} steps after down-sampling and length={self.length}; choose "
                "a smaller length, or another input_layout if these are its channels."
            )
        if n_short:
            warn_user(
                f"{n_short} of {len(n_kept)} recordings are shorter than length={self.length} "
                "steps and give no window."
            )
        return n_kept

    def cut(
        self, recording: NDArray[np.intp], start: NDArray[np.int64], y: NDArray[Any] | None
    ) -> Bunch:
        """Return the Bunch of windows, given the recording, first kept step and label of each."""
        start = start * self.downsample  # from kept steps to those of the recording
        X = RecordingWindows(
            self.recordings,
            recording,
            start,
            self.length,
            self.downsample,
            sampling_rate=self.signals.sampling_rate,
            channel_names=self.signals.channel_names,
        )
        if self.index_rate is not None:
            X.index_rate = self.index_rate[0] / self.downsample, self.index_rate[1]
        return Bunch(
            X=X if self.lazy else np.asarray(X),
            y=y,
            groups=self.groups[recording],
            recording=recording,
            start=start,
            sampling_rate=X.sampling_rate,
            channel_names=X.channel_names,
        )


def lay_grid(
    recordings: Any,
    length: Any,
    stride: Any,
    downsample: Any,
    *,
    groups: Any,
    lazy: bool,
    input_layout: str,
    sampling_rate: float | None,
    channel_names: Sequence[str] | None,
) -> Grid:
    """Check what all functions that cut windows take, recordings included."""
    length, stride, downsample = check_grid(length, stride, downsample)
    check_boolean("lazy", lazy)
    arrays = as_recordings(recordings, input_layout)
    stated = check_signals(sampling_rate, channel_names, arrays[0].shape[1])
    compare_rate(stated.sampling_rate, recordings, "sampling_rate", "recordings")
    return Grid(
        recordings=arrays,
        groups=recording_groups(groups, len(arrays), recordings),
        length=length,
        stride=stride,
        downsample=downsample,
        lazy=lazy,
        signals=agreed(stated, Signals(None, frame_channels(recordings)), "recordings"),
        index_rate=index_rate(recordings),
    )


def join_starts(starts: list[NDArray[np.int64]]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return the recording index and the start of each window, given the starts by recording."""
    counts = [len(s) for s in starts]
    return np.repeat(np.arange(len(starts)), counts), np.concatenate(starts)
