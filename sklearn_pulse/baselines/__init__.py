"""Methods to compare PULSE with, one file each."""

from ._random_encoder import RandomEncoderTransformer

__all__ = ["RandomEncoderTransformer"]
