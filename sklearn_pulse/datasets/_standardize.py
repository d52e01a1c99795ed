"""The z-score of a recording's channels."""

from __future__ import annotations

import numpy as np


def standardize(signals: np.ndarray) -> np.ndarray:
    """Subtract each channel's mean and divide by its population standard deviation.

    Parameters
    ----------
    signals : ndarray of shape (n_timesteps, n_channels)
        Without NaN. A constant channel becomes zero.

    Returns
    -------
    standardized : ndarray of shape (n_timesteps, n_channels)
        Without unit.

    Examples
    --------
    >>> import numpy as np
    >>> standardize(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    scale = signals.std(axis=0)
    # The computed deviation of a constant can be a rounding error above zero.
    scale[np.ptp(signals, axis=0) == 0] = np.inf
    return (signals - signals.mean(axis=0)) / scale
