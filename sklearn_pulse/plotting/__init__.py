"""Displays in the style of scikit-learn; matplotlib is imported only to draw."""

from ._drift import DriftDisplay
from ._embedding import EmbeddingDisplay
from ._label_efficiency import LabelEfficiencyDisplay
from ._predictability import PredictabilityDisplay
from ._reconstruction import ReconstructionDisplay
from ._training_curve import TrainingCurveDisplay

__all__ = [
    "DriftDisplay",
    "EmbeddingDisplay",
    "LabelEfficiencyDisplay",
    "PredictabilityDisplay",
    "ReconstructionDisplay",
    "TrainingCurveDisplay",
]
