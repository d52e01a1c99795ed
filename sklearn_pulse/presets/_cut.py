"""Shared parts of the tables: rows of window settings, and the settings of REBAR's experiments."""

from __future__ import annotations

from typing import Any

Presets = dict[str, dict[str, Any]]

# Training of REBAR and SimCLR by the authors of REBAR. Validation uses fresh draws and dropout. It
# evaluates the weights themselves, although their running average is kept.
REBAR_EXPERIMENTS: dict[str, Any] = {
    "layer_norm": "none",
    "representation_dropout": 0.1,
    "schedule": "constant",
    "weight_decay": 1e-2,
    "validation_every": 1,
    "deterministic_validation": False,
    "select": "average_min_val",
}


def cut(
    mode: str,
    length: int,
    *,
    downsample: int = 1,
    stride: int | None = None,
    stride_val: int | None = None,
    fraction: float = 1.0,
    fraction_val: float | None = None,
    channels: int,
) -> dict[str, Any]:
    """Return a row of a method's `WINDOWS`; `fraction_val` is `fraction` unless it is passed."""
    return {
        "mode": mode,
        "length": length,
        "downsample": downsample,
        "stride": stride,
        "stride_val": stride_val,
        "fraction": fraction,
        "fraction_val": fraction if fraction_val is None else fraction_val,
        "n_channels": channels,
    }
