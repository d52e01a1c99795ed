"""What is compared: every public method, its ablations, and the controls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline

import sklearn_pulse

from .. import PulseOracleTransformer, baselines, presets
from ..base import BaseEncoderTransformer, BaseSSLTransformer
from ..baselines import MiniRocketTransformer, RandomEncoderTransformer, SupervisedClassifier
from ..evaluation import make_linear_probe
from ..features import StatisticsTransformer
from . import _paper as paper


@dataclass(frozen=True)
class Method:
    """A row of the tables.

    Parameters
    ----------
    name : str
        As on the command line.
    title : str
        As in the tables.
    make : callable or None
        Class of the transformer, or of the supervised classifier; None for a control that looks
        at labels only.
    params : dict
        Its parameters beyond the preset's.
    is_control : bool
        Whether tables show it always, as what a method has to beat.
    """

    name: str
    title: str
    make: Callable[..., BaseEstimator] | None
    params: dict[str, Any]
    is_control: bool = False

    @property
    def is_trained(self) -> bool:
        """Whether windows train it, before any probe."""
        return inspect.isclass(self.make) and issubclass(self.make, BaseSSLTransformer)

    @property
    def needs_labels(self) -> bool:
        """Whether these windows need labels, as an oracle's do."""
        return self.is_trained and self.make().__sklearn_tags__().target_tags.required

    @property
    def is_encoder(self) -> bool:
        """Whether it can be fine-tuned."""
        return inspect.isclass(self.make) and issubclass(self.make, BaseEncoderTransformer)

    @property
    def is_classifier(self) -> bool:
        """Whether it predicts labels itself, and has no embedding to probe."""
        return inspect.isclass(self.make) and issubclass(self.make, SupervisedClassifier)

    @property
    def preset_name(self) -> str:
        """Name of its presets."""
        return "" if self.make is None else method_name(self.make)

    def settings(self, preset: str) -> dict[str, Any]:
        """Return the parameters for a data set."""
        known = self.preset_name in presets.methods()
        return (presets.get(self.preset_name, preset) if known else {}) | self.params

    def cut(self, preset: str) -> dict[str, Any]:
        """Return how its pre-training windows are cut; PULSE's way where it has none of its own."""
        known = self.preset_name in presets.methods()
        return presets.windows(self.preset_name if known else "pulse", preset)

    def build(self, settings: dict[str, Any], seed: int, **execution: Any) -> TransformerMixin:
        """Return the unfitted transformer; of `execution` it gets what it knows."""
        names = inspect.signature(self.make).parameters
        settings = settings | {"random_state": seed} | execution
        return self.make(**{name: value for name, value in settings.items() if name in names})

    def probe(self) -> Pipeline | BaseEstimator:
        """Return the unfitted classifier on top."""
        return DummyClassifier() if self.make is None else make_linear_probe()


class StatisticsControl(StatisticsTransformer):
    """Channel statistics in float64, which the published tables were computed with."""

    _dtype = np.float64


def method_name(cls: type) -> str:
    """Return what an estimator's class is called on the command line."""
    return cls.__name__.removesuffix("Transformer").removesuffix("Classifier").lower()


def _title(cls: type) -> str:
    return paper.title(method_name(cls)) or cls.__name__.removesuffix("Transformer")


def controls() -> list[Method]:
    """Return what a practitioner would use instead, and what costs nothing."""
    return [
        Method("majority", "majority class", None, {}, is_control=True),
        Method("statistics", "channel statistics", StatisticsControl, {}, is_control=True),
        Method("minirocket", "MiniRocket", MiniRocketTransformer, {}, is_control=True),
        Method("untrained", "untrained encoder", RandomEncoderTransformer, {}, is_control=True),
    ]


def trained() -> list[Method]:
    """Return every public self-supervised method; one that is added appears here by itself.

    What learns from labels, as the oracles do, is none.
    """
    classes = {
        value
        for module in (sklearn_pulse, baselines)
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, BaseSSLTransformer)
    }
    every = [Method(method_name(cls), _title(cls), cls, {}) for cls in classes]
    methods = [method for method in every if not method.needs_labels]
    # PULSE comes first, the others by name.
    return sorted(methods, key=lambda method: (method.name != "pulse", method.name))


def oracles() -> list[Method]:
    """Return PULSE's oracles, which learn from pairs of one class."""
    return [
        Method(f"oracle-{kind}", f"{kind} oracle", PulseOracleTransformer, {"kind": kind})
        for kind in ("positive", "negative")
    ]


def supervised() -> Method:
    """Return what learns from the labels alone."""
    return Method("supervised", _title(SupervisedClassifier), SupervisedClassifier, {})


def ablations() -> list[Method]:
    """Return PULSE and what is left of it without one of its parts."""
    pulse = trained()[0]
    without = [
        Method(f"pulse-{name}", paper.title(f"pulse-{name}") or name, pulse.make, params)
        for name, params in presets.ablations("pulse").items()
    ]
    return [pulse, *without]


def all_methods() -> dict[str, Method]:
    """Return every method by name."""
    every = [*trained(), supervised(), *oracles(), *ablations(), *controls()]
    return {method.name: method for method in every}
