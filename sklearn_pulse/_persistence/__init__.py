"""Storage of fitted transformers in folders, from which nothing is ever executed."""

from ._mixin import PretrainedMixin

__all__ = ["PretrainedMixin"]
