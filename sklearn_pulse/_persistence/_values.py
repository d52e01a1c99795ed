"""Conversion of plain values to JSON, and back to the same types."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NUMERIC = re.compile(r"[<>|][biuf]\d{1,2}")
_MAX_CHARACTERS = 2**22  # of an array of text
_TEXT = ("U", "O")  # kinds of text of any length; feature names are an array of objects
_KINDS = (*"biuf", *_TEXT)
_KEYS = (str, Real, np.bool_)  # of dictionaries, such as a weight for each label


def encode(value: Any) -> Any:
    """Return a value of JSON that represents a plain value.

    Numpy scalars become Python scalars, and an index of pandas an array. JSON has no tuples,
    arrays, or numbers that are not finite: they become dictionaries whose keys name the type, and
    so do dictionaries, whose own keys may be text, numbers or Booleans.

    Parameters
    ----------
    value : None, bool, number, str, or list, tuple, array or dictionary of such
        Value to convert.

    Returns
    -------
    object
        Value of JSON, which :func:`decode` reads.

    Raises
    ------
    TypeError
        If the value is of any other type.

    Examples
    --------
    >>> encode([1, (2.0, float("inf"))])
    [1, {'tuple': [2.0, {'float': 'inf'}]}]
    >>> decode(encode([1, (2.0, float("inf"))]))
    [1, (2.0, inf)]
    """
    if value is None:
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else {"float": repr(number)}
    if isinstance(value, str):
        return str.__str__(value)  # str() of a member of an enumeration of strings is its name
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, dict) and all(type(name) is str for name in value):
        return {"dict": {name: encode(item) for name, item in value.items()}}
    if isinstance(value, dict) and all(isinstance(name, _KEYS) for name in value):
        return {"pairs": [[encode(name), encode(item)] for name, item in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [encode(item) for item in value]}
    if isinstance(value, np.ndarray):
        kind = value.dtype.kind
        if kind not in _KINDS:
            raise TypeError(f"a file cannot hold an array of {value.dtype}")
        return {
            "array": encode(value.tolist()),
            "dtype": kind if kind in _TEXT else value.dtype.str,
        }
    if getattr(value, "nlevels", None) == 1:  # such as the columns of a frame
        return encode(value.to_numpy())
    raise TypeError(f"a file cannot hold a {type(value).__name__}")


def decode(value: Any) -> Any:
    """Return the value that was encoded.

    Parameters
    ----------
    value : object
        Value that was read from JSON.

    Returns
    -------
    object
        The value that was passed to :func:`encode`.

    Raises
    ------
    ValueError
        If :func:`encode` writes no such value.

    Examples
    --------
    >>> decode({"tuple": [1, {"float": "nan"}]})
    (1, nan)
    """
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"tuple": list(items)} if len(value) == 1:
            return tuple(decode(items))
        case {"dict": dict(items)} if len(value) == 1:
            return {name: decode(item) for name, item in items.items()}
        case {"pairs": list(pairs)} if len(value) == 1:
            return _decode_pairs(pairs)
        case {"float": "inf" | "-inf" | "nan" as number} if len(value) == 1:
            return float(number)
        case {"array": items, "dtype": str(dtype)} if len(value) == 2:
            return _decode_array(decode(items), dtype)
    raise ValueError(f"a value has the unknown entries {sorted(value)}")


def _decode_pairs(pairs: list[Any]) -> dict[Any, Any]:
    """Return a dictionary of keys and values; raise ValueError if something else stands there."""
    found = {}
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError("an entry of a dictionary is no pair of a key and a value")
        key = decode(pair[0])
        if not isinstance(key, _KEYS):
            raise ValueError("a key of a dictionary is neither text nor a number")
        found[key] = decode(pair[1])
    return found


def _decode_array(items: Any, dtype: str) -> NDArray[Any]:
    """Return an array of numbers or text; raise ValueError if the items do not fit the dtype."""
    try:
        if dtype not in _TEXT and not _NUMERIC.fullmatch(dtype):
            raise TypeError("no dtype of numbers or text")
        if dtype != "U":
            return np.array(items, dtype=dtype)
        texts = np.array(items, dtype="O")
        # Every text of such an array takes the memory of the longest.
        longest = max((len(text) for text in texts.flat), default=0)
        if longest * texts.size > _MAX_CHARACTERS:
            raise ValueError("texts are too long")
        return texts.astype("U")
    except (OverflowError, TypeError) as error:
        raise ValueError(f"some values are no array of dtype {dtype!r}: {error}") from error


def same_when_stored(first: Any, second: Any) -> bool:
    """Return whether two settings are the same object, or equal when stored.

    Parameters
    ----------
    first, second : object
        The settings; dictionaries of settings are compared entry by entry.

    Returns
    -------
    bool
        False also if a file cannot hold one of two different objects.

    Examples
    --------
    >>> same_when_stored({"alpha": np.float32(0.5)}, {"alpha": 0.5})
    True
    """
    if first is second:
        return True
    if isinstance(first, dict) and isinstance(second, dict):
        keys = first.keys()
        return keys == second.keys() and all(same_when_stored(first[k], second[k]) for k in keys)
    try:
        return bool(encode(first) == encode(second))
    except TypeError:
        return False


def check_params_unchanged(fitted: Mapping[str, Any], present: Mapping[str, Any]) -> None:
    """Raise a ValueError if a parameter is no longer what it was in `fit`.

    Parameters
    ----------
    fitted : mapping of str to object
        The parameters that the fitted state depends on, as they were in `fit`.
    present : mapping of str to object
        All parameters, as a file would hold them.

    Examples
    --------
    >>> check_params_unchanged({"depth": 3}, {"depth": 3, "n_jobs": 2})
    """
    for name, value in fitted.items():
        if not same_when_stored(value, present[name]):
            raise ValueError(
                f"it was fitted with {name}={value!r}, and a file would hold {present[name]!r}."
                " Set the parameter back, or fit again."
            )
