"""Fit of the closed form on a corpus, its sums computed by workers."""

from __future__ import annotations

from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from .._cross_prediction import CrossPredictionTransformer
from .._data._precision import warn_of_lost_variation
from .._data._windows import CheckedWindows
from .._groups import is_dask
from .._parameters import check_n_jobs
from .._typing import InputLayout
from ._source import DaskWindows, as_source, check_channels_last, sampled
from ._spread import spread


def fit_dataset(
    transformer: CrossPredictionTransformer,
    source: Any,
    *,
    groups: ArrayLike | None = None,
    start: ArrayLike | None = None,
    recording: ArrayLike | None = None,
    length: int | None = None,
    stride: int | None = None,
    input_layout: InputLayout = "ntc",
    n_jobs: int | None = None,
) -> CrossPredictionTransformer:
    """Fit the closed form on a corpus that is larger than memory.

    The scales and principal components come from a sample, as in ``fit``. The moments are sums over
    pieces of windows, each computed in float64 by a worker of the active Dask client, or of joblib.
    The pieces and the order of their sums depend on the number of windows alone.

    Parameters
    ----------
    transformer : CrossPredictionTransformer
        The transformer, which is fitted in place.
    source : path-like, dask.array.Array, zarr.Array, ndarray or LazyWindows
        The windows, as in :func:`embed_dataset`; a Dask array must be 3-D.
    groups : array-like of shape (n_windows,) or None, default=None
        Person of each window, and its recording, unless `recording`, lazy windows or folders tell
        it; as in ``fit``.
    start : array-like of shape (n_windows,) or None, default=None
        Time of each window in its recording. None means that the windows of a recording are given
        in order, without gaps.
    recording : array-like of shape (n_windows,) or None, default=None
        Recording of each window, if `groups` are people who have several.
    length : int or None, default=None
        Number of time steps of a window, only for a folder.
    stride : int or None, default=None
        Number of time steps between the starts of two windows, only for a folder. None means
        `length`.
    input_layout : {"ntc", "nct"}, default="ntc"
        Order of the axes of the files, only for a folder: "nct" is (n_channels, n_timesteps). The
        transformer itself knows the layout of arrays.
    n_jobs : int or None, default=None
        Number of processes, as in joblib, where no Dask client is active. None means 1, or what
        ``joblib.parallel_config`` says.

    Returns
    -------
    CrossPredictionTransformer
        The fitted transformer.

    Raises
    ------
    TypeError
        If `transformer` is another estimator, or an argument is of a wrong kind.
    ValueError
        If an argument is out of its range, or ``transformer.fit`` refuses the windows.

    See Also
    --------
    embed_dataset : Embed the same sources.

    Notes
    -----
    The result has the bits of ``transformer.fit`` on the windows in memory, with any number of
    workers, if `num_threads` of the transformer is set.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse import CrossPredictionTransformer
    >>> from sklearn_pulse.corpus import fit_dataset
    >>> X = np.random.default_rng(0).normal(size=(40, 64, 3))
    >>> cross = CrossPredictionTransformer(num_kernels=84, embedding_dim=32, random_state=0)
    >>> fit_dataset(cross, X, groups=np.arange(40) // 10).n_pairs_
    36
    """
    if not isinstance(transformer, CrossPredictionTransformer):
        raise TypeError(
            "fit_dataset takes a CrossPredictionTransformer, got"
            f" {type(transformer).__name__}: call its own fit, which reads lazy windows too."
        )
    check_n_jobs(n_jobs)
    windows = as_source(source, length, stride, input_layout)
    check_channels_last(transformer, source, "fit_dataset")
    if is_dask(windows):
        if windows.ndim != 3:
            remedy = "give univariate windows a last axis of length 1"
            if windows.ndim == 4:
                remedy = "reshape bags to windows, and pass the bag of each window as groups"
            raise ValueError(
                f"source must be a 3-D Dask array, got shape {windows.shape}: {remedy}."
            )
        warn_of_lost_variation(CheckedWindows(sampled(windows)))  # lazy windows are float32
        windows = DaskWindows(windows)
    run = partial(spread, n_jobs=n_jobs)
    return transformer._fit_in_pieces(run, windows, groups, start, recording)
