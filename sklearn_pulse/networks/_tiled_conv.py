"""Convolution with many taps as products of the Fourier coefficients of short tiles."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_TILE_STEPS = 32  # most outputs of a tile
_LEAST_GAIN = 2.0  # a direct convolution reaches twice the operations per second


class TiledConv(NamedTuple):
    """Convolution of features with zero padding, in the layout (n_features, batch, n_timesteps).

    A window is cut into tiles that overlap by the taps. The Fourier coefficients of a tile are
    multiplied by those of the taps, and the inverse transform leaves the outputs of the tile.
    Transforms this short are matrix products too.

    Parameters
    ----------
    response : Tensor of shape (n_bins, 2 * out_channels, 2 * in_channels)
        Products of real and imaginary parts, for each frequency.
    analysis : Tensor of shape (2 * n_bins, n_read)
        Transform of the steps that a tile reads; real parts come before imaginary ones.
    synthesis : Tensor of shape (2 * n_bins, n_outputs)
        Inverse transform, of the outputs of a tile alone.
    dilation : int
        Steps between two taps.

    Examples
    --------
    >>> import torch
    >>> conv = torch.nn.Conv1d(16, 16, kernel_size=15, padding=7)
    >>> x = torch.randn(2, 16, 100)
    >>> tiled = TiledConv.of(conv, n_timesteps=100)
    >>> y = tiled(x.transpose(0, 1)).transpose(0, 1) + conv.bias.view(-1, 1)
    >>> torch.allclose(y, conv(x), atol=1e-5)
    True
    """

    response: Tensor
    analysis: Tensor
    synthesis: Tensor
    dilation: int

    @classmethod
    def of(cls, conv: nn.Conv1d, n_timesteps: int) -> TiledConv:
        """Return the tiled form of a convolution that keeps the length of windows.

        Parameters
        ----------
        conv : nn.Conv1d
            Convolution with an odd number of taps; its bias is left out.
        n_timesteps : int
            Length of the windows.

        Returns
        -------
        TiledConv
            Convolution for windows of this length.
        """
        weight, dilation = conv.weight, conv.dilation[0]
        n_taps, n_outputs = weight.shape[2], _tile_length(n_timesteps, dilation)
        analysis, synthesis = (
            table.to(weight.device, weight.dtype)
            for table in _transforms(n_outputs + n_taps - 1, n_outputs)
        )
        taps = weight.flatten(0, 1) @ analysis[:, :n_taps].t()
        # A convolution of torch is a correlation, so its response is the conjugate of the taps'.
        real, minus = taps.view(*weight.shape[:2], -1, 2).permute(2, 3, 0, 1).unbind(1)
        upper, lower = torch.cat([real, minus], 2), torch.cat([-minus, real], 2)
        return cls(torch.cat([upper, lower], 1), analysis, synthesis, dilation)

    def __call__(self, x: Tensor) -> Tensor:
        """Convolve windows.

        Parameters
        ----------
        x : Tensor of shape (in_channels, batch, n_timesteps)
            Windows.

        Returns
        -------
        Tensor of shape (out_channels, batch, n_timesteps)
            The convolution without its bias.
        """
        n_channels, batch, n_timesteps = x.shape
        n_outputs, dilation = self.synthesis.shape[1], self.dilation
        n_tiles = math.ceil(n_timesteps / (dilation * n_outputs))
        n_padded = n_tiles * n_outputs  # steps of each phase of the dilation
        n_read = self.analysis.shape[1]
        if dilation > 1:  # steps that share taps become one window
            x = F.pad(x, (0, n_padded * dilation - n_timesteps))
            x = x.view(n_channels, batch, n_padded, dilation).transpose(2, 3).flatten(1, 2)
        before = (n_read - n_outputs) // 2
        x = F.pad(x, (before, n_padded - x.shape[2] + n_read - n_outputs - before))
        tiles = x.unfold(2, n_read, n_outputs).reshape(-1, n_read)
        coefficients = self.analysis @ tiles.t()  # (2 * n_bins, n_channels * n_tiles of the batch)
        products = self.response @ coefficients.view(len(self.response), 2 * n_channels, -1)
        y = products.view(len(self.analysis), -1).t() @ self.synthesis
        y = y.view(products.shape[1] // 2, batch, dilation, n_padded)
        if dilation > 1:
            y = y.transpose(2, 3)
        return y.reshape(len(y), batch, -1)[..., :n_timesteps]


def saves_operations(conv: nn.Conv1d, n_timesteps: int, dtype: torch.dtype) -> bool:
    """Return whether the tiled form of a convolution is the faster one.

    Parameters
    ----------
    conv : nn.Conv1d
        Convolution that keeps the length of windows.
    n_timesteps : int
        Length of the windows.
    dtype : torch.dtype
        Data type of the products.

    Returns
    -------
    bool
        Whether it needs at most half of the operations, none of them in half precision.

    Examples
    --------
    >>> import torch
    >>> convs = [torch.nn.Conv1d(32, 64, n_taps) for n_taps in (3, 15)]
    >>> [saves_operations(conv, 100, torch.float32) for conv in convs]
    [False, True]
    """
    if dtype not in (torch.float32, torch.float64):
        return False
    n_out, n_in, n_taps = conv.weight.shape
    n_outputs = _tile_length(n_timesteps, conv.dilation[0])
    n_read = n_outputs + n_taps - 1
    n_values = 2 * (n_read // 2 + 1)
    tiled = n_values * (n_read * n_in + 2 * n_in * n_out + n_outputs * n_out)
    return _LEAST_GAIN * tiled <= n_outputs * n_taps * n_in * n_out


def _tile_length(n_timesteps: int, dilation: int) -> int:
    """Return the outputs of a tile, such that the last tile of a window is nearly full."""
    n_steps = math.ceil(n_timesteps / dilation)
    return math.ceil(n_steps / math.ceil(n_steps / _TILE_STEPS))


def _transforms(n_read: int, n_outputs: int) -> tuple[Tensor, Tensor]:
    """Return the Fourier transform of `n_read` steps, and its inverse for the first outputs."""
    steps = torch.arange(n_read, dtype=torch.float64)
    bins = steps[: n_read // 2 + 1]
    angles = 2.0 * math.pi / n_read * (bins.unsqueeze(1) * steps % n_read)
    table = torch.stack([angles.cos(), -angles.sin()], 1)  # (n_bins, 2, n_read)
    # Frequencies between the first and the last stand for their negative ones too.
    is_double = (bins > 0) & (2 * bins < n_read)
    weights = (1 + is_double.to(steps)) / n_read
    inverse = table[..., :n_outputs] * weights.view(-1, 1, 1)
    return table.flatten(0, 1), inverse.flatten(0, 1)
