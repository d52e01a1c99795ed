"""Lazy array of windows that are cut from recordings only when they are read."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._inputs._index import is_simple, keeps_all, rows_to_read, takes_an_axis
from .._inputs._lazy import LazyWindows
from .._inputs._recordings import as_recordings
from .._parameters import check_integer
from .._signals import check_signals
from ._checks import check_downsample

_SCAN_BLOCK_SIZE = 2**22  # values that are read at a time to scan them, or to keep some of them


def _as_positions(values: ArrayLike, name: str) -> NDArray[np.intp]:
    """Return a 1-D copy of integer positions."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(
            f"{name} must be a 1-D array of integers, got shape {array.shape} and dtype "
            f"{array.dtype}; give one integer per window."
        )
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        row = int(np.argmax(np.ma.getmaskarray(values)))
        raise ValueError(f"{name}[{row}] is masked: leave out windows whose place is unknown.")
    return array.astype(np.intp)


class RecordingWindows(LazyWindows):
    """Windows of recordings as a lazy array of shape (n_windows, length, n_channels).

    The recordings are kept by reference (memory maps stay memory maps). A window is copied and
    cast to float32 only when it is read. Selecting windows, as every cross-validation of
    scikit-learn does, returns another `RecordingWindows` on the same recordings.

    Parameters
    ----------
    recordings : array-like of shape (n_recordings, n_timesteps, n_channels) or list
        The recordings, or a list with one array of shape (n_timesteps, n_channels) per recording;
        the recordings in a list may differ in length.
    recording : array-like of int of shape (n_windows,)
        Index of the recording that each window is cut from.
    start : array-like of int of shape (n_windows,)
        First time step of each window, counted in steps of the recording before down-sampling.
    length : int
        Number of time steps in a window, after down-sampling.
    downsample : int, default=1
        A window holds every `downsample`-th step from its start on. No filter is applied.
    sampling_rate : float or None, default=None
        Sampling rate of the recordings, in Hz, before down-sampling. None if it is unknown.
    channel_names : sequence of str or None, default=None
        Names of the channels, in their order. None if they are unknown.

    Attributes
    ----------
    recordings : tuple of ndarray of shape (n_timesteps, n_channels)
        The recordings, by reference.
    recording : ndarray of int of shape (n_windows,)
        Index of the recording of each window, read-only.
    start : ndarray of int of shape (n_windows,)
        First time step of each window, read-only.
    length : int
        Number of time steps in a window, after down-sampling.
    downsample : int
        Distance between the steps of a window, in steps of the recording.
    sampling_rate : float or None
        Sampling rate of the windows, in Hz, after down-sampling.
    channel_names : tuple of str or None
        Names of the channels.

    Raises
    ------
    TypeError
        If a parameter is of a wrong kind, or a recording holds no numbers.
    ValueError
        If a recording, position, rate or name is invalid, or a window reaches outside its
        recording.

    See Also
    --------
    sliding_windows : Cut regular windows; ``lazy=True`` returns a `RecordingWindows`.

    Notes
    -----
    An index that selects along the first axis only returns a `RecordingWindows`. An integer, as
    in ``X[3]``, returns one window as an ndarray, and any other index returns an ndarray; an array
    of integers with several axes is refused. ``numpy.asarray(X)`` reads all windows. A pickle
    contains the recordings; joblib replaces memory maps by their file names, and a `RecordingFile`
    is pickled as its path.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.windows import RecordingWindows
    >>> recording = np.arange(10.0).reshape(10, 1)
    >>> X = RecordingWindows([recording], recording=[0, 0], start=[0, 4], length=3)
    >>> X.shape
    (2, 3, 1)
    >>> X[1].ravel()
    array([4., 5., 6.], dtype=float32)
    >>> X[[1, 0], ...].shape
    (2, 3, 1)
    """

    recordings: tuple[NDArray[Any], ...]
    recording: NDArray[np.intp]
    start: NDArray[np.intp]
    length: int
    downsample: int
    _channels_first = False

    def __init__(
        self,
        recordings: ArrayLike | Sequence[ArrayLike],
        recording: ArrayLike,
        start: ArrayLike,
        length: int,
        downsample: int = 1,
        *,
        sampling_rate: float | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> None:
        self.recordings = tuple(as_recordings(recordings))
        self.length = check_integer("length", length, 1, meaning="it counts time steps")
        self.downsample = check_downsample(downsample)
        self._place(_as_positions(recording, "recording"), _as_positions(start, "start"))
        self._check_positions()
        signals = check_signals(sampling_rate, channel_names, self.shape[2])
        rate = signals.sampling_rate
        self.sampling_rate = None if rate is None else rate / self.downsample
        self.channel_names = signals.channel_names

    def _place(self, recording: NDArray[np.intp], start: NDArray[np.intp]) -> None:
        """Set the places of the windows, read-only."""
        self.recording, self.start = recording, start
        recording.flags.writeable = start.flags.writeable = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickle, which does not keep that arrays are read-only."""
        self.__dict__.update(state)
        self._place(self.recording, self.start)

    def _check_positions(self) -> None:
        """Raise if the positions do not fit each other or the recordings."""
        if self.recording.shape != self.start.shape:
            raise ValueError(
                f"recording has {len(self.recording)} entries and start has {len(self.start)}; "
                "give one of each per window."
            )
        unknown = (self.recording < 0) | (self.recording >= len(self.recordings))
        if unknown.any():
            row = int(np.flatnonzero(unknown)[0])
            raise ValueError(
                f"recording[{row}] is {self.recording[row]}, but there are "
                f"{len(self.recordings)} recordings, counted from 0."
            )
        n_timesteps = np.array([len(x) for x in self.recordings], dtype=np.intp)
        # A sum with a huge start would wrap round.
        outside = (self.start < 0) | (self.start > n_timesteps[self.recording] - self._span)
        if outside.any():
            row = int(np.flatnonzero(outside)[0])
            raise ValueError(
                f"start[{row}] is {self.start[row]}: a window of length={self.length} with "
                f"downsample={self.downsample} does not fit into the "
                f"{n_timesteps[self.recording[row]]} steps of recording {self.recording[row]}."
            )

    @property
    def shape(self) -> tuple[int, int, int]:  # type: ignore[override]  # derived, so read-only
        """Shape of the array, (n_windows, length, n_channels)."""
        return len(self.start), self.length, int(self.recordings[0].shape[1])

    @property
    def _span(self) -> int:
        """Number of steps of a recording from the first to the last step of a window."""
        return (self.length - 1) * self.downsample + 1

    @property
    def size(self) -> int:
        """Number of values in all windows."""
        n_windows, length, n_channels = self.shape
        return n_windows * length * n_channels

    @property
    def nbytes(self) -> int:
        """Number of bytes that the windows would take in memory as one array."""
        return self.size * self.dtype.itemsize

    @property
    def overlaps(self) -> bool:  # type: ignore[override]  # derived, so read-only
        """Whether two windows overlap or are the same (the steps between kept steps count)."""
        return self._any_closer(self._span)

    def _any_closer(self, distance: int) -> bool:
        """Return whether two windows of a recording start less than `distance` steps apart."""
        order = np.lexsort((self.start, self.recording))
        recording, start = self.recording[order], self.start[order]
        return bool(((np.diff(recording) == 0) & (np.diff(start) < distance)).any())

    def _by_recording(self, indices: NDArray[np.intp]) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """Yield each recording's number, and the indices of its windows in order of time."""
        order = indices[np.lexsort((self.start[indices], self.recording[indices]))]
        numbers, first = np.unique(self.recording[order], return_index=True)
        yield from zip(numbers.tolist(), np.split(order, first)[1:], strict=True)

    @property
    def _cuts_only(self) -> bool:
        """Whether windows hold what the recordings hold: a subclass may change it in `take`."""
        return type(self).take is RecordingWindows.take

    def _observed_unread(self) -> NDArray[np.bool_] | None:
        """Find them from the recordings, each of which is read once, block by block.

        None if a value that is read is infinite in float32, since a window may hold this value.
        """
        if not self._cuts_only:
            return None
        observed = np.empty(len(self), dtype=bool)
        for number, own in self._by_recording(np.arange(len(self))):
            recording, start = np.asarray(self.recordings[number]), self.start[own]
            seen = _windows_with_finite_steps(recording, start, self.length, self.downsample)
            if seen is None:
                return None
            observed[own] = seen
        return observed

    def apart(self, indices: ArrayLike) -> RecordingWindows:
        """Cut the steps that selected windows cover into windows that share no step.

        Steps that no selected window covers are not read, since they may belong to a test set.

        Parameters
        ----------
        indices : array-like of int of shape (n_selected,) or of bool of shape (n_windows,)
            Indices of the windows, as in `take`.

        Returns
        -------
        RecordingWindows
            Windows of the same length, ordered by recording and time.

        Raises
        ------
        IndexError
            If an index is out of bounds or the indices are not 1-D.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_pulse.windows import RecordingWindows
        >>> X = RecordingWindows(np.ones((1, 9, 1)), recording=[0] * 3, start=[0, 2, 5], length=4)
        >>> X.apart(np.arange(3)).start
        array([0, 4])
        """
        indices = self._as_indices(indices)
        if not len(indices):
            return self._select(indices)
        recording: list[NDArray[np.intp]] = []
        start: list[NDArray[np.intp]] = []
        for number, own in self._by_recording(indices):
            times = self.start[own]
            for covered in np.split(times, np.flatnonzero(np.diff(times) > self._span) + 1):
                start.append(np.arange(covered[0], covered[-1] + 1, self._span))
                recording.append(np.full(len(start[-1]), number, dtype=np.intp))
        return self._at(np.concatenate(recording), np.concatenate(start))

    def __sizeof__(self) -> int:
        """Return the bytes of a pickle, about; by this number Dask sends a large array once."""
        held = sum(x.nbytes for x in self.recordings if isinstance(x, np.ndarray))
        return object.__sizeof__(self) + self.recording.nbytes + self.start.nbytes + held

    def __repr__(self) -> str:
        """Describe the array without reading a window."""
        return (
            f"RecordingWindows(shape={self.shape}, n_recordings={len(self.recordings)}, "
            f"downsample={self.downsample})"
        )

    def __getitem__(self, key: Any) -> RecordingWindows | NDArray[np.float32]:
        """Select windows lazily, or read one window or a part of the array."""
        first, *rest = (key or (Ellipsis,)) if isinstance(key, tuple) else (key,)
        selects = len(rest) <= 2 and all(keeps_all(part) for part in rest)
        if selects and first is not None and not (first is Ellipsis and rest):
            return self._getitem_first(first)
        takes_axes = all(map(takes_an_axis, rest))
        if first is Ellipsis and takes_axes:
            first, *rest = [slice(None)] * (3 - len(rest)) + rest
        if first is None or first is Ellipsis:
            return np.asarray(self)[key]
        rows, place = rows_to_read(first, len(self))
        if isinstance(place, slice) and takes_axes:
            return self._take_part(rows, tuple(rest))
        return self.take(rows)[(place, *rest)]

    def _take_part(self, rows: NDArray[np.intp], part: tuple[Any, ...]) -> NDArray[np.float32]:
        """Read some steps or channels of windows; only a block of windows is held as a whole."""
        _, *axes = self.shape
        shape = np.broadcast_to(np.float32(0), axes)[part].shape
        windows = np.empty((len(rows), *shape), dtype=np.float32)
        size = max(1, _SCAN_BLOCK_SIZE // math.prod(axes))
        for first in range(0, len(rows), size):
            block = slice(first, first + size)
            windows[block] = self.take(rows[block])[(slice(None), *part)]
        return windows

    def _getitem_first(self, key: Any) -> RecordingWindows | NDArray[np.float32]:
        """Index the first axis: an integer reads a window, any other index selects lazily."""
        if key is Ellipsis:
            return self._select(slice(None))
        if isinstance(key, slice):
            return self._select(key)
        if is_simple(key) or (getattr(key, "ndim", None) == 0 and key.dtype.kind in "iu"):
            return self.take([int(key)])[0]
        return self._select(self._as_indices(key))

    def _select(self, key: slice | NDArray[np.intp]) -> RecordingWindows:
        """Return the selected windows of the same recordings."""
        return self._at(self.recording[key], self.start[key])

    def _at(self, recording: NDArray[np.intp], start: NDArray[np.intp]) -> RecordingWindows:
        """Return windows at other places of the same recordings."""
        windows = copy.copy(self)
        windows._place(recording, start)
        return windows

    def _alone(self, index: slice) -> RecordingWindows:
        """Return consecutive windows, whose recordings keep their numbers, without the others."""
        part = self._select(index)
        needed = set(np.unique(part.recording).tolist())
        nothing = np.empty((0, self.shape[2]), dtype=self.dtype)
        part.recordings = tuple(
            x if r in needed else nothing for r, x in enumerate(self.recordings)
        )
        return part

    def _as_indices(self, key: Any) -> NDArray[np.intp]:
        """Return a mask or a sequence of integers as indices of windows, within bounds."""
        indices = np.asarray(key)
        if indices.ndim == 1 and indices.size == 0:
            return np.empty(0, dtype=np.intp)
        if indices.ndim != 1 or indices.dtype.kind not in "biu":
            raise IndexError(
                "RecordingWindows takes an integer, a slice, a boolean mask or a 1-D sequence "
                f"of integers on its first axis, got {key!r}."
            )
        if indices.dtype.kind == "b":
            if len(indices) != len(self):
                raise IndexError(
                    f"the boolean mask has {len(indices)} entries for {len(self)} windows."
                )
            return np.flatnonzero(indices)
        indices = indices.astype(np.intp)
        outside = (indices < -len(self)) | (indices >= len(self))
        if outside.any():
            raise IndexError(
                f"index {indices[outside][0]} is out of bounds for {len(self)} windows."
            )
        return indices

    def _in_turn(self, indices: NDArray[np.intp]) -> Iterator[tuple[int, int, NDArray[Any]]]:
        """Yield place in `indices`, start and recording of windows, recording by recording.

        So each file is opened once, and one file after the other.
        """
        order = np.argsort(self.recording[indices], kind="stable")
        ordered = indices[order]
        numbers, starts = self.recording[ordered].tolist(), self.start[ordered].tolist()
        opened, values = -1, np.empty(0)
        for place, number, start in zip(order.tolist(), numbers, starts, strict=True):
            if number != opened:
                # Slicing a numpy.memmap costs several times more than an ndarray of its memory.
                opened, values = number, np.asarray(self.recordings[number])
            yield place, start, values

    def take(self, indices: ArrayLike) -> NDArray[np.float32]:
        """Read selected windows into a new array; nothing else of a recording is read.

        Parameters
        ----------
        indices : array-like of int of shape (n_selected,) or of bool of shape (n_windows,)
            Indices of the windows, in the order of the output; negative integers count from the
            end. A boolean mask selects windows in their own order.

        Returns
        -------
        ndarray of shape (n_selected, length, n_channels), dtype float32
            The windows.

        Raises
        ------
        IndexError
            If an index is out of bounds or the indices are not 1-D.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_pulse.windows import RecordingWindows
        >>> X = RecordingWindows(np.ones((1, 8, 2)), recording=[0, 0], start=[0, 4], length=4)
        >>> X.take([1, 1, 0]).shape
        (3, 4, 2)
        """
        indices = self._as_indices(indices)
        windows = np.empty((len(indices), *self.shape[1:]), dtype=np.float32)
        span = self._span
        # One slice per window is one block copy, faster than gathering steps by index.
        with np.errstate(over="ignore"):  # a value beyond float32 is an infinity, which fits refuse
            for row, start, recording in self._in_turn(indices):
                windows[row] = recording[start : start + span : self.downsample]
        return windows


def _windows_with_finite_steps(
    recording: NDArray[Any], start: NDArray[np.intp], length: int, stride: int
) -> NDArray[np.bool_] | None:
    """Return which windows have a step whose channels are finite; None if a value is infinite.

    The windows, given by their sorted starts, have `length` steps that are `stride` apart.
    """
    span = length * stride
    size = max(span, _SCAN_BLOCK_SIZE // recording.shape[1])
    found = np.empty(len(start), dtype=bool)
    own = slice(0, 0)
    while own.stop < len(start):
        first = start[own.stop]
        own = slice(own.stop, int(np.searchsorted(start, first + size)))
        with np.errstate(over="ignore"):
            # Not from block to block: windows may be few and far between.
            block = recording[first : start[own.stop - 1] + span].astype(np.float32, copy=False)
        if np.isinf(block).any():
            return None
        finite = np.asarray(np.isfinite(block).all(1))
        found[own] = True
        if not finite.all():
            found[own] = _any_in_windows(finite, start[own] - first, length, stride)
    return found


def _any_in_windows(
    steps: NDArray[np.bool_], start: NDArray[np.intp], length: int, stride: int
) -> NDArray[np.bool_]:
    """Return which windows of `length` steps, `stride` apart, hold a step that is True."""
    # Row r + 1 holds the steps r * stride, ..., (r + 1) * stride - 1.
    padded = np.zeros((-(-len(steps) // stride) + 1, stride), dtype=np.int32)
    padded[1:].ravel()[: len(steps)] = steps
    # count[t + stride]: number of True steps among t, t - stride, t - 2 * stride, ...
    count = padded.cumsum(0).ravel()
    return count[start + length * stride] > count[start]
