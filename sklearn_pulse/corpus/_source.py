"""Windows of a corpus, read a part at a time."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._groups import is_dask, nan_where_masked
from .._inputs._lazy import SelectedWindows, read_places
from .._inputs._numbers import as_real_array
from .._inputs._stored import StoredArray, as_stored
from .._parameters import LAYOUTS, check_option
from ..windows import LazyWindows, RecordingFile, RecordingWindows, open_recordings, sliding_windows

_CHUNK_BYTES = 2**24  # of float32 windows in a chunk
_MOST_WINDOWS = 4096  # in a chunk
_N_SAMPLED = 8  # windows by which a source is recognised
_MANY_LAYERS = 64  # of a Dask array, each of which costs time whenever windows are read


class DaskWindows(LazyWindows):
    """Windows of a Dask array, computed a block at a time.

    Parameters
    ----------
    array : dask.array.Array of shape (n_windows, n_timesteps, n_channels)
        The windows.

    Attributes
    ----------
    shape : tuple of int
        Shape of the array.
    """

    _is_users = False

    def __init__(self, array: Any) -> None:
        self.array = array.rechunk(dict.fromkeys(range(1, array.ndim), -1))
        self.shape = array.shape
        self._ends = np.cumsum(self.array.chunks[0])
        self._last: tuple[int, Any] = (-1, None)  # number and values of the last block

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the block that is in memory."""
        return self.__dict__ | {"_last": (-1, None)}

    def take(self, indices: ArrayLike) -> NDArray[np.float32]:
        """Compute the blocks that hold selected windows, and return these windows."""
        numbers = np.asarray(indices)
        blocks = np.searchsorted(self._ends, numbers, side="right")
        windows = np.empty((len(numbers), *self.shape[1:]), dtype=np.float32)
        for block in np.unique(blocks).tolist():
            rows = blocks == block
            first = self._ends[block] - self.array.chunks[0][block]
            with np.errstate(over="ignore"):  # an infinity is an error that names the window
                windows[rows] = self._block(block)[numbers[rows] - first]
        return windows

    def _block(self, number: int) -> Any:
        """Compute a block, or return the last block again."""
        last, values = self._last  # another thread may compute another block meanwhile
        if last != number:
            self._last = (-1, None)
            del values  # so that two blocks are never in memory
            values = as_real_array(self.array.blocks[number].compute(), "source")
            self._last = (number, values)
        return values

    def _observed_unread(self) -> NDArray[np.bool_] | None:
        """Find them by Dask's workers; None if a value is infinite, which is an error."""
        import dask.array as da
        from dask.base import compute

        with np.errstate(over="ignore"):
            values = self.array.astype(np.float32)
            infinite, observed = compute(
                da.isinf(values).any(), da.isfinite(values).all(axis=2).any(axis=1)
            )
        return None if infinite else np.asarray(observed)


