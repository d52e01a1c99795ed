"""Methods of the comparison: every public method, its ablations, and the controls."""

from __future__ import annotations

import dataclasses
import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline

import sklearn_pulse

from .. import CrossPredictionTransformer, PulseOracleTransformer, baselines, presets
from ..base import BaseEncoderTransformer, BaseSSLTransformer, ReconstructingTransformer
from ..baselines import MiniRocketTransformer, RandomEncoderTransformer, SupervisedClassifier
from ..evaluation import make_linear_probe
from ..features import StatisticsTransformer
from . import _paper as paper
from ._aeon import MultiRocketHydraTransformer, QuantTransformer

_ROOMS = (sklearn_pulse, baselines)  # whose public names are looked through for methods
PUBLISHED_SUFFIX = "-published"  # of the names of methods with the settings of the released code


@dataclass(frozen=True)
class Method:
    """Row of the tables: an estimator, with its name and its parameters.

    Parameters
    ----------
    name : str
        Name on the command line.
    title : str
        Name in the tables.
    make : class or None
        Class of the transformer, or of the supervised classifier; None for a control that uses
        only the labels.
    params : dict
        Parameters beside those of the preset.
    is_control : bool, default=False
        Whether the row is a control, which every method has to beat.
    published : bool, default=False
        Whether the settings are those of the released code, with its errors, which the presets
        mend elsewhere.
    """

    name: str
    title: str
    make: type[Any] | None
    params: dict[str, Any]
    is_control: bool = False
    published: bool = False

    @property
    def heading(self) -> str:
        """Name of the row, which says of a control that it is one."""
        return self.title + (" (control)" if self.is_control else "")

    @property
    def is_trained(self) -> bool:
        """Whether the transformer is pre-trained on windows."""
        return self._is_a(BaseSSLTransformer)

    @property
    def needs_labels(self) -> bool:
        """Whether pre-training needs labels, as that of an oracle."""
        if self.make is None or not self.is_trained:
            return False
        return bool(self.make().__sklearn_tags__().target_tags.required)

    @property
    def is_encoder(self) -> bool:
        """Whether the transformer can be fine-tuned."""
        return self._is_a(BaseEncoderTransformer)

    @property
    def reconstructs(self) -> bool:
        """Whether the transformer has a decoder, whose errors can be scored."""
        return self._is_a(ReconstructingTransformer)

    @property
    def is_classifier(self) -> bool:
        """Whether the estimator predicts labels itself, without an embedding to probe."""
        return self._is_a(SupervisedClassifier)

    def _is_a(self, base: type) -> bool:
        """Return whether the estimator inherits from a class."""
        return self.make is not None and issubclass(self.make, base)

    @property
    def preset_name(self) -> str:
        """Name of the presets; empty for a control without an estimator."""
        return "" if self.make is None else method_name(self.make)

    @property
    def has_presets(self) -> bool:
        """Whether the presets of the package hold settings of this method."""
        return self.preset_name in presets.methods()

    def settings(self, preset: str) -> dict[str, Any]:
        """Return the parameters for a data set that differ from the defaults of the class."""
        if not (preset and self.has_presets):
            return dict(self.params)
        return presets.get(self.preset_name, preset, published=self.published) | self.params

    def cut(self, preset: str) -> dict[str, Any]:
        """Return how pre-training windows are cut; a method without presets has those of PULSE.

        Without a preset of the data set, the labelled windows are those of pre-training.
        """
        if not preset:
            return {"mode": "labeled", "fraction": 1.0, "fraction_val": 1.0}
        name = self.preset_name if self.has_presets else "pulse"
        return presets.windows(name, preset, published=self.published)

    def as_published(self) -> Method:
        """Return the method with the settings of the released code; itself if none was released."""
        if not self.has_presets or self.published:
            return self
        name, title = self.name + PUBLISHED_SUFFIX, f"{self.title} (released code)"
        return dataclasses.replace(self, name=name, title=title, published=True)

    def build(self, settings: dict[str, Any], seed: int, **execution: Any) -> Any:
        """Return the unfitted estimator; values that are not among its parameters are ignored.

        `execution` holds further parameters, such as `device`. A control without an estimator
        raises a TypeError.
        """
        if self.make is None:
            raise TypeError(f"{self.name} has no estimator to build: it uses only the labels.")
        names = inspect.signature(self.make).parameters
        settings = settings | {"random_state": seed} | execution
        return self.make(**{name: value for name, value in settings.items() if name in names})

    def parameters(self, settings: dict[str, Any], seed: int) -> dict[str, str]:
        """Return all parameters as text, so that another default is another result.

        A control without an estimator has none.
        """
        if self.make is None:
            return {}
        params = self.build(settings, seed).get_params(deep=False)
        return {name: repr(value) for name, value in params.items()}

    def probe(self) -> Pipeline | BaseEstimator:
        """Return the unfitted classifier of the embeddings."""
        return DummyClassifier() if self.make is None else make_linear_probe()


