"""Longest stretch of successive ones in each row.

A GPU finds the place of the last zero before each step at once. A processor does so step by step,
which takes ten times as long as the comparison that made the ones. So there a time step is a bit,
words of 64 bits are shifted and compared, and a stretch twice as long takes one more shift.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_WORD = 64
_ALL = ~np.uint64(0)


def longest_stretch(positive: Tensor) -> Tensor:
    """Return the largest number of successive ones along the last axis.

    Parameters
    ----------
    positive : Tensor of shape (..., n)
        Zeros and ones.

    Returns
    -------
    Tensor of shape (...)
        The numbers, in the type of `positive`.

    Examples
    --------
    >>> import torch
    >>> longest_stretch(torch.tensor([[1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]]))
    tensor([2., 0.])
    """
    if positive.device.type == "cpu":
        return torch.from_numpy(by_words(positive.numpy())).to(positive.dtype)
    return by_places(positive)


def by_places(positive: Tensor) -> Tensor:
    """Subtract from the place of each step that of the last zero before it."""
    place = torch.arange(1, positive.shape[-1] + 1, device=positive.device, dtype=positive.dtype)
    last_zero = ((1.0 - positive) * place).cummax(-1).values  # 0 before the first zero
    return (place - last_zero).amax(-1)


def by_words(positive: NDArray[np.floating]) -> NDArray[np.int32]:
    """Add up powers of two, from the largest on, as long as a stretch has so many steps."""
    *shape, n = positive.shape
    n_words = -(-n // _WORD)
    flags = np.zeros((*shape, n_words * _WORD), dtype=bool)
    np.not_equal(positive, 0, out=flags[..., :n])
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