def as_source(source: Any, length: int | None, stride: int | None, input_layout: str) -> Any:
    """Return windows that are read in parts: a Dask array, an array or lazy windows.

    Parameters
    ----------
    source : path-like, dask.array.Array, zarr.Array, ndarray or LazyWindows
        Folder of recordings, or windows.
    length : int or None
        Number of time steps of a window, only for a folder.
    stride : int or None
        Number of time steps between windows, only for a folder. None means `length`.
    input_layout : {"ntc", "nct"}
        Order of the axes of the files of a folder.

    Returns
    -------
    dask.array.Array, StoredArray, ndarray or LazyWindows
        The windows.

    Raises
    ------
    TypeError
        If the source is of another kind, or holds text.
    ValueError
        If `length` is missing for a folder; if `length`, `stride` or another order of the axes is
        given with windows; or if a Dask array is complex.
    """
    check_option("input_layout", input_layout, LAYOUTS)
    if isinstance(source, str | os.PathLike):
        _refuse_windows_in_a_file(source)
        if length is None:
            raise ValueError(
                "length is missing: source is a folder of recordings, and length is the number of"
                " time steps of a window."
            )
        recordings = open_recordings(source, input_layout=input_layout)
        return sliding_windows(recordings, length, stride, lazy=True).X
    stored = as_stored(source)
    source = source if stored is None else stored
    if not is_dask(source) and not isinstance(source, np.ndarray | LazyWindows | StoredArray):
        raise TypeError(
            "source must be a folder, a Dask array, an array, also of Zarr, or lazy windows, such"
            " as sliding_windows(recordings, length, lazy=True).X, got"
            f" {type(source).__name__}."
        )
    _refuse_for_windows(length, stride, input_layout)
    if is_dask(source):
        if not np.isfinite(source.shape).all():
            raise ValueError(
                "source is a Dask array of unknown shape: call source.compute_chunk_sizes() first."
            )
        as_real_array(np.empty(0, source.dtype), "source")  # what cannot be read is refused
        source = _in_few_layers(nan_where_masked(source))
    if source.ndim < 2:
        raise ValueError(f"source must hold windows, got shape {source.shape}.")
    if not source.shape[0]:
        raise ValueError("source holds no window.")
    return source


def _in_few_layers(array: Any) -> Any:
    """Join the layers of a Dask array, such as one of many arrays that were concatenated.

    Dask goes through all layers to find the tasks of a few windows. One layer for each of many
    files would cost time in proportion to the square of the files.
    """
    if len(array.dask.layers) <= _MANY_LAYERS:
        return array
    import dask.array as da

    return da.Array(dict(array.dask), array.name, array.chunks, meta=array._meta)


def _refuse_windows_in_a_file(source: str | os.PathLike[str]) -> None:
    """Raise for the path of an array, which is no folder of recordings."""
    path = os.path.expanduser(os.fspath(source))
    if os.path.isfile(path):
        raise ValueError(
            f"source={path!r} is a file, and a path names a folder of recordings: pass the windows"
            " of the file, as by numpy.load(source, mmap_mode='r')."
        )
    if any(os.path.exists(os.path.join(path, name)) for name in ("zarr.json", ".zarray")):
        raise ValueError(
            f"source={path!r} is an array or a group of Zarr, and a path names a folder of"
            " recordings: pass an array, as by zarr.open(source)."
        )


def _refuse_for_windows(length: int | None, stride: int | None, input_layout: str) -> None:
    """Raise if a parameter that is only for a folder is passed beside windows."""
    for name, value in (("length", length), ("stride", stride)):
        if value is not None:
            raise ValueError(
                f"{name}={value} is for a folder of recordings, and source holds windows already:"
                f" leave {name} out."
            )
    if input_layout != "ntc":
        raise ValueError(
            f"input_layout={input_layout!r} is for a folder of recordings, and source holds windows"
            " already: leave it out, and set the input_layout of the transformer."
        )


def check_channels_last(transformer: Any, source: Any, caller: str) -> None:
    """Raise if a source is a folder, and a transformer would read its windows transposed."""
    if not isinstance(source, str | os.PathLike):
        return
    while getattr(transformer, "steps", None):  # the first step of a pipeline reads them
        transformer = transformer.steps[0][1]
    if getattr(transformer, "input_layout", None) == "nct":
        raise ValueError(
            "transformer has input_layout='nct', but the windows of a folder have channels last:"
            f" leave its input_layout at 'ntc'; that of {caller} is about the files."
        )


def default_chunk(source: Any) -> int:
    """Return how many windows to read at a time: a block of Dask's, or 16 MiB and at most 4096."""
    if is_dask(source):
        return int(source.chunksize[0])
    fitting = _CHUNK_BYTES // (4 * int(np.prod(source.shape[1:])))
    return int(min(max(fitting, 1), _MOST_WINDOWS, source.shape[0]))


