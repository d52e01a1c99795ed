"""Base class of windows that are read only when they are needed."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ._index import keeps_all, row_numbers, rows_to_read
from ._numbers import as_real_array

_BLOCK_VALUES = 2**22  # values of windows that are read together, 16 MiB of float32


class LazyWindows(ABC):
    """A lazy array of windows, which the estimators read batch by batch.

    A subclass sets `shape` and defines `take`, which must return windows of that shape. It may
    override the other attributes and methods, whose defaults mean that nothing else is known about
    the windows. ``X[rows]`` selects windows lazily, with their recordings, starts, rate and names;
    an integer, and an index of several axes, read the windows that they need. ``numpy.asarray``
    reads all windows.

    Attributes
    ----------
    shape : tuple of int
        Shape of the array, ``(n_windows, n_timesteps, n_channels)``.
    recording : ndarray of int of shape (n_windows,) or None
        Recording of each window; None if it is unknown.
    start : ndarray of int of shape (n_windows,) or None
        First step of each window in its recording; None if it is unknown.
    overlaps : bool
        Whether two windows are known to overlap.
    sampling_rate : float or None
        Sampling rate of the windows, in Hz; None if it is unknown.
    channel_names : tuple of str or None
        Names of the channels, in their order; None if they are unknown.
    index_rate : tuple of two floats, or None
        Rate of the time index of the frames that the windows come from, in Hz, and the relative
        tolerance with which a stated rate must agree; None without a time index.

    See Also
    --------
    RecordingWindows : Lazy windows of recordings.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.windows import LazyWindows
    >>> class Noise(LazyWindows):
    ...     shape = (40, 64, 3)
    ...
    ...     def take(self, indices):
    ...         rngs = map(np.random.default_rng, indices)
    ...         return np.stack([rng.normal(size=(64, 3)) for rng in rngs])
    >>> from sklearn_pulse import PulseTransformer
    >>> pulse = PulseTransformer(embedding_dim=8, encoder_depth=2, max_epochs=1, random_state=0)
    >>> pulse.fit_transform(Noise()).shape
    (40, 8)
    """

    shape: tuple[int, ...]
    recording: NDArray[np.intp] | None = None
    start: NDArray[np.intp] | None = None
    overlaps: bool = False
    sampling_rate: float | None = None
    channel_names: tuple[str, ...] | None = None
    index_rate: tuple[float, float] | None = None
    _channels_first: bool | None = None  # order of the last two axes; None if it is unknown
    _is_users = True  # False for what the package makes of an array that the user passed

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[np.float32]:
        """Data type of the windows, always float32."""
        return np.dtype(np.float32)

    @abstractmethod
    def take(self, indices: ArrayLike) -> NDArray[np.float32]:
        """Read selected windows into a new array.

        Parameters
        ----------
        indices : array-like of int of shape (n_selected,)
            Indices of the windows, in the order of the output.

        Returns
        -------
        ndarray of shape (n_selected, n_timesteps, n_channels), dtype float32
            The windows.
        """

    def observed_windows(self) -> NDArray[np.bool_]:
        """Find the windows that have a time step whose channels are all finite.

        ``X[X.observed_windows()]`` leaves the others out, which are an error in `fit`. Windows are
        read block by block. `RecordingWindows` read each recording once, however many windows
        share its steps, and only from the first of its windows to the last. A class of your own
        with channels first overrides this method.

        Returns
        -------
        ndarray of bool of shape (n_windows,)
            True for each window with such a step.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_pulse.windows import RecordingWindows
        >>> recording = np.array([[0.0], [np.nan], [np.nan], [3.0]])
        >>> RecordingWindows([recording], [0, 0, 0], [0, 1, 2], length=2).observed_windows()
        array([ True, False,  True])
        """
        known = self._observed_unread()
        if known is not None:
            return known
        observed = np.empty(len(self), dtype=bool)
        for block in self._blocks():
            finite = np.isfinite(read_windows(self, block))
            if finite.ndim == 3:  # else one channel
                finite = finite.all(1 if self._channels_first else 2)
            observed[block] = finite.any(1)
        return observed

    def _known_observed(self) -> NDArray[np.bool_] | None:
        """Find them without reading windows; None if only reading the windows would tell."""
        overridden = type(self).observed_windows is not LazyWindows.observed_windows
        return self.observed_windows() if overridden else self._observed_unread()

    def _observed_unread(self) -> NDArray[np.bool_] | None:
        """Do what `_known_observed` does, but for an override of a user."""
        return None

    def apart(self, indices: NDArray[np.intp]) -> LazyWindows | None:
        """Cut the steps that selected windows cover into windows that share no step.

        Parameters
        ----------
        indices : ndarray of int of shape (n_selected,)
            Indices of the windows.

        Returns
        -------
        LazyWindows or None
            Windows of the same length. None if the positions of the windows in their recordings
            are unknown.
        """
        return None

    def _alone(self, index: slice) -> LazyWindows | None:
        """Return consecutive windows without the recordings that they do not need.

        The windows are sent to another process. None if the recordings are unknown.
        """
        return None

    def __len__(self) -> int:
        """Return the number of windows."""
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        """Select windows lazily; any other index reads the windows that it needs."""
        first, *rest = (key or (Ellipsis,)) if isinstance(key, tuple) else (key,)
        if first is None or first is Ellipsis:
            return np.asarray(self)[key]
        if len(rest) < self.ndim and all(keeps_all(part) for part in rest):
            numbers = row_numbers(first, len(self))
            if numbers.ndim == 1:
                return self._selected(numbers)
        rows, place = rows_to_read(first, len(self))
        return read_windows(self, rows)[(place, *rest)]

    def _selected(self, rows: NDArray[np.intp]) -> Any:
        """Return the windows with these numbers, none of them negative."""
        return SelectedWindows(self, rows)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Read all windows into a new array (numpy's array protocol)."""
        if copy is False:
            raise ValueError(
                f"{type(self).__name__} cannot become an array without a copy; use"
                " numpy.asarray(X) instead of copy=False."
            )
        windows = np.empty(self.shape, dtype=dtype or np.float32)
        for block in self._blocks():
            windows[block] = read_windows(self, block)
        return windows

    def _blocks(self) -> Iterator[NDArray[np.intp]]:
        """Yield the numbers of the windows that are read together, block by block."""
        n_windows, *axes = self.shape
        size = max(1, _BLOCK_VALUES // math.prod(axes))
        for first in range(0, n_windows, size):
            yield np.arange(first, min(first + size, n_windows))


class DerivedWindows(LazyWindows):
    """Lazy windows that are read from other lazy windows, their attribute `source`."""

    source: LazyWindows

    @property
    def overlaps(self) -> bool:  # type: ignore[override]  # the source sorts all its windows
        """Whether two windows of the source are known to overlap."""
        return self.source.overlaps

    def __sizeof__(self) -> int:
        """Return the bytes of a pickle, about; by this number Dask sends a large array once."""
        return object.__sizeof__(self) + sys.getsizeof(self.source)

    def __repr__(self) -> str:
        """Describe the array without reading a window."""
        return f"{type(self).__name__}(shape={self.shape}, source={self.source!r})"


class SelectedWindows(DerivedWindows):
    """Some of the windows of lazy windows.

    Parameters
    ----------
    source : LazyWindows
        The windows.
    rows : ndarray of int of shape (n_selected,)
        Numbers of the windows that are selected, none of them negative.
    """

    def __init__(self, source: LazyWindows, rows: NDArray[np.intp]) -> None:
        self.source = source
        self.rows = rows
        self.shape = (len(rows), *source.shape[1:])
        self.recording, self.start = (
            None if places is None else places[rows]
            for places in (read_places(source, "recording"), read_places(source, "start"))
        )
        self.sampling_rate = source.sampling_rate
        self.channel_names = source.channel_names
        self.index_rate = source.index_rate
        self._channels_first = source._channels_first
        self._is_users = source._is_users

    def take(self, indices: ArrayLike) -> NDArray[np.float32]:
        """Read selected windows of the source."""
        indices = np.asarray(indices)  # a mask too, as of RecordingWindows
        return self.source.take(self.rows[indices if indices.size else indices.astype(np.intp)])

    def apart(self, indices: NDArray[np.intp]) -> LazyWindows | None:
        """Cut the steps that selected windows cover into windows that share no step."""
        return self.source.apart(self.rows[indices])

    def _observed_unread(self) -> NDArray[np.bool_] | None:
        known = self.source._known_observed()
        return None if known is None else known[self.rows]

    def _selected(self, rows: NDArray[np.intp]) -> SelectedWindows:
        return SelectedWindows(self.source, self.rows[rows])  # a chain of selections is one


def read_windows(windows: LazyWindows, indices: NDArray[np.intp]) -> NDArray[Any]:
    """Read selected windows, masked values as NaN.

    Raise unless `take`, which a user may have written, returns real numbers, and a window for each
    index.
    """
    name = f"{type(windows).__name__}.take"
    taken = as_real_array(windows.take(indices), f"what {name} returned")
    check_taken(windows, taken.shape, len(indices))
    return taken


def check_taken(windows: LazyWindows, shape: tuple[int, ...], n_selected: int) -> None:
    """Raise unless `take`, which a user may have written, returned a window for each index."""
    expected = (n_selected, *windows.shape[1:])
    if shape != expected:
        raise ValueError(
            f"{type(windows).__name__}.take returned an array of shape {shape} for {n_selected}"
            f" indices, where the attribute shape promises {expected}: let it return the windows"
            " of the indices, in their order."
        )


def read_places(windows: LazyWindows, name: str) -> NDArray[Any] | None:
    """Return `recording` or `start` of lazy windows; raise unless each window has one."""
    values = getattr(windows, name)
    if values is None:
        return None
    places = np.asarray(values)
    if places.shape != (len(windows),):
        raise ValueError(
            f"X.{name} has shape {places.shape}, but X holds {len(windows)} windows: let the"
            f" attribute {name} of {type(windows).__name__} hold one number per window."
        )
    return places
