"""Reader of the ``.pt`` files of the transfer benchmark (Epilepsy, Gesture).

Source: paper, Appendix D (transfer); the files belong to Zhang, Zhao, Tsiligkaridis and Zitnik
(2022), Self-supervised contrastive pre-training for time series via time-frequency consistency.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._tensor_files import read_tensors

_PARTS = ("train", "val", "test")


class Parts(NamedTuple):
    """Windows of the three parts, one part after the other.

    Attributes
    ----------
    X : ndarray of shape (n_windows, n_timesteps, n_channels), dtype float64
        The windows.
    y : ndarray of shape (n_windows,), dtype int64
        Label of each window.
    split : ndarray of shape (n_windows,), dtype str
        "train", "val" or "test" for each window.
    """

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    split: NDArray[np.str_]


def read_parts(folder: Path, n_channels: int, n_classes: int) -> Parts:
    """Read ``train.pt``, ``val.pt`` and ``test.pt`` and join them.

    Parameters
    ----------
    folder : pathlib.Path
        Folder with the three files.
    n_channels : int
        Number of channels that the windows must have.
    n_classes : int
        Number of classes; the labels must be 0 to ``n_classes - 1``.

    Returns
    -------
    parts : Parts
        The windows, with the stored values and channels last, and their labels and parts.

    Raises
    ------
    ValueError
        If a file holds anything but the two tensors, or the tensors do not fit each other.
    """
    series, labels, split = [], [], []
    for part in _PARTS:
        path = folder / f"{part}.pt"
        X, y = _read(path, n_channels)
        if len(y) and not (0 <= y.min() and y.max() < n_classes):
            raise ValueError(
                f"{path} has labels from {y.min()} to {y.max()}, outside 0 to {n_classes - 1}; "
                "download it again."
            )
        series.append(X)
        labels.append(y)
        split += [part] * len(y)
    lengths = {X.shape[1] for X in series}
    if len(lengths) > 1:
        raise ValueError(
            f"the parts in {folder} have series of {sorted(lengths)} steps; they belong to "
            "different data sets, download them again."
        )
    return Parts(np.concatenate(series), np.concatenate(labels), np.array(split, dtype="<U5"))


def _read(path: Path, n_channels: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Read the windows, channels last, and the labels of one file."""
    content = read_tensors(path)
    try:
        if not isinstance(content, Mapping):
            raise TypeError("no dictionary")
        tensors = [content[key] for key in ("samples", "labels")]
        if any(tensor.dtype.is_complex for tensor in tensors):
            raise TypeError("complex numbers")
        samples, labels = (tensor.detach().double().numpy() for tensor in tensors)
    except (AttributeError, LookupError, RuntimeError, TypeError) as error:
        raise ValueError(
            f"{path} is not a dictionary with two tensors of real numbers, samples and labels;"
            " download it again."
        ) from error
    if samples.ndim == 2:
        samples = samples[:, np.newaxis]
    if samples.ndim != 3 or samples.shape[1] != n_channels or labels.shape != samples.shape[:1]:
        raise ValueError(
            f"{path} has samples of shape {samples.shape} and labels of shape {labels.shape} "
            f"instead of (n, {n_channels}, n_timesteps) and (n,); download it again."
        )
    if not np.isfinite(samples).all():
        raise ValueError(f"{path} holds a value that is not finite; download it again.")
    if not (labels == np.rint(labels)).all() or (np.abs(labels) > 2**31).any():  # also of NaN
        raise ValueError(f"{path} has labels that are no whole numbers; download it again.")
    return samples.transpose(0, 2, 1), labels.astype(np.int64)
