"""Digests of values, which identify a value in every process, or show whether it has changed."""

from __future__ import annotations

import hashlib
import io
import os
import threading
from collections.abc import Callable, Collection, Iterable
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from skorch import NeuralNet
from torch import Tensor

_Inner = Callable[[Iterable[Any]], list[bytes]]  # digests of the parts of a value
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), range, slice)
# Types that hold nothing that a training learns.
_TOOLS = (type(threading.Lock()), type(threading.RLock()), io.IOBase)


def fingerprint(value: Any, learnt: bool = False) -> bytes:
    """Digest a value by what it holds, never by where it lies in memory.

    A function is known by its name, its code, what it encloses and its attributes; an estimator by
    its class and parameters; any other object by what pickle would store of it. What estimators
    have `learnt` may count too; the times of a search are among it, so that the same search gives
    another digest. A value that another process cannot tell from others, such as a lock or an open
    file, raises a TypeError.

    Examples
    --------
    >>> fingerprint([1, {"a": 2.0}]) == fingerprint([1, {"a": 2.0}])
    True
    >>> fingerprint((1, 2)) == fingerprint([1, 2])
    False
    """
    return _guarded(value, None, learnt)


def snapshot(value: Any, parts: Collection[int] = frozenset()) -> bytes:
    """Digest what a value holds now, to tell later in this process whether it has changed.

    Unlike :func:`fingerprint`, it sees what an estimator has learnt. Locks and open files hold
    nothing that counts: they are known by their place in memory, as are objects whose ids are in
    `parts`. If a change of the value could not be told, a TypeError is raised.

    Examples
    --------
    >>> values = [[1]]
    >>> before = snapshot(values)
    >>> values[0].append(2)
    >>> snapshot(values) == before
    False
    """
    return _guarded(value, parts, learnt=True)


def _guarded(value: Any, parts: Collection[int] | None, learnt: bool) -> bytes:
    try:
        return _digest(value, (), parts, learnt)
    except RecursionError as error:
        raise TypeError("values nested so deeply cannot be told from others") from error
    except (ValueError, RuntimeError) as error:  # a name without a value, a sparse tensor
        raise TypeError(f"it cannot be told from others ({error})") from error


def _digest(
    value: Any, above: tuple[int, ...], parts: Collection[int] | None, learnt: bool
) -> bytes:
    """Digest a value; `above` are the ids of the values that it lies in.

    `parts` is None for a fingerprint; for a snapshot, the ids that are known by their place.
    """
    if parts is not None and (id(value) in parts or isinstance(value, _TOOLS)):
        return _hash("place", str(id(value)).encode())
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) in _PLAIN:
        return _hash(type(value).__name__, repr(value).encode())
    if id(value) in above:  # a circle is known by its length
        return _hash("circle", str(len(above) - above.index(id(value))).encode())

    def inner(values: Iterable[Any]) -> list[bytes]:
        return [_digest(part, (*above, id(value)), parts, learnt) for part in values]

    for digest in (_of_container, _of_data, _of_code):
        found = digest(value, inner)
        if found is not None:
            return found
    if isinstance(value, NeuralNet) and parts is None and getattr(value, "initialized_", False):
        # Not what pickle stores, which holds times and the state of the optimizer.
        module = value.module_
        return _hash("net", *inner((type(value), type(module), dict(module.state_dict()))))
    if isinstance(value, BaseEstimator) and not learnt:
        return _hash("estimator", *inner((type(value), value.get_params(deep=False))))
    return _hash("object", *inner(_reduced(value)))


def _of_container(value: Any, inner: _Inner) -> bytes | None:
    """Digest a container; None for another value."""
    kind = type(value)
    if kind in (list, tuple):
        return _hash(kind.__name__, *inner(value))
    if kind in (set, frozenset):
        return _hash(kind.__name__, *sorted(inner(value)))
    if kind is dict:
        return _hash("dict", *sorted(b"".join(inner(pair)) for pair in value.items()))
    return None


def _of_data(value: Any, inner: _Inner) -> bytes | None:
    """Digest arrays, and values that are known by a name; None for another value."""
    if isinstance(value, Tensor):
        return _hash("tensor", *_bytes_of(value))
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return _hash("array", f"{value.dtype.str}{value.shape}".encode(), value.tobytes())
    if isinstance(value, torch.device | torch.dtype):
        return _hash("torch", str(value).encode())
    if isinstance(value, os.PathLike):
        return _hash("path", os.fsencode(value))
    if isinstance(value, type | ModuleType):
        return _hash("name", _name(value))
    return None


def _of_code(value: Any, inner: _Inner) -> bytes | None:
    """Digest functions, methods and the like; None for another value."""
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        rest = [value.__defaults__, value.__kwdefaults__, cells, value.__code__]
        if vars(value):  # attributes that a user gave it
            rest.append(vars(value))
        return _hash("function", _name(value), *inner(rest))
    if isinstance(value, CodeType):
        n_named = value.co_argcount + value.co_kwonlyargcount  # skorch passes arguments by name
        arguments = value.co_argcount, value.co_posonlyargcount, value.co_varnames[:n_named]
        facts = value.co_names, value.co_consts, arguments, value.co_flags
        return _hash("code", value.co_code, *inner(facts))
    if isinstance(value, MethodType):
        return _hash("method", *inner((value.__func__, value.__self__)))
    if isinstance(value, BuiltinFunctionType) and not isinstance(value.__self__, ModuleType | None):
        return _hash("method", value.__name__.encode(), *inner((value.__self__,)))
    if isinstance(value, partial):
        return _hash("partial", *inner((value.func, value.args, value.keywords)))
    if isinstance(value, property):
        return _hash("property", *inner((value.fget, value.fset, value.fdel)))
    if isinstance(value, staticmethod | classmethod):
        return _hash(type(value).__name__, *inner((value.__func__,)))
    return None


def _reduced(value: Any) -> list[Any]:
    """Return what pickle would store of an object."""
    try:
        parts = value.__reduce_ex__(4)
    except Exception as error:
        raise TypeError(
            f"a {type(value).__name__} cannot be told from others of its kind in another process"
        ) from error
    if isinstance(parts, str):  # the name of something in a module
        return [type(value), parts]
    function, arguments, *rest = parts
    # Lists and dictionaries hand their contents over as iterators.
    return [function, arguments, *(list(r) if hasattr(r, "__next__") else r for r in rest)]


def _bytes_of(tensor: Tensor) -> tuple[bytes, bytes]:
    """Return the kind and the values of a tensor."""
    plain = tensor.detach().resolve_conj().resolve_neg().cpu()
    values = plain.contiguous().reshape(-1).view(torch.uint8).numpy()
    return f"{tensor.dtype}{tuple(tensor.shape)}".encode(), values.tobytes()


def _name(value: Any) -> bytes:
    module = getattr(value, "__module__", "")
    return f"{module}.{getattr(value, '__qualname__', value.__name__)}".encode()


def _hash(kind: str, *parts: bytes) -> bytes:
    digest = hashlib.blake2b(kind.encode(), digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()
