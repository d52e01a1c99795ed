"""Fixed features of windows, which no training changes."""

from ._autocorrelation import AutocorrelationTransformer
from ._convolutions import ConvolutionBank
from ._random_convolution import RandomConvolutionTransformer
from ._statistics import StatisticsTransformer

__all__ = [
    "AutocorrelationTransformer",
    "ConvolutionBank",
    "RandomConvolutionTransformer",
    "StatisticsTransformer",
]
