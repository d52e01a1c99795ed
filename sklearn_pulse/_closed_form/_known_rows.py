"""Principal components that a fit knows, found by the values of the windows."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from .._data._windows import Block

Rows = NDArray[np.float32]


class KnownRows:
    """Rows of windows, each found by the values of its window.

    A row depends on no other window, so that a known row has the bits of one that is computed.

    Examples
    --------
    >>> import numpy as np
    >>> known = KnownRows()
    >>> windows = Block(np.ones((1, 4, 2), dtype=np.float32), None)
    >>> known.add(windows, np.array([[5.0]], dtype=np.float32))
    >>> known.rows_of(windows, lambda others: others.x[:, 0])
    array([[5.]], dtype=float32)
    """

    def __init__(self) -> None:
        self._rows: dict[bytes, Rows] = {}

    def add(self, block: Block, rows: Rows) -> None:
        """Keep the rows of some windows, of shape (n, n_columns)."""
        self._rows.update(zip(_digests(block), rows, strict=True))

    def rows_of(self, block: Block, compute: Callable[[Block], Rows]) -> Rows:
        """Return the rows of some windows, computing those that are not known."""
        found = [self._rows.get(digest) for digest in _digests(block)]
        unknown = np.flatnonzero([row is None for row in found])
        if len(unknown) == len(found):
            return compute(block)
        if len(unknown):
            observed = None if block.observed is None else block.observed[unknown]
            computed = compute(Block(block.x[unknown], observed))
            for number, row in zip(unknown.tolist(), computed, strict=True):
                found[number] = row
        return np.stack([row for row in found if row is not None])


def _digests(block: Block) -> list[bytes]:
    """Return a digest of the values and the observed steps of each window."""
    n, n_timesteps, _ = block.x.shape
    observed = np.ones((n, n_timesteps), dtype=bool) if block.observed is None else block.observed
    return [
        blake2b(seen.tobytes() + x.tobytes(), digest_size=16).digest()
        for x, seen in zip(block.x, observed, strict=True)
    ]
