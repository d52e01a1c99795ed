"""Checks of constructor parameters, with messages that name the parameter and the remedy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_integer(name: str, value: Any, minimum: int) -> None:
    """Raise unless `value` is an integer of at least `minimum` (a bool is none)."""
    remedy = f"{name} must be an integer of at least {minimum}, got {value!r}"
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{remedy}; pass for example {name}={minimum}")
    if value < minimum:
        raise ValueError(f"{remedy}; pass for example {name}={minimum}")


def check_real(
    name: str,
    value: Any,
    minimum: float = 0.0,
    maximum: float = math.inf,
    *,
    open_minimum: bool = False,
    open_maximum: bool = True,
) -> None:
    """Raise unless `value` is a finite number between `minimum` and `maximum`."""
    low, high = "(" if open_minimum else "[", ")" if open_maximum else "]"
    remedy = f"{name} must be a number in {low}{minimum:g}, {maximum:g}{high}, got {value!r}"
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(remedy)
    below = value <= minimum if open_minimum else value < minimum
    above = value >= maximum if open_maximum else value > maximum
    if not math.isfinite(value) or below or above:
        raise ValueError(remedy)


def check_option(name: str, value: Any, options: Iterable[str]) -> None:
    """Raise unless `value` is one of the strings `options`."""
    options = tuple(options)
    if not (isinstance(value, str) and value in options):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")


def check_boolean(name: str, value: Any) -> None:
    """Raise unless `value` is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def check_length(name: str, value: Any) -> None:
    """Raise unless `value` is a number of steps (int) or a fraction of the window (float)."""
    if isinstance(value, Integral):
        check_integer(name, value, 1)
    else:
        check_real(name, value, 0.0, 1.0, open_minimum=True)


def check_heads(embedding_dim: int, n_heads: Any) -> None:
    """Raise unless `n_heads` is a number of attention heads that divides `embedding_dim`."""
    check_integer("n_heads", n_heads, 1)
    if embedding_dim % n_heads:
        raise ValueError(
            f"embedding_dim={embedding_dim} must be a multiple of n_heads={n_heads}: every head"
            " has the same width. Change one of them."
        )


def plain(value: Any) -> Any:
    """Return a numpy scalar, as a grid made by numpy holds them, as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def check_schedule(schedule: Any, options: Iterable[str], betas: Any) -> None:
    """Raise unless the learning rate's schedule and AdamW's `betas` are known and go together."""
    options = tuple(options)
    check_option("schedule", schedule, options)
    if betas is None:
        return
    if not (isinstance(betas, tuple | list) and len(betas) == 2):
        raise TypeError(f"betas must be a pair of numbers such as (0.9, 0.999), got {betas!r}")
    for beta in betas:
        check_real("each of betas", beta, 0.0, 1.0)
    if schedule == "one_cycle":
        others = " or ".join(repr(option) for option in options if option != schedule)
        raise ValueError(
            f"betas={betas!r} goes with schedule={others} only: one cycle moves the first of them"
            f" itself. Set betas=None, or schedule={others}."
        )
