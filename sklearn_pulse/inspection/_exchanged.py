"""Windows with one channel that comes from other windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._inputs._lazy import read_windows
from .._inputs._numbers import as_real_array
from .._inputs._stored import as_stored, take_rows
from ..windows import LazyWindows

# From a channel and the window that lends it to each window, to X with the channel exchanged.
Exchange = Callable[[int, NDArray[np.intp]], Any]


class ExchangedWindows(LazyWindows):
    """Lazy windows of which one channel comes from other windows.

    Parameters
    ----------
    windows : LazyWindows or ndarray
        The windows; nothing is read before it is needed.
    axis : int
        Axis of the channels.
    channel : int
        Channel that is exchanged.
    donors : ndarray of int of shape (n_windows,)
        Window that lends its channel to each window.
    """

    def __init__(self, windows: Any, axis: int, channel: int, donors: NDArray[np.intp]) -> None:
        self.windows = windows
        self.axis = axis
        self.channel = channel
        self.donors = donors
        self.shape = tuple(windows.shape)
        if isinstance(windows, LazyWindows):
            self.recording = windows.recording  # which WindowScaler(per="recording") asks for

    def take(self, indices: ArrayLike) -> NDArray[Any]:
        """Read selected windows, and their donors, into a new array of the type of the windows."""
        indices = np.asarray(indices)
        x = np.array(self._read(indices))  # a copy, which is written to
        part = channel_of(x, self.axis, self.channel)
        part[:] = channel_of(self._read(self.donors[indices]), self.axis, self.channel)
        return x

    def _read(self, indices: NDArray[np.intp]) -> NDArray[Any]:
        if isinstance(self.windows, LazyWindows):
            return read_windows(self.windows, indices)
        return np.asarray(self.windows[indices])


def channel_of(x: NDArray[Any], axis: int, channel: int) -> NDArray[Any]:
    """Return a view of one channel of windows."""
    return x[(..., channel) if axis == -1 else (..., channel, slice(None))]


def exchanger(X: Any, axis: int) -> tuple[int, Exchange]:
    """Return the number of channels, and how to exchange one of them.

    A table has one channel, and its rows are exchanged. Lazy windows, and 3-D arrays on a disk, are
    exchanged when they are read. Other arrays are copied once; each exchange writes one channel of
    this copy, and undoes the exchange before it.

    Parameters
    ----------
    X : LazyWindows or array of two to four axes
        The windows.
    axis : {-1, -2}
        Axis of the channels of 3-D and 4-D windows.

    Returns
    -------
    n_channels : int
        Number of channels.
    exchange : callable
        From a channel and the donor of each window to the windows with this channel exchanged.
    """
    if len(X.shape) == 2:
        return 1, lambda channel, donors: take_rows(X, donors)
    n_channels = X.shape[axis]
    on_disk = X if isinstance(X, np.memmap) else as_stored(X)
    if on_disk is not None and len(X.shape) == 3:
        return n_channels, lambda channel, donors: ExchangedWindows(on_disk, axis, channel, donors)
    if isinstance(X, LazyWindows):
        return n_channels, lambda channel, donors: ExchangedWindows(X, axis, channel, donors)
    source = as_real_array(X)
    work = source.copy()
    before = 0

    def exchange(channel: int, donors: NDArray[np.intp]) -> NDArray[Any]:
        nonlocal before
        channel_of(work, axis, before)[:] = channel_of(source, axis, before)
        channel_of(work, axis, channel)[:] = channel_of(source, axis, channel)[donors]
        before = channel
        return work

    return n_channels, exchange
