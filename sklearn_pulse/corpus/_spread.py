"""Calls of one function, run by joblib here or on the workers of a Dask client."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
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


@contextmanager
def dask_workers(*data: Any) -> Iterator[None]:
    """Let joblib run on the workers of the active Dask client, each of which keeps some data.

    Inside, a search of scikit-learn sends its fits to the workers. The data are sent once, and no
    data are lost as long as one worker lives: Dask's memory manager, which would keep a single
    copy of them, pauses.

    Parameters
    ----------
    *data : object, or list of tuple of object
        What each fit needs: ``X``, ``y``, and the folds as a list, which must be the objects that
        the search is given.

    Raises
    ------
    RuntimeError
        If no Dask client is active.

    See Also
    --------
    embed_dataset : Embed a corpus; it finds the workers by itself.

    Notes
    -----
    Under joblib's own ``parallel_config("dask")``, the indices of the folds lie on a single
    worker, and what `scatter` copies to all workers is reduced to a single copy after seconds.
    When the worker with this copy dies, the search fails. Its `scatter` also waits for ever if the
    same data were released a moment before, for example by another search.

    Examples
    --------
    >>> import numpy as np
    >>> from dask.distributed import Client
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from sklearn_pulse.corpus import dask_workers
    >>> X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    >>> folds = list(KFold(2).split(X))
    >>> search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=folds)
    >>> with Client(processes=False, dashboard_address=":0"), dask_workers(X, y, folds):
    ...     len(search.fit(X, y).cv_results_["params"])
    2
    """
    client = active_client()
    if client is None:
        raise RuntimeError(
            "No Dask client is active: create one first, for example"
            " dask.distributed.Client('tcp://scheduler:8786')."
        )
    was_running = client.amm.running()
    client.amm.stop()
    values = list(_flat(data))
    try:
        with parallel_config("dask") as config:
            # joblib's own `scatter` names data by their content, and Dask waits for ever where the
            # same content is sent while its last release is on its way (dask/distributed 8576).
            futures = client.scatter(values, broadcast=True, hash=False) if values else []
            config["backend"].data_futures = dict(zip(map(id, values), futures, strict=True))
            yield
    finally:
        if was_running:
            client.amm.start()


def _flat(data: Any) -> Iterator[Any]:
    """Yield the objects in nested lists and tuples."""
    for value in data:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield value


def stays_here(n_jobs: int | None) -> bool:
    """Return whether calls run one by one in this process."""
    return active_client() is None and effective_n_jobs(n_jobs) == 1


def spread(
    function: Callable[..., Any],
    shared: Sequence[Any],
    calls: Iterable[tuple[Any, ...]],
    *,
    n_jobs: int | None = None,
    ordered: bool = True,
) -> Generator[Any, None, None]:
    """Call a function many times; at most two calls per worker wait or run.

    Parameters
    ----------
    function : callable
        The function.
    shared : sequence
        First arguments of every call. Each worker of a Dask client gets one copy.
    calls : iterable of tuple
        Further arguments of each call.
    n_jobs : int or None, default=None
        Number of processes, where no Dask client is active; None means 1, or what
        ``joblib.parallel_config`` says.
    ordered : bool, default=True
        Whether results come in the order of the calls, rather than as soon as they are ready.

    Yields
    ------
    Any
        The results.
    """
    if stays_here(n_jobs):
        for call in calls:
            yield function(*shared, *call)
        return
    with nullcontext() if active_client() is None else dask_workers(*shared):
        parallel = Parallel(
            n_jobs=n_jobs,
            batch_size=1,
            pre_dispatch="2 * n_jobs",
            return_as="generator" if ordered else "generator_unordered",
        )
        yield from parallel(delayed(function)(*shared, *call) for call in calls)
