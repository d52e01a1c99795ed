"""Fixed encoder: the features of a fitted transformer, where a network expects an encoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from torch import Tensor

from ._base import Encoder


class FixedEncoder(Encoder):
    """Encoder that is not trained: a function from arrays of windows to arrays of features.

    Parameters
    ----------
    transform : callable
        Function from windows, an array of shape (n, n_timesteps, n_channels) with NaN where a step
        is missing, to features of shape (n, embedding_dim).
    embedding_dim : int
        Number of features.

    Examples
    --------
    >>> import torch
    >>> encoder = FixedEncoder(lambda windows: windows.mean(1), embedding_dim=3)
    >>> encoder(torch.ones(2, 16, 3)).shape
    torch.Size([2, 3])
    """

    def __init__(self, transform: Callable[[NDArray[Any]], Any], embedding_dim: int) -> None:
        super().__init__()
        self.transform = transform
        self.embedding_dim = embedding_dim

    def features(
        self, x: NDArray[np.float32], observed: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float32]:
        """Compute the features of windows; a window without an observed step is read as it is.

        Parameters
        ----------
        x : ndarray of shape (n, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : ndarray of bool, of shape (n, n_timesteps), or None, default=None
            Which steps were observed; None means all.

        Returns
        -------
        ndarray of float32, of shape (n, embedding_dim)
            Features of each window.
        """
        if observed is not None:
            missing = ~observed & observed.any(1, keepdims=True)
            x = np.where(missing[..., None], np.float32(np.nan), x)
        found = self.transform(x)
        if issparse(found):
            found = found.toarray()
        return np.array(found, dtype=np.float32)  # a frame's values are read-only

    def forward(self, x: Tensor, observed: Tensor | None = None) -> Tensor:
        """Compute the features of windows.

        Parameters
        ----------
        x : Tensor of shape (batch, n_timesteps, n_channels)
            Windows; unobserved steps hold any finite value.
        observed : Tensor of bool, of shape (batch, n_timesteps), or None, default=None
            Which steps were observed; None means all.

        Returns
        -------
        Tensor of shape (batch, embedding_dim)
            Features of each window; no gradient flows through them.
        """
        seen = None if observed is None else observed.cpu().numpy()
        features = self.features(x.detach().cpu().numpy(), seen)
        return torch.from_numpy(np.ascontiguousarray(features)).to(x.device)
