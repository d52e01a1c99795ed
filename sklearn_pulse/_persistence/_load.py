"""Loading of a fitted transformer from a folder."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from torch import Tensor

from .._signals import Signals, check_signals
from .._training._device import resolve_device
from .._version import __version__
from ._files import CONFIG, WEIGHTS, blamed, read_config, read_weights, undisturbed
from ._probe import check_embedding
from ._sizes import check_same
from ._values import decode

# Parameters of a machine, not of a model: a file can neither choose a folder nor a device, nor
# start a compiler or thousands of threads.
LOCAL = ("checkpoint_dir", "compile", "device", "memory", "num_threads")
# Fitted attributes that earlier versions did not write.
_SINCE_0_1: dict[str, Any] = dict.fromkeys(
    ("sampling_rate_in_", "channel_names_in_", "amplitude_in_")
)
FITTED = re.compile(r"[a-z]\w*[a-z0-9]_", re.ASCII)  # names of fitted attributes


def load(cls: type, folder: str | os.PathLike[str], device: Any) -> Any:
    """Read a fitted transformer; see :meth:`PretrainedMixin.from_pretrained`."""
    folder = Path(folder)
    return undisturbed(folder, lambda: _load(cls, folder, device))


def _load(cls: type, folder: Path, device: Any) -> Any:
    config = read_config(folder)
    if "chain" in config:
        raise ValueError(
            f"{folder} holds a chain of steps, not one transformer: read it by"
            " sklearn_pulse.load_pretrained, and take the transformer from its steps."
        )
    with blamed(folder / CONFIG):
        estimator = construct(_find_class(cls, _entry(config, "class", str)), config)
    place(estimator, device)  # an absent device raises here, where the file is not blamed
    with blamed(folder / CONFIG):
        estimator._check_params()
        weights = _entry(config, "weights", dict)
    tensors = read_weights(folder / WEIGHTS, weights.get("n_bytes"), weights.get("sha256"))
    with blamed(folder):
        _fill(estimator, config, tensors)
    return estimator


def _fill(estimator: Any, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Make an estimator fitted by weights, and before it the transformers that it holds."""
    own = dict(tensors)
    parts = _entry(config, "held", dict) if "held" in config else {}
    for name in parts:
        part = _entry(parts, name, dict)
        if name not in estimator._holds:
            raise ValueError(f"{type(estimator).__name__} holds no transformer as {name!r}.")
        theirs = {key: own.pop(key) for key in tensors if key.startswith(f"{name}/")}
        held = construct(_find_class(estimator._holds[name], _entry(part, "class", str)), part)
        place(held, "cpu")
        held._check_params()
        _fill(held, part, {key.partition("/")[2]: value for key, value in theirs.items()})
        estimator._hold(name, held)
    training = _training(_entry(config, "training", dict))
    estimator._restore(own)
    estimator._restore_training(*training)
    check_same(estimator._weights(), own)
    check_embedding(estimator)


def place(estimator: Any, device: Any) -> None:
    """Set the device of an estimator that has one; raise if the device is absent."""
    if "device" in estimator._get_param_names():
        resolve_device(device)
        estimator.set_params(device=device)


def _find_class(cls: type, name: str) -> type:
    """Return the class called `name` among `cls` and its subclasses.

    A name from a file is compared with the names of known classes. It is never imported.
    """
    if _is_method(cls):
        if cls.__name__ != name:
            raise ValueError(
                f"it is a {name}, not a {cls.__name__}: call {name}.from_pretrained instead."
            )
        return cls
    _import_estimators()
    known = set(filter(_is_method, _descendants(cls)))
    found = [sub for sub in known if sub.__name__ == name]
    current = _as_defined_now(found)
    if current is not None:
        return current
    if found:
        raise ValueError(
            f"{len(found)} classes are named {name}: call from_pretrained of the right one."
        )
    names = ", ".join(sorted({sub.__name__ for sub in known}))
    if any(sub.__name__ == name for sub in _descendants(BaseEstimator)):
        raise ValueError(f"it is a {name}, which cannot be used here: pass one of {names}.")
    raise ValueError(
        f"the class {name!r} is unknown; known are {names}. Import the module that defines it, or"
        " install a later version of sklearn_pulse."
    )


def _as_defined_now(classes: list[type]) -> type | None:
    """Return the only class, or the last of one that was defined anew; None for several classes.

    A cell of a notebook that is run again defines its classes anew.
    """
    if len({(cls.__module__, cls.__qualname__) for cls in classes}) != 1:
        return None
    if len(classes) == 1:
        return classes[0]
    now: Any = sys.modules.get(classes[0].__module__)
    for name in classes[0].__qualname__.split("."):
        now = getattr(now, name, None)
    return now if now in classes else None


def _is_method(cls: Any) -> bool:
    """Return whether a class is a method, not a base of several methods, which has no parameter."""
    return issubclass(cls, BaseEstimator) and bool(cls._get_param_names())


def _import_estimators() -> None:
    """Import the estimators of the package, which it loads lazily, so that they are known."""
    package = importlib.import_module(__name__.partition(".")[0])
    for room in ("baselines", "features"):
        importlib.import_module(f"{package.__name__}.{room}")
    for name in package.__all__:
        getattr(package, name)


