"""Counts of floating-point operations of matrix products: 2 per multiplication and addition.

The gradient counts twice as much as the forward pass. Other operations are not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from perf.sizes import Size
from sklearn_pulse._threads import threads

TRAINING = 3  # forward, gradient of the inputs, gradient of the weights


def counted(call: Callable[[], Any]) -> int:
    """Return the operations of the products and convolutions that a call runs."""
    known = {
        torch.ops.aten.addmm_: _in_place_product,
        torch.ops.mkldnn._linear_pointwise: _linear_map,
    }
    # The counter sees its own thread alone.
    with threads(1), FlopCounterMode(display=False, custom_mapping=known) as counter:
        call()
    return counter.get_total_flops()


def _in_place_product(total: Any, a: Any, b: Any, *, out_shape: Any = None, **scalars: Any) -> int:
    """Return the operations of a product that torch's own counter does not know."""
    return 2 * a[0] * a[1] * b[1]


def _linear_map(x: Any, weight: Any, *others: Any, out_shape: Any = None, **options: Any) -> int:
    """Return the operations of a product by oneDNN, of shapes (m, k) and (n, k)."""
    return 2 * x[0] * x[1] * weight[0]


def encoder_flops(size: Size, *, dead_taps: bool) -> float:
    """Return the operations of embedding a window; dead taps read only padding."""
    params, n = size.params, size.n_timesteps
    hidden, width = params["encoder_hidden_dim"], params["embedding_dim"]
    # Input layer, and skip connection of the last block.
    total = n * (size.n_channels * hidden + hidden * width)
    for block in range(params["encoder_depth"] + 1):
        outputs = width if block == params["encoder_depth"] else hidden
        n_reached = 3 * n if dead_taps else n + 2 * max(0, n - 2**block)
        total += n_reached * (hidden * outputs + outputs * outputs)
    return 2.0 * total


def decoder_flops(size: Size, *, n_steps: float, constant_once: bool) -> float:
    """Return the operations of reconstructing `n_steps` steps in total."""
    params = size.params
    dim, constant = params["gru_hidden_dim"], params["embedding_dim"]
    per_step = 3 * dim * (params["time_varying_dim"] + dim)  # first layer
    per_step += (params["gru_num_layers"] - 1) * 6 * dim * dim
    per_step += dim * dim + dim * size.n_channels  # map from state to signal
    constant_products = params["n_crops"] + 1 if constant_once else n_steps
    return 2.0 * (n_steps * per_step + constant_products * 3 * dim * constant)


def n_predicted(size: Size, *, padded: bool) -> float:
    """Return the mean number of steps that all passes predict; padded passes have equal length."""
    params, whole = size.params, size.n_timesteps - 1
    mean = whole if padded else whole - (size.n_timesteps - params["min_crop_length"] - 1) / 2
    return whole + params["n_crops"] * mean


def literal_training(size: Size) -> float:
    """Return the operations of the literal training step per window."""
    encoded = (size.params["n_crops"] + 1) * encoder_flops(size, dead_taps=True)
    n_steps = n_predicted(size, padded=True)
    return TRAINING * (encoded + decoder_flops(size, n_steps=n_steps, constant_once=False))


def engine_training(size: Size, theta_dropout: str) -> float:
    """Return the operations of our training step per window."""
    n_steps = n_predicted(size, padded=False)
    decoded = decoder_flops(size, n_steps=n_steps, constant_once=theta_dropout == "sequence")
    return TRAINING * (encoder_flops(size, dead_taps=False) + decoded)
