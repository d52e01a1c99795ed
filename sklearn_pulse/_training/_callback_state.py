"""State of callbacks: the attributes that they learn in a training, stored and put back."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterable, Iterator, Mapping, Set
from types import MemberDescriptorType
from typing import Any

from skorch import NeuralNet
from skorch.callbacks import Callback, EpochTimer, PrintLog, ProgressBar
from torch import Tensor

from ._identity import fingerprint, snapshot
from ._plain import Decoder, Encoder, class_defines
from ._processes import StopTogether
from ._progress import ReportEpochs

# Callbacks that learn nothing. What they hold, such as a tqdm bar, fits in no file.
_WITHOUT_STATE = (EpochTimer, PrintLog, ProgressBar, ReportEpochs, StopTogether)
# Attributes that callbacks write to, which do not change the training.
_OUTPUTS = {"sink", "writer", "run", "wandb_run", "experiment", "client"}
_LIBRARIES = ("skorch", "sklearn_pulse")
# Libraries whose classes keep no state of a training.
_STATELESS = (*_LIBRARIES, "torch", "sklearn", "builtins")
# Attributes in which Python keeps track of the subclasses of an abstract class.
_OF_PYTHON = ("_abc_impl",)
_STATE_DICT, _VALUE = "state_dict", "value"

Entries = Iterable[tuple[str, Any]]


def callbacks_fingerprint(callbacks: Entries) -> bytes:
    """Digest callbacks as they were passed: their names, settings, and classes with their code.

    Parameters
    ----------
    callbacks : iterable of (str, Callback or callable)
        Before a training.

    Returns
    -------
    bytes
        The digest. It leaves out callbacks that only print, and the outputs that callbacks write
        to.

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
            known.append((name, type(callback), *_settings(name, callback), _code(type(callback))))
    return fingerprint(known, learnt=True)


def _factory_fingerprint(name: str, factory: Any) -> bytes:
    """Digest a class, or a function that makes a callback."""
    try:
        code = _code(factory) if isinstance(factory, type) else None
        return fingerprint((factory, code), learnt=True)
    except TypeError as error:
        raise TypeError(
            f"callbacks holds the function {name!r}, and checkpoint_dir cannot tell it from others:"
            f" {error}. Let it enclose plain values, or set checkpoint_dir=None."
        ) from error


def _code(callback_class: type) -> dict[str, bytes]:
    """Digest the methods of a class, and what its callbacks share.

    A member that another process could not tell from others, such as a lock or a method that
    encloses one, is known by its name alone.
    """
    found = {}
    for name, member in _members(callback_class):
        found[name] = b""
        with contextlib.suppress(TypeError):
            found[name] = fingerprint(member, learnt=True)
    return found


def _settings(name: str, callback: Callback) -> Iterator[tuple[str, bytes]]:
    outputs = _OUTPUTS & _library_parameters(callback)
    for attribute, value in sorted(own_attributes(callback).items()):
        if attribute in outputs:
            continue
        try:
            yield attribute, fingerprint(value, learnt=True)
        except TypeError as error:
            raise _refusal(name, callback, attribute, error) from error


