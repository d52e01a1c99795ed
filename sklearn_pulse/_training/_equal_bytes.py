"""Pickles whose bytes follow from values alone.

By its bytes a cache of joblib, such as that of ``Pipeline(memory=...)``, knows a fitted network.
Torch names a tensor by its place in memory, which is another one in each process.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import torch


def equal_bytes(value: Any) -> bytes:
    """Return the same bytes for equal values, in every process; `pickle` reads them.

    Examples
    --------
    >>> import copy
    >>> layer = torch.nn.Linear(2, 2)
    >>> equal_bytes(layer) == equal_bytes(copy.deepcopy(layer))
    True
    """
    buffer = io.BytesIO()
    _Pickler(buffer).dump(value)
    return buffer.getvalue()


class _Pickler(pickle._Pickler):  # the one in Python, since that in C memoizes by itself
    """Pickler that is blind to where tensors lie, and to which of equal texts are one object."""

    def memoize(self, obj: Any) -> None:
        """Remember an object, so that it is written once; each text is written in full."""
        if not isinstance(obj, str):
            super().memoize(obj)  # type: ignore[misc]  # unknown to the stubs of Python

    def reducer_override(self, obj: Any) -> Any:
        """Return how an object is written; NotImplemented means in its own way."""
        if isinstance(obj, torch.TypedStorage | torch.UntypedStorage):
            content = io.BytesIO()
            torch.save(obj, content)
            # The function by which torch reads its own pickles.
            return torch.storage._load_from_bytes, (content.getvalue(),)
        if type(obj) is set and all(isinstance(entry, str) for entry in obj):
            return set, (sorted(obj),)  # each process has its own order
        return NotImplemented
