"""Reader of the ``.pt`` files of the transfer benchmark (Epilepsy, Gesture).

Source: paper, Appendix D (transfer); the files belong to Zhang, Zhao, Tsiligkaridis and Zitnik
(2022), Self-supervised contrastive pre-training for time series via time-frequency consistency.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

LANDMARKS = ("train.pt", "val.pt", "test.pt")
_PARTS = ("train", "val", "test")


class Parts(NamedTuple):
    """Series, shape (n_windows, n_timesteps, n_channels), with label and part of each."""

    X: np.ndarray
    y: np.ndarray
    split: np.ndarray


def read_parts(folder: Path, n_channels: int, n_classes: int) -> Parts:
    """Read ``train.pt``, ``val.pt`` and ``test.pt`` and put them one after the other.

    Parameters
    ----------
    folder : pathlib.Path
        The folder with the three files.
    n_channels : int
        Number of channels that the series must have.
    n_classes : int
        Number of classes; the labels must be 0 to ``n_classes - 1``.

    Returns
    -------
    parts : Parts
        ``X`` is float64, channels last, as stored otherwise; ``y`` is int64; ``split`` is
        "train", "val" or "test".

    Raises
    ------
    ValueError
        If a file holds anything but the two tensors, or they do not fit one another.
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


def _read(path: Path, n_channels: int) -> tuple[np.ndarray, np.ndarray]:
    """Read one file: series, channels last, and labels."""
    content = _load(path)
    try:
        samples, labels = (np.asarray(content[key]) for key in ("samples", "labels"))
    except (TypeError, KeyError) as error:
        raise ValueError(
            f"{path} is no dictionary with samples and labels; download it again."
        ) from error
    if samples.ndim == 2:
        samples = samples[:, np.newaxis]
    if samples.ndim != 3 or samples.shape[1] != n_channels or labels.shape != samples.shape[:1]:
        raise ValueError(
            f"{path} has samples of shape {samples.shape} and labels of shape {labels.shape} "
            f"instead of (n, {n_channels}, n_timesteps) and (n,); download it again."
        )
    return samples.transpose(0, 2, 1).astype(np.float64), labels.astype(np.int64)


def _load(path: Path) -> Any:
    """Load a file of tensors; one that holds other objects is refused, nothing is executed."""
    import torch

    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise ValueError(
            f"{path} is damaged or holds more than tensors, and was not loaded; download it again."
        ) from error
