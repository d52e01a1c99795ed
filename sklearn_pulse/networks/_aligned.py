"""Matrix products of aligned widths, in which no row depends on its place; convolutions by them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._products import Linear, linear
from ._autocast import compute_dtype
from ._exporting import is_exporting

# The vector registers of all processors hold a divisor of it. Products of other widths compute the
# rows at the end of a tile in another order, and the last bit of a row then depends on its place.
_ALIGNMENT = 16


def is_aligned(*widths: int) -> bool:
    """Whether products of these widths give every row the same bits at every place."""
    return all(width % _ALIGNMENT == 0 for width in widths)


def align(x: Tensor, *axes: int) -> Tensor:
    """Fill axes with zeros up to aligned sizes.

    Parameters
    ----------
    x : Tensor
        Values.
    *axes : int
        The axes, as negative numbers.

    Returns
    -------
    Tensor
        The values and zeros.

    Examples
    --------
    >>> import torch
    >>> align(torch.ones(5, 6, 3), -1, -3).shape
    torch.Size([16, 6, 16])
    """
    padding = [0] * (-2 * min(axes))
    for axis in axes:
        padding[-2 * axis - 1] = -x.shape[axis] % _ALIGNMENT
    return F.pad(x, padding)


class AlignedLinear(Linear):
    """Linear map that gives a row the same bits wherever it stands, unless gradients are recorded.

    Examples
    --------
    >>> import torch
    >>> AlignedLinear(6, 5)(torch.zeros(2, 6)).shape
    torch.Size([2, 5])
    """

    def _map(self, x: Tensor) -> Tensor:
        return map_aligned(x, self.weight, self.bias)


class ProductConv1d(nn.Conv1d):
    """Convolution that is right in bfloat16 on every CPU: there it is a matrix product.

    With AMX, oneDNN 3.12 (PyTorch 2.13) computes some convolutions in bfloat16 wrongly: of 8
    channels and 8 taps, for example, or of 16 channels where the stride is 4. Strides of 1 with at
    most three taps were right at each of thousands of shapes. Dilations and groups must be 1.

    Examples
    --------
    >>> ProductConv1d(8, 5, kernel_size=8, stride=8)(torch.zeros(2, 8, 32)).shape
    torch.Size([2, 5, 4])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Convolve.

        Parameters
        ----------
        x : Tensor of shape (batch, in_channels, n_timesteps)
            Values.

        Returns
        -------
        Tensor of shape (batch, out_channels, n_outputs)
            The convolution.
        """
        if x.device.type != "cpu" or compute_dtype(x) != torch.bfloat16 or is_exporting():
            return super().forward(x)
        padding = int(self.padding[0])
        # (batch, in_channels, n_outputs, kernel_size)
        taps = F.pad(x, (padding, padding)).unfold(2, self.kernel_size[0], self.stride[0])
        rows = taps.transpose(1, 2).flatten(2)  # (batch, n_outputs, in_channels * kernel_size)
        return map_aligned(rows, self.weight.flatten(1), self.bias).transpose(1, 2)


def map_aligned(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Map the last axis, to the same bits at every place unless gradients are recorded."""
    if torch.is_grad_enabled() or is_exporting() or is_aligned(*weight.shape):
        return linear(x, weight, bias)
    filled = None if bias is None else align(bias, -1)
    return F.linear(align(x, -1), align(weight, -1, -2), filled)[..., : len(weight)]
