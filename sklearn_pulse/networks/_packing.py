"""Sequences of unequal length in one table, without padding."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

CHUNK_ROWS = 2**12  # rows of a table per operation: few enough to stay in the cache


class Packing(NamedTuple):
    """Table layout of sequences of unequal length, time first and the longest sequence first.

    The first ``sizes[0]`` rows of the table are the first steps of all sequences that are not
    empty, the next ``sizes[1]`` rows are the second steps, and so on. At every step, the sequences
    that still run come first.

    Parameters
    ----------
    order : Tensor of int, of shape (n_sequences,)
        Indices of the sequences, by decreasing length.
    sizes : list of int
        Number of sequences that run at each step; positive and never increasing.
    positions : Tensor of int, of shape (sum(sizes),)
        Row of each table entry in the padded layout (n_steps * n_sequences, ...).

    Examples
    --------
    >>> import torch
    >>> packing = Packing.of(torch.tensor([1, 2]), n_steps=2)
    >>> packed = packing.pack(torch.tensor([[1, 2], [0, 3]]))  # (n_steps, n_sequences)
    >>> packed, packing.pad(packed, n_steps=2)
    (tensor([2, 1, 3]), tensor([[1, 2],
            [0, 3]]))
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
            Steps of each sequence, at most `n_steps`; 0 leaves the sequence out.
        n_steps : int
            Steps of the padded layout.

        Returns
        -------
        Packing
            The layout; sequences of equal length keep their order.

        Examples
        --------
        >>> import torch
        >>> packing = Packing.of(torch.tensor([1, 3]), n_steps=4)
        >>> packing.order, packing.sizes, packing.positions
        (tensor([1, 0]), [2, 1, 1], tensor([1, 0, 3, 5]))
        """
        lengths, order = lengths.sort(descending=True, stable=True)
        # (n_steps, n_sequences): whether the sequence of a rank still runs at a step
        running = torch.arange(n_steps, device=lengths.device).unsqueeze(1) < lengths
        step, rank = running.nonzero(as_tuple=True)
        sizes = [size for size in running.sum(1).tolist() if size]
        return cls(order, sizes, step * len(order) + order[rank])

    def pack(self, padded: Tensor) -> Tensor:
        """Take the rows (sum(sizes), ...) of padded sequences, time first, that are not padding."""
        return padded.flatten(0, 1)[self.positions]

    def rows_in(self, whole: Packing, members: Tensor) -> Tensor:
        """Find the rows of these sequences in the table of more sequences.

        Parameters
        ----------
        whole : Packing
            Layout of all sequences.
        members : Tensor of int, of shape (n_sequences,)
            Numbers that the sequences of this layout have among all sequences.

        Returns
        -------
        Tensor of int, of shape (sum(sizes),)
            Row of the larger table for each row of this one.

        Examples
        --------
        >>> import torch
        >>> lengths, members = torch.tensor([1, 2, 3]), torch.tensor([0, 2])
        >>> whole = Packing.of(lengths, n_steps=3)
        >>> rows = Packing.of(lengths[members], n_steps=3).rows_in(whole, members)
        >>> table = torch.tensor([[10, 20, 30], [0, 21, 31], [0, 0, 32]])
        >>> whole.pack(table)[rows]
        tensor([30, 10, 31, 32])
        """
        step = self.positions // len(self.order)
        # Positions in the padded layout of all sequences.
        padded = step * len(whole.order) + members[self.positions % len(self.order)]
        rows = whole.positions.new_zeros(len(whole.sizes) * len(whole.order))
        rows[whole.positions] = torch.arange(len(whole.positions), device=rows.device)
        return rows[padded]

    def pad(self, packed: Tensor, n_steps: int) -> Tensor:
        """Put packed rows back into the layout of `n_steps` padded steps; zero past each end."""
        shape = n_steps, len(self.order), *packed.shape[1:]
        padded = packed.new_zeros(shape)
        return padded.flatten(0, 1).index_copy(0, self.positions, packed).view(shape)

    def split(self, n_parts: int) -> list[tuple[Tensor | slice, list[int]]]:
        """Deal the sequences out to parts: sequence i goes to part ``i % n_parts``.

        Parameters
        ----------
        n_parts : int
            Number of parts, at most the number of sequences that are not empty.

        Returns
        -------
        list of (rows, sizes)
            Rows of the table that belong to each part, in the layout of a table of its own, and the
            number of sequences that run at each step of it.

        Examples
        --------
        >>> import torch
        >>> Packing.of(torch.tensor([3, 1]), n_steps=3).split(2)
        [(tensor([0, 2, 3]), [1, 1, 1]), (tensor([1]), [1])]
        """
        if n_parts == 1:
            return [(slice(None), self.sizes)]
        ranks = torch.cat([torch.arange(size) for size in self.sizes])
        parts: list[tuple[Tensor | slice, list[int]]] = []
        for part in range(n_parts):
            sizes = [len(range(part, size, n_parts)) for size in self.sizes]
            rows = (ranks % n_parts == part).nonzero().squeeze(1)
            parts.append((rows, [size for size in sizes if size]))
        return parts

    def take(self, rows: list[Tensor | slice]) -> Packing:
        """Reorder the rows of the table, for :meth:`pad`.

        `rows` are those of the parts that :meth:`split` made, in the order in which their tables
        follow one another in the table of the result.
        """
        return self._replace(positions=torch.cat([self.positions[part] for part in rows]))


def steps_of(sizes: list[int]) -> list[slice]:
    """Return the table rows of each step, from the number of sequences that run at each.

    Examples
    --------
    >>> steps_of([2, 1])
    [slice(0, 2, None), slice(2, 3, None)]
    """
    stops = list(accumulate(sizes))
    return [slice(stop - size, stop) for stop, size in zip(stops, sizes, strict=True)]
