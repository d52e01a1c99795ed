"""Lazy array of windows together with the time steps recorded just before and after them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._inputs._lazy import LazyWindows
from ._lazy import RecordingWindows


class ContextWindows(LazyWindows):
    """Windows widened by a margin on both sides, as a lazy array.

    Parameters
    ----------
    windows : RecordingWindows
        The windows without margins.
    margin : int
        Number of time steps on each side, after down-sampling. Steps outside the recording are
        zero.

    Attributes
    ----------
    shape : tuple of int
        Shape of the array, ``(n_windows, length + 2 * margin, n_channels)``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.windows import RecordingWindows
    >>> X = RecordingWindows([np.arange(1.0, 9.0)[:, None]], recording=[0], start=[1], length=3)
    >>> wide = ContextWindows(X, margin=2)
    >>> wide.take([0]).ravel()
    array([0., 1., 2., 3., 4., 5., 6.], dtype=float32)
    >>> wide.room([0])
    array([[1, 2]])
    """

    windows: RecordingWindows
    margin: int

    def __init__(self, windows: RecordingWindows, margin: int) -> None:
        self.windows = windows
        self.margin = margin
        n_windows, length, n_channels = windows.shape
        self.shape = n_windows, length + 2 * margin, n_channels
        self._n_timesteps = np.array([len(x) for x in windows.recordings], dtype=np.intp)

    @property
    def overlaps(self) -> bool:  # type: ignore[override]  # derived, so read-only
        """Whether two windows overlap, margins included."""
        return self.windows._any_closer((self.shape[1] - 1) * self.windows.downsample + 1)

    def room(self, indices: NDArray[np.intp]) -> NDArray[np.intp]:
        """Count the recorded steps in the margins of each window.

        Parameters
        ----------
        indices : array of int of shape (n_selected,)
            Indices of the windows.

        Returns
        -------
        ndarray of int of shape (n_selected, 2)
            Number of recorded steps in the margin before and in the margin after each window.
        """
        x = self.windows
        start = x.start[indices]
        after = self._n_timesteps[x.recording[indices]] - (start + x._span)
        steps = np.stack([start, after], axis=1) // x.downsample
        return np.minimum(steps, self.margin).astype(np.intp, copy=False)

    def take(self, indices: ArrayLike) -> NDArray[np.float32]:
        """Read windows and their margins into a new array.

        Parameters
        ----------
        indices : array-like of int of shape (n_selected,)
            Indices of the windows.

        Returns
        -------
        ndarray of shape (n_selected, length + 2 * margin, n_channels), dtype float32
            The windows with their margins, zero outside the recordings.
        """
        x = self.windows
        indices = np.asarray(indices, dtype=np.intp)
        wide = np.zeros((len(indices), *self.shape[1:]), dtype=np.float32)
        room = self.room(indices).tolist()
        for row, start, recording in x._in_turn(indices):
            before, after = room[row]
            first = start - before * x.downsample
            n_steps = before + x.length + after
            stop = first + (n_steps - 1) * x.downsample + 1
            offset = self.margin - before
            wide[row, offset : offset + n_steps] = recording[first : stop : x.downsample]
        return wide
