"""Data type of matrix products that autocast does not cast."""

from __future__ import annotations

import torch
from torch import Tensor


def compute_dtype(x: Tensor) -> torch.dtype:
    """Return the data type for matrix products: autocast's if it is on, else the type of `x`.

    Autocast ignores products that write into an existing tensor. Code with such products casts its
    operands to this type itself.

    Parameters
    ----------
    x : Tensor
        Operand of the product, of any shape.

    Returns
    -------
    torch.dtype
        Data type to cast the operands to.

    Examples
    --------
    >>> import torch
    >>> with torch.autocast("cpu", dtype=torch.bfloat16):
    ...     compute_dtype(torch.zeros(1))
    torch.bfloat16
    """
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
