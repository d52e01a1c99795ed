"""Checked input of a step, read a few windows at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._inputs._files import recording_name
from .._inputs._lazy import read_places, read_windows
from .._inputs._tables import has_columns
from ..windows import LazyWindows
from ._frames import like_source
from ._lazy import MappedWindows
from ._values import WindowMap, as_float32, as_float64

_BLOCK_VALUES = 2**20  # values read at a time, 8 MiB of float64

Index = NDArray[np.intp]


class WindowSource(ABC):
    """Windows or recordings; memory maps and lazy windows stay where they are.

    Attributes
    ----------
    n_samples : int
        Number of rows of the input.
    n_windows : int
        Number of recordings in a list, of windows in all bags, otherwise of rows.
    n_channels : int
        Number of channels.
    n_timesteps : int
        Number of time steps; those of the longest recording in a list.
    shortest : tuple of int and str
        Number of time steps of the shortest window, and its name in a message.
    recording : ndarray of int of shape (n_windows,) or None
        Recording of each window; None if the input does not tell.
    sampling_rate : float or None
        Sampling rate of the windows, in Hz; None if the input does not tell.
    rate_ratio : float
        Ratio of the sampling rate of the output to that of the input.
    is_table : bool
        Whether the input has two axes, with a column per time step.
    is_list : bool
        Whether the windows are the recordings of a list.
    """

    n_samples: int
    n_windows: int
    n_channels: int
    n_timesteps: int
    shortest: tuple[int, str]
    recording: Index | None = None
    sampling_rate: float | None = None
    rate_ratio = 1.0
    is_table = False
    is_list = False

    def __init__(self, data: Any, channels_first: bool) -> None:
        self.data = data
        self.channels_first = channels_first

    @abstractmethod
    def mapped(self, function: WindowMap, length: Callable[[int], int]) -> Any:
        """Return the input with `function` applied to every window, in the layout of the input."""

    @abstractmethod
    def _read(self, index: Index, steps: slice) -> NDArray[Any]:
        """Read some steps of some windows, in the layout of the input."""

    def _chunks(self, index: Index) -> Iterator[Index]:
        """Divide the numbers of windows into parts that are read at a time."""
        size = max(1, _BLOCK_VALUES // (self.n_timesteps * self.n_channels))
        for first in range(0, len(index), size):
            yield index[first : first + size]

    def _length(self, index: Index) -> int:
        """Return the number of time steps of windows that are read at a time."""
        return self.n_timesteps

    def _name(self, window: int) -> str:
        """Return the name of a window, for messages."""
        return f"X[{window}]"

    def _names(self, index: Index) -> Callable[[int], str]:
        """Return the function from places in `index` to names of windows, for messages."""
        return lambda row: self._name(int(index[row]))

    def _take(self, index: Index, steps: slice = slice(None)) -> NDArray[np.float64]:
        """Read windows, of shape (n, n_channels, n_timesteps); raise if a value is infinite."""
        x = self._read(index, steps)
        return as_float64(x, self.channels_first, self._names(index))

    def _mapped_blocks(self, function: WindowMap) -> Iterator[tuple[Index, NDArray[np.float32]]]:
        """Yield numbers of windows, and what `function` makes of them, in the input's layout."""
        for index in self._chunks(np.arange(self.n_windows)):
            recording = None if self.recording is None else self.recording[index]
            x = function(self._take(index), recording)
            yield index, as_float32(x, self.channels_first, self._names(index))

    def pieces(self, index: Index | None = None) -> Iterator[NDArray[np.float64]]:
        """Yield the values of windows in pieces of bounded size.

        Parameters
        ----------
        index : ndarray of int or None, default=None
            Numbers of the windows; None means all.

        Yields
        ------
        ndarray of shape (n, n_channels, n_timesteps)
            Some steps of some windows.
        """
        for chunk in self._chunks(np.arange(self.n_windows) if index is None else index):
            size = max(1, _BLOCK_VALUES // (len(chunk) * self.n_channels))
            for first in range(0, self._length(chunk), size):
                yield self._take(chunk, slice(first, first + size))


class ArrayWindows(WindowSource):
    """An array of two, three or four axes, also on a disk; a bag is a recording."""

    def __init__(self, data: NDArray[Any], input_layout: str, numbers: Index | None = None) -> None:
        super().__init__(data, input_layout == "nct" and data.ndim > 2)
        self.numbers = numbers  # of the windows, where they are a part of others
        self.n_samples = len(data)
        self.is_table, self.is_bag = data.ndim == 2, data.ndim == 4
        self.n_windows = self.n_samples * (data.shape[1] if self.is_bag else 1)
        shape = (*data.shape, 1) if data.ndim == 2 else data.shape
        self.n_timesteps, self.n_channels = _last_axes(shape, self.channels_first)
        self.shortest = self.n_timesteps, "X has windows"
        if self.is_bag:
            self.recording = np.arange(self.n_windows) // data.shape[1]

    def _name(self, window: int) -> str:
        if self.numbers is not None:
            return f"X[{self.numbers[window]}]"
        return f"X[{window // self.data.shape[1] if self.is_bag else window}]"

    def _read(self, index: Index, steps: slice) -> NDArray[Any]:
        if self.is_bag:  # of overlapping windows, perhaps: a reshape would copy them all
            rows: Any = np.divmod(index, self.data.shape[1])
        elif len(index) and index[-1] - index[0] + 1 == len(index):
            rows = (slice(index[0], index[-1] + 1),)  # the numbers ascend
        else:
            rows = (index,)
        x = self.data[(*rows, slice(None), steps) if self.channels_first else (*rows, steps)]
        return x[:, :, np.newaxis] if self.data.ndim == 2 else x

    def mapped(self, function: WindowMap, length: Callable[[int], int]) -> NDArray[np.float32]:
        """Return an array in memory."""
        axes = [length(self.n_timesteps), self.n_channels]
        axes = axes[::-1] if self.channels_first else axes
        result = np.empty((self.n_windows, *axes), dtype=np.float32)
        for index, x in self._mapped_blocks(function):
            result[index[0] : index[-1] + 1] = x
        if self.data.ndim == 2:
            return result[:, :, 0]
        return result.reshape(*self.data.shape[:-2], *axes)


class RecordingList(WindowSource):
    """A list of recordings that may differ in length, read one after the other.

    `data` holds the recordings with a row per time step, `sources` as the user has passed them.
    """

    is_list = True

    def __init__(self, data: list[NDArray[Any]], sources: Any, input_layout: str) -> None:
        super().__init__(data, channels_first=False)
        self.sources, self.input_layout = sources, input_layout
        self.n_samples = self.n_windows = len(data)
        self.lengths = [len(x) for x in data]
        self.n_timesteps, self.n_channels = max(self.lengths), data[0].shape[1]
        shortest = int(np.argmin(self.lengths))
        self.shortest = self.lengths[shortest], f"{self._name(shortest)} is a recording"

    def _chunks(self, index: Index) -> Iterator[Index]:
        yield from index[:, np.newaxis]

    def _length(self, index: Index) -> int:
        return self.lengths[index[0]]

    def _name(self, window: int) -> str:
        return recording_name("X", window, self.sources[window])

    def _read(self, index: Index, steps: slice) -> NDArray[Any]:
        return np.asarray(self.data[index[0]])[np.newaxis, steps]  # a file is open only meanwhile

    def mapped(self, function: WindowMap, length: Callable[[int], int]) -> list[Any]:
        """Return a list of arrays, frames or Series in memory, with the axes of the recordings."""
        blocks = zip(self.sources, self._mapped_blocks(function), strict=True)
        return [self._like(source, y[0]) for source, (_, y) in blocks]

    def _like(self, source: Any, changed: NDArray[np.float32]) -> Any:
        """Return a changed recording with the axes and the container that it came in."""
        if np.ndim(source) == 1:
            changed = changed.ravel()
        elif self.input_layout == "nct" and not has_columns(source):
            changed = changed.T
        return like_source(changed, source, self.sampling_rate, self.rate_ratio)


class LazySource(WindowSource):
    """Lazy windows, which stay lazy."""

    def __init__(self, data: LazyWindows, input_layout: str) -> None:
        super().__init__(data, input_layout == "nct")
        self.input_layout = input_layout
        self.n_samples = self.n_windows = data.shape[0]
        self.n_timesteps, self.n_channels = _last_axes(data.shape, self.channels_first)
        self.shortest = self.n_timesteps, "X has windows"
        self.recording = read_places(data, "recording")
        self.sampling_rate = data.sampling_rate

    def _read(self, index: Index, steps: slice) -> NDArray[Any]:
        return read_windows(self.data, index)  # of whole windows, by `pieces`

    def pieces(self, index: Index | None = None) -> Iterator[NDArray[np.float64]]:
        """Yield the values in pieces; a window that is longer than a piece is read once."""
        for chunk in self._chunks(np.arange(self.n_windows) if index is None else index):
            x = self._read(chunk, slice(None))
            yield from ArrayWindows(x, self.input_layout, chunk).pieces()

    def mapped(self, function: WindowMap, length: Callable[[int], int]) -> MappedWindows:
        """Return lazy windows; nothing is read."""
        n_timesteps = length(self.n_timesteps)
        return MappedWindows(
            self.data,
            function,
            n_timesteps,
            self.recording,
            sampling_rate=self.sampling_rate,
            resampled=self.rate_ratio != 1,
            channels_first=self.channels_first,
        )


def _last_axes(shape: tuple[int, ...], channels_first: bool) -> tuple[int, int]:
    """Return the numbers of time steps and channels."""
    return (shape[-1], shape[-2]) if channels_first else (shape[-2], shape[-1])
