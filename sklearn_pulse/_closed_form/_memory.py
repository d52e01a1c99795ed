"""What fits and embeddings of the same windows have in common, kept by joblib."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from sklearn.utils.validation import check_memory

from .._data._windows import Block, CheckedWindows
from .._version import __version__

Result = TypeVar("Result")


def as_memory(memory: Any) -> Any:
    """Return the memory that a parameter names; None keeps nothing.

    Parameters
    ----------
    memory : None, str, path-like or object with the interface of joblib.Memory
        Parameter of an estimator.

    Returns
    -------
    None or object with the interface of joblib.Memory
        The memory.

    Raises
    ------
    TypeError
        If the parameter is of another kind.

    Examples
    --------
    >>> as_memory(3)
    Traceback (most recent call last):
        ...
    TypeError: memory must be None, a folder or a joblib.Memory, got 3; pass for example
    memory='cache'.
    """
    if memory is None:
        return None
    if isinstance(memory, os.PathLike):
        memory = os.fspath(memory)
    if not isinstance(memory, str) and not hasattr(memory, "cache"):
        raise TypeError(
            f"memory must be None, a folder or a joblib.Memory, got {memory!r}; pass for example"
            " memory='cache'."
        )
    return check_memory(memory)


def remembered(memory: Any, key: tuple[Any, ...], compute: Callable[[], Result]) -> Result:
    """Return what a function computes, or what was kept of an earlier call with this key.

    Parameters
    ----------
    memory : object with the interface of joblib.Memory
        Where results are kept.
    key : tuple
        All that the result depends on, beside the versions of this package and of its libraries.
    compute : callable
        Function without arguments.

    Returns
    -------
    Any
        The result.
    """
    versions = __version__, np.__version__, torch.__version__
    kept = memory.cache(_computed, ignore=["compute"])
    result: Result = kept((*key, *map(str, versions)), compute)
    return result


def _computed(key: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
    """Compute a result; joblib keeps it under the key."""
    return compute()


def digest_of_windows(windows: CheckedWindows) -> str:
    """Return a digest of the values of windows, which are read once, a few at a time.

    Parameters
    ----------
    windows : CheckedWindows
        The windows, from whatever source.

    Returns
    -------
    str
        The digest. Windows of other values, another shape or other missing steps have another one.
    """
    digest = hashlib.blake2b(digest_size=16)
    for _, block in windows.blocks():
        digest.update(digest_of_block(block).encode())
    return digest.hexdigest()


def digest_of_block(block: Block) -> str:
    """Return a digest of a few windows, and of which of their steps are missing."""
    every = () if block.observed is None else (block.observed,)
    return digest_of_arrays(block.x, *every)


def digest_of_arrays(*arrays: Any) -> str:
    """Return a digest of arrays: their values, types and shapes."""
    digest = hashlib.blake2b(digest_size=16)
    for array in map(np.ascontiguousarray, arrays):
        digest.update(repr((array.shape, str(array.dtype))).encode())
        digest.update(array.view(np.uint8).data if array.size else b"")
    return digest.hexdigest()
