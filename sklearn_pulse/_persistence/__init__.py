"""Storage of fitted transformers in folders, from which nothing is ever executed."""

from ._arrays import check_finite, stored_array, tensor_of
from ._mixin import PretrainedMixin
from ._probe import check_embedding
from ._sizes import check_sizes
from ._values import check_params_unchanged, decode, encode, same_when_stored

__all__ = [
    "PretrainedMixin",
    "check_embedding",
    "check_finite",
    "check_params_unchanged",
    "check_sizes",
    "decode",
    "encode",
    "same_when_stored",
    "stored_array",
    "tensor_of",
]
