"""Batches of labelled windows on a device."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from .._training._iterator import Batch
from ._batches import WindowBatches, as_batch
from ._windows import CheckedWindows


class LabeledWindows(NamedTuple):
    """Some samples of a checked input, with labels or targets, and weights."""

    windows: CheckedWindows
    samples: NDArray[np.intp]  # (n,), numbers of the samples in the input
    y: NDArray[Any]  # (n,), number of each sample's class; (n, n_targets), float64 targets
    weight: NDArray[np.float64]  # (n,), weight of each sample

    def take(self, rows: NDArray[np.intp]) -> LabeledWindows:
        """Return some of the samples."""
        return LabeledWindows(self.windows, self.samples[rows], self.y[rows], self.weight[rows])

    def distinct(self) -> LabeledWindows:
        """Merge samples of the same values, label or targets, and group; their weights add up.

        A sample of weight two then makes the same training set, to the bit, as the sample given
        twice. The distinct samples are ordered by a hash, so their order in the input does not
        matter.

        Examples
        --------
        >>> import numpy as np
        >>> windows = CheckedWindows(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]), "ntc")
        >>> labeled = LabeledWindows(windows, np.arange(3), np.zeros(3, int), np.ones(3))
        >>> sorted(labeled.distinct().weight.tolist())
        [1.0, 2.0]
        """
        y = self.y.reshape(len(self.y), -1).astype(np.float64) + 0.0  # -0.0 becomes 0.0
        keys = np.column_stack([_digests(self.windows)[self.samples], y.view(np.int64)])
        if self.windows.groups is not None:  # which decide what is held out
            group = np.unique(self.windows.groups[self.samples], return_inverse=True)[1]
            keys = np.column_stack([keys, group])
        _, first, kind = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        weight = np.bincount(kind.ravel(), weights=self.weight)
        return self.take(first)._replace(weight=weight.astype(np.float64))


def _digests(windows: CheckedWindows) -> NDArray[np.int64]:
    """Return a row of hashes for each sample, two numbers per window."""
    digests = np.empty((len(windows), 2), dtype=np.int64)
    for numbers, block in windows.blocks():
        for i, number in enumerate(numbers):
            digest = blake2b(block.x[i] + np.float32(0), digest_size=16)  # -0.0 equals 0.0
            if block.observed is not None and not block.observed[i].all():
                digest.update(block.observed[i])
            digests[number] = np.frombuffer(digest.digest(), np.int64)
    return digests.reshape(windows.n_samples, -1)


class LabeledBatches(WindowBatches):
    """Batches of labelled samples; the windows of a bag stay together.

    Parameters
    ----------
    labeled : LabeledWindows
        Samples with labels or targets, and weights.
    device : torch.device
        Device of the batches.

    Examples
    --------
    >>> from sklearn_pulse.base import CheckedWindows, LabeledBatches
    >>> windows = CheckedWindows(np.zeros((4, 8, 2)))
    >>> labeled = LabeledWindows(windows, np.arange(4), np.array([0, 1, 1, 0]), np.ones(4))
    >>> LabeledBatches(labeled, torch.device("cpu"))[torch.tensor([0, 2])]["y"].tolist()
    [0, 1]
    """

    def __init__(self, labeled: LabeledWindows, device: torch.device) -> None:
        windows, samples, y, weight = labeled
        numbers = samples[:, None] * windows.n_windows + np.arange(windows.n_windows)
        super().__init__(windows, numbers, device)
        kind = np.float32 if y.dtype.kind == "f" else np.int64
        self.y = torch.from_numpy(y.astype(kind)).to(device)
        self.weight = torch.from_numpy(weight.astype(np.float32)).to(device)

    def __getitem__(self, index: torch.Tensor) -> Batch:
        batch = as_batch(self.windows.take(self.index[index.numpy()].ravel()), self.device)
        if self.windows.is_bag:
            shape = len(index), self.windows.n_windows
            batch = {name: tensor.unflatten(0, shape) for name, tensor in batch.items()}
        index = index.to(self.device)
        return batch | {"y": self.y[index], "weight": self.weight[index]}
