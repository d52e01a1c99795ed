"""Graphs of networks in files, for programs that have no scikit-learn."""

from ._check import check_equal
from ._graph import EncoderGraph
from ._write import FORMATS, check_packages, program_of, write

__all__ = ["FORMATS", "EncoderGraph", "check_equal", "check_packages", "program_of", "write"]
