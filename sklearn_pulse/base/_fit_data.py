"""Input of `fit`, and the parts that it is divided into."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._data._batches import WindowBatches


@contextlib.contextmanager
def errors_of(name: str) -> Iterator[None]:
    """Let errors about the input, which call it X, begin with the name of the argument.

    Examples
    --------
    >>> with errors_of("X_val"):
    ...     raise ValueError("X has 1 channels.")
    Traceback (most recent call last):
    ...
    ValueError: X_val: X has 1 channels.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {error}") from error


def rows_of(part: Any) -> NDArray[np.intp]:
    """Return the numbers of rows that a hook of a method chose, which may be a mask.

    Examples
    --------
    >>> rows_of([True, False, True])
    array([0, 2])
    """
    rows = np.asarray(part)
    return np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.intp, copy=False)


class FitData(NamedTuple):
    """Arguments of `fit`; a method reads those that it takes.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_timesteps, n_channels)
        Windows.
    y : array-like of shape (n_samples,), default=None
        Labels.
    groups : array-like of shape (n_samples,), default=None
        Recording or subject of each sample.
    X_val : array-like, default=None
        Samples to validate on.
    y_val : array-like, default=None
        Labels of `X_val`.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each sample.

    Examples
    --------
    >>> from sklearn_pulse.base import FitData
    >>> data = FitData([[[0.0], [1.0]]], groups=["anna"])
    >>> data.groups
    ['anna']
    >>> data.y is None
    True
    """

    X: ArrayLike
    y: ArrayLike | None = None
    groups: ArrayLike | None = None
    X_val: ArrayLike | None = None
    y_val: ArrayLike | None = None
    sample_weight: ArrayLike | None = None


class Parts(NamedTuple):
    """Checked input of `fit`, divided into batches to train and to validate on.

    Parameters
    ----------
    train : WindowBatches
        Batches to train on.
    valid : WindowBatches or None
        Batches to validate on; None leaves validation out.
    settings : dict, default={}
        Settings of the net, in addition to those that the parameters give.
    samples : object, default=None
        Checked samples for the work that follows the training.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from sklearn_pulse.base import CheckedWindows, Parts, WindowBatches
    >>> windows = CheckedWindows(np.zeros((6, 8, 2)))
    >>> train = WindowBatches(windows, np.arange(6), torch.device("cpu"))
    >>> len(Parts(train, valid=None).train)
    6
    """

    train: WindowBatches
    valid: WindowBatches | None
    settings: dict[str, Any] = {}
    samples: Any = None
