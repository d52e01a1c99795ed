"""Calls of one function, run by joblib here or on the workers of a Dask client."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs, parallel_config


def active_client() -> Any:
    """Return the Dask client of this process, or None; distributed is not imported for it."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def stays_here(n_jobs: int | None) -> bool:
    """Return whether calls run one by one in this process."""
    return active_client() is None and effective_n_jobs(n_jobs) == 1


def spread(
    function: Callable[..., Any],
    shared: Sequence[Any],
    calls: Sequence[tuple[Any, ...]],
    *,
    n_jobs: int | None = None,
    ordered: bool = True,
) -> Iterator[Any]:
    """Call a function many times; at most two calls per worker wait or run.

    Parameters
    ----------
    function : callable
        The function.
    shared : sequence
        First arguments of every call. Each worker of a Dask client gets one copy, so that the
        death of another worker loses nothing.
    calls : sequence of tuple
        Further arguments of each call.
    n_jobs : int or None, default=None
        Number of processes, where no Dask client is active; None means 1, or what
        :func:`joblib.parallel_config` says.
    ordered : bool, default=True
        Whether results come in the order of the calls, or as they are ready.

    Yields
    ------
    Any
        The results.
    """
    if stays_here(n_jobs):
        for call in calls:
            yield function(*shared, *call)
        return
    on_cluster = active_client() is not None
    engine = parallel_config("dask", scatter=list(shared)) if on_cluster else nullcontext()
    with engine:
        parallel = Parallel(
            n_jobs=n_jobs,
            batch_size=1,
            pre_dispatch="2 * n_jobs",
            return_as="generator" if ordered else "generator_unordered",
        )
        yield from parallel(delayed(function)(*shared, *call) for call in calls)
