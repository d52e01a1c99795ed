"""Callbacks as they are pickled, so that they load on a machine without the device of the net."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from skorch.callbacks import Callback
from torch.optim.lr_scheduler import LRScheduler

_Swap = Callable[[Any], Any]


class _Part(NamedTuple):
    """Stand-in, in a pickle, for a part of the net that the net itself stores."""

    name: str


def portable(values: Mapping[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return values in which names stand for parts of a net, and tensors are on the CPU.

    Schedules of the learning rate hold the optimizer, and with it tensors on the device.

    Parameters
    ----------
    values : mapping
        Attributes of the net that hold callbacks. They stay as they are.
    parts : mapping
        Attributes of the net that it pickles so that they load on any machine.

    Returns
    -------
    dict
        The values; callbacks and schedules in which something is replaced are copies.
    """
    names = {id(part): name for name, part in parts.items()}

    def swap(value: Any) -> Any:
        if id(value) in names:
            return _Part(names[id(value)])
        is_elsewhere = isinstance(value, torch.Tensor) and value.device.type != "cpu"
        return value.detach().cpu() if is_elsewhere else value

    return _swapped(dict(values), swap, {})


def restored(values: Mapping[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of :func:`portable` with the parts of the net in their places."""

    def swap(value: Any) -> Any:
        return parts[value.name] if isinstance(value, _Part) else value

    return _swapped(dict(values), swap, {})


def _swapped(value: Any, swap: _Swap, known: dict[int, Any]) -> Any:
    """Return a value, or a copy in which `swap` has replaced parts of it."""
    if id(value) in known:
        return known[id(value)]
    known[id(value)] = value  # where it holds itself
    result = swap(value)
    if result is value:
        result = _with_parts_swapped(value, swap, known)
    known[id(value)] = result
    return result


def _with_parts_swapped(value: Any, swap: _Swap, known: dict[int, Any]) -> Any:
    if type(value) in (list, tuple):
        parts = [_swapped(part, swap, known) for part in value]
        return value if _same(parts, value) else type(value)(parts)
    if type(value) is dict:
        items = {key: _swapped(part, swap, known) for key, part in value.items()}
        return value if _same(items.values(), value.values()) else items
    if not isinstance(value, Callback | LRScheduler):
        return value
    held = _swapped(vars(value), swap, known)
    if held is vars(value):
        return value
    result = copy.copy(value)
    vars(result).update(held)
    return result


def _same(these: Any, those: Any) -> bool:
    return all(this is that for this, that in zip(these, those, strict=True))
