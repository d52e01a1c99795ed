"""Storage of fitted transformers in folders, from which nothing is ever executed."""

from ._load import check_finite, stored_array
from ._mixin import PretrainedMixin
from ._values import same_when_stored

__all__ = ["PretrainedMixin", "check_finite", "same_when_stored", "stored_array"]
