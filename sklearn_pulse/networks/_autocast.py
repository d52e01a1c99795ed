"""Data type of matrix products that autocast does not cast."""

from __future__ import annotations

import contextlib

import torch
from torch import Tensor

# torch gives every LSTM on a CPU to oneDNN, which has no bfloat16 LSTM below AVX-512 and raises.
_LSTM_LACKS_BFLOAT16 = (
    torch.backends.mkldnn.is_available() and not torch.ops.mkldnn._is_mkldnn_bf16_supported()
)


def compute_dtype(x: Tensor) -> torch.dtype:
    """Return the data type for matrix products: autocast's if it is on, else the type of `x`.

    Autocast ignores products that write into an existing tensor. Code with such products casts its
    operands to this type itself.

    Examples
    --------
    >>> import torch
    >>> with torch.autocast("cpu", dtype=torch.bfloat16):
    ...     compute_dtype(torch.zeros(1))
    torch.bfloat16
    """
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype


def recurrent_autocast(x: Tensor) -> contextlib.AbstractContextManager[object]:
    """Return a context for a recurrent layer of torch: autocast is on only where it works.

    On CUDA, autocast runs these layers in float16 whichever type was asked for. Without a scaled
    loss, their small gradients would become zero there. The LSTM of some CPUs has no bfloat16.
    Where autocast is off, pass the layer input of the type of its weights.

    Examples
    --------
    >>> x, lstm = torch.zeros(5, 1, 2), torch.nn.LSTM(2, 3)
    >>> with torch.autocast("cpu", dtype=torch.bfloat16), recurrent_autocast(x):
    ...     lstm(x)[0].shape
    torch.Size([5, 1, 3])
    """
    device = x.device.type
    if device == "cuda" or (device == "cpu" and _LSTM_LACKS_BFLOAT16):
        return torch.autocast(device, enabled=False)
    return contextlib.nullcontext()
