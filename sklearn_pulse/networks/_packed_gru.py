"""GRU layer over packed sequences, for the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from .._products import multiply
from ._packing import CHUNK_ROWS, steps_of
from ._row_pieces import padded_rows, sum_of_products

# With fewer numbers in a state, a call of oneDNN takes longer than the product.
_FEWEST_FOR_ONEDNN = 32


def run_gru(
    inputs: Tensor, state: Tensor, weight: Tensor, bias: Tensor, sizes: list[int]
) -> Tensor:
    """Run the recurrence of a GRU layer on projected inputs.

    The result equals that of :class:`torch.nn.GRU`. PyTorch's CPU kernel runs a dozen small
    operations per step, and twice as many for the gradient. Here, all work that does not depend on
    the previous step is done for all steps at once: the gradient of the weights is one product, and
    a step of the backward pass is one product, one multiplication and two updates of the state's
    gradient.

    Parameters
    ----------
    inputs : Tensor of shape (sum(sizes), 3 * hidden_dim)
        Projected inputs of the reset gate, the update gate and the candidate, packed
        (:class:`Packing`). Overwritten to save memory: the operation that made them must not need
        them for its own gradient.
    state : Tensor of shape (sizes[0], hidden_dim)
        State before the first step.
    weight : Tensor of shape (3 * hidden_dim, hidden_dim)
        Recurrent weights, in the order of :class:`torch.nn.GRU`.
    bias : Tensor of shape (3 * hidden_dim,)
        Recurrent bias, in the order of :class:`torch.nn.GRU`.
    sizes : list of int
        Number of sequences that run at each step.

    Returns
    -------
    Tensor of shape (sum(sizes), hidden_dim)
        State after each step, packed.

    Examples
    --------
    >>> import torch
    >>> zeros = torch.zeros(6, 2)
    >>> run_gru(torch.zeros(3, 6), torch.ones(2, 2), zeros, zeros[:, 0], sizes=[2, 1])
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000],
            [0.2500, 0.2500]])
    """
    return _Recurrence.apply(inputs, state, weight, bias, sizes)


class _Recurrence(torch.autograd.Function):
    """Recurrence of :func:`run_gru` with a backward pass of its own."""

    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, state: Tensor, weight: Tensor, bias: Tensor, sizes: list[int]
    ) -> Tensor:
        dim = state.shape[1]
        inputs[:, : 2 * dim].add_(bias[: 2 * dim])
        # Products of a few rows more than run, so that their shapes recur: the rows that follow.
        spare = padded_rows(1, inputs) - 1
        recurrent = inputs.new_empty(len(inputs), dim)  # what the reset gate of a candidate scales
        states = inputs.new_empty(len(inputs) + spare, dim)
        before = F.pad(state, (0, 0, 0, spare))
        product = _product(dim)
        for step, size in zip(steps_of(sizes), sizes, strict=True):
            products = product(before[: padded_rows(size, inputs)], weight.t())[:size]
            gates, candidate = inputs[step].split([2 * dim, dim], 1)
            gates.add_(products[:, : 2 * dim]).sigmoid_()
            reset, update = gates.split(dim, 1)
            of_candidate = torch.add(products[:, 2 * dim :], bias[2 * dim :], out=recurrent[step])
            candidate.addcmul_(reset, of_candidate).tanh_()
            torch.lerp(candidate, before[:size], update, out=states[step])
            before = states[step.start :]
        states = states[: len(inputs)]
        ctx.save_for_backward(inputs, recurrent, state, states, weight)
        ctx.sizes = sizes
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        gates, recurrent, state, states, weight = ctx.saved_tensors
        sizes, dim = ctx.sizes, state.shape[1]
        steps = steps_of(sizes)
        last = zip(steps, sizes[1:], strict=False)
        before = torch.cat([state[: sizes[0]], *(states[step][:size] for step, size in last)])
        slopes = _slopes(gates, recurrent, before)
        weight = weight.roll(dim, 0)  # rows of the candidate, the reset gate and the update gate
        inner = torch.zeros_like(state)
        # (n_rows, dim) and (n_rows + spare, 4 * dim)
        update, flat = gates[:, dim : 2 * dim], slopes.flatten(1)
        product = _product(dim)
        for step, size in zip(reversed(steps), reversed(sizes), strict=True):
            now, n_rows = inner[:size].add_(grad[step]), padded_rows(size, inner)
            slopes[step].mul_(now.unsqueeze(1))
            rows = flat[step.start : step.start + n_rows, : 3 * dim]
            torch.addcmul(product(rows, weight)[:size], now, update[step], out=now)
        flat = flat[: len(before)]
        outer = flat[:, : 3 * dim]
        weight_grad = sum_of_products(outer, before).roll(-dim, 0)
        return flat[:, dim:], inner, weight_grad, outer.sum(0).roll(-dim, 0), None


def _product(dim: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Return what multiplies states of `dim` numbers, however many states there are."""
    return multiply if dim >= _FEWEST_FOR_ONEDNN else torch.mm


def _slopes(gates: Tensor, recurrent: Tensor, before: Tensor) -> Tensor:
    """Return the factors that turn the gradient of each state into four others, (n_rows, 4, dim).

    Rows that products read beyond the table follow.

    The four are the gradients of the candidate's recurrent part, the reset gate, the update gate
    and the candidate. The first three belong to the recurrent product, the last three to the
    inputs.
    """
    dim = before.shape[1]
    slopes = before.new_empty(len(before) + padded_rows(1, before) - 1, 4, dim)
    tables = gates, recurrent, before, slopes[: len(before)]
    parts = (table.split(CHUNK_ROWS) for table in tables)
    for gate, inner, state, slope in zip(*parts, strict=True):
        # Operations on values that lie side by side are several times as fast.
        reset, update, candidate = (part.contiguous() for part in gate.split(dim, 1))
        closed = update - 1
        of_candidate = (candidate * candidate).sub_(1).mul_(closed)
        of_recurrent = of_candidate * reset
        of_reset = torch.addcmul(of_recurrent, of_recurrent, reset, value=-1).mul_(inner)
        of_update = (update * closed).mul_(candidate - state)
        torch.stack([of_recurrent, of_reset, of_update, of_candidate], 1, out=slope)
    return slopes
