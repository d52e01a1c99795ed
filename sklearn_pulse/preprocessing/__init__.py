"""Scaling, whitening, resampling and filtering of windows and recordings.

Every step takes windows, bags of windows, lists of recordings of unequal length and lazy windows,
keeps missing values (NaN) where they are, and gives float32. A step goes into a pipeline in front
of an encoder, or is applied to recordings before they are cut.
"""

from ._bandpass import BandpassFilter
from ._resampler import Resampler
from ._scaler import WindowScaler
from ._whitener import ChannelWhitener

__all__ = ["BandpassFilter", "ChannelWhitener", "Resampler", "WindowScaler"]
