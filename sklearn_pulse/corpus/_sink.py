"""Zarr group of embeddings, with a mark for each chunk that is complete."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import url2pathname

import numpy as np
from numpy.typing import NDArray

from .._extras import needs
from .._parameters import as_path

_FORMAT = "sklearn_pulse.corpus 1"
_MARKS = 1024  # of chunks, in a file
_FEW = 1e-3  # share of embeddings that may be a step of rounding away
_REMEDY = "Name another sink, or delete this one."
_NAMES = ("done", "embedding", "recording", "sample", "start")
_BEGUN_AS = "begun_as"  # attribute of the embeddings: another one each time a group is begun
_WHOLE = "stored_whole"  # attribute: arrays of which every chunk is written, also one of zeros
_UNREADABLE = (KeyError, RuntimeError, TypeError, UnicodeDecodeError, json.JSONDecodeError)
_DAMAGE = (*_UNREADABLE, ValueError)  # by zarr, for metadata that are JSON and say nonsense


class Contents(NamedTuple):
    """What a group holds the embeddings of, by which a later run recognises its own group."""

    fingerprint: str  # of the source
    sample: NDArray[Any]  # embeddings of a few windows, which the transformer is recognised by
    n_windows: int


def open_sink(sink: Any) -> Any:
    """Open the group of a path, or return the group that was passed.

    Parameters
    ----------
    sink : path-like or zarr.Group
        Where the embeddings go.

    Returns
    -------
    zarr.Group
        The group, which can be written.

    Raises
    ------
    ImportError
        If zarr is not installed.
    OSError
        If the path is a file, or lies below one.
    TypeError
        If `sink` is neither.
    ValueError
        If the group is read-only, or a file address names no file of this machine.
    """
    with needs("Embedding a corpus needs zarr", "cluster"):
        import zarr
    if isinstance(sink, zarr.Group):
        if sink.read_only:
            raise ValueError("sink is read-only: open it with mode='a'.")
        return sink
    if not isinstance(sink, str | os.PathLike):
        raise TypeError(f"sink must be a path or a zarr.Group, got {type(sink).__name__}.")
    path, address = as_path("sink", sink), os.fspath(sink)
    if address.startswith("file://"):  # through which zarr cannot make a folder
        address = str(_of_file_address(address))
    elif "://" not in address:  # else a store elsewhere
        address = os.path.abspath(path)  # the working folder may change, and workers have their own
    try:
        with undamaged(_UNREADABLE):  # another ValueError is about the address
            return zarr.open_group(address, mode="a")
    except (FileExistsError, NotADirectoryError) as error:
        raise type(error)(
            f"sink={address!r} is a file, or lies below one: name a folder of its own."
        ) from error


def _of_file_address(address: str) -> Path:
    """Return the path that an address like file:///home/me/sink.zarr names."""
    host, slash, path = address.removeprefix("file://").partition("/")
    if host not in ("", "localhost") or not path:
        raise ValueError(
            f"sink={address!r} names no file of this machine: write file:/// and a whole path, or"
            " pass the path itself."
        )
    return Path(url2pathname(slash + path))


@contextmanager
def undamaged(kinds: tuple[type[Exception], ...] = _DAMAGE) -> Iterator[None]:
    """Turn zarr's errors about files that are damaged or missing into a ValueError.

    Parameters
    ----------
    kinds : tuple of type
        The errors. With the default, nothing but zarr may raise a ValueError inside.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    ValueError
        If a file of the sink is damaged or missing.
    """
    try:
        yield
    except kinds as error:
        raise ValueError(
            f"sink holds files that are damaged, or lacks some ({error}). {_REMEDY}"
        ) from error


