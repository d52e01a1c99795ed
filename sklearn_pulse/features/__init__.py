"""Fixed features of windows, which no training changes."""

from ._autocorrelation import AutocorrelationTransformer
from ._statistics import StatisticsTransformer

__all__ = ["AutocorrelationTransformer", "StatisticsTransformer"]
