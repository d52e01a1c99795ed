"""Pickles of modules with torch's parametrizations, such as ``weight_norm``.

Torch gives such a module a class of its own, which no pickle can name, and refuses to pickle it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from torch import nn
from torch.nn.utils import parametrize


def make_picklable(module: nn.Module) -> None:
    """Let the parametrized modules in a module be pickled.

    Only classes that torch has made for single modules in it are changed.

    Examples
    --------
    >>> import pickle
    >>> from torch.nn.utils.parametrizations import weight_norm
    >>> layer = weight_norm(nn.Linear(2, 2))
    >>> make_picklable(layer)
    >>> bool((pickle.loads(pickle.dumps(layer)).weight == layer.weight).all())
    True
    """
    for part in module.modules():
        if parametrize.is_parametrized(part):
            type(part).__reduce_ex__ = _reduced  # type: ignore[method-assign]


def _reduced(module: Any, protocol: Any) -> tuple[Any, ...]:
    """Return how a parametrized module is made from a class that a pickle can name."""
    plain: Any = parametrize.type_before_parametrizations(module)
    state = dict(plain.__getstate__(module))
    hooks = state["_load_state_dict_pre_hooks"]
    # The pickle leaves out hooks such as the hook by which weight_norm reads old states.
    kept = {key: hook for key, hook in hooks.items() if not _is_local_to_torch(hook)}
    state["_load_state_dict_pre_hooks"] = OrderedDict(kept)
    return _empty, (plain,), state, None, None, _fill


def _is_local_to_torch(hook: Any) -> bool:
    """Return whether a hook is a function within a function of torch, which has no public name."""
    function = getattr(hook, "hook", hook)
    name, home = (getattr(function, key, None) or "" for key in ("__qualname__", "__module__"))
    return "<locals>" in name and home.startswith("torch.")


def _empty(plain: type[nn.Module]) -> nn.Module:
    return plain.__new__(plain)


def _fill(module: Any, state: Any) -> None:
    """Give an empty module its state, and the parametrized class again."""
    module.__setstate__(state)
    held = module._modules
    parameters = module._parameters
    # Torch makes the class when it registers a parametrization. An identity, registered on a
    # stand-in for each weight, leaves the weights and the real parametrizations untouched.
    module._modules = {name: part for name, part in held.items() if name != "parametrizations"}
    for name in held["parametrizations"]:
        stand_in = nn.Parameter(torch.empty(0))
        module._parameters = {name: stand_in}
        parametrize.register_parametrization(module, name, nn.Identity(), unsafe=True)
    module._modules, module._parameters = held, parameters
    make_picklable(module)
