"""Batches of windows, each with other windows that are drawn for it."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from .._training._iterator import Batch, BatchDataset
from ._batches import WindowBatches
from ._windows import CheckedWindows


class DrawnBatches(WindowBatches):
    """Batches of windows and of other windows that are drawn anew each epoch.

    A subclass draws with :meth:`generator` in `__getitem__`, and takes the windows from
    ``self._source``, which lies on a GPU that has room for them.

    Parameters
    ----------
    windows : CheckedWindows
        Checked input.
    index : array of int
        Numbers of the windows in the input.
    device : torch.device
        Device of the batches.

    Attributes
    ----------
    stream : tuple of int
        Seed of the draws; the training sets it for each epoch.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from sklearn_pulse.base import CheckedWindows, DrawnBatches
    >>> windows = CheckedWindows(np.zeros((6, 8, 2)))
    >>> batches = DrawnBatches(windows, np.arange(6), torch.device("cpu"))
    >>> batches.stream = (0, 1)  # seed and epoch
    >>> first = batches.generator(np.array([2])).integers(100)
    >>> bool(first == batches.generator(np.array([2])).integers(100))
    True
    """

    def __init__(
        self, windows: CheckedWindows, index: NDArray[np.intp], device: torch.device
    ) -> None:
        super().__init__(windows, index, device)
        self.stream = (0, 0)
        self._source: BatchDataset = self._undrawn()

    def _undrawn(self) -> WindowBatches:
        """Return batches of the same windows, without the windows that are drawn for them."""
        return WindowBatches(self.windows, self.index, self.device)

    def generator(self, index: NDArray[np.intp]) -> np.random.Generator:
        """Return the generator of a batch, which depends on `stream` and the batch alone.

        Parameters
        ----------
        index : array of int of shape (batch,)
            Numbers of the batch.

        Returns
        -------
        numpy.random.Generator
            A fresh generator.
        """
        return np.random.default_rng((*self.stream, int(index[0])))

    def resident(self) -> DrawnBatches:
        """Move the windows to a GPU that has room for them.

        Returns
        -------
        DrawnBatches
            Batches that draw as these do.
        """
        moved = copy.copy(self)
        moved._source = self._undrawn().resident()
        return moved


class CandidateBatches(DrawnBatches):
    """Batches of anchors, each with candidates: other windows of its recording.

    Draws depend on `stream` and the batch alone, so that a resumed run repeats them. A window
    is its own candidate only where its recording has no other.

    Parameters
    ----------
    windows : CheckedWindows
        Checked input.
    index : array of int
        Numbers of the windows in the input.
    device : torch.device
        Device of the batches.
    n_candidates : int
        Number of candidates per anchor, drawn with replacement.
    by_recording : bool, default=False
        Whether a batch holds recordings, each with one window as the anchor, instead of windows.
        Anchor and candidates then lie at the same relative positions in all recordings of a
        batch.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from sklearn_pulse.base import CheckedWindows, CandidateBatches
    >>> windows = CheckedWindows(np.zeros((6, 8, 2)), groups=[0, 0, 0, 1, 1, 1])
    >>> batches = CandidateBatches(windows, np.arange(6), torch.device("cpu"), n_candidates=4)
    >>> batches[torch.tensor([0, 5])]["candidates"].shape
    torch.Size([2, 4, 8, 2])
    """

    def __init__(
        self,
        windows: CheckedWindows,
        index: NDArray[np.intp],
        device: torch.device,
        n_candidates: int,
        by_recording: bool = False,
    ) -> None:
        super().__init__(windows, index, device)
        self.n_candidates = n_candidates
        self.by_recording = by_recording
        self.recording = np.unique(windows.recording[index], return_inverse=True)[1]
        start = windows.start[index]
        self.n_windows = np.bincount(self.recording)
        self._first = np.cumsum(self.n_windows) - self.n_windows
        self._order = np.lexsort((start, self.recording))  # by recording, then by time
        self._rank = np.empty(len(index), dtype=np.intp)  # of each window in its recording
        self._rank[self._order] = np.arange(len(index)) - np.repeat(self._first, self.n_windows)

    def __len__(self) -> int:
        return len(self.n_windows) if self.by_recording else len(self.index)

    def __getitem__(self, index: torch.Tensor) -> Batch:
        anchors, candidates = self.draw(index.numpy())
        positions = np.concatenate([anchors[:, None], candidates], axis=1)
        batch = self._source[torch.from_numpy(positions.ravel())]
        drawn: Batch = {}
        for name, tensor in batch.items():
            windows = tensor.unflatten(0, positions.shape)
            other = "candidates" if name == "x" else f"candidates_{name}"
            drawn |= {name: windows[:, 0], other: windows[:, 1:]}
        drawn["numbers"] = torch.from_numpy(positions).to(self.device)
        return drawn

    def draw(self, index: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Draw the anchors of a batch and their candidates.

        Parameters
        ----------
        index : array of int, of shape (batch,)
            Numbers of windows or, if `by_recording`, of recordings.

        Returns
        -------
        anchors : array of int, of shape (batch,)
            Positions in the windows that these batches are taken from.
        candidates : array of int, of shape (batch, n_candidates)
            Positions in the windows that these batches are taken from.
        """
        rng = self.generator(index)
        if self.by_recording:
            recording = index
            rank = (rng.random() * self.n_windows[recording]).astype(np.intp)
            uniform = rng.random((1, self.n_candidates))
        else:
            recording, rank = self.recording[index], self._rank[index]
            uniform = rng.random((len(index), self.n_candidates))
        others = self.n_windows[recording, None] - 1
        other = (uniform * others).astype(np.intp)
        other += (other >= rank[:, None]) & (others > 0)
        first = self._first[recording]
        return self._order[first + rank], self._order[first[:, None] + other]

    def apart(self) -> WindowBatches:
        """Cut the steps that the windows cover into pieces that share no step.

        Returns
        -------
        WindowBatches
            The pieces with an observed step, or the windows themselves where their starts are
            unknown. A step that no window holds is not read: it may belong to a test set.
        """
        pieces = self.windows.apart(self.index)
        if pieces is None:
            return self._undrawn()
        return WindowBatches(pieces, np.flatnonzero(pieces.observed_windows()), self.device)

    def contents(self) -> Iterator[Batch]:
        """Yield all windows, the recording of each, and order and pieces of lazy windows."""
        yield from self._undrawn().contents()
        yield {"recording": torch.from_numpy(self.recording)}
        if self.windows.lazy is not None:
            yield {"order": torch.from_numpy(self._order)}
            yield from self.apart().contents()
