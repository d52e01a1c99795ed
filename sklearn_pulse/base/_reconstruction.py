"""Parameters that PULSE and its oracles share, and their checks."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from .._parameters import (
    check_boolean,
    check_integer,
    check_odd,
    check_option,
    check_steps_or_fraction,
)

NETWORK_PARAMS = (
    "embedding_dim",
    "encoder_hidden_dim",
    "encoder_depth",
    "pooling",
    "time_varying_dim",
    "time_varying_pool",
    "init_kernel_size",
    "init_dilation",
    "init_hidden_dim",
    "shared_encoder",
    "gru_num_layers",
    "gru_hidden_dim",
    "observation",
)


def check_reconstruction(estimator: Any) -> None:
    """Raise if a parameter that PULSE and its oracles share is out of its range."""
    for name in (
        "time_varying_pool",
        "init_dilation",
        "init_hidden_dim",
        "gru_num_layers",
        "gru_hidden_dim",
    ):
        check_integer(name, getattr(estimator, name), 1)
    check_integer("time_varying_dim", estimator.time_varying_dim, 0)
    check_odd("init_kernel_size", estimator.init_kernel_size)
    check_boolean("shared_encoder", estimator.shared_encoder)
    check_option("observation", estimator.observation, ("mlp", "linear"))
    check_option("loss_reduction", estimator.loss_reduction, ("published", "valid"))
    check_steps_or_fraction("min_crop_length", estimator.min_crop_length)


def check_fits(name: str, length: int | float | None, n_timesteps: int) -> None:
    """Raise if the crop length called `name`, in steps, leaves nothing of a window."""
    if isinstance(length, Integral) and length >= n_timesteps:
        raise ValueError(
            f"{name}={length} steps do not fit into windows of {n_timesteps} time steps,"
            f" which leave {n_timesteps - 1} to predict: set {name} to a fraction such as"
            " 0.5, or pass longer windows."
        )
