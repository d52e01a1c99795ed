"""Objectives: torch modules that map a batch to a scalar loss and windows to embeddings."""

from ._base import Objective
from ._classification import Classification, Source
from ._contrastive import ContrastiveObjective, check_contrastive
from ._cross_reconstruction import CrossReconstruction, Reconstruction
from ._pair_reconstruction import NegativePairs, PairReconstruction, PositivePairs
from ._rebar import REBARContrast, REBARReconstruction

__all__ = [
    "Classification",
    "ContrastiveObjective",
    "CrossReconstruction",
    "NegativePairs",
    "Objective",
    "PairReconstruction",
    "PositivePairs",
    "REBARContrast",
    "REBARReconstruction",
    "Reconstruction",
    "Source",
    "check_contrastive",
]
