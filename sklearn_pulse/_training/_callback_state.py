"""What callbacks learn in a training: which attributes that is, stored and put back."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import skorch.callbacks
from sklearn.metrics._scorer import _BaseScorer
from skorch import NeuralNet
from skorch.callbacks import Callback, EpochTimer, PrintLog, ProgressBar
from torch import Tensor

from ._identity import fingerprint
from ._plain import Decoder, Encoder
from ._processes import StopTogether
from ._progress import ReportEpochs
from ._shared_state import shared_state

# They show what happens and learn nothing; a tqdm bar and scikit-learn's context fit in no file.
_WITHOUT_STATE = (EpochTimer, PrintLog, ProgressBar, ReportEpochs, StopTogether)
# Where callbacks write to, which leaves the training as it is.
_OUTPUTS = {"sink", "writer", "run", "wandb_run", "experiment", "client"}
_LIBRARIES = ("skorch", "sklearn_pulse")
_STATE_DICT, _VALUE = "state_dict", "value"
_MUTABLE = (list, dict, set, bytearray)

Entries = Iterable[tuple[str, Any]]


def callbacks_fingerprint(callbacks: Entries) -> bytes:
    """Digest callbacks as they were passed: their names, classes and settings.

    Parameters
    ----------
    callbacks : iterable of (str, Callback or callable)
        Before a training.

    Returns
    -------
    bytes
        The digest. Callbacks that only print, and where callbacks print to, are left out of it.

    Raises
    ------
    TypeError
        If a setting cannot be told from others.
    """
    known: list[Any] = []
    for name, callback in callbacks:
        if not isinstance(callback, Callback):
            known.append((name, _factory_fingerprint(name, callback)))
        elif type(callback) not in _WITHOUT_STATE:
            known.append((name, type(callback), *_settings(name, callback)))
    return fingerprint(known)


def _factory_fingerprint(name: str, factory: Any) -> bytes:
    """Digest a class, or a function that makes a callback."""
    try:
        return fingerprint(factory)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"callbacks holds the function {name!r}, and checkpoint_dir cannot tell it from others:"
            f" {error}. Let it enclose plain values, or set checkpoint_dir=None."
        ) from error


def _settings(name: str, callback: Callback) -> Iterator[tuple[str, bytes]]:
    outputs = _OUTPUTS & _library_parameters(callback)
    for attribute, value in sorted(vars(callback).items()):
        if attribute in outputs:
            continue
        try:
            yield attribute, fingerprint(value)
        except (TypeError, ValueError) as error:
            raise _refusal(name, callback, attribute, error) from error


class CallbackStates:
    """The states of the callbacks of a net, apart from what a training leaves as it is.

    Parameters
    ----------
    net : NeuralNet
        Initialised net.
    callbacks : iterable of (str, Callback)
        Those of its callbacks that are to be stored; they are looked at as they are now.

    Attributes
    ----------
    weights : frozenset of int
        Addresses of the weights, for the encoder: what shares memory with them is not stored.

    Raises
    ------
    TypeError
        If a callback holds something that a file cannot hold exactly and that may change.
    """

    def __init__(self, net: NeuralNet, callbacks: Entries) -> None:
        self._callbacks = {
            name: callback for name, callback in callbacks if type(callback) not in _WITHOUT_STATE
        }
        self._live = _live(net)
        self.weights = _memory_of_weights(net)
        self._names = {name: _mentioned(callback) for name, callback in self._callbacks.items()}
        self._shared = {name: shared_state(cb, _LIBRARIES) for name, cb in self._callbacks.items()}
        self._fixed: dict[tuple[str, str], Any] = {}
        self._stateful: set[tuple[str, str]] = set()
        for name, attribute, value in self._attributes():
            self._classify(name, attribute, value)

    @property
    def names(self) -> Set[str]:
        """Names of the callbacks that have a state."""
        return self._callbacks.keys()

    def _classify(self, name: str, attribute: str, value: Any) -> None:
        """Note how an attribute is to be stored."""
        if self._is_live(value):
            self._fixed[name, attribute] = id(value)
        elif _has_state_dict(value):
            self._stateful.add((name, attribute))
        else:
            try:
                Encoder(self.weights).encode(value)
            except TypeError as error:
                try:
                    self._fixed[name, attribute] = self._token(value)
                except TypeError:
                    raise _refusal(name, self._callbacks[name], attribute, error) from error

    def encode(self, encoder: Encoder) -> dict[str, dict[str, Any]]:
        """Return the states, encoded.

        Parameters
        ----------
        encoder : Encoder
            The encoder of the file.

        Returns
        -------
        dict
            By the names of callback and attribute.

        Raises
        ------
        TypeError
            If a callback learnt something that a file cannot hold exactly.
        """
        self._check_shared()
        states: dict[str, dict[str, Any]] = {name: {} for name in self._callbacks}
        for name, attribute, value in self._attributes():
            try:
                if (name, attribute) in self._fixed:
                    self._check_same(name, attribute, value)
                    continue
                if attribute not in self._names[name]:
                    raise TypeError("no method of the class mentions it")
                if (name, attribute) in self._stateful and _has_state_dict(value):
                    stored = [_STATE_DICT, encoder.encode(dict(value.state_dict()))]
                else:
                    stored = [_VALUE, encoder.encode(value)]
            except TypeError as error:
                raise _refusal(name, self._callbacks[name], attribute, error) from error
            states[name][attribute] = stored
        return states

    def decode(self, decoder: Decoder, states: Any) -> dict[str, dict[str, tuple[str, Any]]]:
        """Return stored states; ValueError if they do not fit these callbacks."""
        if not isinstance(states, dict) or states.keys() != self._callbacks.keys():
            raise ValueError("its callbacks are others")
        return {
            name: {
                attribute: self._decoded(decoder, name, attribute, *stored)
                for attribute, stored in state.items()
            }
            for name, state in states.items()
        }

    def _decoded(
        self, decoder: Decoder, name: str, attribute: str, kind: str, value: Any
    ) -> tuple[str, Any]:
        """Return the kind and value of an attribute, if it is one that a file may set."""
        known = (name, attribute)
        if attribute not in self._names[name] or known in self._fixed:
            raise ValueError(f"the callback {name!r} has no attribute {attribute!r} to be set")
        if kind == _STATE_DICT and known not in self._stateful:
            raise ValueError(f"the attribute {attribute!r} of the callback {name!r} takes no state")
        return kind, decoder.decode(value)

    def restore(self, states: Mapping[str, Mapping[str, tuple[str, Any]]]) -> None:
        """Put decoded states into the callbacks."""
        for name, state in states.items():
            callback = self._callbacks[name]
            for attribute in list(vars(callback)):
                learnt = attribute in self._names[name] and (name, attribute) not in self._fixed
                if learnt and attribute not in state:
                    delattr(callback, attribute)
            for attribute, (kind, value) in state.items():
                if kind == _STATE_DICT:
                    getattr(callback, attribute).load_state_dict(value)
                else:
                    setattr(callback, attribute, value)

    def _attributes(self) -> Iterator[tuple[str, str, Any]]:
        """Yield the attributes of the callbacks that are no settings of a library."""
        for name, callback in self._callbacks.items():
            settings = _library_parameters(callback)
            for attribute, value in list(vars(callback).items()):
                if attribute not in settings:
                    yield name, attribute, value

    def _check_same(self, name: str, attribute: str, value: Any) -> None:
        """Raise a TypeError unless an attribute that is not stored is as it was at the start."""
        token = id(value) if self._is_live(value) else self._token(value)
        if token != self._fixed[name, attribute]:
            raise TypeError(f"training has changed it, and a {type(value).__name__} is not stored")

    def _check_shared(self) -> None:
        """Raise a TypeError if a training has changed what all callbacks of a class share."""
        for name, callback in self._callbacks.items():
            before, now = self._shared[name], shared_state(callback, _LIBRARIES)
            for member in before.keys() | now.keys():
                if before.get(member) != now.get(member):
                    error = TypeError(
                        "training has changed it, or what it encloses, and neither is stored"
                    )
                    raise _refusal(name, callback, member, error)

    def _is_live(self, value: Any) -> bool:
        """Whether a value is a part of the net, which `fit` builds anew."""
        return id(value) in self._live

    def _token(self, value: Any) -> Any:
        """Return what tells whether something that cannot be stored has changed.

        Raises
        ------
        TypeError
            If a change could not be told.
        """
        if self._is_live(value) or isinstance(value, type | ModuleType | _BaseScorer):
            return id(value)
        if isinstance(value, FunctionType):
            return id(value), fingerprint(value) if value.__closure__ else b""
        if isinstance(value, BuiltinFunctionType):
            if isinstance(value.__self__, _MUTABLE):
                raise TypeError("a method of a list or dictionary")
            return id(value.__self__), value.__name__
        if isinstance(value, MethodType):
            if self._is_live(value.__self__) or isinstance(value.__self__, logging.Logger):
                return id(value.__self__), value.__name__
        if isinstance(value, partial):
            parts = (value.func, *value.args, *value.keywords.values())
            return id(value), *map(self._token, parts)
        if type(value) in (list, tuple):
            return id(value), *map(self._token, value)
        if type(value) is dict:
            return id(value), *value, *map(self._token, value.values())
        if type(value) in vars(skorch.callbacks).values():
            return id(value)  # the callback that another one of skorch is built on
        Encoder(self.weights).encode(value)
        return fingerprint(value)


def _mentioned(callback: Callback) -> frozenset[str]:
    """Return the names of the attributes that a callback has, or that its methods mention."""
    names: set[str] = set()
    for class_ in type(callback).__mro__:
        for member in vars(class_).values():
            # A property has functions of its own.
            for function in (member, getattr(member, "fget", None), getattr(member, "fset", None)):
                names |= _names_in(getattr(_unwrapped(function), "__code__", None))
    names = {name for name in names if not _is_defined(type(callback), name)}
    return frozenset((names | set(vars(callback))) - _library_parameters(callback))


def _is_defined(class_: type, name: str) -> bool:
    """Whether a name is a method or property of a class, or one of Python's own."""
    value = getattr(class_, name, None)
    return name.startswith("__") or callable(value) or isinstance(value, property)


