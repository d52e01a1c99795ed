"""Share of a batch that one of several processes computes, and what the processes exchange."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

Value = TypeVar("Value")


class Share(NamedTuple):
    """Place of this process among those that train one network together.

    All processes have the same batch. Each computes the rows of its share, and what the shares
    contribute adds up to what one process would compute of the whole batch. The processes meet in
    torch's default process group; a process that trains alone needs none.

    Parameters
    ----------
    rank : int, default=0
        Number of the process, counted from 0.
    size : int, default=1
        Number of processes.

    Examples
    --------
    >>> [Share(rank, 3).rows(7) for rank in range(3)]
    [slice(0, 2, None), slice(2, 4, None), slice(4, 7, None)]
    >>> Share().rows(7)
    slice(0, 7, None)
    """

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether the process is the one that shows progress and writes files."""
        return self.rank == 0

    def rows(self, n: int) -> slice:
        """Return the rows of this process in a batch of `n`; shares differ by a row at most."""
        return slice(self.rank * n // self.size, (self.rank + 1) * n // self.size)

    def gather(self, rows: Tensor, n: int) -> Tensor:
        """Collect the rows of all processes; gradients go back to the process of each row.

        `n` is the number of rows of the whole batch.
        """
        return rows if self.size == 1 else _Gather.apply(rows, self, n)

    def total(self, part: Tensor) -> Tensor:
        """Return the sum over the processes of a tensor without a gradient."""
        total = part.detach().clone()
        dist.all_reduce(total)
        return total

    def any(self, flag: bool, device: Any) -> bool:
        """Whether a flag is set in any process."""
        return bool(self.total(torch.tensor(float(flag), device=device)))

    def of_first(self, value: Value) -> Value:
        """Return the value that the first process passed."""
        values = [value]
        dist.broadcast_object_list(values, src=0)
        return values[0]

    def of_all(self, value: Value) -> list[Value]:
        """Return the values that the processes passed, in their order."""
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values


class _Gather(torch.autograd.Function):
    """Rows of all processes; torch's own functions with a gradient are deprecated."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, share: Share, n: int) -> Tensor:
        ctx.share, ctx.n = share, n
        shares = [Share(rank, share.size).rows(n) for rank in range(share.size)]
        lengths = [rows.stop - rows.start for rows in shares]
        padded = rows.new_zeros(max(lengths), *rows.shape[1:])  # the collective takes equal sizes
        padded[: len(rows)] = rows
        if not padded.numel():  # rows without values
            return padded.new_zeros(n, *rows.shape[1:])
        parts = [torch.empty_like(padded) for _ in shares]
        dist.all_gather(parts, padded)
        return torch.cat([part[:length] for part, length in zip(parts, lengths, strict=True)])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        # Every process has used all rows, so the gradient of a row is a sum over the processes.
        return ctx.share.total(grad.contiguous())[ctx.share.rows(ctx.n)], None, None
