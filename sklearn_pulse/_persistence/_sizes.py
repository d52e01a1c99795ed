"""Comparison of a net with a file of weights, before memory for the net is taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

# Most calls of torch that build a net: our methods make 10 per weight, and some hundreds beside.
_CALLS, _CALLS_PER_WEIGHT = 5_000, 40
_TABLES = 2**26  # bytes of tables that follow from the sizes, which a file does not hold


class _Budget(TorchFunctionMode):
    """A limit on the number of calls of torch in the present thread, which draw no numbers."""

    def __init__(self, n_calls: int) -> None:
        super().__init__()
        self.left = n_calls

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.left -= 1
        if self.left < 0:
            raise ValueError("its parameters ask for more layers than the weights fill.")
        kwargs = {name: value for name, value in (kwargs or {}).items() if name != "generator"}
        return func(*args, **kwargs)


def check_sizes(build: Callable[[], nn.Module], weights: Mapping[str, Tensor]) -> None:
    """Raise unless a net has the weights of a file: the same names, shapes and types.

    The net is built on the device "meta", where tensors have sizes and no memory, and building is
    stopped when it has more layers than the file has weights. Time and memory are thereby bounded
    by the size of the file, whatever numbers stand beside it.

    Parameters
    ----------
    build : callable
        Function without arguments that returns the net. It must not read values of tensors.
    weights : mapping of str to Tensor
        Content of the file.

    Raises
    ------
    ValueError
        If the net has other weights, or tables that are too large.
    """
    with torch.device("meta"), _Budget(_CALLS + _CALLS_PER_WEIGHT * len(weights)):
        net = build()
    state = net.state_dict()
    check_same(state, weights)
    tables = sum(_n_bytes(value) for name, value in net.named_buffers() if name not in state)
    if tables > _TABLES + sum(map(_n_bytes, weights.values())):
        raise ValueError(
            f"it would compute tables of {tables} bytes, many times its weights: save the model"
            " again."
        )


def check_same(state: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    """Raise unless two sets of weights have the same names, shapes and types.

    Parameters
    ----------
    state : mapping of str to Tensor
        Weights of the model.
    weights : mapping of str to Tensor
        Content of the file.

    Raises
    ------
    ValueError
        If a weight is missing, unknown, or of another shape or type.
    """
    for name in sorted(state.keys() ^ weights.keys()):
        if name in state:
            raise ValueError(f"it lacks {name!r}: save the model again.")
        raise ValueError(f"the model has no weights named {name!r}: save it again.")
    for name, value in state.items():
        stored = weights[name]
        if (stored.dtype, stored.shape) != (value.dtype, value.shape):
            raise ValueError(
                f"{name!r} is {stored.dtype} of shape {tuple(stored.shape)}, but the model has"
                f" {value.dtype} of shape {tuple(value.shape)}: save the model again."
            )


def _n_bytes(value: Tensor) -> int:
    return value.numel() * value.element_size()
