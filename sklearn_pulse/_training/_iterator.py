"""Batches by index, in an order that a resumed run repeats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor
from torch.utils.data import Dataset

Batch = dict[str, Tensor]


class BatchDataset(Protocol):
    """Data set of the loop: sized, and indexed by a tensor that takes a batch on the device."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Tensor) -> Batch: ...


class ResidentBatches(Dataset[Batch]):
    """Batches taken from tensors that already lie on the device.

    Parameters
    ----------
    **tensors : Tensor of shape (n_samples, ...) or None
        Arguments of the objective; None leaves an argument out.

    Examples
    --------
    >>> import torch
    >>> ResidentBatches(x=torch.arange(4.0), observed=None)[torch.tensor([3, 1])]
    {'x': tensor([3., 1.])}
    """

    def __init__(self, **tensors: Tensor | None) -> None:
        self.tensors = {name: tensor for name, tensor in tensors.items() if tensor is not None}

    def __len__(self) -> int:
        return len(next(iter(self.tensors.values())))

    def __getitem__(self, index: Tensor) -> Batch:
        return {name: tensor[index.to(tensor.device)] for name, tensor in self.tensors.items()}


class BatchIterator:
    """Batches by index: one permutation per epoch, without collating sample by sample.

    The order of an epoch depends on the seed and the epoch's number alone, so that a resumed
    run sees the batches that an uninterrupted one would have seen.

    Parameters
    ----------
    dataset : BatchDataset
        Source of the batches.
    batch_size : int, default=128
        Windows per batch. The last batch may be smaller, down to `min_batch_size`.
    shuffle : bool, default=False
        Whether each epoch draws a new order.
    seed : int, default=0
        Seed of the order.
    min_batch_size : int, default=1
        A smaller last batch joins its predecessor, since contrastive methods need negatives.
    drop_last : bool, default=False
        Whether windows that do not fill a last batch are left out of an epoch. Fewer windows
        than `batch_size` make one batch all the same.
    max_batches : int or None, default=None
        Number of batches in all epochs together; None means no bound.

    Examples
    --------
    >>> import torch
    >>> batches = BatchIterator(ResidentBatches(x=torch.arange(5.0)), batch_size=2)
    >>> [batch["x"].tolist() for batch in batches]
    [[0.0, 1.0], [2.0, 3.0], [4.0]]
    >>> batches = BatchIterator(
    ...     ResidentBatches(x=torch.arange(5.0)), batch_size=2, min_batch_size=2
    ... )
    >>> [batch["x"].tolist() for batch in batches]
    [[0.0, 1.0], [2.0, 3.0, 4.0]]
    """

    def __init__(
        self,
        dataset: BatchDataset,
        batch_size: int = 128,
        shuffle: bool = False,
        seed: int = 0,
        min_batch_size: int = 1,
        drop_last: bool = False,
        max_batches: int | None = None,
    ) -> None:
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.min_batch_size = min_batch_size
        self.drop_last = drop_last
        self.max_batches = max_batches
        self.epoch = 0
        self.position = 0  # batches of the next epoch that a resumed run has done

    def __len__(self) -> int:
        """Return the number of batches in the next epoch."""
        n_batches = self._n_batches
        if self.max_batches is None:
            return n_batches
        return min(n_batches, self.max_batches - self.epoch * n_batches)

    @property
    def smallest(self) -> int:
        """Number of windows of the smallest batch of a whole epoch."""
        n_batches = self._n_batches
        last = len(self.dataset) - (n_batches - 1) * self.batch_size
        return min(last, self.batch_size) if n_batches > 1 or self.drop_last else last

    @property
    def _n_batches(self) -> int:
        """Number of batches in a whole epoch."""
        full, rest = divmod(len(self.dataset), self.batch_size)
        return max(1, full + (not self.drop_last and rest >= self.min_batch_size))

    def __iter__(self) -> Iterator[Batch]:
        order = self._order()
        if self.drop_last:
            order = order[: max(self.batch_size, len(order) // self.batch_size * self.batch_size)]
        first, self.position = self.position, 0
        last, n_batches = self._n_batches - 1, len(self)
        self.epoch += 1
        for i in range(first, n_batches):
            stop = None if i == last else (i + 1) * self.batch_size
            yield self.dataset[order[i * self.batch_size : stop]]

    def _order(self) -> Tensor:
        n_samples = len(self.dataset)
        if not self.shuffle:
            return torch.arange(n_samples)
        # torch reads 32 bits of a seed; the odd factors keep (seed, epoch) pairs apart in them.
        mixed = (self.seed * 0x9E3779B1 + self.epoch * 0x85EBCA77) % 2**32
        return torch.randperm(n_samples, generator=torch.Generator().manual_seed(mixed))
