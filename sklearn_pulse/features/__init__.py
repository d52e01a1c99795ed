"""Fixed features of windows, which no training changes."""

from ._autocorrelation import AutocorrelationTransformer
from ._convolutions import ConvolutionBank
from ._covariance import CovarianceTransformer
from ._envelope_covariance import EnvelopeCovarianceTransformer
from ._hydra import HydraTransformer, KernelGroups
from ._interval_quantile import IntervalQuantileTransformer
from ._random_convolution import RandomConvolutionTransformer
from ._rhythm import RhythmTransformer
from ._statistics import StatisticsTransformer

__all__ = [
    "AutocorrelationTransformer",
    "ConvolutionBank",
    "CovarianceTransformer",
    "EnvelopeCovarianceTransformer",
    "HydraTransformer",
    "IntervalQuantileTransformer",
    "KernelGroups",
    "RandomConvolutionTransformer",
    "RhythmTransformer",
    "StatisticsTransformer",
]
