"""Methods to compare PULSE with, one file each."""

from ._dsvae import DSVAETransformer
from ._lfads import LFADSTransformer
from ._minirocket import MiniRocketTransformer
from ._patchtst import PatchTSTTransformer
from ._random_encoder import RandomEncoderTransformer
from ._rebar import REBARTransformer
from ._simclr import SimCLRTransformer
from ._simmtm import SimMTMTransformer
from ._supervised import SupervisedClassifier
from ._timemae import TimeMAETransformer
from ._ts2vec import TS2VecTransformer

__all__ = [
    "DSVAETransformer",
    "LFADSTransformer",
    "MiniRocketTransformer",
    "PatchTSTTransformer",
    "RandomEncoderTransformer",
    "REBARTransformer",
    "SimCLRTransformer",
    "SimMTMTransformer",
    "SupervisedClassifier",
    "TS2VecTransformer",
    "TimeMAETransformer",
]
