"""Literal forms of the baselines' published training steps, which ours must equal and outrun.

Each class takes sizes, weights and random draws from one of our objectives; only the computation
is literal: one pass per view or candidate, all taps of a convolution, loops over time.
"""

from perf.published._autoencoders import LiteralDSVAE, LiteralLFADS
from perf.published._base import Published
from perf.published._classifier import LiteralClassifier
from perf.published._contrast import LiteralSimCLR, LiteralTS2Vec
from perf.published._rebar import LiteralREBAR, LiteralREBARReconstruction
from perf.published._simmtm import LiteralSimMTM
from perf.published._transformers import LiteralPatchTST, LiteralTimeMAE

__all__ = [
    "LiteralClassifier",
    "LiteralDSVAE",
    "LiteralLFADS",
    "LiteralPatchTST",
    "LiteralREBAR",
    "LiteralREBARReconstruction",
    "LiteralSimCLR",
    "LiteralSimMTM",
    "LiteralTS2Vec",
    "LiteralTimeMAE",
    "Published",
]
