"""Embedding of a test signal by a model that was read from a file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LARGEST = 2**18  # values of a window that is embedded as a test
_WIDEST = 2**16  # features of such a window, each of which may cost a call of NumPy
_ROUNDING = 0.05  # by which embeddings may differ: kernels of a GPU need not repeat their bits


def check_embedding(estimator: Any) -> NDArray[Any] | None:
    """Raise unless a fitted transformer embeds a plain test signal as finite numbers.

    Finite weights can overflow where they are multiplied. Windows too large to be embedded in
    passing, and very wide embeddings, are left out: `transform` finds what is not finite there.

    Parameters
    ----------
    estimator : transformer
        A fitted transformer of windows.

    Returns
    -------
    ndarray of shape (1, n_features), or None
        The embedding; None where it was left out.

    Raises
    ------
    ValueError
        If the embedding of the signal is NaN or infinite.
    """
    n_timesteps, n_channels = estimator._probe_length(), estimator.n_channels_in_
    if n_timesteps * n_channels > _LARGEST or estimator._n_features_out > _WIDEST:
        return None
    time = np.arange(n_timesteps, dtype=np.float32)[:, np.newaxis]
    x = _amplitude(estimator) * np.sin(0.3 * time + np.arange(n_channels, dtype=np.float32))
    if estimator._layout == "nct":
        x = x.T
    with np.errstate(all="ignore"):
        try:
            embedding = np.asarray(estimator.transform(x[np.newaxis]))
        except (ArithmeticError, ValueError):
            embedding = np.full((1, 1), np.nan)
    if not np.isfinite(embedding).all():
        raise ValueError(
            "its weights are finite, but so large that the embedding of a plain sine is not: fit"
            " again, with a lower lr, and save that."
        )
    return embedding


def _amplitude(estimator: Any) -> NDArray[np.float32]:
    """Return the amplitude of the test signal, by channel: that of the windows of `fit`, or 1."""
    fitted = getattr(estimator, "amplitude_in_", None)
    if fitted is None:
        return np.ones(estimator.n_channels_in_, dtype=np.float32)
    middle = np.mean(fitted, 0)
    with np.errstate(over="ignore"):  # of a file: the embedding is not finite then
        return np.where(np.isnan(middle), 1, middle).astype(np.float32)


def check_alike(estimator: Any, loaded: Any) -> None:
    """Raise unless a transformer that was read back embeds the test signal as the saved one does.

    An objective of a user may embed by what no file holds.

    Parameters
    ----------
    estimator, loaded : transformer
        The fitted transformer, and what was read back on the same device.

    Raises
    ------
    ValueError
        If the embeddings differ.
    """
    ours, theirs = check_embedding(estimator), check_embedding(loaded)
    if ours is None or theirs is None:
        return
    if ours.dtype != theirs.dtype:
        raise ValueError(
            f"what was read back embeds in {theirs.dtype}, and not in {ours.dtype}: a number of"
            " NumPy that fit has kept comes back as one of Python. Keep it as an array, or let"
            " transform cast what it returns."
        )
    if np.abs(ours - theirs).max(initial=0.0) > _ROUNDING * np.abs(ours).max(initial=0.0):
        raise ValueError(
            "what was read back embeds a plain sine as other numbers, so it embeds by something"
            " that is neither a weight nor a buffer: let its modules call register_buffer for it."
        )
