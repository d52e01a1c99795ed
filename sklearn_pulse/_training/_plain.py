"""Values of callbacks and histories, encoded so that reading them from a file runs no code."""

from __future__ import annotations

import random
from collections import Counter, OrderedDict, deque
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

_SEQUENCES: dict[str, Any] = {
    kind.__name__: kind for kind in (list, tuple, set, frozenset, torch.Size)
}
_MAPPINGS: dict[str, Any] = {kind.__name__: kind for kind in (dict, OrderedDict, Counter)}
_BIT_GENERATORS: dict[str, Any] = {
    name: getattr(np.random, name) for name in ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
}
_PATH = type(Path())


class Encoder:
    """Encode values exactly, as lists that begin with the kind of the value.

    One encoder serves a whole file: an object that is reached twice is stored once, so that what
    was shared is shared again.

    Parameters
    ----------
    weights : frozenset of int, default=frozenset()
        Addresses of the weights of a net. A tensor that shares memory with them is refused.

    Examples
    --------
    >>> value = {"losses": (0.5, np.float32(0.25))}
    >>> Decoder().decode(Encoder().encode(value)) == value
    True
    >>> Encoder().encode(open)
    Traceback (most recent call last):
    ...
    TypeError: an object of class builtin_function_or_method cannot be stored
    """

    def __init__(self, weights: frozenset[int] = frozenset()) -> None:
        self._weights = weights
        # The values are held, so that no other value takes over their place in memory.
        self._known: dict[int, tuple[Any, list[Any]]] = {}

    def encode(self, value: Any) -> Any:
        """Return the encoded value; TypeError if it cannot be stored exactly."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if id(value) in self._known:
            return self._known[id(value)][1]
        try:
            encoded = self._encode(value)
        except RecursionError as error:
            raise TypeError("values nested so deeply cannot be stored") from error
        self._known[id(value)] = value, encoded
        return encoded

    def _encode(self, value: Any) -> list[Any]:
        kind = type(value)
        if _SEQUENCES.get(kind.__name__) is kind:
            return [kind.__name__, [self.encode(part) for part in value]]
        if _MAPPINGS.get(kind.__name__) is kind:
            pairs = [[self.encode(key), self.encode(part)] for key, part in value.items()]
            return [kind.__name__, pairs]
        if kind is deque:
            return ["deque", [self.encode(part) for part in value], value.maxlen]
        if kind is complex:
            return ["complex", value.real, value.imag]
        if kind is bytes:
            return ["bytes", value.hex()]
        if kind is Tensor:
            if value.layout is not torch.strided:
                raise TypeError(f"a {value.layout} tensor cannot be stored")
            if value.grad_fn is not None:
                raise TypeError("a tensor with a graph of gradients cannot be stored: detach it")
            if value.untyped_storage().data_ptr() in self._weights:
                raise TypeError("a tensor in the memory of a weight cannot be stored: clone it")
            return ["tensor", value.resolve_conj().resolve_neg(), value.device.type]
        if isinstance(value, np.generic) and value.dtype.kind in "biufcmMSU":
            return ["scalar", value.dtype.str, value.tobytes().hex()]
        if kind is np.ndarray and value.dtype.kind in "biufcmMSU":
            order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
            # torch takes no array without bytes.
            content = torch.frombuffer(bytearray(value.tobytes(order) + b"."), dtype=torch.uint8)
            return ["array", value.dtype.str, list(value.shape), order, content]
        if kind is torch.device or kind is torch.dtype:
            return [kind.__name__, str(value).removeprefix("torch.")]
        if kind is _PATH:
            return ["path", str(value)]
        return self._encode_generator(value)

    def _encode_generator(self, value: Any) -> list[Any]:
        """Encode a generator of random numbers by its state."""
        kind = type(value)
        if kind is random.Random:
            return ["random", self.encode(value.getstate())]
        if kind is np.random.RandomState:
            state = value.get_state(legacy=False)
            if state["bit_generator"] == "MT19937":  # the only one that it can be built on again
                return ["RandomState", self.encode(state)]
        if kind is np.random.Generator:
            return ["Generator", self.encode(value.bit_generator)]
        if _BIT_GENERATORS.get(kind.__name__) is kind:
            return ["bits", kind.__name__, self.encode(value.state), self.encode(value.seed_seq)]
        if kind is np.random.SeedSequence:
            return ["SeedSequence", self.encode(value.state)]
        if kind is torch.Generator:
            return ["torch.Generator", value.device.type, value.get_state()]
        raise TypeError(f"an object of class {kind.__name__} cannot be stored")


class Decoder:
    """Decode what an :class:`Encoder` has encoded; ValueError for anything else.

    Parameters
    ----------
    device : str or torch.device, default="cpu"
        Device of the tensors that were not on the CPU.
    """

    def __init__(self, device: Any = "cpu") -> None:
        self._device = device
        self._known: dict[int, Any] = {}

    def decode(self, encoded: Any) -> Any:
        """Return the value."""
        if encoded is None or type(encoded) in (bool, int, float, str):
            return encoded
        if type(encoded) is not list or not encoded:
            raise ValueError(f"a {type(encoded).__name__} where an encoded value must be")
        if id(encoded) not in self._known:
            self._known[id(encoded)] = self._decode(*encoded)
        return self._known[id(encoded)]

    def _decode(self, kind: str, *parts: Any) -> Any:
        if kind in _SEQUENCES:
            return _SEQUENCES[kind]([self.decode(part) for part in parts[0]])
        if kind in _MAPPINGS:
            pairs = [(self.decode(key), self.decode(part)) for key, part in parts[0]]
            return _MAPPINGS[kind](dict(pairs))
        if kind == "deque":
            return deque((self.decode(part) for part in parts[0]), parts[1])
        if kind == "complex":
            return complex(*parts)
        if kind == "bytes":
            return bytes.fromhex(parts[0])
        if kind == "tensor":
            return parts[0].to(self._device_of(parts[1]))
        if kind == "scalar":
            dtype = _dtype(parts[0])
            if not dtype.itemsize:  # empty text, which NumPy reads from no bytes
                return dtype.type()
            return np.frombuffer(bytes.fromhex(parts[1]), dtype)[0]
        if kind == "array":
            name, shape, order, content = parts
            flat = np.frombuffer(content.numpy().tobytes()[:-1], _dtype(name))
            return flat.reshape(shape, order=order).copy(order="K")
        if kind == "device":
            return torch.device(parts[0])
        if kind == "dtype":
            dtype = getattr(torch, parts[0])
            if isinstance(dtype, torch.dtype):
                return dtype
        if kind == "path":
            return Path(parts[0])
        return self._decode_generator(kind, *parts)

    def _decode_generator(self, kind: str, *parts: Any) -> Any:
        if kind == "random":
            generator = random.Random()
            generator.setstate(self.decode(parts[0]))
            return generator
        if kind == "RandomState":
            state = np.random.RandomState()
            state.set_state(self.decode(parts[0]))
            return state
        if kind == "Generator":
            return np.random.Generator(self.decode(parts[0]))
        if kind == "bits" and parts[0] in _BIT_GENERATORS:
            bits = _BIT_GENERATORS[parts[0]](self.decode(parts[2]))  # which `spawn` reads
            bits.state = self.decode(parts[1])
            return bits
        if kind == "SeedSequence":
            return np.random.SeedSequence(**self.decode(parts[0]))
        if kind == "torch.Generator":
            own = torch.Generator(self._device_of(parts[0]))
            own.set_state(parts[1])
            return own
        raise ValueError(f"no value is of the kind {kind!r}")

    def _device_of(self, kind: str) -> Any:
        return "cpu" if kind == "cpu" else self._device


def class_defines(holder: Any, attribute: str) -> bool:
    """Whether the class of an object defines an attribute as code, which no file may replace."""
    defined = getattr(type(holder), attribute, None)
    return attribute.startswith("__") or callable(defined) or isinstance(defined, property)


def _dtype(name: str) -> np.dtype[Any]:
    """Return the type of plain numbers or characters of this name."""
    dtype = np.dtype(name)
    if dtype.kind not in "biufcmMSU":
        raise ValueError(f"{name!r} is no type of numbers")
    return dtype
