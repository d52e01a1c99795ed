"""Arrays of fitted estimators as tensors of a file of weights, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def tensor_of(array: NDArray[Any]) -> Tensor:
    """Return an array as a tensor, which shares its memory if it may be written.

    joblib passes the arrays of a fitted estimator to a process as memory maps that may not be
    written, of which PyTorch warns.
    """
    return torch.from_numpy(np.require(array, requirements="W"))


def stored_array(
    weights: Mapping[str, Tensor], name: str, dtype: Any, shape: tuple[int | None, ...]
) -> NDArray[Any]:
    """Return an array of a file of weights.

    Parameters
    ----------
    weights : mapping of str to Tensor
        Content of the file.
    name : str
        Name of the array.
    dtype : dtype
        What the array holds.
    shape : tuple of int or None
        Shape of the array; None is any number of at least 1.

    Returns
    -------
    ndarray
        The array.

    Raises
    ------
    ValueError
        If the file holds no such array, or a value is NaN or infinite.
    """
    if name not in weights:
        raise ValueError(f"it lacks {name!r}: save the model again.")
    array = weights[name].numpy()
    fits = array.ndim == len(shape) and all(
        size == n if n is not None else size >= 1
        for size, n in zip(array.shape, shape, strict=True)
    )
    if array.dtype != dtype or not fits:
        raise ValueError(
            f"{name!r} is {array.dtype} of shape {array.shape}, but the model has"
            f" {np.dtype(dtype)} of shape {shape}: save the model again."
        )
    check_finite([(name, weights[name])])
    return array


def check_finite(weights: Iterable[tuple[str, Tensor]]) -> None:
    """Raise if a weight is not finite.

    Parameters
    ----------
    weights : iterable of (str, Tensor)
        Names and values.

    Raises
    ------
    ValueError
        If a weight is NaN or infinite.
    """
    for name, value in weights:
        if not torch.isfinite(value).all():
            raise ValueError(
                f"{name!r} holds NaN or infinite weights, which embed nothing: fit again, with a"
                " lower lr, and save that."
            )