class CallbackStates:
    """States of the callbacks of a net, except for what no training changes.

    An attribute of a callback is stored if a file can hold it exactly. Any other attribute, and
    what all callbacks of a class share, is watched: a training that changes it is refused.

    Parameters
    ----------
    net : NeuralNet
        Initialised net.
    callbacks : iterable of (str, Callback)
        Callbacks of the net whose states are to be stored, as they are before a training.

    Attributes
    ----------
    weights : frozenset of int
        Addresses of the weights, for the encoder: values in the memory of a weight are not stored.

    Raises
    ------
    TypeError
        If a callback holds something that can be neither stored nor watched.
    """

    def __init__(self, net: NeuralNet, callbacks: Entries) -> None:
        self._callbacks = {
            name: callback for name, callback in callbacks if type(callback) not in _WITHOUT_STATE
        }
        self._parts = _parts(net)
        self.weights = _memory_of_weights(net)
        self._stateful: set[tuple[str, str]] = set()
        self._watched: dict[tuple[str, str], tuple[bytes, TypeError]] = {}
        for name, attribute, value in self._attributes():
            self._classify(name, attribute, value)
        self._shared = dict(self._shared_now())

    @property
    def names(self) -> Set[str]:
        """Names of the callbacks that have a state."""
        return self._callbacks.keys()

    def _classify(self, name: str, attribute: str, value: Any) -> None:
        """Note whether an attribute is stored by a state dict, as a value, or only watched."""
        if _has_state_dict(value) and id(value) not in self._parts:
            self._stateful.add((name, attribute))
            return
        try:
            Encoder(self.weights).encode(value)
        except TypeError as error:
            try:
                self._watched[name, attribute] = snapshot(value, self._parts), error
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
            If a training has changed what is not stored.
        """
        self._check_shared()
        attributes = {(name, attribute): value for name, attribute, value in self._attributes()}
        states: dict[str, dict[str, Any]] = {name: {} for name in self._callbacks}
        for name, attribute in attributes | self._watched:
            value = attributes.get((name, attribute))  # None if the training has deleted it
            try:
                if (name, attribute) in self._watched:
                    self._check_same(name, attribute, value)
                else:
                    states[name][attribute] = self._encoded(encoder, name, attribute, value)
            except TypeError as error:
                raise _refusal(name, self._callbacks[name], attribute, error) from error
        return states

    def _encoded(self, encoder: Encoder, name: str, attribute: str, value: Any) -> list[Any]:
        """Return the kind of an attribute, and its encoded value."""
        self._check_settable(name, attribute)
        if (name, attribute) in self._stateful and _has_state_dict(value):
            return [_STATE_DICT, encoder.encode(dict(value.state_dict()))]
        return [_VALUE, encoder.encode(value)]

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
        """Return the kind and value of an attribute, if a file may set it."""
        try:
            self._check_settable(name, attribute)
        except TypeError as error:
            raise ValueError(
                f"the callback {name!r} has no attribute {attribute!r} to be set: {error}"
            ) from error
        if kind == _STATE_DICT and (name, attribute) not in self._stateful:
            raise ValueError(f"the attribute {attribute!r} of the callback {name!r} takes no state")
        return kind, decoder.decode(value)

    def restore(self, states: Mapping[str, Mapping[str, tuple[str, Any]]]) -> None:
        """Put decoded states into the callbacks."""
        for name, attribute, _ in list(self._attributes()):
            if (name, attribute) not in self._watched and attribute not in states[name]:
                delattr(self._callbacks[name], attribute)
        for name, state in states.items():
            callback = self._callbacks[name]
            for attribute, (kind, value) in state.items():
                if kind == _STATE_DICT:
                    getattr(callback, attribute).load_state_dict(value)
                else:
                    setattr(callback, attribute, value)

    def _attributes(self) -> Iterator[tuple[str, str, Any]]:
        """Yield the attributes of the callbacks that are no settings of a library."""
        for name, callback in self._callbacks.items():
            settings = _library_parameters(callback)
            for attribute, value in own_attributes(callback).items():
                if attribute not in settings:
                    yield name, attribute, value

    def _check_settable(self, name: str, attribute: str) -> None:
        """Raise a TypeError if an attribute is no part of what a callback learns."""
        callback = self._callbacks[name]
        if (name, attribute) in self._watched or attribute in _library_parameters(callback):
            raise TypeError("no training changes it")
        if class_defines(callback, attribute):
            raise TypeError("the class defines it")

    def _check_same(self, name: str, attribute: str, value: Any) -> None:
        """Raise a TypeError unless an attribute that is not stored is as it was at the start."""
        before, reason = self._watched[name, attribute]
        if snapshot(value, self._parts) != before:
            raise TypeError(f"training has changed it, and {reason}")

    def _check_shared(self) -> None:
        """Raise a TypeError if a training has changed what all callbacks of a class share."""
        now = dict(self._shared_now())
        for name, member in self._shared.keys() | now.keys():
            if self._shared.get((name, member)) != now.get((name, member)):
                error = TypeError("training has changed it, and what callbacks share is not stored")
                raise _refusal(name, self._callbacks[name], member, error)

    def _shared_now(self) -> Iterator[tuple[tuple[str, str], bytes]]:
        """Yield a digest of each attribute of the classes; a method's covers what it encloses."""
        for name, callback in self._callbacks.items():
            for member, value in _members(type(callback)):
                try:
                    yield (name, member), snapshot(value, self._parts)
                except TypeError as error:
                    raise _refusal(name, callback, member, error) from error


def own_attributes(callback: Callback) -> dict[str, Any]:
    """Return the attributes that a callback has for itself, in its dictionary and its slots."""
    slots = {
        name: getattr(callback, name)
        for class_ in type(callback).__mro__
        for name, member in vars(class_).items()
        if isinstance(member, MemberDescriptorType) and hasattr(callback, name)
    }
    return vars(callback) | slots


def _members(callback_class: type) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of a class of callbacks and its bases, by their names."""
    for class_ in callback_class.__mro__:
        if class_.__module__.partition(".")[0] not in _STATELESS:
            for name, value in vars(class_).items():
                if name not in _OF_PYTHON and (not name.startswith("__") or callable(value)):
                    yield f"{class_.__name__}.{name}", value


def _library_parameters(callback: Callback) -> set[str]:
    """Return the settings of a callback that skorch or this package defines."""
    names: set[str] = set()
    for class_ in type(callback).__mro__:
        if class_.__module__.partition(".")[0] in _LIBRARIES and "__init__" in vars(class_):
            names |= set(inspect.signature(vars(class_)["__init__"]).parameters)
    return names - {"self", "args", "kwargs"}


def _parts(net: NeuralNet) -> set[int]:
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
        f" its attribute {attribute!r}: {error}. Keep plain values, arrays or tensors in attributes"
        " of the callback itself, or set checkpoint_dir=None."
    )
