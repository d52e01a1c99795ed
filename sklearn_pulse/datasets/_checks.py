"""Checks of parameters that the data sets share."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any


def check_choice(value: Any, name: str, choices: Sequence[str]) -> None:
    """Raise a ValueError unless `value` is one of the strings in `choices`."""
    if not isinstance(value, str) or value not in choices:
        named = " or ".join(map(repr, choices))
        raise ValueError(f"{name} must be {named}, got {value!r}; choose one of them.")


def check_count(value: Any, name: str, largest: int, meaning: str) -> int:
    """Return `value` as an int from 1 to `largest` (a bool is none), or raise a ValueError."""
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_integer or not 1 <= value <= largest:
        raise ValueError(
            f"{name} must be an integer from 1 to {largest}, got {value!r}; {meaning}."
        )
    return int(value)