def read(source: Any, index: slice) -> Any:
    """Read consecutive windows; lazy windows stay lazy, and keep their rate and channel names."""
    if is_dask(source):
        return np.asarray(source[index].compute())
    if isinstance(source, LazyWindows) and not isinstance(source, RecordingWindows):
        return SelectedWindows(source, np.arange(*index.indices(len(source))))
    return source[index]


def handed_over(source: Any, index: slice) -> tuple[Any, slice]:
    """Return the part of a source that another process needs, and where the windows are in it.

    Parameters
    ----------
    source : dask.array.Array, StoredArray, ndarray or LazyWindows
        The windows.
    index : slice
        Numbers of the windows that are needed, with a start and a stop.

    Returns
    -------
    source : dask.array.Array, StoredArray, ndarray or LazyWindows
        The source, without recordings, or tasks of Dask, that are not needed.
    index : slice
        Where the windows are.
    """
    if is_dask(source):
        import dask.array as da
        from dask.core import flatten
        from dask.optimization import cull

        rows = source[index]
        tasks, _ = cull(dict(rows.dask), list(flatten(rows.__dask_keys__())))
        return da.Array(tasks, rows.name, rows.chunks, meta=rows._meta), slice(0, len(rows))
    part = source._alone(index) if isinstance(source, LazyWindows) else None
    return (source, index) if part is None else (part, slice(0, len(part)))


def sampled(source: Any) -> NDArray[Any]:
    """Read a few windows that are spread over the source."""
    n = source.shape[0]
    numbers = np.unique(np.linspace(0, n - 1, _N_SAMPLED).astype(np.intp))
    windows = (nan_where_masked(read(source, slice(i, i + 1))) for i in numbers.tolist())
    return np.concatenate([np.asarray(window) for window in windows])


def known_places(source: Any) -> dict[str, NDArray[Any]]:
    """Return recording and start of lazy windows, where they are known."""
    if not isinstance(source, LazyWindows):
        return {}
    places = {name: read_places(source, name) for name in ("recording", "start")}
    return {name: values for name, values in places.items() if values is not None}


def fingerprint(source: Any, windows: NDArray[Any]) -> str:
    """Return a digest of a source: its shape, places of windows, names of files, and a sample.

    Parameters
    ----------
    source : dask.array.Array, StoredArray, ndarray or LazyWindows
        The windows.
    windows : ndarray
        Windows of :func:`sampled`.

    Returns
    -------
    str
        The digest. A folder may be moved.
    """
    if windows.dtype == object:  # whose bytes are addresses
        windows = as_real_array(windows, "source")
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((tuple(source.shape), windows.shape, str(windows.dtype))).encode())
    digest.update(np.ascontiguousarray(windows).data)
    names = "\n".join(name or "" for name in file_names(source))
    digest.update(names.encode(errors="surrogateescape"))  # a name may be no text
    for places in known_places(source).values():
        digest.update(np.ascontiguousarray(places).data)
    return digest.hexdigest()


def file_names(source: Any) -> list[str | None]:
    """Return the path of each recording, relative to their common folder; None without a file.

    Paths on several drives are whole.
    Without any file the list is empty.
    """
    cut = source
    while isinstance(cut, LazyWindows) and not isinstance(cut, RecordingWindows):
        cut = getattr(cut, "source", None)  # the windows that a preprocessing step changes
    if not isinstance(cut, RecordingWindows):
        return []
    recordings: list[Any] = list(cut.recordings)
    files = [x.path if isinstance(x, RecordingFile) else None for x in recordings]
    folders = [path.parent for path in files if path is not None]
    # A step may number the recordings in its own way.
    if not folders or not np.array_equal(source.recording, cut.recording):
        return []
    if len({path.drive for path in folders}) > 1:  # of Windows
        return [None if path is None else path.as_posix() for path in files]
    root = os.path.commonpath(folders)
    return [None if path is None else path.relative_to(root).as_posix() for path in files]
