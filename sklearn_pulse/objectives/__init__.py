"""Objectives: torch modules from a batch to a scalar loss, and from windows to embeddings."""

from ._base import Objective
from ._classification import Classification, Source
from ._contrastive import RepresentationObjective, check_representation
from ._cross_reconstruction import CrossReconstruction, Reconstruction
from ._pair_reconstruction import NegativePairs, PairReconstruction, PositivePairs
from ._rebar import BlockReconstruction, RetrievalContrast

__all__ = [
    "BlockReconstruction",
    "Classification",
    "CrossReconstruction",
    "NegativePairs",
    "Objective",
    "PairReconstruction",
    "PositivePairs",
    "Reconstruction",
    "RepresentationObjective",
    "RetrievalContrast",
    "Source",
    "check_representation",
]
