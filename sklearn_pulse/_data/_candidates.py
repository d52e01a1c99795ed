"""Batches of windows, each with other windows: of its recording, or drawn otherwise."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from .._training._iterator import Batch
from ._batches import WindowBatches
from ._validation import Windows


def recording_of(windows: Windows, index: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the recording of each window, as a number.

    Lazy windows know it; a bag is a recording; other windows have the recordings that `groups`
    names, and without them are taken as one.

    Parameters
    ----------
    windows : Windows
        The checked input.
    index : array of int
        Numbers of windows.

    Returns
    -------
    array of int, of the shape of `index`
        Counted from 0, without gaps.

    Raises
    ------
    ValueError
        If there is not one group a sample.
    """
    if hasattr(windows.data, "recording"):
        names = windows.data.recording[index]
    elif windows.is_bag:
        names = index // windows.n_windows
    elif windows.groups is None:
        names = np.zeros_like(index)
    else:
        groups = np.asarray(windows.groups)
        if groups.shape != (windows.n_samples,):
            raise ValueError(
                f"groups has shape {groups.shape}, X has {windows.n_samples} samples: pass one"
                " group a sample, for example its recording."
            )
        names = groups[index]
    return np.unique(names, return_inverse=True)[1].reshape(index.shape)


class DrawnBatches(WindowBatches):
    """Batches of windows that go with others, drawn anew each epoch.

    Parameters
    ----------
    windows, index, device
        As in :class:`WindowBatches`.

    Attributes
    ----------
    stream : tuple of int
        Seed of the draws; the training sets it for each epoch.
    """

    def __init__(self, windows: Windows, index: NDArray[np.intp], device: torch.device) -> None:
        super().__init__(windows, index, device)
        self.stream = (0, 0)
        self._source: Dataset = WindowBatches(windows, index, device)

    def generator(self, index: NDArray[np.intp]) -> np.random.Generator:
        """Return what draws for a batch: it depends on `stream` and the batch alone."""
        return np.random.default_rng((*self.stream, int(index[0])))

    def resident(self) -> DrawnBatches:
        """Move the windows to a GPU that has room for them."""
        moved = copy.copy(self)
        moved._source = WindowBatches(self.windows, self.index, self.device).resident()
        return moved


class CandidateBatches(DrawnBatches):
    """Batches of anchors, each with candidates: other windows of its recording.

    Draws depend on `stream` and the batch alone, so that a resumed run repeats them. A window
    is its own candidate only where its recording has no other.

    Parameters
    ----------
    windows, index, device
        As in :class:`WindowBatches`.
    n_candidates : int
        Candidates an anchor, drawn with replacement.
    by_recording : bool, default=False
        Whether what is batched are recordings, with one window each as the anchor. Anchor and
        candidates then lie at the same (relative) positions in all recordings of a batch.
    """

    def __init__(
        self,
        windows: Windows,
        index: NDArray[np.intp],
        device: torch.device,
        n_candidates: int,
        by_recording: bool = False,
    ) -> None:
        super().__init__(windows, index, device)
        self.n_candidates = n_candidates
        self.by_recording = by_recording
        self.recording = recording_of(windows, index)
        start = windows.data.start[index] if hasattr(windows.data, "start") else index
        self.n_windows = np.bincount(self.recording)
        self._first = np.cumsum(self.n_windows) - self.n_windows
        self._order = np.lexsort((start, self.recording))  # a recording after the other, in time
        self._rank = np.empty(len(index), dtype=np.intp)  # of each window in its recording
        self._rank[self._order] = np.arange(len(index)) - np.repeat(self._first, self.n_windows)

    def __len__(self) -> int:
        return len(self.n_windows) if self.by_recording else len(self.index)

    def __getitem__(self, index: torch.Tensor) -> Batch:
        anchors, candidates = self.draw(index.numpy())
        positions = np.concatenate([anchors[:, None], candidates], axis=1)
        batch = self._source[torch.from_numpy(positions.ravel())]
        drawn = {}
        for name, tensor in batch.items():
            windows = tensor.unflatten(0, positions.shape)
            other = "candidates" if name == "x" else f"candidates_{name}"
            drawn |= {name: windows[:, 0], other: windows[:, 1:]}
        return drawn

    def draw(self, index: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Draw the anchors of a batch and their candidates.

        Parameters
        ----------
        index : array of int, of shape (batch,)
            Of windows, or of recordings.

        Returns
        -------
        anchors : array of int, of shape (batch,)
            Positions in the windows that these batches are taken from.
        candidates : array of int, of shape (batch, n_candidates)
            Likewise.
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
        """Cut what the windows cover into pieces that share no step, where starts are known.

        What none of the windows holds is not read: it may belong to a test set.
        """
        data = self.windows.data
        if not hasattr(data, "start"):
            return WindowBatches(self.windows, self.index, self.device)
        span = (data.length - 1) * data.downsample + 1
        recording, start = [], []
        for members in np.split(self.index[self._order], self._first[1:]):
            times = data.start[members]
            for covered in np.split(times, np.flatnonzero(np.diff(times) > span) + 1):
                start.append(np.arange(covered[0], covered[-1] + 1, span))
                recording.append(np.full(len(start[-1]), data.recording[members[0]]))
        pieces = copy.copy(data)
        pieces.recording, pieces.start = np.concatenate(recording), np.concatenate(start)
        windows = Windows(pieces, "nct" if self.windows.channels_first else "ntc")
        return WindowBatches(windows, _observed(windows), self.device)

    def contents(self) -> Iterator[Batch]:
        """Go through all windows, and the recording of each."""
        yield from WindowBatches(self.windows, self.index, self.device).contents()
        yield {"recording": torch.from_numpy(self.recording)}


def _observed(windows: Windows) -> NDArray[np.intp]:
    """Return the numbers of the windows with at least one observed step."""
    seen = np.ones(len(windows), dtype=bool)
    for index, block in windows.blocks():
        if block.observed is not None:
            seen[index] = block.observed.any(1)
    return np.flatnonzero(seen)
