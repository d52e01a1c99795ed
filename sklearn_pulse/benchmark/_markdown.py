"""Figures and grids of the tables in Markdown."""

from __future__ import annotations

from ._tables import Value

MISSING = "missing"
NOT_SCORED = "–"  # a score that a protocol does not compute for a method


def figure(value: Value | None, *, bold: bool = False, sign: str = "") -> str:
    """Return mean and spread of a value in percent."""
    if value is None:
        return MISSING
    text = f"{100 * value.mean:{sign}.1f}"
    if len(value.per_seed) > 1:  # a single seed has no spread
        text += f" ± {100 * value.spread:.1f}"
    return f"**{text}**" if bold else text


def percent(value: float | None, sign: str = "") -> str:
    """Return a number in percent; None is empty."""
    return "" if value is None else f"{100 * value:{sign}.1f}"


def grid(header: list[str], lines: list[list[str]]) -> list[str]:
    """Return the lines of a Markdown table."""
    rows = [header, ["---"] * len(header), *lines]
    return ["| " + " | ".join(row) + " |" for row in rows]