def _unwrapped(function: Any) -> Any:
    return inspect.unwrap(function) if callable(function) else function


def _names_in(code: Any) -> set[str]:
    """Return the names of attributes and globals in the code of a function and its inner ones."""
    if not isinstance(code, CodeType):
        return set()
    return set(code.co_names).union(*map(_names_in, code.co_consts))


def _library_parameters(callback: Callback) -> set[str]:
    """Return the settings of a callback that skorch or this package defines."""
    names: set[str] = set()
    for class_ in type(callback).__mro__:
        if class_.__module__.partition(".")[0] in _LIBRARIES and "__init__" in vars(class_):
            names |= set(inspect.signature(vars(class_)["__init__"]).parameters)
    return names - {"self", "args", "kwargs"}


def _live(net: NeuralNet) -> set[int]:
    """Return the ids of the parts of a net."""
    parts = [net, net.optimizer_, net.criterion_, *net.module_.modules()]
    parts += [*net.module_.parameters(), *(callback for _, callback in net.callbacks_)]
    return set(map(id, parts))


def _memory_of_weights(net: NeuralNet) -> frozenset[int]:
    """Return the addresses of the weights of a net."""
    weights = net.module_.state_dict().values()
    addresses = {w.untyped_storage().data_ptr() for w in weights if isinstance(w, Tensor)}
    return frozenset(addresses - {0})  # the address of no memory


def _has_state_dict(value: Any) -> bool:
    names = ("state_dict", "load_state_dict")
    return not isinstance(value, type) and all(hasattr(value, name) for name in names)


def _refusal(name: str, callback: Callback, attribute: str, error: Exception) -> TypeError:
    return TypeError(
        f"callbacks holds {name!r} (a {type(callback).__name__}), and checkpoint_dir cannot keep"
        f" its attribute {attribute!r}: {error}. Keep plain values, arrays or tensors there, or"
        " set checkpoint_dir=None."
    )