@contextmanager
def written() -> Iterator[None]:
    """Add the remedy to the error of a full disk, which names no file.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    OSError
        If a file of the sink cannot be written.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(
            error.errno,
            f"sink cannot be written ({error.strerror}): free space there, and call again, which"
            " embeds what is left",
        ) from error


def for_workers(array: Any) -> Any:
    """Return an array of a sink that a process with any working folder finds.

    Parameters
    ----------
    array : zarr.Array
        The array, of which a worker opens a copy.

    Returns
    -------
    zarr.Array
        The array itself, or the same one with an absolute path.
    """
    import zarr
    from zarr.storage import LocalStore

    store = array.store
    if not isinstance(store, LocalStore) or store.root.is_absolute():
        return array
    return zarr.open_array(LocalStore(store.root.absolute()), path=array.path, mode="r+")


def check_shareable(group: Any) -> None:
    """Raise if no process but this one can write to the group."""
    from zarr.storage import MemoryStore, ZipStore

    for kind, what in ((MemoryStore, "in the memory of this process"), (ZipStore, "a zip file")):
        if isinstance(group.store, kind):
            raise ValueError(
                f"sink is {what}, where other processes cannot write: pass a path that they all"
                " reach."
            )


def reopened(array: Any) -> Any:
    """Open the embeddings of a sink in the process that writes to them.

    Parameters
    ----------
    array : zarr.Array
        The array, which a worker has received by pickle.

    Returns
    -------
    zarr.Array
        The same array, which stores chunks of zeros too: one that is absent is lost.

    Raises
    ------
    ValueError
        If the array is not there, since it lies on the disk of another machine, or in the memory
        of another process. Zarr itself would write where nobody reads. Or if another call has
        begun the sink anew, whose embeddings these are not.
    """
    import zarr

    try:
        found = zarr.open_array(array.store, path=array.path, mode="r+")
    except FileNotFoundError as error:
        reason = str(error)
    else:
        if found.attrs.get(_BEGUN_AS) != array.attrs.get(_BEGUN_AS):
            raise ValueError(
                "sink was begun anew by another call of embed_dataset while this one filled it:"
                " only one may fill a sink at a time. Name another sink."
            )
        return found.with_config({"write_empty_chunks": True})  # no file of zarr keeps this
    # Not from zarr's error, which some processes cannot send.
    raise ValueError(
        f"sink is not found by a process that should write to it ({reason}): pass a path that all"
        " processes and machines reach."
    )


def holds_chunks(group: Any) -> bool:
    """Return whether the group holds embeddings of an earlier run, at least a whole chunk."""
    if group.attrs.get("state") != "begun" or group.attrs.get("format") != _FORMAT:
        return False
    return bool(group["done"][:].any())


def begin(
    group: Any,
    contents: Contents,
    chunk_size: int,
    places: dict[str, NDArray[Any]],
    names: list[str | None],
) -> None:
    """Create the arrays of a group, also those that a killed run has left incomplete.

    Parameters
    ----------
    group : zarr.Group
        The group.
    contents : Contents
        What it will hold.
    chunk_size : int
        Number of windows in a chunk.
    places : dict of str to ndarray of shape (n_windows,)
        Recording and start of each window, if they are known.
    names : list of str and None
        Names of the files of the recordings, if there are any.

    Raises
    ------
    ValueError
        If the group holds something else.
    """
    others = sorted(set(group.keys()) & set(_NAMES))
    if others and group.attrs.get("format") != _FORMAT:
        raise ValueError(
            f"sink holds {others[0]!r} already, which embed_dataset has not written: name another"
            " path or group."
        )
    group.attrs.update({"format": _FORMAT, "state": "being created"})
    for name in others:
        del group[name]
    (_, n_features), settings = contents.sample.shape, _settings(group)
    n_chunks = -(-contents.n_windows // chunk_size)
    group.create_array(
        "embedding",
        shape=(contents.n_windows, n_features),
        chunks=(chunk_size, n_features),
        dtype=contents.sample.dtype,
        attributes={_BEGUN_AS: uuid.uuid4().hex},
        overwrite=True,  # an interrupted deletion may have left marks behind
        **settings,
    )
    marks = (min(n_chunks, _MARKS),)
    group.create_array(
        "done", shape=(n_chunks,), chunks=marks, dtype="bool", overwrite=True, **settings
    )
    filled = {"sample": contents.sample} | places
    for name, values in filled.items():
        group.create_array(name, data=values, overwrite=True, **settings)
    # Last, since from now on the arrays count.
    whole = ["embedding", *filled]
    facts = {"source": contents.fingerprint, "recordings": names, _WHOLE: whole}
    group.attrs.update(facts | {"state": "begun"})


def _settings(group: Any) -> dict[str, Any]:
    """Return how arrays are stored: with checksums, and with chunks of zeros."""
    zstd: dict[str, Any] = {"level": 0, "checksum": True}
    if group.metadata.zarr_format == 2:
        codec = {"id": "zstd"} | zstd
    else:
        codec = {"name": "zstd", "configuration": zstd}
    return {"compressors": codec, "config": {"write_empty_chunks": True}}


def _are_stored(array: Any) -> NDArray[np.bool_]:
    """Return for each place in the grid of chunks whether the store holds it; read no chunk."""
    from zarr.core.sync import sync  # the loop of zarr, to which its stores are bound
    from zarr.storage import LocalStore

    grid, store = array.cdata_shape, array.store
    keys = [f"{array.path}/{array.metadata.encode_chunk_key(place)}" for place in np.ndindex(*grid)]
    if isinstance(store, LocalStore):  # whose list has wrong names where its path is relative
        stored = [_holds_bytes(store.root / key) for key in keys]
    elif store.supports_listing:
        listed = sync(_listed(store, array.path))
        stored = [key in listed for key in keys]
    else:
        stored = [True] * len(keys)
    return np.array(stored, dtype=bool).reshape(grid)


def _holds_bytes(path: Path) -> bool:
    """Return whether a file exists and is not empty, as one that was being copied may be."""
    try:
        return os.path.getsize(path) > 0
    except (FileNotFoundError, NotADirectoryError):
        return False


async def _listed(store: Any, prefix: str) -> set[str]:
    """Return the keys of a store that begin with a prefix."""
    return {key async for key in store.list_prefix(prefix)}


def unmark_lost(group: Any) -> None:
    """Take the marks of chunks that the store has lost, so that they are embedded again.

    Parameters
    ----------
    group : zarr.Group
        A group that is begun. One of an earlier version, which wrote no chunks of zeros, is left
        as it is.
    """
    if "embedding" not in group.attrs.get(_WHOLE, ()):
        return
    with undamaged():
        marked, embedding = group["done"][:], group["embedding"]
    kept = marked & _are_stored(embedding).all(axis=1)
    if (kept != marked).any():
        with written():
            group["done"][:] = kept


def _check_whole(group: Any) -> None:
    """Raise a KeyError if an array is lost that is written when the group is begun."""
    for name in group.attrs.get(_WHOLE, ()):
        if name != "embedding" and not _are_stored(group[name]).all():
            raise KeyError(f"chunks of {name}")


def check_same(group: Any, contents: Contents, chunk_size: int | None) -> int:
    """Raise unless a group was begun with this source and transformer; return its chunk size.

    Parameters
    ----------
    group : zarr.Group
        A group that is begun.
    contents : Contents
        What this run would embed.
    chunk_size : int or None
        Number of windows in a chunk; None means that of the group.

    Returns
    -------
    int
        Number of windows in a chunk of the group.

    Raises
    ------
    ValueError
        If the group was begun with another source, transformer or `chunk_size`, or is damaged.
    """
    _, embedded, n_windows = contents
    with undamaged():
        _check_whole(group)
        source, sample = group.attrs["source"], group["sample"][:]
        done, embedding = group["done"], group["embedding"]
    if source != contents.fingerprint:
        raise ValueError(
            f"sink was begun with another source, or its windows have changed. {_REMEDY}"
        )
    if not _are_same(sample, embedded):
        raise ValueError(
            "sink was begun with another transformer: a sample of the source has other embeddings."
            f" {_REMEDY}"
        )
    present = min(int(embedding.chunks[0]), n_windows)
    if embedding.shape != (n_windows, embedded.shape[1]) or done.shape != embedding.cdata_shape[:1]:
        raise ValueError(
            f"sink holds files that are damaged: embedding has shape {embedding.shape}, done"
            f" {done.shape}. {_REMEDY}"
        )
    if chunk_size is not None and min(chunk_size, n_windows) != present:
        raise ValueError(
            f"sink was begun with chunk_size={present}, got {chunk_size}: leave chunk_size out."
            f" {_REMEDY}"
        )
    return present


def _are_same(before: NDArray[Any], embedded: NDArray[Any]) -> bool:
    """Return whether a sample has the same embeddings as before, up to rounding."""
    if (before.shape, before.dtype) != (embedded.shape, embedded.dtype):
        return False
    # Another processor may round otherwise; another transformer is further away in some column.
    largest = np.where(np.isfinite(before), np.abs(before), 0.0).max(axis=0, initial=0.0)
    overall = largest.max(initial=0.0)
    near = np.maximum(1e-3 * largest, 1e-6 * overall)
    far = ~np.isclose(before, embedded, rtol=1e-3, atol=near, equal_nan=True)
    # The closed form rounds to hundredths, of which a few become the next: hardly two in a column.
    are_few = far.sum() <= _FEW * far.size and far.sum(axis=0).max(initial=0) <= 1
    return bool(
        are_few and np.isclose(before[far], embedded[far], rtol=0.0, atol=1e-2 * overall).all()
    )
