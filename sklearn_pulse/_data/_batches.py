"""Batches of checked windows on a device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from .._training._iterator import Batch, BatchDataset, ResidentBatches
from ._windows import Block, CheckedWindows


class WindowBatches(Dataset[Batch]):
    """Batches gathered from checked windows; the input stays where it is.

    A subclass may add tensors in `__getitem__`; one that some batches lack, such as the mask of
    another window, is named in the class attribute `_masks`, with the tensor that it masks.

    Parameters
    ----------
    windows : CheckedWindows
        Checked input.
    index : array of int
        Numbers of the windows in the data set.
    device : torch.device
        Device of the batches.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from sklearn_pulse.base import CheckedWindows, WindowBatches
    >>> windows = CheckedWindows(np.zeros((6, 8, 2)))
    >>> batches = WindowBatches(windows, np.arange(6), torch.device("cpu"))
    >>> batches[torch.tensor([0, 5])]["x"].shape
    torch.Size([2, 8, 2])
    """

    _masks = {"observed": "x"}  # masks that a batch may lack, and their tensors

    def __init__(
        self, windows: CheckedWindows, index: NDArray[np.intp], device: torch.device
    ) -> None:
        self.windows = windows
        self.index = index
        self.device = device

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, index: torch.Tensor) -> Batch:
        return as_batch(self.windows.take(self.index[index.numpy()]), self.device)

    def contents(self) -> Iterator[Batch]:
        """Yield all that batches are made of, in order, by which a checkpoint tells runs apart."""
        for index in torch.arange(len(self)).split(1024):
            yield self[index]

    def resident(self) -> BatchDataset:
        """Move all windows to a GPU that has room for them.

        Returns
        -------
        BatchDataset
            Batches of tensors on the GPU or, without a GPU or room on it, these batches.
        """
        n_bytes = 4 * self.index.size * self._n_values()
        if self.device.type != "cuda" or n_bytes > torch.cuda.mem_get_info(self.device)[0] // 2:
            return self
        blocks = [self[block] for block in torch.arange(len(self)).split(4096)]
        return ResidentBatches(**join_batches(blocks, self._masks))

    def _n_values(self) -> int:
        """Return the approximate number of values that a batch holds per window."""
        return self.windows.n_timesteps * self.windows.n_channels


def join_batches(batches: list[Batch], masks: dict[str, str]) -> Batch:
    """Concatenate batches; every step counts as observed in a batch that lacks a mask."""
    joined = {}
    for name in {name: None for batch in batches for name in batch}:
        parts = [
            batch[name] if name in batch else torch.ones_like(batch[masks[name]][..., 0]).bool()
            for batch in batches
        ]
        joined[name] = torch.cat(parts)
    return joined


def as_batch(block: Block, device: torch.device) -> Batch:
    """Put a block on a device; a copy to a GPU runs while the host works on."""
    batch = {"x": torch.from_numpy(block.x)}
    if block.observed is not None:
        batch["observed"] = torch.from_numpy(block.observed)
    if device.type != "cuda":  # an asynchronous copy would read memory that may be gone by then
        return {name: value.to(device) for name, value in batch.items()}
    return {  # copies are asynchronous from pinned memory only
        name: value.pin_memory().to(device, non_blocking=True) for name, value in batch.items()
    }


def stream_blocks(
    windows: CheckedWindows, size: int, device: torch.device
) -> Iterator[tuple[NDArray[np.intp], Block, Batch]]:
    """Yield all windows in blocks of `size`; the last block is filled up with zeros.

    A CUDA stream of its own copies the next block to a GPU while the block before it is worked
    on. So two blocks are on the device at a time, however many there are.
    """
    copies = torch.cuda.Stream(device) if device.type == "cuda" else None
    waiting = None
    for start in range(0, len(windows), size):
        index = np.arange(start, min(start + size, len(windows)))
        block = windows.take(index)
        with torch.cuda.stream(copies):
            batch = as_batch(fill_up(block, size), device)
            copied = None if copies is None else copies.record_event()
        if waiting is not None:
            yield _arrived(*waiting)
        waiting = index, block, batch, copied
    if waiting is not None:
        yield _arrived(*waiting)


def _arrived(
    index: NDArray[np.intp], block: Block, batch: Batch, copied: torch.cuda.Event | None
) -> tuple[NDArray[np.intp], Block, Batch]:
    """Make the current CUDA stream wait for the copy of a block, and keep the block's memory."""
    if copied is not None:
        for value in batch.values():
            current = torch.cuda.current_stream(value.device)
            current.wait_event(copied)
            value.record_stream(current)
    return index, block, batch


def fill_up(block: Block, size: int) -> Block:
    """Append windows of zeros to a block until it holds `size`."""
    missing = size - len(block.x)
    if not missing:
        return block
    x = np.concatenate([block.x, np.zeros((missing, *block.x.shape[1:]), np.float32)])
    if block.observed is None:
        return Block(x, None)
    return Block(x, np.concatenate([block.observed, np.ones((missing, x.shape[1]), bool)]))
