"""Windows whose channels are scaled to mean 0 and standard deviation 1."""

from __future__ import annotations

import numpy as np

from .._data._windows import Block
from ._channels import channels_first


def standardized(block: Block) -> Block:
    """Return windows whose channels have mean 0 and standard deviation 1 over observed steps.

    A constant channel becomes zero. Missing steps stay zero, and count nowhere.

    Parameters
    ----------
    block : Block
        Windows of shape (n, n_timesteps, n_channels), zero at missing steps.

    Returns
    -------
    Block
        The windows in float32, with the same observed steps.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[[2.0, 5.0], [4.0, 5.0]]])
    >>> standardized(Block(x, None)).x.tolist()
    [[[-1.0, 0.0], [1.0, 0.0]]]
    """
    signal = channels_first(block)
    seen, number = np.ones((1, 1, 1), dtype=bool), np.float64(signal.shape[-1])
    if block.observed is not None:
        seen = block.observed[:, None, :]
        number = np.maximum(seen.sum(-1, keepdims=True), 1)
    signal -= signal.sum(-1, keepdims=True) / number
    signal *= seen
    deviation = np.sqrt(np.square(signal).sum(-1, keepdims=True) / number)
    varies = deviation > 0  # exactly 0 for a constant: float64 adds up equal float32 exactly
    signal = np.where(varies, signal / np.where(varies, deviation, 1.0), 0.0)
    return Block(np.ascontiguousarray(signal.swapaxes(1, 2), dtype=np.float32), block.observed)
