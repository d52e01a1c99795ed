"""Batches of windows with embeddings that were computed once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from .._training._iterator import Batch
from ._batches import WindowBatches
from ._windows import Block, CheckedWindows

_CHUNK = 256  # windows that are embedded at once


class EmbeddedBatches(WindowBatches):
    """Batches of windows, each with the embedding of a fixed encoder.

    Parameters
    ----------
    windows : CheckedWindows
        Checked input.
    index : array of int
        Numbers of the windows in the data set.
    device : torch.device
        Device of the batches.
    embed : callable
        Function from a block of windows to their embeddings, of shape (n, embedding_dim). It is
        called once per window.
    """

    def __init__(
        self,
        windows: CheckedWindows,
        index: NDArray[np.intp],
        device: torch.device,
        embed: Callable[[Block], NDArray[np.float32]],
    ) -> None:
        super().__init__(windows, index, device)
        chunks = [index[first : first + _CHUNK] for first in range(0, len(index), _CHUNK)]
        rows = [torch.from_numpy(embed(windows.take(chunk))) for chunk in chunks]
        self.embedding = torch.cat(rows) if rows else torch.empty(0, 0)

    def __getitem__(self, index: torch.Tensor) -> Batch:
        return super().__getitem__(index) | {"embedding": self.embedding[index].to(self.device)}

    def _n_values(self) -> int:
        return super()._n_values() + self.embedding.shape[1]
