"""Parts of a batch that run side by side, each in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .._threads import n_workers, run_side_by_side

Function = Callable[..., tuple[Tensor, ...]]


def run_parts(
    function: Function, parts: Sequence[tuple[Any, ...]], weights: Iterable[Tensor]
) -> list[tuple[Tensor, ...]]:
    """Apply a function to each part of a batch, side by side, with the gradient too.

    torch shares every operation among its threads, which then wait for one another hundreds of
    times per step. A processor that is busy with something else makes each of these waits long.
    Here the threads meet twice per step: after the function and after its gradient. The gradients
    of the weights are added in the order of the parts, whichever thread computed them.

    Parameters
    ----------
    function : callable
        Function from the values of a part to a tuple of tensors.
    parts : sequence of tuple
        Arguments of `function` for each part. Tensors among them may need a gradient.
    weights : iterable of Tensor
        Weights that `function` reads.

    Returns
    -------
    list of tuple of Tensor
        Result of each part.

    Examples
    --------
    >>> import torch
    >>> weight = torch.ones(3, requires_grad=True)
    >>> parts = [(torch.ones(2, 3),), (torch.ones(1, 3),)]
    >>> (first,), (second,) = run_parts(lambda x: (x @ weight,), parts, [weight])
    >>> (first.sum() + second.sum()).backward()
    >>> weight.grad
    tensor([3., 3., 3.])
    """
    if len(parts) == 1 or n_workers() == 1:
        return [function(*part) for part in parts]
    weights = [weight for weight in weights if weight.requires_grad]
    tensors = [value for part in parts for value in part if isinstance(value, Tensor)]
    if not torch.is_grad_enabled() or not any(t.requires_grad for t in (*weights, *tensors)):
        run = _Mode.present().run
        return run_side_by_side([partial(run, function, part) for part in parts])
    outputs = _Parts.apply(function, parts, len(tensors), *tensors, *weights)
    width = len(outputs) // len(parts)
    return [outputs[i : i + width] for i in range(0, len(outputs), width)]


class _Mode(NamedTuple):
    """Modes of a thread: what torch records, and the type that it computes in."""

    grad: bool
    inference: bool
    autocast: bool
    dtype: torch.dtype

    @classmethod
    def present(cls) -> _Mode:
        """Return the modes of this thread."""
        return cls(
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            torch.is_autocast_enabled("cpu"),
            torch.get_autocast_dtype("cpu"),
        )

    def run(self, function: Function, part: tuple[Any, ...]) -> tuple[Tensor, ...]:
        """Return the result of a part in these modes."""
        with (
            torch.inference_mode(self.inference),
            torch.set_grad_enabled(self.grad),
            # The cache of weights that autocast has cast belongs to all threads.
            torch.autocast("cpu", self.dtype, self.autocast, cache_enabled=False),
        ):
            return function(*part)


class _Recorded(NamedTuple):
    """Results of a part, with the tensors that their gradient is taken by."""

    outputs: tuple[Tensor, ...]
    leaves: list[Tensor]  # tensors of the part, cut off from what computed them

    @classmethod
    def of(cls, mode: _Mode, function: Function, part: tuple[Any, ...]) -> _Recorded:
        """Apply the function and record it."""
        part = tuple(_leaf(value) if isinstance(value, Tensor) else value for value in part)
        leaves = [value for value in part if isinstance(value, Tensor)]
        return cls(mode.run(function, part), leaves)

    def gradients(
        self, weights: Sequence[Tensor], grads: Sequence[Tensor]
    ) -> tuple[list[Tensor | None], list[Tensor | None]]:
        """Return the gradients of the leaves and of the weights."""
        wanted = [leaf for leaf in self.leaves if leaf.requires_grad]
        pairs = zip(self.outputs, grads, strict=True)
        outputs, grads = zip(*(pair for pair in pairs if pair[0].requires_grad), strict=True)
        found = torch.autograd.grad(outputs, [*wanted, *weights], grads, allow_unused=True)
        of_leaves = iter(found[: len(wanted)])
        return (
            [next(of_leaves) if leaf.requires_grad else None for leaf in self.leaves],
            list(found[len(wanted) :]),
        )


class _Parts(torch.autograd.Function):
    """Function of several parts whose gradient is computed part by part, side by side."""

    @staticmethod
    def forward(
        ctx: Any,
        function: Function,
        parts: Sequence[tuple[Any, ...]],
        n_inputs: int,
        *tensors: Tensor,
    ) -> tuple[Tensor, ...]:
        mode = _Mode.present()._replace(grad=True)
        ctx.weights = tensors[n_inputs:]
        ctx.recorded = run_side_by_side(
            [partial(_Recorded.of, mode, function, part) for part in parts]
        )
        return tuple(output.detach() for part in ctx.recorded for output in part.outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        recorded, ctx.recorded = ctx.recorded, None  # free each graph once it has been used
        width = len(grads) // len(recorded)
        calls = [
            partial(part.gradients, ctx.weights, grads[i * width : (i + 1) * width])
            for i, part in enumerate(recorded)
        ]
        of_leaves, of_weights = zip(*run_side_by_side(calls), strict=True)
        inputs = [grad for part in of_leaves for grad in part]
        return None, None, None, *inputs, *map(_sum, zip(*of_weights, strict=True))


def _leaf(tensor: Tensor) -> Tensor:
    """Return the tensor without its graph; its gradient is wanted if the tensor's is."""
    return tensor.detach().requires_grad_(tensor.requires_grad)


def _sum(grads: Sequence[Tensor | None]) -> Tensor | None:
    """Add gradients in their order; a function that does not read a weight has none for it."""
    present = [grad for grad in grads if grad is not None]
    if not present:
        return None
    total = present[0].clone() if len(present) > 1 else present[0]
    for grad in present[1:]:
        total.add_(grad)
    return total
