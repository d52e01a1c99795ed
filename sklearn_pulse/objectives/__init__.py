"""Objectives: torch modules that map a batch to a scalar loss and windows to embeddings."""

from ._base import Objective
from ._classification import Classification
from ._contrastive import ContrastiveObjective
from ._cross_reconstruction import CrossReconstruction
from ._head import HeadOnEncoder, Source
from ._pair_reconstruction import NegativePairs, PairReconstruction, PositivePairs
from ._rebar_contrast import REBARContrast
from ._rebar_reconstruction import REBARReconstruction
from ._regression import Regression
from ._trajectory import Reconstruction, TrajectoryReconstruction

__all__ = [
    "Classification",
    "ContrastiveObjective",
    "CrossReconstruction",
    "HeadOnEncoder",
    "NegativePairs",
    "Objective",
    "PairReconstruction",
    "PositivePairs",
    "REBARContrast",
    "REBARReconstruction",
    "Reconstruction",
    "Regression",
    "Source",
    "TrajectoryReconstruction",
]
