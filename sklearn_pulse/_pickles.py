"""Bounds on a pickle from a stranger, found by reading its operations without running them.

A pickle is a program for a machine with a stack and a memo. A few bytes of it can ask for
gigabytes (an entry of the memo with a high number), hash a tuple whose tuples share others, which
takes time that doubles with every level, or name any function. All of this can be told from the
operations.
"""

from __future__ import annotations

import pickle
import pickletools
from collections.abc import Callable
from typing import Any

_MAX_OPERATIONS = 200_000
_MAX_DEPTH = 100  # of nested values; an array is a handful deep itself
_MARK = -1
_PUT = ("PUT", "BINPUT", "LONG_BINPUT")
_NUMBERS = ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4")
_GET = ("GET", "BINGET", "LONG_BINGET")
_FILL = ("APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD")


def check_pickle(
    stream: Any, n_bytes: int, allows: Callable[[str, str], bool] | None = None
) -> int:
    """Raise unless a pickle is small in all that unpickling costs.

    Parameters
    ----------
    stream : file-like
        The pickle, at its beginning, such as a mapped file. It is left behind the pickle.
    n_bytes : int
        Bytes that the file has in all.
    allows : callable or None, default=None
        Function of a module and a name that tells whether the pickle may ask for it; None leaves
        this to the unpickler.

    Returns
    -------
    int
        Sum of all whole numbers in the pickle, which bounds the sizes that it can ask for.

    Raises
    ------
    ValueError
        If the pickle is damaged, has too many operations or is nested too deeply, if it fills the
        memo out of order, or asks for a name that is not allowed.

    Examples
    --------
    >>> import io, pickle
    >>> content = pickle.dumps([1, (2, 3)])
    >>> check_pickle(io.BytesIO(content), len(content))
    6
    """
    stack: list[int] = []  # depth of each value on the machine's stack
    memo: dict[int, int] = {}
    total = 0
    argument: Any
    for number, (operation, argument, _) in enumerate(pickletools.genops(stream)):
        name = operation.name
        if number == _MAX_OPERATIONS:
            raise ValueError(f"it has more than {_MAX_OPERATIONS} operations")
        try:
            if name in _PUT or name == "MEMOIZE":
                slot = len(memo) if name == "MEMOIZE" else int(argument)
                if slot > number:
                    raise ValueError(f"it fills slot {slot} of the memo in operation {number}")
                memo[slot] = stack[-1]
                continue
            if name in _GET:
                stack.append(memo[int(argument)])
                continue
            _apply(operation, stack)
        except (IndexError, KeyError) as error:
            raise ValueError("it is damaged: a value is missing") from error
        if name in ("GLOBAL", "INST") and allows is not None:
            module, _, attribute = argument.partition(" ")
            if not allows(module, attribute):
                raise ValueError(f"it asks for {module[:80]}.{attribute[:80]}")
        elif name == "STACK_GLOBAL" and allows is not None:
            raise ValueError("it names functions in a way that torch.save does not")
        elif name == "FRAME" and argument > n_bytes:
            raise ValueError(f"a frame of it has {argument} bytes, the file {n_bytes}")
        elif name == "PROTO" and argument > pickle.HIGHEST_PROTOCOL:
            raise ValueError(f"its protocol {argument} is unknown")
        elif name in _NUMBERS:
            total += abs(argument)
        if stack and stack[-1] > _MAX_DEPTH:
            raise ValueError(f"its values are nested more than {_MAX_DEPTH} deep")
    return total


def _apply(operation: Any, stack: list[int]) -> None:
    """Apply an operation to a stack of depths."""
    before, after = operation.stack_before, operation.stack_after
    if operation.name == "POP" and stack[-1] == _MARK:
        stack.pop()
        return
    taken: list[int] = []
    kinds = list(before)
    if pickletools.markobject in kinds:
        while stack[-1] != _MARK:
            taken.append(stack.pop())
        stack.pop()
        kinds = kinds[: kinds.index(pickletools.markobject)]
    below = [stack.pop() for _ in kinds]
    if max(_keys(operation.name, taken, below), default=0) > 1:
        raise ValueError("a key or a member of a set holds other values")
    if operation.name in _FILL:  # what is filled keeps its depth, unless the content is deeper
        container = below.pop()
        stack.append(max(container, 1 + max([*taken, *below], default=0)))
        return
    if operation.name == "DUP":
        stack += below * 2
        return
    depth = 1 + max([*taken, *below], default=0)
    stack += [_MARK if kind is pickletools.markobject else depth for kind in after]


def _keys(name: str, taken: list[int], below: list[int]) -> list[int]:
    """Return the depths of what an operation hashes; the values above a mark come last first."""
    if name in ("SETITEMS", "DICT"):
        return taken[1::2]
    if name == "SETITEM":
        return below[1:2]
    return taken if name in ("ADDITEMS", "FROZENSET") else []
