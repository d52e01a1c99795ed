"""Arrays in chunks on a disk, such as those of Zarr and HDF5, read a few rows at a time."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.utils import _safe_indexing

from .._groups import is_dask
from .._warnings import warn_user
from ._index import row_numbers

_KEPT_BYTES = 2**28  # bytes of the chunks that are kept, unless a single chunk is larger
_MANY_PASSES = 10  # the bytes of the array are read this many times before a warning


class StoredArray:
    """Array in chunks that is indexed like an array in memory, and read chunk by chunk.

    A chunk has to be read and decompressed as a whole. An index therefore reads each chunk once,
    and the last chunks are kept, up to 256 MiB.

    Parameters
    ----------
    array : array of Zarr or HDF5
        The array, of two axes or more; its chunks are read along the first.

    Attributes
    ----------
    shape : tuple of int
        Shape of the array.
    dtype : numpy.dtype
        Data type of the array.

    Examples
    --------
    >>> class Chunked:  # as zarr.open_array("windows.zarr") is
    ...     shape, dtype, chunks = (5, 3), np.dtype(float), (2, 3)
    ...
    ...     def __getitem__(self, rows):
    ...         return np.arange(15.0).reshape(5, 3)[rows]
    >>> StoredArray(Chunked())[np.array([4, 0]), 1:]
    array([[13., 14.],
           [ 1.,  2.]])
    """

    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape: tuple[int, ...] = tuple(array.shape)
        self.dtype: np.dtype[Any] = np.dtype(array.dtype)
        self._kept: dict[int, NDArray[Any]] = {}  # rows of chunks by number, the oldest first
        self._left = _MANY_PASSES * max(self.nbytes, _KEPT_BYTES)  # bytes to read before a warning

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Number of bytes of the whole array in memory."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.shape[0]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the chunks that are in memory."""
        return self.__dict__ | {"_kept": {}}

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Read the whole array (numpy's array protocol)."""
        return np.asarray(self.array[:], dtype=dtype)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Read rows; `key` begins with a slice or a 1-D array of row numbers."""
        first, *rest = key if isinstance(key, tuple) else (key,)
        selected = row_numbers(first, len(self))
        if isinstance(first, slice):
            rows = self._rows(selected)
            return rows[(slice(None), *rest)] if rest else rows
        numbers, place = np.unique(selected, return_inverse=True)
        return self._rows(numbers)[(place, *rest)]

    def _rows(self, numbers: NDArray[np.intp]) -> NDArray[Any]:
        """Read whole rows by their numbers, which ascend or descend, chunk by chunk."""
        rows = np.empty((len(numbers), *self.shape[1:]), self.dtype)
        size = self.array.chunks[0]
        chunk = numbers // size
        # The numbers are in order, so that those of a chunk follow each other.
        edges = [0, *(np.flatnonzero(np.diff(chunk)) + 1).tolist(), len(numbers)]
        for own in itertools.starmap(slice, itertools.pairwise(edges if len(numbers) else [])):
            number = int(chunk[own.start])
            rows[own] = self._chunk(number)[numbers[own] - number * size]
        return rows

    def _chunk(self, number: int) -> NDArray[Any]:
        """Return the rows of a chunk, read now or kept from before."""
        kept = self._kept  # never changed, since another thread may read another chunk meanwhile
        if number in kept:
            return kept[number]
        size = self.array.chunks[0]
        n_others = _KEPT_BYTES // max(1, size * self.nbytes // len(self)) - 1
        others = list(kept.items())[-n_others:] if n_others > 0 else []
        self._kept = kept = dict(others)  # a chunk that does not fit beside the new one goes first
        rows = np.asarray(self.array[number * size : (number + 1) * size])
        self._kept = kept | {number: rows}
        self._note_read(rows.nbytes)
        return rows

    def _note_read(self, n_bytes: int) -> None:
        """Warn once if the chunks are read again and again, as by batches in a random order."""
        before, self._left = self._left, self._left - n_bytes
        if before >= 0 > self._left:
            warn_user(
                f"X is an array of {self.nbytes / 1e9:.3g} GB in chunks of"
                f" {self.array.chunks[0]} rows, which have been read {_MANY_PASSES} times each and"
                " more, since batches take windows in a random order: store it once by"
                " numpy.save(path, X), or in parts by numpy.lib.format.open_memmap, and pass"
                " numpy.load(path, mmap_mode='r')."
            )


def as_stored(X: Any) -> StoredArray | None:
    """Return an array of real numbers in chunks as a `StoredArray`; None for other objects.

    Parameters
    ----------
    X : Any
        What the user has passed.

    Returns
    -------
    StoredArray or None
        The array. None for a Dask array, a 1-D array, or an array without chunks.
    """
    if isinstance(X, StoredArray):
        return X
    chunks, dtype = getattr(X, "chunks", None), getattr(X, "dtype", None)
    is_chunked = (
        isinstance(chunks, tuple)
        and len(chunks) > 1
        and all(isinstance(size, int) and size > 0 for size in chunks)
    )
    is_real = getattr(dtype, "kind", "") in ("b", "i", "u", "f")
    return StoredArray(X) if is_chunked and is_real and not is_dask(X) else None


def take_rows(X: Any, rows: Any) -> Any:
    """Return some rows of windows or labels; scikit-learn indexes no array in chunks.

    Parameters
    ----------
    X : array-like, frame, list, lazy windows or array in chunks
        The windows, or their labels.
    rows : sequence of int
        Numbers of the rows.

    Returns
    -------
    Any
        The rows, in the container of `X`; an array in memory if `X` is an array in chunks.

    Examples
    --------
    >>> take_rows(["a", "b", "c"], [2, 0])
    ['c', 'a']
    """
    stored = as_stored(X)
    if stored is not None:
        return stored[rows]
    if isinstance(getattr(X, "chunks", None), tuple) and not is_dask(X):  # labels in chunks
        X = np.asarray(X)
    return _safe_indexing(X, rows)