class StatisticsControl(StatisticsTransformer):
    """Channel statistics in float64, which the published tables were computed with."""

    _dtype = np.float64


def method_name(cls: type) -> str:
    """Return the name of an estimator's class on the command line."""
    return cls.__name__.removesuffix("Transformer").removesuffix("Classifier").lower()


def _title(cls: type) -> str:
    """Return the name of an estimator's class in the tables."""
    return paper.title(method_name(cls)) or cls.__name__.removesuffix("Transformer")


def controls() -> list[Method]:
    """Return the controls: simple features, an untrained encoder and the majority class."""
    return [
        Method("majority", "majority class", None, {}, is_control=True),
        Method("statistics", "channel statistics", StatisticsControl, {}, is_control=True),
        Method("minirocket", "MiniRocket", MiniRocketTransformer, {}, is_control=True),
        Method("untrained", "untrained encoder", RandomEncoderTransformer, {}, is_control=True),
    ]


def aeon_controls() -> list[Method]:
    """Return the controls whose features come from aeon."""
    return [
        Method(
            "multirocket-hydra",
            "MultiRocket-Hydra",
            MultiRocketHydraTransformer,
            {},
            is_control=True,
        ),
        Method("quant", "QUANT", QuantTransformer, {}, is_control=True),
    ]


def cross_prediction() -> Method:
    """Return the method in closed form, which trains no network."""
    return Method("cross-prediction", "cross-prediction", CrossPredictionTransformer, {})


def trained() -> list[Method]:
    """Return every public self-supervised method, with PULSE first.

    New methods are found by their class. Methods that need labels, such as the oracles, are
    excluded.
    """
    public = [getattr(module, name) for module in _ROOMS for name in dir(module)]
    classes = {
        value
        for value in public
        if inspect.isclass(value) and issubclass(value, BaseSSLTransformer)
    }
    every = [Method(method_name(cls), _title(cls), cls, {}) for cls in classes]
    methods = [method for method in every if not method.needs_labels]
    # PULSE comes first; the other methods are sorted by name.
    return sorted(methods, key=lambda method: (method.name != "pulse", method.name))


def oracles() -> list[Method]:
    """Return PULSE's oracles, which learn from pairs of one class."""
    return [
        Method(f"oracle-{kind}", f"{kind} oracle", PulseOracleTransformer, {"kind": kind})
        for kind in ("positive", "negative")
    ]


def supervised() -> Method:
    """Return the supervised method, which learns only from labels."""
    return Method("supervised", _title(SupervisedClassifier), SupervisedClassifier, {})


def ablations() -> list[Method]:
    """Return PULSE and its variants without one of its parts."""
    pulse = trained()[0]
    without = [
        Method(f"pulse-{name}", paper.title(f"pulse-{name}") or name, pulse.make, params)
        for name, params in presets.ablations("pulse").items()
    ]
    return [pulse, *without]


def all_methods() -> dict[str, Method]:
    """Return every method by name."""
    every = [
        cross_prediction(),
        *trained(),
        supervised(),
        *oracles(),
        *ablations(),
        *controls(),
        *aeon_controls(),
    ]
    every += [method.as_published() for method in every]
    return {method.name: method for method in every}
