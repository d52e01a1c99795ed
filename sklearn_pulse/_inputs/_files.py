"""Recordings in files, which are opened only while windows are read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._parameters import LAYOUTS, as_path, check_option

# Errors of numpy for a damaged or hostile file.
DAMAGE = (
    BadZipFile,
    EOFError,
    MemoryError,
    OverflowError,
    RecursionError,
    SyntaxError,
    TokenError,
    TypeError,
    ValueError,
)


def reason_of(error: Exception) -> str:
    """Return why numpy cannot read a file, without the advice to load any unknown file unsafely."""
    if "pickled" not in str(error):
        return str(error)
    return (
        "it begins otherwise. Read a file of another format by its own reader, such as"
        " pandas.read_parquet, and save the numbers by numpy.save"
    )


class RecordingFile:
    """Recording in a file of NumPy, which is mapped into memory only while it is read.

    A pickle holds the path and no values, so that a worker of a cluster reads the file itself. A
    recording that is not being read takes no file handle and no address space. A file that changes
    gives other values when it is read again.

    Parameters
    ----------
    path : path-like
        The file, written by :func:`numpy.save`: one recording of shape (n_timesteps, n_channels),
        or (n_timesteps,) if it has one channel.
    input_layout : {"ntc", "nct"}, default="ntc"
        Order of the axes of a 2-D file: "nct" is (n_channels, n_timesteps).

    Attributes
    ----------
    path : pathlib.Path
        The file, as an absolute path.
    shape : tuple of int
        Shape of the recording, (n_timesteps, n_channels).
    dtype : numpy.dtype
        Data type of the values in the file.

    Raises
    ------
    OSError
        If the file cannot be opened.
    TypeError
        If a parameter is of a wrong kind.
    ValueError
        If a parameter is invalid, or the file holds no recording.

    See Also
    --------
    open_recordings : Open all recordings of a folder.

    Notes
    -----
    A pickle also holds the size of the file and the time of its last change, as they are when it is
    written. By them joblib's caches, such as that of ``Pipeline(memory=...)``, notice that a file
    was written again. Nothing else compares them: recordings may be copied to another machine.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sklearn_pulse.windows import RecordingFile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/anna.npy", np.zeros((3, 100)))
    ...     RecordingFile(f"{folder}/anna.npy", input_layout="nct").shape
    (100, 3)
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    ndim = 2

    def __init__(self, path: str | os.PathLike[str], input_layout: str = "ntc") -> None:
        self.path = as_path("path", path).absolute()
        self.input_layout = check_option("input_layout", input_layout, LAYOUTS)
        values = self._opened()
        self.shape, self.dtype = (values.shape[0], values.shape[1]), values.dtype

    def _opened(self) -> NDArray[Any]:
        """Map the file into memory, as an array of shape (n_timesteps, n_channels)."""
        try:
            values = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except DAMAGE as error:
            raise ValueError(
                f"{self.path} is no complete file of numpy.save: {reason_of(error)}"
            ) from error
        if not isinstance(values, np.ndarray) or values.ndim not in (1, 2):
            found = f"shape {values.shape}" if hasattr(values, "shape") else "an archive"
            raise ValueError(
                f"{self.path} must hold one recording of shape (n_timesteps, n_channels) or"
                f" (n_timesteps,), got {found}: save each recording in a file of its own."
            )
        if values.dtype.kind not in "biuf":
            raise ValueError(
                f"{self.path} must hold real numbers, got dtype {values.dtype}: save float32."
            )
        if values.ndim == 1:
            return np.asarray(values)[:, np.newaxis]
        return np.asarray(values.T if self.input_layout == "nct" else values)

    def __len__(self) -> int:
        """Return the number of time steps."""
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """Number of bytes of the values."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    def __repr__(self) -> str:
        """Name the file and the shape."""
        return f"RecordingFile({str(self.path)!r}, shape={self.shape})"

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes, and what tells caches that the file was written again."""
        try:
            status = self.path.stat()
        except OSError:  # a pickle may be made where the file is not
            return vars(self)
        return vars(self) | {"_written": (status.st_size, status.st_mtime_ns)}

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Map the file into memory (numpy's array protocol)."""
        values = self._opened()
        if (values.shape, values.dtype) != (self.shape, self.dtype):
            raise ValueError(
                f"{self.path} held shape {self.shape} and {self.dtype} when it was opened, and now"
                f" holds {values.shape} and {values.dtype}: open the recordings again."
            )
        if dtype is not None:
            values = values.astype(dtype, copy=False)
        return values.copy() if copy else values


def recording_name(values: str, number: int, recording: Any) -> str:
    """Return the name of a recording of a list, for messages.

    It holds the path of a file, since nobody counts the files of a folder.

    Examples
    --------
    >>> recording_name("X", 3, [1.0, 2.0])
    'X[3]'
    """
    file = f" ({recording.path})" if isinstance(recording, RecordingFile) else ""
    return f"{values}[{number}]{file}"


def open_recordings(
    folder: str | os.PathLike[str], *, input_layout: str = "ntc"
) -> list[RecordingFile]:
    """Open the recordings of a folder, without reading them.

    Parameters
    ----------
    folder : path-like
        Folder with a file ``*.npy`` per recording, also in folders below it. A file holds one
        recording of shape (n_timesteps, n_channels), or (n_timesteps,) if it has one channel.
        Hidden files and folders, whose names begin with ".", are left out.
    input_layout : {"ntc", "nct"}, default="ntc"
        Order of the axes of the files: "nct" is (n_channels, n_timesteps).

    Returns
    -------
    list of RecordingFile
        The recordings in the order of their paths. All functions that cut windows take them;
        with ``lazy=True`` no recording is read before its windows are.

    Raises
    ------
    OSError
        If the folder or a file cannot be opened.
    TypeError
        If a parameter is of a wrong kind.
    ValueError
        If a parameter is invalid, or the folder or a file holds no recording.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sklearn_pulse.windows import open_recordings, sliding_windows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("anna", "ben"):
    ...         np.save(f"{folder}/{name}.npy", np.zeros((100, 3)))
    ...     X = sliding_windows(open_recordings(folder), length=25, lazy=True).X
    ...     X.shape, np.asarray(X[:2]).shape
    ((8, 25, 3), (2, 25, 3))
    """
    root = as_path("folder", folder)
    if not root.is_dir():
        raise NotADirectoryError(f"folder={str(folder)!r} is no folder: name one with .npy files.")
    paths = sorted(_files_below(root), key=lambda path: path.relative_to(root).parts)
    if not paths:
        raise ValueError(
            f"folder={str(folder)!r} holds no file *.npy: save each recording there by numpy.save."
        )
    return [RecordingFile(path, input_layout) for path in paths]


def _files_below(root: Path) -> Iterator[Path]:
    """Yield the files *.npy in a folder and below it; follow links, but visit each folder once.

    Hidden files and folders are left out: a trash, checkpoints of notebooks, traces of a Mac.
    """
    seen = set()
    for folder, subfolders, names in os.walk(root, followlinks=True, onerror=_raise):
        subfolders[:] = sorted(name for name in subfolders if not _is_hidden(name))
        real = os.path.realpath(folder)
        if real in seen:  # as where a link leads to a folder above it
            subfolders.clear()
        else:
            seen.add(real)
            files = (name for name in names if name.endswith(".npy") and not _is_hidden(name))
            yield from (Path(folder, name) for name in files)


def _is_hidden(name: str) -> bool:
    """Return whether a file or folder is hidden, or holds what a Mac adds to an archive."""
    return name.startswith(".") or name == "__MACOSX"


def _raise(error: OSError) -> None:
    """Raise an error that os.walk would ignore, such as that of an unreadable folder."""
    raise error
