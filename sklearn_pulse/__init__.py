"""Self-supervised representations of physiological time series, scikit-learn compatible."""

from ._finetune import FineTuneClassifier
from ._oracle import PulseOracleTransformer
from ._pulse import PulseTransformer
from ._version import __version__
from .baselines import RandomEncoderTransformer

__all__ = [
    "FineTuneClassifier",
    "PulseOracleTransformer",
    "PulseTransformer",
    "RandomEncoderTransformer",
    "__version__",
]
