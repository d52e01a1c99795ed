"""Convolutions of oneDNN together with what follows them, where no gradient is recorded."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ._aligned import align, is_aligned
from ._autocast import compute_dtype
from ._exporting import is_exporting
from ._images import as_images, as_steps, as_taps
from ._time import in_memory_order

_CPU_CONVOLUTIONS: set[torch.dtype] = set()  # types that oneDNN convolves on this processor
if torch.backends.mkldnn.is_available():
    _CPU_CONVOLUTIONS.add(torch.float32)
    if torch.ops.mkldnn._is_mkldnn_bf16_supported():
        _CPU_CONVOLUTIONS.add(torch.bfloat16)

# oneDNN applies a GELU, or a sum, to outputs that are still in registers; on other processors than
# these it calls a library that does not.
_FUSES = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


def convolves(x: Tensor) -> bool:
    """Whether a block of the encoder calls :func:`convolve` instead of a product for each tap.

    A convolution of oneDNN reads and writes every step once, three products do so three times. Its
    gradient takes longer than that of the products, so it serves where none is recorded. It is fast
    where the steps of a window lie side by side in memory, the products where those of a batch do.

    Examples
    --------
    >>> convolves(torch.zeros(1))  # a gradient is recorded
    False
    """
    if torch.is_grad_enabled() or is_exporting() or x.device.type != "cpu":
        return False
    return compute_dtype(x) in _CPU_CONVOLUTIONS


def convolve(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    dilation: int,
    *,
    activate: bool = False,
    add: Tensor | None = None,
) -> Tensor:
    """Convolve steps by three taps with zero padding, time first; then activate them, or add.

    A row has the same bits wherever it stands, whatever the widths.

    Parameters
    ----------
    x : Tensor of shape (n_timesteps, batch, in_channels)
        Values of each step, fastest if those of a window lie side by side in memory.
    weight : Tensor of shape (out_channels, in_channels, 3)
        The taps.
    bias : Tensor of shape (out_channels,)
        The bias.
    dilation : int
        Steps between two taps. If it reaches past the window, only the middle tap is read.
    activate : bool, default=False
        Whether to return the GELU of the outputs. Pass either this or `add`.
    add : Tensor of shape (n_timesteps, batch, out_channels), or None, default=None
        What to add to the outputs.

    Returns
    -------
    Tensor of shape (n_timesteps, batch, out_channels)
        The outputs, of the type of `x`.

    Examples
    --------
    >>> x, weight = torch.ones(4, 1, 2), torch.ones(1, 2, 3)
    >>> with torch.inference_mode():
    ...     convolve(x, weight, torch.zeros(1), 1, add=torch.ones(4, 1, 1)).flatten()
    tensor([5., 7., 7., 5.])
    """
    if not is_aligned(*weight.shape[:2]):
        filled = None if add is None else align(add, -1)
        weight, bias, n_outputs = align(weight, -2, -3), align(bias, -1), len(weight)
        y = convolve(align(x, -1), weight, bias, dilation, activate=activate, add=filled)
        return y[..., :n_outputs]
    padding = dilation
    if dilation >= len(x):
        weight, padding, dilation = weight[:, :, 1:2], 0, 1
    images, taps, bias = as_images(x), as_taps(weight.to(x.dtype)), bias.to(x.dtype)
    is_fused = _FUSES and torch.backends.mkldnn.enabled and not torch.compiler.is_compiling()
    if is_fused and len(x) > 1:  # oneDNN of PyTorch 2.11 fails with one pixel
        last = None if add is None else as_images(add.to(x.dtype))
        return as_steps(_fused(images, taps, bias, padding, dilation, activate, last))
    y = as_steps(F.conv2d(images, taps, bias, padding=(0, padding), dilation=(1, dilation)))
    y = in_memory_order(F.gelu, y) if activate else y
    return y if add is None else y.add_(add)


def _fused(
    images: Tensor,
    taps: Tensor,
    bias: Tensor,
    padding: int,
    dilation: int,
    activate: bool,
    add: Tensor | None,
) -> Tensor:
    """Convolve images of one line, and activate, or add, in the pass that convolves."""
    shape = ((0, padding), (1, 1), (1, dilation), 1)  # padding, strides, dilations, groups
    pointwise = torch.ops.mkldnn._convolution_pointwise
    if add is not None:
        return pointwise.binary(images, add, taps, bias, *shape, "add", None, None, [], None)
    return pointwise(images, taps, bias, *shape, "gelu" if activate else "none", [], "none")
