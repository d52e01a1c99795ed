"""Lazy windows that a step has changed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._inputs._index import row_numbers
from .._inputs._lazy import DerivedWindows, read_windows
from ..windows import LazyWindows
from ._values import WindowMap, as_float32, as_float64


class MappedWindows(DerivedWindows):
    """Lazy windows, each changed by a function when it is read.

    Parameters
    ----------
    source : LazyWindows
        The windows.
    function : callable
        Function of windows of shape (n, n_channels, n_timesteps) and of the recording of each,
        which returns windows.
    n_timesteps : int
        Number of time steps of a changed window.
    recording : ndarray of int of shape (n_windows,) or None
        Recording of each window, for the function.
    sampling_rate : float or None
        Sampling rate of a changed window, in Hz; None if it is unknown.
    resampled : bool
        Whether the function changes the sampling rate.
    channels_first : bool
        Order of the last two axes of the windows.

    Attributes
    ----------
    shape : tuple of int
        Shape of the array, in the layout of the source.
    recording : ndarray of int of shape (n_windows,) or None
        Recording of each window.
    start : ndarray of int of shape (n_windows,) or None
        First step of each window in its recording, counted in steps of the recording as it was.
    overlaps : bool
        Whether two windows of the source are known to overlap.
    sampling_rate : float or None
        Sampling rate of a changed window, in Hz.
    channel_names : tuple of str or None
        Names of the channels of the source.
    """

    _channels_first: bool

    def __init__(
        self,
        source: LazyWindows,
        function: WindowMap,
        n_timesteps: int,
        recording: NDArray[np.intp] | None,
        *,
        sampling_rate: float | None,
        resampled: bool,
        channels_first: bool,
    ) -> None:
        self.source = source
        self.function = function
        self.resampled = resampled
        self._channels_first = channels_first
        self.recording = recording
        self.start = source.start
        self.sampling_rate = sampling_rate
        self.channel_names = source.channel_names
        n_windows, *axes = source.shape
        axes[1 if channels_first else 0] = n_timesteps
        self.shape = (n_windows, *axes)
        if not resampled:  # which may leave the number of steps as it is
            self.index_rate = source.index_rate

    def take(self, indices: ArrayLike) -> NDArray[np.float32]:
        """Read selected windows of the source, and change them.

        Parameters
        ----------
        indices : array-like of int of shape (n_selected,)
            Indices of the windows.

        Returns
        -------
        ndarray of shape (n_selected, *shape[1:]), dtype float32
            The windows.
        """
        indices = np.asarray(indices)
        rows = row_numbers(indices if indices.size else indices.astype(np.intp), len(self))
        taken = read_windows(self.source, rows)

        def name(row: int) -> str:
            return f"X[{rows[row]}]"

        x = as_float64(taken, self._channels_first, name)
        recording = None if self.recording is None else self.recording[rows]
        return as_float32(self.function(x, recording), self._channels_first, name)

    def _observed_unread(self) -> NDArray[np.bool_] | None:
        """Find them in the source, where it has the same missing steps."""
        return self.source._known_observed() if self.shape == self.source.shape else None

    def apart(self, indices: NDArray[np.intp]) -> MappedWindows | None:
        """Cut the steps that selected windows cover into windows that share no step."""
        pieces = self.source.apart(indices)
        if pieces is None or (pieces.recording is None and self.recording is not None):
            return None
        return self._of(pieces, pieces.recording)

    def _alone(self, index: slice) -> MappedWindows | None:
        """Return consecutive windows without the recordings that they do not need."""
        part = self.source._alone(index)
        if part is None:
            return None
        return self._of(part, None if self.recording is None else self.recording[index])

    def _of(self, source: LazyWindows, recording: NDArray[np.intp] | None) -> MappedWindows:
        """Return other windows, changed by the same function."""
        n_timesteps = self.shape[2 if self._channels_first else 1]
        return MappedWindows(
            source,
            self.function,
            n_timesteps,
            recording,
            sampling_rate=self.sampling_rate,
            resampled=self.resampled,
            channels_first=self._channels_first,
        )

    def _selected(self, rows: NDArray[np.intp]) -> MappedWindows | NDArray[np.float32]:
        selected = self.source[rows]
        if not isinstance(selected, LazyWindows):  # a user's own class may return an array
            return self.take(rows)
        return self._of(selected, None if self.recording is None else self.recording[rows])
