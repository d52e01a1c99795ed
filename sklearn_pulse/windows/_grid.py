"""What the cutters share: lengths and starts on the kept steps, and the result."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from .._warnings import warn_user
from ._lazy import RecordingWindows


def count_steps(recordings: list[np.ndarray], downsample: int) -> np.ndarray:
    """Return the number of steps that ``x[::downsample]`` has, for each recording."""
    return -(-np.array([len(x) for x in recordings], dtype=np.int64) // downsample)


def report_short(n_timesteps: np.ndarray, length: int) -> None:
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
        warn_user(
            f"{n_short} of {len(n_timesteps)} recordings are shorter than length={length} steps "
            "and give no window."
        )


def join_starts(starts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the recording index and the start of each window."""
    counts = [len(s) for s in starts]
    return np.repeat(np.arange(len(starts)), counts), np.concatenate(starts)


def as_bunch(
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
    """Return the result of a cutter; `groups` has an entry per recording, `y` one per window."""
    X = RecordingWindows(recordings, recording, start, length, downsample)
    return Bunch(
        X=X if lazy else np.asarray(X),
        y=y,
        groups=groups[recording],
        recording=recording,
        start=start,
    )
