"""Embedding of a test signal by a model that was read from a file."""

from __future__ import annotations

from typing import Any

import numpy as np

_LARGEST = 2**18  # values of a window that is embedded as a test


def check_embedding(estimator: Any) -> None:
    """Raise unless a fitted transformer embeds a plain test signal as finite numbers.

    Finite weights can overflow where they are multiplied. Windows too large to be embedded in
    passing are left out: `transform` finds what is not finite there.

    Parameters
    ----------
    estimator : transformer
        A fitted transformer of windows.

    Raises
    ------
    ValueError
        If the embedding of the signal is NaN or infinite.
    """
    n_timesteps, n_channels = estimator._probe_length(), estimator.n_channels_in_
    if n_timesteps * n_channels > _LARGEST:
        return
    time = np.arange(n_timesteps, dtype=np.float32)[:, np.newaxis]
    x = np.sin(0.3 * time + np.arange(n_channels, dtype=np.float32))
    if estimator._layout == "nct":
        x = x.T
    with np.errstate(all="ignore"):
        try:
            finite = np.isfinite(np.asarray(estimator.transform(x[np.newaxis]))).all()
        except (ArithmeticError, ValueError):
            finite = False
    if not finite:
        raise ValueError(
            "its weights are finite, but so large that the embedding of a plain sine is not: fit"
            " again, with a lower lr, and save that."
        )