def _descendants(cls: type) -> set[type]:
    """Return a class and all its subclasses."""
    return {cls}.union(*map(_descendants, cls.__subclasses__()))


def construct(cls: type[Any], config: dict[str, Any]) -> Any:
    """Return an estimator with the parameters and attributes of a file, without its net."""
    values = {name: decode(value) for name, value in _entry(config, "parameters", dict).items()}
    unknown = sorted(set(values) - (set(cls._get_param_names()) - {*LOCAL, *cls._holds}))
    if unknown:
        writer = _entry(config, "versions", dict).get("sklearn_pulse")
        raise ValueError(
            f"{cls.__name__} has no parameter {unknown[0]!r} that a file may set. It was written by"
            f" sklearn_pulse {writer}, this is {__version__}: install that version, or a later one."
        )
    callbacks = values.get("callbacks")
    if callbacks is not None and (not isinstance(callbacks, list | tuple) or callbacks):
        raise ValueError("callbacks come from no file: pass them after loading.")
    check_random_state(values.get("random_state"))
    estimator = cls(**values)
    fitted = {name: decode(value) for name, value in _entry(config, "fitted", dict).items()}
    on_table = _entry(config, "fitted_on_table", bool)
    fitted |= {name: value for name, value in _SINCE_0_1.items() if name not in fitted}
    _check_fitted(cls, fitted, on_table)
    vars(estimator).update(fitted, _fitted_on_table=on_table)
    _check_signals(estimator)
    return estimator


def _check_fitted(cls: type[Any], fitted: dict[str, Any], on_table: bool) -> None:
    """Raise unless the fitted attributes are known and agree with one another."""
    for name in fitted:
        if not FITTED.fullmatch(name) or name in cls._unstored or hasattr(cls, name):
            raise ValueError(f"a file may not set the attribute {name!r}: save the model again.")
    n_timesteps, n_channels, n_features = (
        _entry(fitted, f"{name}_in_", int | None)
        for name in ("n_timesteps", "n_channels", "n_features")
    )
    if not _is_count(n_channels) or not (n_timesteps is None or _is_count(n_timesteps)):
        raise ValueError(f"windows have {n_timesteps} time steps and {n_channels} channels.")
    if n_timesteps is None and not cls._length_may_be_unknown:
        raise ValueError(
            f"n_timesteps_in_ is null, but {cls.__name__} needs it: save the model again."
        )
    if n_features != (n_timesteps if on_table else n_channels) or (on_table and n_channels != 1):
        raise ValueError(f"n_features_in_={n_features} does not go with the shape of its windows.")
    longest = fitted.get("n_timesteps_trained_", 1)  # of weights that were trained
    if not _is_count(longest):
        raise ValueError(f"n_timesteps_trained_={longest!r} is no number of time steps.")
    amplitude: Any = fitted.get("amplitude_in_")
    if amplitude is not None and (
        np.shape(amplitude) != (2, n_channels) or np.asarray(amplitude).dtype.kind != "f"
    ):
        raise ValueError(f"amplitude_in_ must be 2 x {n_channels} numbers, or null.")
    names: Any = fitted.get("feature_names_in_")
    if names is None and "feature_names_in_" not in fitted:
        return
    if not on_table or np.shape(names) != (n_features,) or not all(type(x) is str for x in names):
        raise ValueError(f"feature_names_in_ must be {n_features} strings, of a table.")


def _check_signals(estimator: Any) -> None:
    """Raise unless sampling rate and channel names are possible, and those of the parameters."""
    fitted = check_signals(
        estimator.sampling_rate_in_,
        estimator.channel_names_in_,
        estimator.n_channels_in_,
        owner="fitted ",
    )
    stated = check_signals(estimator.sampling_rate, estimator.channel_names)
    for name, value, known in zip(Signals._fields, stated, fitted, strict=True):
        if value not in (None, known):
            raise ValueError(
                f"{name} is {value!r}, but it was {known!r} at fit: set it back, or fit again."
            )


def _training(training: dict[str, Any]) -> tuple[list[dict[str, Any]], int | None, int | None]:
    """Return the history, the index of the selected epoch, and the number of earlier epochs."""
    history = _entry(training, "history", list)
    selected = _entry(training, "selected_epoch", int | None)
    if not all(isinstance(epoch, dict) and "batches" not in epoch for epoch in history):
        raise ValueError("its history must be a list with one dictionary of scalars per epoch.")
    if selected is not None and not 0 <= selected < len(history):
        raise ValueError(f"epoch {selected} is selected out of {len(history)}.")
    n_earlier = None  # which earlier versions did not write
    if "n_earlier" in training:
        n_earlier = _entry(training, "n_earlier", int)
        if not 0 <= n_earlier <= len(history):
            raise ValueError(f"{n_earlier} epochs are of earlier fits, out of {len(history)}.")
    return [{k: decode(v) for k, v in epoch.items()} for epoch in history], selected, n_earlier


def _entry(mapping: dict[str, Any], name: str, kind: Any) -> Any:
    """Return an entry; raise unless it is of type `kind`, where a boolean is not an integer."""
    if name not in mapping:
        raise ValueError(f"it lacks {name!r}: save the model again.")
    value = mapping[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"its {name!r} is {value!r}, of the wrong type: save the model again.")
    return value


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and int(value) >= 1
