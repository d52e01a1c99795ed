"""Networks of PULSE and of the baselines, on tensors of shape (batch, time, channels)."""

from ._base import Encoder
from ._conv_encoder import ConvEncoder
from ._cross_attention import CrossAttention
from ._decoder import GRUDecoder
from ._encoder import SystemEncoder, chunks
from ._fixed_encoder import FixedEncoder
from ._heads import Head
from ._initial_condition import InitialConditionEncoder
from ._latent_factors import LatentFactorModel, LatentFactors
from ._parts import run_parts
from ._patch_encoder import PatchEncoder
from ._repeated_input import SeededDropout
from ._segment_encoder import SegmentEncoder, SegmentTransformer
from ._sequential_vae import SequentialLatents, SequentialVAE
from ._time import mask_steps, observed_or_all, pool_steps
from ._time_varying import TimeVaryingBranch

__all__ = [
    "ConvEncoder",
    "CrossAttention",
    "Encoder",
    "FixedEncoder",
    "GRUDecoder",
    "Head",
    "InitialConditionEncoder",
    "LatentFactorModel",
    "LatentFactors",
    "PatchEncoder",
    "SeededDropout",
    "SegmentEncoder",
    "SegmentTransformer",
    "SequentialLatents",
    "SequentialVAE",
    "SystemEncoder",
    "TimeVaryingBranch",
    "chunks",
    "mask_steps",
    "observed_or_all",
    "pool_steps",
    "run_parts",
]
