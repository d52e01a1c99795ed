"""State that callbacks share: attributes of their class, and what its methods enclose."""

from __future__ import annotations

from collections.abc import Collection
from types import CellType, FunctionType
from typing import Any

from ._identity import fingerprint
from ._plain import Encoder


def shared_state(callback: Any, libraries: Collection[str]) -> dict[str, Any]:
    """Return what tells whether a state has changed that no callback has for itself.

    Parameters
    ----------
    callback : Callback
        The callback.
    libraries : collection of str
        Packages whose classes keep no such state.

    Returns
    -------
    dict
        By the names of class and attribute. Values that are no plain ones are known by identity.

    Examples
    --------
    >>> class Counts:
    ...     seen = []
    >>> before = shared_state(Counts(), ())
    >>> Counts.seen.append(1)
    >>> shared_state(Counts(), ()) == before
    False
    """
    state = {}
    for class_ in type(callback).__mro__:
        if class_.__module__.partition(".")[0] not in (*libraries, "builtins"):
            for name, value in vars(class_).items():
                if not name.startswith("__") or isinstance(value, FunctionType):
                    state[f"{class_.__name__}.{name}"] = _token(value)
    return state


def _token(value: Any) -> Any:
    if isinstance(value, FunctionType):
        return [_token(cell.cell_contents) for cell in value.__closure__ or () if _is_filled(cell)]
    try:
        Encoder().encode(value)
        return fingerprint(value)
    except TypeError:
        return id(value)


def _is_filled(cell: CellType) -> bool:
    """Whether a name that a function encloses has a value yet."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
