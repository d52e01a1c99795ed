"""Base classes and the parts that a method or an estimator on windows is built from."""

from .._data._batches import WindowBatches
from .._data._candidates import CandidateBatches, DrawnBatches
from .._data._labeled import LabeledBatches
from .._data._pairs import PairBatches
from .._data._validation import check_windows
from .._data._windows import CheckedWindows
from .._docstrings import complete_docstring
from .._parameters import (
    check_boolean,
    check_heads,
    check_integer,
    check_odd,
    check_option,
    check_pair,
    check_real,
    check_steps_or_fraction,
)
from .._tags import WindowTags
from ._classifier import BaseWindowClassifier
from ._contrastive import ContrastiveTransformer
from ._encoder import BaseEncoderTransformer, WindowEmbedder
from ._fit_data import FitData, Parts
from ._labeled import LabeledEmbedder
from ._reconstructing import ReconstructingTransformer
from ._regressor import BaseWindowRegressor
from ._self_supervised import BaseSSLTransformer
from ._training import Callbacks, TrainedEmbedder

__all__ = [
    "BaseEncoderTransformer",
    "BaseSSLTransformer",
    "BaseWindowClassifier",
    "BaseWindowRegressor",
    "Callbacks",
    "CandidateBatches",
    "CheckedWindows",
    "ContrastiveTransformer",
    "DrawnBatches",
    "FitData",
    "LabeledBatches",
    "LabeledEmbedder",
    "PairBatches",
    "Parts",
    "ReconstructingTransformer",
    "TrainedEmbedder",
    "WindowBatches",
    "WindowEmbedder",
    "WindowTags",
    "check_boolean",
    "check_heads",
    "check_integer",
    "check_odd",
    "check_option",
    "check_pair",
    "check_real",
    "check_steps_or_fraction",
    "check_windows",
    "complete_docstring",
]
