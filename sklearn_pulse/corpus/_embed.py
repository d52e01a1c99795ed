"""Embedding of a corpus, chunk by chunk, into Zarr."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from .._parameters import as_path, check_integer, check_n_jobs, check_verbose
from .._pipelines import steps_of
from .._progress import progress_bar
from .._typing import InputLayout
from ..preprocessing import WindowScaler
from ._sink import (
    Contents,
    begin,
    check_same,
    check_shareable,
    for_workers,
    holds_chunks,
    open_sink,
    reopened,
    undamaged,
    unmark_lost,
    written,
)
from ._source import (
    as_source,
    check_channels_last,
    default_chunk,
    file_names,
    fingerprint,
    handed_over,
    known_places,
    read,
    sampled,
)
from ._spread import active_client, spread, stays_here


def embed_dataset(
    transformer: Any,
    source: Any,
    sink: str | os.PathLike[str] | Any,
    *,
    length: int | None = None,
    stride: int | None = None,
    input_layout: InputLayout = "ntc",
    chunk_size: int | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Any:
    """Embed a corpus that is larger than memory into a Zarr group.

    The windows are read, embedded and written a chunk at a time, so that memory does not grow with
    their number. A run that was killed goes on where it stopped when it is called again. Where a
    Dask client is active, its workers read, embed and write the chunks; at most two chunks per
    thread of a worker are under way.

    Parameters
    ----------
    transformer : estimator
        A fitted transformer or pipeline. The embedding of a window must not depend on other
        windows. In this package, only ``WindowScaler(per="recording")`` breaks this rule: apply it
        to lazy windows first, and embed the windows that it returns. The embeddings have the bits
        of ``transformer.transform``.
    source : path-like, dask.array.Array, zarr.Array, ndarray or LazyWindows
        The windows: a Dask array, an array of Zarr or of NumPy, of the shapes that the transformer
        takes; lazy windows; or a folder with a file ``*.npy`` per recording, of shape
        (n_timesteps, n_channels) or (n_timesteps,), also in folders below it, which are cut into
        windows.
    sink : path-like or zarr.Group
        Where the embeddings go: a path, also as an address (``file:///...``), or a group. All
        processes and machines that compute must reach it.
    length : int or None, default=None
        Number of time steps of a window, only for a folder.
    stride : int or None, default=None
        Number of time steps between the starts of two windows, only for a folder. None means
        `length`.
    input_layout : {"ntc", "nct"}, default="ntc"
        Order of the axes of the files, only for a folder: "nct" is (n_channels, n_timesteps). The
        transformer itself knows the layout of arrays.
    chunk_size : int or None, default=None
        Number of windows in a chunk. None means a block of a Dask array, otherwise 16 MiB of
        windows and at most 4096.
    n_jobs : int or None, default=None
        Number of processes, as in joblib, where no Dask client is active. None means 1, or what
        ``joblib.parallel_config`` says.
    verbose : int, default=0
        Whether to show a progress bar.

    Returns
    -------
    zarr.Group
        The group: ``embedding`` of shape (n_windows, n_features); ``recording`` and ``start`` of
        each window, if they are known, and in the attribute ``recordings`` the file of each
        recording (None for one without a file; empty if there are no files); ``done``, which chunks
        are complete; ``sample``, the embeddings by which a later call recognises the transformer.

    Raises
    ------
    ImportError
        If zarr is not installed.
    OSError
        If a file cannot be read or written.
    TypeError
        If an argument is of a wrong kind.
    ValueError
        If an argument is out of its range; if the sink was begun with another transformer or
        source, holds damaged files, or is not found by a process; or if the transformer refuses
        windows, for example those without a finite step (Notes).

    See Also
    --------
    fit_dataset : Fit the closed form on the same sources.

    Notes
    -----
    A source is recognised by its shape, by eight windows that are spread over it, by the places
    of lazy windows and by the names of files. A transformer is recognised by the embeddings of
    these eight windows. A change of other windows goes unnoticed.

    A window without a finite step, as where an electrode was off, has no embedding. Leave such
    windows out by ``X[X.observed_windows()]``, where X are the lazy windows that
    ``sliding_windows(open_recordings(folder), length, lazy=True).X`` cuts from a folder;
    `recording` and `start` say which windows the rows are.

    A chunk counts as complete once it is written and its mark in ``done`` is set. A chunk that a
    killed run has left half written has no mark, and is written again. A chunk that has a mark and
    that the sink has lost, as a copy that was interrupted may, is embedded again; one whose bytes
    have changed raises an error when it is read, and is embedded again once its mark is taken:
    ``group["done"][row // group["embedding"].chunks[0]] = False``, where `row` is one of its rows.
    A sink without a complete chunk is begun anew, with any transformer and source. Only one process
    at a time should fill a sink, with any number of workers: a second process may undo marks of the
    first, so that some chunks are embedded twice, or begin the sink anew, which ends the first.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sklearn_pulse.corpus import embed_dataset
    >>> from sklearn_pulse.features import StatisticsTransformer
    >>> X = np.random.default_rng(0).normal(size=(40, 64, 3))
    >>> statistics = StatisticsTransformer().fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     group = embed_dataset(statistics, X, f"{folder}/embedding.zarr", chunk_size=16)
    ...     bool((group["embedding"][:] == statistics.transform(X)).all())
    True
    """
    check_verbose(verbose)
    check_n_jobs(n_jobs)
    if chunk_size is not None:
        check_integer("chunk_size", chunk_size, 1)
    if not hasattr(transformer, "transform"):
        raise TypeError(
            f"transformer must have a method transform, which {type(transformer).__name__} has not:"
            " of a pipeline that ends in a classifier or a regressor pass pipeline[:-1]."
        )
    windows = as_source(source, length, stride, input_layout)
    check_channels_last(transformer, source, "embed_dataset")
    _check_apart(source, sink)
    group = open_sink(sink)
    if not stays_here(n_jobs):
        check_shareable(group)
    chunks = _prepare(transformer, windows, group, chunk_size)
    n_left = sum(chunk.stop - chunk.start for chunk in chunks)
    if not chunks:
        return group
    shared: list[Any] = [transformer, for_workers(group["embedding"])]
    calls: Iterable[tuple[Any, ...]]
    if stays_here(n_jobs):
        calls = ((windows, chunk, chunk) for chunk in chunks)
    elif active_client() is None:
        calls = ((*handed_over(windows, chunk), chunk) for chunk in chunks)
    else:  # Dask sends each worker the shared objects once
        shared, calls = [*shared, windows], ((chunk, chunk) for chunk in chunks)
    results = spread(_embed_chunk, shared, calls, n_jobs=n_jobs, ordered=False)
    size, done = int(group["embedding"].chunks[0]), group["done"]
    bar = progress_bar("embedding", n_left, "window", shown=bool(verbose))
    with closing(results), bar as advance:  # an error, too, sets joblib and Dask back
        for first, last in results:
            with written():
                done[first // size] = True
            advance(last - first)
    return group


def _check_apart(source: Any, sink: Any) -> None:
    """Raise if the sink is the folder of the recordings, which no later call would read as one."""
    if not all(isinstance(place, str | os.PathLike) for place in (source, sink)):
        return
    if as_path("sink", sink).resolve() == as_path("source", source).resolve():
        raise ValueError(
            f"sink={os.fspath(sink)!r} is the folder of the recordings: name another one, which may"
            " lie in it."
        )


def _prepare(transformer: Any, windows: Any, group: Any, chunk_size: int | None) -> list[slice]:
    """Begin a group, or check that this run continues it; return the chunks that are left."""
    if len(windows.shape) == 3:
        _check_by_window(transformer)
    sample = sampled(windows)
    n_windows = int(windows.shape[0])
    try:
        embedded = _embedded(transformer, sample)
    except NotFittedError:  # which is a ValueError too
        raise
    except ValueError as error:
        numbers = sampled(np.arange(n_windows)).tolist()
        raise ValueError(
            f"windows {', '.join(map(str, numbers))} of source (in this order samples 0 to"
            f" {len(numbers) - 1}): {error}"
        ) from error
    contents = Contents(fingerprint(windows, sample), embedded, n_windows)
    with undamaged():
        goes_on = holds_chunks(group)
    if goes_on:
        size = check_same(group, contents, chunk_size)
        unmark_lost(group)
    else:  # an earlier run whose first chunk was refused leaves nothing to keep
        size = min(int(chunk_size or default_chunk(windows)), n_windows)  # Zarr fills a whole chunk
        places, names = known_places(windows), file_names(windows)
        with written():
            begin(group, contents, size, places, names)
    with undamaged():
        left = np.flatnonzero(~group["done"][:]).tolist()
    return [slice(size * i, min(size * (i + 1), n_windows)) for i in left]


def _check_by_window(transformer: Any) -> None:
    """Raise if a step scales by recording, of which a chunk holds a part."""
    if any(isinstance(x, WindowScaler) and x._per == "recording" for x in steps_of(transformer)):
        raise ValueError(
            "transformer holds WindowScaler(per='recording'), which needs whole recordings, but"
            " windows are embedded in chunks: let it transform lazy windows first, and pass what it"
            " returns as source, together with the steps behind it."
        )


def _embed_chunk(
    transformer: Any, embedding: Any, windows: Any, rows: slice, chunk: slice
) -> tuple[int, int]:
    """Read, embed and write a chunk; return its first window and the window after its last.

    The chunk has the numbers `chunk` in the source, and `rows` in `windows`, which may be a part
    of the source.
    """
    try:
        embedded = _embedded(transformer, read(windows, rows))
        _check_alike(embedded, embedding)
    except ValueError as error:
        raise ValueError(
            f"windows {chunk.start} to {chunk.stop - 1} of source (sample 0 is window"
            f" {chunk.start}): {error}"
        ) from error
    found = reopened(embedding)  # not before the chunk is embedded, which may take long
    with written():
        found[chunk] = embedded
    return chunk.start, chunk.stop


def _embedded(transformer: Any, windows: Any) -> NDArray[Any]:
    """Return the embeddings of windows; raise unless these are a row of numbers per window."""
    rows = np.asarray(transformer.transform(windows))
    if rows.ndim != 2 or len(rows) != windows.shape[0]:
        raise ValueError(
            f"transformer gives shape {rows.shape} for {windows.shape[0]} windows: embed_dataset"
            " needs a row of features per window."
        )
    if rows.dtype.kind not in "biufc":
        raise ValueError(
            f"transformer gives values of type {rows.dtype}: embed_dataset needs a row of numbers"
            " per window."
        )
    return rows


def _check_alike(embedded: NDArray[Any], embedding: Any) -> None:
    """Raise unless a chunk has the features of the sink: Zarr would broadcast and cast it."""
    given, expected = embedded.shape[1], embedding.shape[1]
    if given != expected or not np.can_cast(embedded.dtype, embedding.dtype):
        raise ValueError(
            f"transformer gives {given} features of type {embedded.dtype}, but {expected} of type"
            f" {embedding.dtype} for the sample of windows that the sink was begun with:"
            " embed_dataset needs the same features, of one type, for all windows."
        )
