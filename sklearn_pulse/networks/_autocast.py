"""The precision that autocast asks for, where it does not reach by itself."""

from __future__ import annotations

import torch
from torch import Tensor


def compute_dtype(x: Tensor) -> torch.dtype:
    """Return the type that matrix products take: autocast's where it is on, else that of `x`.

    Autocast leaves products that write into what is there alone, so these cast for themselves.

    Parameters
    ----------
    x : Tensor
        An operand.

    Returns
    -------
    torch.dtype
        What to cast the operands to.

    Examples
    --------
    >>> import torch
    >>> with torch.autocast("cpu", dtype=torch.bfloat16):
    ...     compute_dtype(torch.zeros(1))
    torch.bfloat16
    """
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
