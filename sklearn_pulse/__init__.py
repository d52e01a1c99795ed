"""Self-supervised representations of physiological time series, scikit-learn compatible."""

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from ._chain import export, load_pretrained, push_to_hub, save_pretrained
    from ._cross_prediction import CrossPredictionTransformer
    from ._finetune import FineTuneClassifier
    from ._finetune_regressor import FineTuneRegressor
    from ._oracle import PulseOracleTransformer
    from ._pulse import PulseTransformer
    from .baselines import RandomEncoderTransformer

# Public names and the modules that define them. They are resolved at their first use, so that
# the rooms without torch (windows, datasets, evaluation, ...) load none.
_HOMES = {
    "CrossPredictionTransformer": "._cross_prediction",
    "FineTuneClassifier": "._finetune",
    "FineTuneRegressor": "._finetune_regressor",
    "PulseOracleTransformer": "._oracle",
    "PulseTransformer": "._pulse",
    "RandomEncoderTransformer": ".baselines",
    "export": "._chain",
    "load_pretrained": "._chain",
    "push_to_hub": "._chain",
    "save_pretrained": "._chain",
}

__all__ = [
    "CrossPredictionTransformer",
    "FineTuneClassifier",
    "FineTuneRegressor",
    "PulseOracleTransformer",
    "PulseTransformer",
    "RandomEncoderTransformer",
    "__version__",
    "export",
    "load_pretrained",
    "push_to_hub",
    "save_pretrained",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
