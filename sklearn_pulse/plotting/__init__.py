"""Pictures, in scikit-learn's Display pattern; matplotlib is imported when one is drawn."""

from ._embedding import EmbeddingDisplay
from ._reconstruction import ReconstructionDisplay

__all__ = ["EmbeddingDisplay", "ReconstructionDisplay"]
