"""Floating-point operations of matrix products: 2 for each multiplication and addition.

The gradient counts twice the forward pass. What is no product is left out.
"""

from __future__ import annotations

from perf.sizes import Size

TRAINING = 3  # forward, gradient of the inputs, gradient of the weights


def encoder_flops(size: Size, *, dead_taps: bool) -> float:
    """Return those of embedding a window, with or without the taps that read only padding."""
    params, n = size.params, size.n_timesteps
    hidden, width = params["encoder_hidden_dim"], params["embedding_dim"]
    total = n * (size.n_channels * hidden + hidden * width)  # the input, the last block's skip
    for block in range(params["encoder_depth"] + 1):
        outputs = width if block == params["encoder_depth"] else hidden
        n_reached = 3 * n if dead_taps else n + 2 * max(0, n - 2**block)
        total += n_reached * (hidden * outputs + outputs * outputs)
    return 2.0 * total


def decoder_flops(size: Size, *, n_steps: float, constant_once: bool) -> float:
    """Return those of reconstructing `n_steps` steps in all."""
    params = size.params
    dim, constant = params["gru_hidden_dim"], params["embedding_dim"]
    a_step = 3 * dim * (params["time_varying_dim"] + dim)  # the drive, the first layer's state
    a_step += (params["gru_num_layers"] - 1) * 6 * dim * dim
    a_step += dim * dim + dim * size.n_channels  # the observation
    constant_products = params["n_crops"] + 1 if constant_once else n_steps
    return 2.0 * (n_steps * a_step + constant_products * 3 * dim * constant)


def n_predicted(size: Size, *, padded: bool) -> float:
    """Return how many steps all passes predict, on average; padded, each as many as any."""
    params, whole = size.params, size.n_timesteps - 1
    mean = whole if padded else whole - (size.n_timesteps - params["min_crop_length"] - 1) / 2
    return whole + params["n_crops"] * mean


def literal_training(size: Size) -> float:
    """Return those of a window in the published step."""
    encoded = (size.params["n_crops"] + 1) * encoder_flops(size, dead_taps=True)
    n_steps = n_predicted(size, padded=True)
    return TRAINING * (encoded + decoder_flops(size, n_steps=n_steps, constant_once=False))


def engine_training(size: Size, theta_dropout: str) -> float:
    """Return those of a window in ours."""
    n_steps = n_predicted(size, padded=False)
    decoded = decoder_flops(size, n_steps=n_steps, constant_once=theta_dropout == "sequence")
    return TRAINING * (encoder_flops(size, dead_taps=False) + decoded)
