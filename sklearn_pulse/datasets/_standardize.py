"""Z-scores of a recording's channels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def standardize(signals: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Subtract each channel's mean and divide by its population standard deviation.

    Parameters
    ----------
    signals : ndarray of shape (n_timesteps, n_channels)
        Signals without NaN.

    Returns
    -------
    standardized : ndarray of shape (n_timesteps, n_channels)
        Z-scores, which have no unit. A constant channel becomes zero, and a channel whose
        deviation is beyond a float becomes NaN.

    Examples
    --------
    >>> import numpy as np
    >>> standardize(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    scale = signals.std(axis=0)
    scale[np.isinf(scale)] = np.nan
    # Rounding errors can make the computed deviation of a constant channel positive.
    scale[np.ptp(signals, axis=0) == 0] = np.inf
    return (signals - signals.mean(axis=0)) / scale
