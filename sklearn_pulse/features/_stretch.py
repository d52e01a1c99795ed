"""Longest stretch of successive outputs above a threshold.

A GPU finds the place of the last output below the threshold before each step, for all steps at
once. A processor counts step by step, for many rows at once: a count is a byte, so that a row has
at most 255 steps. In longer rows a step is a bit, words of 64 bits are shifted and compared, and a
stretch twice as long takes one more shift.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_MOST_STEPS = np.iinfo(np.uint8).max
_AT_ONCE = 8  # thresholds whose counts fit the cache of a processor
_WORD = 64
_ALL = ~np.uint64(0)


def longest_stretches(outputs: Tensor, thresholds: Tensor, at_once: int) -> Tensor:
    """Return the largest number of successive outputs above each threshold.

    Parameters
    ----------
    outputs : Tensor of shape (n_kernels, n, n_timesteps)
        Outputs.
    thresholds : Tensor of shape (n_thresholds, n_kernels)
        Thresholds of each kernel.
    at_once : int
        Number of thresholds that a GPU compares with at a time.

    Returns
    -------
    Tensor of shape (n_thresholds, n_kernels, n)
        The numbers, in the type of `outputs`.

    Examples
    --------
    >>> import torch
    >>> outputs = torch.tensor([[[1.0, 0.0, 3.0, 1.0], [0.0, 0.0, 0.0, 0.0]]])
    >>> longest_stretches(outputs, torch.tensor([[0.5], [2.0]]), at_once=1)
    tensor([[[2., 0.]],
    <BLANKLINE>
            [[1., 0.]]])
    """
    if outputs.device.type != "cpu":
        parts = [by_places(outputs > rows[..., None, None]) for rows in thresholds.split(at_once)]
    elif outputs.shape[-1] <= _MOST_STEPS:
        parts = [by_steps(outputs, rows) for rows in thresholds.split(_AT_ONCE)]
    else:
        above = (outputs.numpy() > rows[..., None, None].numpy() for rows in thresholds.split(1))
        parts = [torch.from_numpy(by_words(rows)) for rows in above]
    return torch.cat(parts).to(outputs.dtype)


def by_places(above: Tensor) -> Tensor:
    """Subtract from the place of each step that of the last step before it that is not above."""
    place = torch.arange(1, above.shape[-1] + 1, dtype=torch.int32, device=above.device)
    last = torch.where(above, 0, place).cummax(-1).values  # 0 before the first such step
    return (place - last).amax(-1)


def by_steps(outputs: Tensor, thresholds: Tensor) -> Tensor:
    """Count on from each step to the next one, for all rows and thresholds at once."""
    n_kernels, n, n_timesteps = outputs.shape
    steps = outputs.flatten(0, 1).T.contiguous().numpy()
    limits = thresholds.repeat_interleave(n, dim=1).numpy()
    # counts[t]: how many successive outputs are above at step t, shape (n_thresholds, n_rows).
    counts = np.empty((n_timesteps, *limits.shape), dtype=np.uint8)
    np.greater(steps[:, None], limits, out=counts.view(bool))
    longer = np.empty_like(counts[0])
    for before, count in pairwise(counts):
        np.add(before, 1, out=longer)
        count *= longer
    return torch.from_numpy(counts.max(axis=0)).view(-1, n_kernels, n)


def by_words(above: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Add up powers of two, from the largest on, as long as a stretch has so many steps."""
    *shape, n = above.shape
    n_words = -(-n // _WORD)
    flags = np.zeros((*shape, n_words * _WORD), dtype=bool)
    flags[..., :n] = above
    words = np.packbits(flags, axis=-1, bitorder="little").view("<u8").reshape(-1, n_words)
    # ends[i]: the steps at which 2**i successive ones end, shape (n_words, n_rows).
    ends = [np.ascontiguousarray(words.T, dtype=np.uint64)]
    while (longer := ends[-1] & _later(ends[-1], 2 ** (len(ends) - 1))).any():
        ends.append(longer)
    length = np.zeros(len(words), dtype=np.int32)
    reached = np.full_like(ends[0], _ALL)  # the steps at which `length` ones end
    empty = np.full(len(words), _ALL)  # all bits where `length` is zero, else none
    for i in reversed(range(len(ends))):
        longer = (_later(reached, 2**i) | empty) & ends[i]
        found = np.bitwise_or.reduce(longer, axis=0) != 0
        length += found * np.int32(2**i)
        reached = np.where(found, longer, reached)
        empty *= ~found
    return length.reshape(shape)


def _later(words: NDArray[np.uint64], n_steps: int) -> NDArray[np.uint64]:
    """Move the bits of each column to later places; zeros come first."""
    whole, rest = divmod(n_steps, _WORD)
    if not whole:
        moved = words << np.uint64(rest)
        moved[1:] |= words[:-1] >> np.uint64(_WORD - rest)
        return moved
    moved = np.zeros_like(words)  # n_steps is a power of two, so that the rest is zero
    moved[whole:] = words[: max(len(words) - whole, 0)]
    return moved
