"""Matrix products of aligned widths, in which no row depends on its place."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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


class AlignedLinear(nn.Linear):
    """Linear map that gives a row the same bits wherever it stands, unless gradients are recorded.

    Examples
    --------
    >>> import torch
    >>> AlignedLinear(6, 5)(torch.zeros(2, 6)).shape
    torch.Size([2, 5])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Map the last axis.

        Parameters
        ----------
        x : Tensor of shape (..., in_features)
            Rows.

        Returns
        -------
        Tensor of shape (..., out_features)
            Mapped rows.
        """
        plain = torch.is_grad_enabled() or is_exporting()
        if plain or is_aligned(self.in_features, self.out_features):
            return super().forward(x)
        bias = None if self.bias is None else align(self.bias, -1)
        rows = F.linear(align(x, -1), align(self.weight, -1, -2), bias)
        return rows[..., : self.out_features]
