"""Arrays in files: those of strangers are checked, our own are written whole."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .._inputs._files import DAMAGE

_SEAL = b"sha256"  # before the digest behind an array, where numpy does not read


def map_array(
    path: Path, kind: type[np.generic], shape: tuple[int | None, ...]
) -> np.memmap[Any, np.dtype[Any]]:
    """Map an array of a file into memory, without taking memory for it.

    Parameters
    ----------
    path : pathlib.Path
        File of :func:`numpy.save`.
    kind : type
        Type of the numbers that the file must hold, such as float32, or floating for any float.
    shape : tuple of int or None
        Shape that the array must have; None allows any number.

    Returns
    -------
    memmap
        The array, which cannot be written to.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If the file is damaged, shorter than its header says, or holds another array.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "x.npy")
    ...     np.save(path, np.arange(3.0))
    ...     map_array(path, np.float64, (None,)).tolist()
    [0.0, 1.0, 2.0]
    """
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is a folder or a pipe, not a file; delete it.")
    with open(path, "rb") as file:
        is_array = file.read(6) == b"\x93NUMPY"  # numpy opens archives and pickles too
    expected = f"an array of {kind.__name__} of shape {shape}"
    try:
        if not is_array:
            raise ValueError("it is no file of numpy.save")
        # A mapped file is as long as its header says, or refused.
        array: np.memmap[Any, np.dtype[Any]] = np.load(path, mmap_mode="r", allow_pickle=False)
    except DAMAGE as error:
        raise ValueError(f"{path} is damaged and not {expected} ({error}); delete it.") from error
    fits = len(array.shape) == len(shape) and all(
        n in (None, size) for size, n in zip(array.shape, shape, strict=True)
    )
    if not np.issubdtype(array.dtype, kind) or not array.dtype.isnative or not fits:
        raise ValueError(
            f"{path} holds {array.dtype} of shape {array.shape}, not {expected}; delete it."
        )
    return array


def save_sealed(file: IO[bytes], array: NDArray[Any]) -> None:
    """Write an array as :func:`numpy.save` does, and a digest of its values behind it."""
    np.save(file, array)
    file.write(_seal(array))


def is_intact(path: Path, array: np.memmap[Any, np.dtype[Any]]) -> bool:
    """Return whether an array from :func:`map_array` has the digest in its file.

    A file without a digest, of :func:`numpy.save`, counts as intact.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "x.npy")
    ...     with path.open("wb") as file:
    ...         save_sealed(file, np.arange(3.0))
    ...     is_intact(path, map_array(path, np.float64, (3,)))
    True
    """
    seal = _seal(array)
    with open(path, "rb") as file:
        file.seek(array.offset + array.nbytes)
        return file.read(len(seal) + 1) in (b"", seal)


def _seal(array: NDArray[Any]) -> bytes:
    """Return what stands behind the values of an array in its file."""
    return _SEAL + hashlib.sha256(np.ascontiguousarray(array).data).digest()


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file completely or not at all, with the permissions of any new file.

    Parameters
    ----------
    path : pathlib.Path
        The file; its folder is created if it does not exist.
    write : callable
        Writes the content to an open file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    try:
        with partial.open("wb") as file:
            write(file)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
