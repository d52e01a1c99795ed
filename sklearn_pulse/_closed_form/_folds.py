"""Sums over pairs of views in two parts, each of which is predicted from the other."""

from __future__ import annotations

from typing import Any, NamedTuple

from ._types import Matrix

N_FOLDS = 2  # parts of the pairs; each is predicted from the other part


class Fold(NamedTuple):
    """Sums over the pairs of views of a part of the windows.

    Parameters
    ----------
    source : ndarray of shape (r_source, r_source)
        Sum of ``g g'`` over the views g that predict.
    cross : ndarray of shape (r_source, r)
        Sum of ``g f'`` over pairs.
    target : ndarray of shape (r, r)
        Sum of ``f f'`` over the views f that are predicted.
    """

    source: Matrix
    cross: Matrix
    target: Matrix

    def part(self, source: slice, target: slice) -> Fold:
        """Return the sums over some features of either view."""
        return Fold(
            self.source[source, source],
            self.cross[source, target],
            self.target[target, target] if self.target.ndim else self.target,
        )


def added(one: Any, other: Any) -> Any:
    """Add arrays, or nested lists and tuples of arrays, place by place."""
    if not isinstance(one, list | tuple):
        return one + other
    parts = [added(*pair) for pair in zip(one, other, strict=True)]
    return type(one)(*parts) if hasattr(one, "_fields") else type(one)(parts)
