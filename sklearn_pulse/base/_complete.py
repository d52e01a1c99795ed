"""Checks, for its author, that the class of a method defines all that a training needs."""

from __future__ import annotations

import copy
import inspect
from typing import Any

from torch import nn

from ..objectives import Objective

_ROOM = __name__.rpartition(".")[0]


def check_stored(estimator: Any) -> None:
    """Raise a TypeError if a parameter is missing that all methods have, or that builds the loss.

    The base classes declare the parameters that all methods have.
    """
    cls = type(estimator)
    if not hasattr(cls, "_objective_class"):
        raise TypeError(
            f"{cls.__name__} names no objective: set _objective_class to the class of its"
            " objective, and _objective_names to the parameters that build it."
        )
    if isinstance(estimator._objective_names, str):
        raise TypeError(
            f"{cls.__name__}._objective_names is the text {estimator._objective_names!r}: write a"
            f" tuple, ({estimator._objective_names!r},)."
        )
    bases = [base for base in cls.__mro__[::-1] if base.__module__.startswith(f"{_ROOM}.")]
    declared = [name for base in bases for name in base.__annotations__]
    every = [name for name in declared if name.strip("_") == name]  # the others are no parameters
    missing = [
        name
        for name in dict.fromkeys([*every, *estimator._objective_names])
        if not hasattr(estimator, name)
    ]
    if missing:
        raise TypeError(
            f"{cls.__name__} lacks the parameters {missing}: add them to its __init__, with a"
            " default, and store each as an attribute."
        )


def check_objective(estimator: Any, net: Any) -> None:
    """Raise a TypeError if the objective of a net lacks something, or is not passed a parameter.

    It needs a loss, embeddings of known width, and all weights before the training.
    """
    objective = net.module_
    if not isinstance(objective, Objective):
        raise TypeError(
            f"{type(objective).__name__} is no objective: derive it from"
            " sklearn_pulse.objectives.Objective, which has what a training asks of it."
        )
    if type(objective).forward is nn.Module.forward:
        raise TypeError(
            f"{type(objective).__name__} must define forward(self, x, observed=None), which"
            " returns the loss of a batch."
        )
    passed = {*net.get_params_for("module")}
    own = _names_of(type(objective)) & {*estimator.get_params(deep=False)}
    if own - passed:
        raise TypeError(
            f"{type(estimator).__name__} does not pass {sorted(own - passed)} to"
            f" {type(objective).__name__}, which has defaults of its own: add them to"
            " _objective_names."
        )
    untrained = copy.copy(estimator)
    untrained.net_ = net
    untrained._n_features_out  # noqa: B018  # raises if unknown; a class may override it


def _names_of(objective_class: type) -> set[str]:
    """Return the names of the parameters of an objective, with those that it passes on."""
    names: set[str] = set()
    for cls in objective_class.__mro__:
        init = vars(cls).get("__init__")
        if init is None:
            continue
        parameters = inspect.signature(init).parameters.values()
        names |= {parameter.name for parameter in parameters}
        if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters):
            break
    return names


def embedding_width(objective: nn.Module) -> int:
    """Return the width of an embedding; raise a TypeError if the objective does not tell it."""
    if not hasattr(objective, "encoder"):
        raise TypeError(
            f"{type(objective).__name__} has no attribute encoder: set it in __init__ to the"
            " network that embeds windows."
        )
    encoder: Any = objective.encoder
    if not hasattr(encoder, "embedding_dim"):
        raise TypeError(
            f"the encoder {type(encoder).__name__} has no attribute embedding_dim: set it to the"
            " width of an embedding."
        )
    return int(encoder.embedding_dim)
