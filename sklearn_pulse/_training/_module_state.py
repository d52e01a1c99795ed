"""What modules of a user keep beside their weights: plain attributes, stored and put back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn

from ._plain import Decoder, Encoder, class_defines

_LIBRARIES = ("torch", "sklearn_pulse")
# What every module has, and what the training sets in an objective.
_SET_BY_OTHERS = {*vars(nn.Module()), "epoch", "share", "seed", "_generator"}

Attributes = dict[str, dict[str, Any]]  # by the names of the module and of the attribute


def encoded_attributes(module: nn.Module, encoder: Encoder) -> Attributes:
    """Return the attributes of modules that a file can hold, such as counters and running means.

    Parameters
    ----------
    module : torch.nn.Module
        The objective; of its parts, those count whose class a user has written.
    encoder : Encoder
        The encoder of the file.

    Returns
    -------
    dict
        Encoded values. Attributes that cannot be stored are left out.
    """
    found: Attributes = {}
    for name, part in module.named_modules():
        for attribute, value in _attributes(part):
            with contextlib.suppress(TypeError):
                found.setdefault(name, {})[attribute] = encoder.encode(value)
    return found


def decoded_attributes(module: nn.Module, decoder: Decoder, stored: Any) -> Attributes:
    """Return stored attributes; ValueError if a file may not set them in these modules."""
    parts = dict(module.named_modules())
    for name, attributes in stored.items():
        if name not in parts or not _is_users(parts[name]):
            raise ValueError(f"no module {name!r} keeps attributes")
        for attribute in attributes:
            if _is_taken(parts[name], attribute):
                raise ValueError(f"the module {name!r} has no attribute {attribute!r} to be set")
    return {
        name: {attribute: decoder.decode(value) for attribute, value in attributes.items()}
        for name, attributes in stored.items()
    }


def restore_attributes(module: nn.Module, attributes: Mapping[str, Mapping[str, Any]]) -> None:
    """Put decoded attributes into the modules."""
    for name, values in attributes.items():
        for attribute, value in values.items():
            setattr(module.get_submodule(name), attribute, value)


def _attributes(part: nn.Module) -> Iterator[tuple[str, Any]]:
    """Yield what a module of a user's class keeps, and no state of it holds."""
    if _is_users(part):
        yield from ((n, v) for n, v in vars(part).items() if not _is_taken(part, n))
        yield from ((n, part._buffers[n]) for n in part._non_persistent_buffers_set)


def _is_users(part: nn.Module) -> bool:
    return type(part).__module__.partition(".")[0] not in _LIBRARIES


def _is_taken(part: nn.Module, attribute: str) -> bool:
    """Return whether an attribute belongs to the class, or to every module."""
    return attribute in _SET_BY_OTHERS or class_defines(part, attribute)
