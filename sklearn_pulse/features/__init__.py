"""Fixed features of windows, which no training changes."""

from ._statistics import StatisticsTransformer

__all__ = ["StatisticsTransformer"]
