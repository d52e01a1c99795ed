"""Batches of windows, each with a partner of its class."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from .._training._iterator import Batch
from ._candidates import DrawnBatches
from ._windows import CheckedWindows


class PairBatches(DrawnBatches):
    """Batches of windows, each with another window of its class.

    Parameters
    ----------
    windows : CheckedWindows
        The checked input, with `labels`.
    index : array of int
        Numbers of the windows in the input; partners are drawn among them too.
    device : torch.device
        Device of the batches.

    Attributes
    ----------
    classes : array
        Labels of the classes of these windows.
    label : array of int, of shape (n,)
        Number of each window's class.
    n_windows : array of int, of shape (n_classes,)
        Windows of each class.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from sklearn_pulse.base import CheckedWindows, PairBatches
    >>> windows = CheckedWindows(np.zeros((6, 8, 2)), labels=[0, 0, 0, 1, 1, 1])
    >>> batches = PairBatches(windows, np.arange(6), torch.device("cpu"))
    >>> batches[torch.tensor([0, 5])]["partner"].shape
    torch.Size([2, 8, 2])
    """

    def __init__(
        self, windows: CheckedWindows, index: NDArray[np.intp], device: torch.device
    ) -> None:
        super().__init__(windows, index, device)
        if windows.labels is None:
            raise ValueError("windows must have labels, from which partners are drawn")
        names = windows.labels[index // windows.n_windows]  # a window has the label of its bag
        self.classes, self.label = np.unique(names, return_inverse=True)
        self.n_windows = np.bincount(self.label)
        order = np.argsort(self.label, kind="stable")
        self._members = np.split(order, np.cumsum(self.n_windows)[:-1])

    def __getitem__(self, index: torch.Tensor) -> Batch:
        anchors = index.numpy()
        positions = np.concatenate([anchors, self.draw(anchors)])
        drawn = {}
        for name, tensor in self._source[torch.from_numpy(positions)].items():
            other = "partner" if name == "x" else f"partner_{name}"
            drawn[name], drawn[other] = tensor[: len(anchors)], tensor[len(anchors) :]
        return drawn

    def draw(self, index: NDArray[np.intp]) -> NDArray[np.intp]:
        """Draw the partners of a batch.

        Of each class, twice as many distinct windows are drawn as the batch has members of it.
        Each member in turn takes the last drawn window that is left, or the window before it if
        the last is the member itself. A class with fewer windows is drawn whole, again whenever
        no drawn window is left. A window that is alone in its class is its own partner.

        Parameters
        ----------
        index : array of int, of shape (batch,)
            Positions in the windows that these batches are taken from.

        Returns
        -------
        array of int, of shape (batch,)
            Position of each partner in the same windows.
        """
        rng = self.generator(index)
        partners = np.empty_like(index)
        for number in np.unique(self.label[index]):
            rows = np.flatnonzero(self.label[index] == number)
            partners[rows] = _partners(index[rows], self._members[number], rng)
        return partners

    def contents(self) -> Iterator[Batch]:
        """Yield all windows, then the class of each."""
        yield from self._undrawn().contents()
        yield {"label": torch.from_numpy(self.label)}


def _partners(
    anchors: NDArray[np.intp], members: NDArray[np.intp], rng: np.random.Generator
) -> list[int]:
    """Draw a partner for each of `anchors` among the `members` of their class."""
    if len(members) == 1:
        return anchors.tolist()
    n_drawn = min(2 * len(anchors), len(members))
    left: list[int] = []
    partners = []
    for anchor in anchors.tolist():
        partner = anchor
        while partner == anchor:
            left = left or rng.choice(members, n_drawn, replace=False).tolist()
            partner = left.pop()
        partners.append(partner)
    return partners
