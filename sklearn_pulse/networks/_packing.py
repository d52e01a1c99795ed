"""Sequences of unequal length side by side, without the padding."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor


class Packing(NamedTuple):
    """Where the steps of some sequences are in one table, time first and the longest first.

    The first ``sizes[0]`` rows of the table are the first steps of all sequences that have one,
    the next ``sizes[1]`` rows the second steps, and so on: who is still running at a step is
    always at the front.

    Parameters
    ----------
    order : Tensor of int, of shape (n_sequences,)
        The sequences by decreasing length.
    sizes : list of int
        How many sequences run at each step; never zero, never more than at the step before.
    positions : Tensor of int, of shape (sum(sizes),)
        Row of each table entry in the padded layout, (n_steps * n_sequences).
    """

    order: Tensor
    sizes: list[int]
    positions: Tensor

    @classmethod
    def of(cls, lengths: Tensor, n_steps: int) -> Packing:
        """Lay out sequences.

        Parameters
        ----------
        lengths : Tensor of int, of shape (n_sequences,)
            Steps of each sequence, at most `n_steps`; 0 leaves it out.
        n_steps : int
            Steps of the padded layout.

        Returns
        -------
        Packing
            The layout; sequences of one length keep their order.

        Examples
        --------
        >>> import torch
        >>> packing = Packing.of(torch.tensor([1, 3]), n_steps=4)
        >>> packing.order, packing.sizes, packing.positions
        (tensor([1, 0]), [2, 1, 1], tensor([1, 0, 3, 5]))
        """
        lengths, order = lengths.sort(descending=True, stable=True)
        running = torch.arange(n_steps, device=lengths.device).unsqueeze(1) < lengths
        step, rank = running.nonzero(as_tuple=True)
        sizes = [size for size in running.sum(1).tolist() if size]
        return cls(order, sizes, step * len(order) + order[rank])

    def pack(self, padded: Tensor) -> Tensor:
        """Take the rows of (n_steps, n_sequences, ...) that are no padding."""
        return padded.flatten(0, 1)[self.positions]

    def pad(self, packed: Tensor, n_steps: int) -> Tensor:
        """Put packed rows into zeros, (n_steps, n_sequences, ...)."""
        shape = n_steps, len(self.order), *packed.shape[1:]
        padded = packed.new_zeros(shape)
        return padded.flatten(0, 1).index_copy(0, self.positions, packed).view(shape)


def steps_of(sizes: list[int]) -> list[slice]:
    """Return the table rows of each step.

    Parameters
    ----------
    sizes : list of int
        Those of a :class:`Packing`.

    Returns
    -------
    list of slice
        One a step.

    Examples
    --------
    >>> steps_of([2, 1])
    [slice(0, 2, None), slice(2, 3, None)]
    """
    stops = list(accumulate(sizes))
    return [slice(stop - size, stop) for stop, size in zip(stops, sizes, strict=True)]
