"""Batches of windows with the embeddings of an encoder that is not trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from .._training._iterator import Batch
from ._batches import WindowBatches
from ._windows import Block, CheckedWindows

# Function from the numbers of some windows, and the windows, to embeddings, (n, embedding_dim).
Embed = Callable[[NDArray[np.intp], Block], NDArray[np.float32]]

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
        Function from the numbers of some windows, and a block of them, to their embeddings, of
        shape (n, embedding_dim). It is called once per window.
    """

    def __init__(
        self,
        windows: CheckedWindows,
        index: NDArray[np.intp],
        device: torch.device,
        embed: Embed,
    ) -> None:
        super().__init__(windows, index, device)
        chunks = [index[first : first + _CHUNK] for first in range(0, len(index), _CHUNK)]
        rows = [torch.from_numpy(embed(chunk, windows.take(chunk))) for chunk in chunks]
        self.embedding = torch.cat(rows) if rows else torch.empty(0, 0)

    def __getitem__(self, index: torch.Tensor) -> Batch:
        return super().__getitem__(index) | {"embedding": self.embedding[index].to(self.device)}

    def _n_values(self) -> int:
        return super()._n_values() + self.embedding.shape[1]


def with_embeddings(
    blocks: Iterable[tuple[NDArray[np.intp], Block, Batch]], embed: Embed
) -> Iterator[tuple[NDArray[np.intp], Block, Batch]]:
    """Add embeddings to blocks of windows; windows that fill a block up get embeddings of zeros."""
    for index, block, batch in blocks:
        rows = torch.from_numpy(embed(index, block))
        embedding = batch["x"].new_zeros(len(batch["x"]), rows.shape[1])
        embedding[: len(rows)] = rows
        yield index, block, batch | {"embedding": embedding}
