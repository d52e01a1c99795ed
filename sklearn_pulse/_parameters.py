"""Checks of parameters: their kind, their range, and messages that name the remedy.

A value of the wrong kind is a `TypeError`, a value out of its range a `ValueError`. Numpy's
integers and floats count as Python's own; a boolean is not a number; NaN and infinity are refused.
A check of a single value returns the value, a number as Python's own.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

_LARGEST_SEED = 2**32 - 1
LAYOUTS = ("ntc", "nct")  # orders of the axes of X
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
_LARGEST = 2**31 - 1  # integer, where a parameter has no bound of its own
_MOST_THREADS = 1024  # OpenMP ends the process if the system cannot start as many

Option = TypeVar("Option")


def default_of(estimator: Any, name: str) -> Any:
    """Return the default of a parameter, also of one that only a base class exposes."""
    signatures = (inspect.signature(cls).parameters for cls in type(estimator).__mro__)
    return next(parameters[name].default for parameters in signatures if name in parameters)


def plain(value: Any) -> Any:
    """Return a number as Python's own: a scalar of numpy, as its grids hold them, or a Fraction.

    An integer beyond 64 bits, which torch refuses as a factor, becomes a float.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, int):
        return value if value.bit_length() < 64 else float(value)
    return float(value) if isinstance(value, Real) else value


def is_auto(value: Any) -> bool:
    """Return whether a parameter is "auto"; an array, which compares entry by entry, is not."""
    return isinstance(value, str) and value == "auto"


def is_number(value: Any, kind: type = Real) -> bool:
    """Return whether a value is a number, which booleans and numpy's durations are not."""
    return isinstance(value, kind) and not isinstance(value, bool | np.timedelta64)


def check_integer(
    name: str,
    value: Any,
    minimum: int,
    maximum: int | None = None,
    *,
    meaning: str = "",
    or_auto: bool = False,
) -> int:
    """Raise unless `value` is an integer of at least `minimum` and at most `maximum`.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : Any
        Value of the parameter.
    minimum : int
        Least value that is allowed.
    maximum : int or None, default=None
        Largest value that is allowed; None allows what 32 bits hold.
    meaning : str, default=""
        What the parameter counts, for the message.
    or_auto : bool, default=False
        Whether the message says that the parameter may also be "auto", which the caller allows.

    Returns
    -------
    int
        The value.

    Raises
    ------
    TypeError
        If `value` is not an integer.
    ValueError
        If `value` is out of range.

    Examples
    --------
    >>> check_integer("stride", 0, 1)
    Traceback (most recent call last):
    ...
    ValueError: stride must be an integer of at least 1, got 0; pass for example stride=1
    """
    too_large = is_number(value, Integral) and value > _LARGEST
    maximum = _LARGEST if maximum is None and too_large else maximum
    bounds = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
    kind = _or_auto(f"an integer {bounds}", or_auto)
    largest = _LARGEST if maximum is None else maximum
    is_meant = isinstance(value, float) and value.is_integer() and minimum <= value <= largest
    message = _message(name, kind, value, meaning, int(value) if is_meant else minimum)
    if not is_number(value, Integral):
        raise _error_of_kind(value, or_auto)(message)
    if value < minimum or (maximum is not None and value > maximum):
        raise ValueError(message)
    return int(value)


def check_real(
    name: str,
    value: Any,
    minimum: float = 0.0,
    maximum: float = math.inf,
    *,
    open_minimum: bool = False,
    open_maximum: bool = True,
    meaning: str = "",
    example: float | None = None,
    or_auto: bool = False,
) -> float:
    """Raise unless `value` is a finite number between `minimum` and `maximum`.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : Any
        Value of the parameter.
    minimum : float, default=0.0
        Lower bound.
    maximum : float, default=inf
        Upper bound.
    open_minimum : bool, default=False
        Whether the lower bound itself is excluded.
    open_maximum : bool, default=True
        Whether the upper bound itself is excluded.
    meaning : str, default=""
        What the parameter measures, for the message.
    example : float or None, default=None
        A value that the message suggests; None takes the end or the middle of the range.
    or_auto : bool, default=False
        Whether the message says that the parameter may also be "auto", which the caller allows.

    Returns
    -------
    float
        The value.

    Raises
    ------
    TypeError
        If `value` is not a number.
    ValueError
        If `value` is NaN, infinite or out of range.

    Examples
    --------
    >>> check_real("dropout", 1.0, 0.0, 1.0)
    Traceback (most recent call last):
    ...
    ValueError: dropout must be a number in [0, 1), got 1.0; pass for example dropout=0
    """
    low, high = "(" if open_minimum else "[", ")" if open_maximum else "]"
    bounded = math.isfinite(minimum) or math.isfinite(maximum)
    kind = f"a number in {low}{minimum:g}, {maximum:g}{high}" if bounded else "a finite number"
    if example is None:
        example = _example(minimum, maximum, open_minimum, open_maximum)
    message = _message(name, _or_auto(kind, or_auto), value, meaning, f"{example:g}")
    if not is_number(value, Real):
        raise _error_of_kind(value, or_auto)(message)
    number = _as_float(value)
    below = number <= minimum if open_minimum else number < minimum
    above = number >= maximum if open_maximum else number > maximum
    if not math.isfinite(number) or below or above:
        raise ValueError(message)
    return number


def check_share(name: str, value: Any, *, meaning: str = "", example: float | None = None) -> float:
    """Raise unless `value` is a number above 0 and at most 1; the rest is as in `check_real`.

    Examples
    --------
    >>> check_share("shrinkage", 0, example=0.1)
    Traceback (most recent call last):
    ...
    ValueError: shrinkage must be a number in (0, 1], got 0; pass for example shrinkage=0.1
    """
    return check_real(
        name,
        value,
        0.0,
        1.0,
        open_minimum=True,
        open_maximum=False,
        meaning=meaning,
        example=example,
    )


def check_option(name: str, value: Any, options: Iterable[Option]) -> Option:
    """Raise unless `value` is one of `options`.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : Any
        Value of the parameter.
    options : iterable
        The values that are allowed: strings, numbers, booleans or None.

    Returns
    -------
    object
        The option.

    Raises
    ------
    TypeError
        If no option is of the kind of `value`.
    ValueError
        If an option is of the kind of `value`, and none equals it.

    Examples
    --------
    >>> check_option("pooling", "median", ("max", "mean"))
    Traceback (most recent call last):
    ...
    ValueError: pooling must be one of 'max', 'mean', got 'median'; choose one of them
    """
    options = tuple(options)
    # Kinds come first: 1 == True, and an array compares entry by entry.
    comparable = [option for option in options if _kind(option) is _kind(value)]
    for option in comparable:
        if option == value:
            return option
    listed = ", ".join(map(repr, options))
    message = f"{name} must be one of {listed}, got {value!r}; choose one of them"
    raise ValueError(message) if comparable else TypeError(message)


def check_boolean(name: str, value: Any) -> bool:
    """Raise unless `value` is True or False.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : Any
        Value of the parameter.

    Returns
    -------
    bool
        The value.

    Raises
    ------
    TypeError
        If `value` is not a boolean of Python or numpy.

    Examples
    --------
    >>> check_boolean("compile", 1)
    Traceback (most recent call last):
    ...
    TypeError: compile must be True or False, got 1; choose one of them
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}; choose one of them")
    return bool(value)


def check_verbose(verbose: Any) -> None:
    """Raise unless `verbose` is a boolean or an integer from 0 on.

    Examples
    --------
    >>> check_verbose(True)
    >>> check_verbose(-1)
    Traceback (most recent call last):
    ...
    ValueError: verbose must be an integer of at least 0, got -1; pass for example verbose=0
    """
    if not isinstance(verbose, bool | np.bool_):
        check_integer("verbose", verbose, 0)


def check_distributed(value: Any) -> None:
    """Raise unless `value` is an option of the parameter `distributed`.

    Examples
    --------
    >>> check_distributed("auto")
    >>> check_distributed("ddp")
    Traceback (most recent call last):
    ...
    ValueError: distributed must be True, False or 'auto', got 'ddp'; choose one of them
    """
    if isinstance(value, bool | np.bool_) or is_auto(value):
        return
    kind = ValueError if isinstance(value, str) else TypeError
    raise kind(f"distributed must be True, False or 'auto', got {value!r}; choose one of them")


def check_steps_or_fraction(name: str, value: Any) -> int | float:
    """Raise unless `value` is a number of steps (int) or a fraction of the window (float).

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : Any
        Value of the parameter.

    Returns
    -------
    int or float
        The value.

    Raises
    ------
    TypeError
        If `value` is not a number.
    ValueError
        If an integer is below 1, or a fraction is not between 0 and 1.

    Examples
    --------
    >>> check_steps_or_fraction("crop_length", 64), check_steps_or_fraction("crop_length", 0.5)
    (64, 0.5)
    """
    if is_number(value, Integral):
        return check_integer(name, value, 1, meaning="an integer counts time steps")
    meaning = "a fraction of the window, where an integer counts time steps"
    return check_real(name, value, 0.0, 1.0, open_minimum=True, meaning=meaning)


def check_odd(name: str, value: Any) -> int:
    """Raise unless `value` is an odd positive integer, the width of a kernel with a centre.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : Any
        Value of the parameter.

    Returns
    -------
    int
        The value.

    Raises
    ------
    TypeError
        If `value` is not an integer.
    ValueError
        If `value` is even, or below 1.

    Examples
    --------
    >>> check_odd("init_kernel_size", 5)
    5
    """
    value = check_integer(name, value, 1)
    if value % 2 == 0:
        raise ValueError(
            f"{name} must be odd, got {value}: an even kernel has no centre; take {value + 1}"
        )
    return value


def check_pair(name: str, value: Any, example: tuple[float, float]) -> None:
    """Raise unless `value` is a tuple or list of two entries.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : Any
        Value of the parameter.
    example : tuple of two floats
        Value that the message proposes.

    Raises
    ------
    TypeError
        If `value` is neither a tuple nor a list.
    ValueError
        If `value` does not hold two entries.

    Examples
    --------
    >>> check_pair("scale_range", (0.5, 1.5), (0.5, 1.5))
    """
    message = f"{name} must be a pair of numbers, got {value!r}; pass for example {name}={example}"
    if not isinstance(value, tuple | list):
        raise TypeError(message)
    if len(value) != 2:
        raise ValueError(message)


def check_mapping(name: str, value: Any, content: str, example: str) -> None:
    """Raise unless `value` is a dictionary with an entry; `content` describes its entries."""
    message = _message(name, f"a dictionary of {content}", value, "", example)
    if not isinstance(value, Mapping):
        raise TypeError(message)
    if not value:
        raise ValueError(message)


def check_seed(name: str, value: Any) -> None:
    """Raise unless `value` seeds numpy: an integer, a RandomState, or None for the global one.

    Examples
    --------
    >>> check_seed("random_state", -1)
    Traceback (most recent call last):
    ...
    ValueError: random_state must be an integer from 0 to 4294967295, a numpy.random.RandomState
    or None, got -1; pass for example random_state=0
    """
    if value is None or value is np.random or isinstance(value, np.random.RandomState):
        return
    kind = f"an integer from 0 to {_LARGEST_SEED}, a numpy.random.RandomState or None"
    message = _message(name, kind, value, "", 0)
    if not is_number(value, Integral):
        raise TypeError(message)
    if not 0 <= value <= _LARGEST_SEED:
        raise ValueError(message)


def check_threads(number: Any, *, optional: bool = True) -> None:
    """Raise unless `number` is a number of threads that a process can start, or None if `optional`.

    Examples
    --------
    >>> check_threads(100_000)
    Traceback (most recent call last):
    ...
    ValueError: num_threads must be an integer from 1 to 1024, got 100000; pass for example
    num_threads=1
    """
    if number is not None or not optional:
        check_integer("num_threads", number, 1, _MOST_THREADS)


def as_path(name: str, value: Any, *, optional: bool = False) -> Path:
    """Return a path of the user, in which a leading ``~`` is the user's home.

    An empty path, such as that of an unset variable, is refused. With `optional`, the message says
    that the parameter may also be None, which the caller allows.

    Examples
    --------
    >>> as_path("folder", "data").name
    'data'
    >>> as_path("data_home", 3, optional=True)
    Traceback (most recent call last):
    ...
    TypeError: data_home must be a path (str or os.PathLike) or None, got 3; pass for example
    data_home='folder'
    """
    what = "a path (str or os.PathLike)" + " or None" * optional
    message = _message(name, what, value, "", "'folder'")
    if not isinstance(value, str | os.PathLike) or isinstance(os.fspath(value), bytes):
        raise TypeError(message)
    # An empty path would be the working folder, and no file has a null character in its name.
    if not os.fspath(value) or "\0" in os.fspath(value):
        raise ValueError(message)
    return Path(os.path.expanduser(value))


def file_in_the_way(folder: Path) -> Path | None:
    """Return the file that has the place of a folder, or of one that it lies in; None without."""
    return next((path for path in (folder, *folder.parents) if path.is_file()), None)


def check_n_jobs(n_jobs: Any) -> None:
    """Raise unless `n_jobs` is None or a number of processes as joblib counts them."""
    message = (
        f"n_jobs must be None, a number of processes, or -1 for one per processor, got {n_jobs!r};"
        " pass for example n_jobs=2"
    )
    if n_jobs is not None and not is_number(n_jobs, Integral):
        raise TypeError(message)
    if n_jobs == 0:
        raise ValueError(message)


def check_heads(embedding_dim: int, n_heads: Any) -> None:
    """Raise unless `n_heads` is a number of attention heads that divides `embedding_dim`.

    Parameters
    ----------
    embedding_dim : int
        Width of the embedding.
    n_heads : Any
        Value of the parameter of that name.

    Raises
    ------
    TypeError
        If `n_heads` is not an integer.
    ValueError
        If `n_heads` is below 1, or does not divide `embedding_dim`.

    Examples
    --------
    >>> check_heads(320, 3)
    Traceback (most recent call last):
    ...
    ValueError: embedding_dim=320 must be a multiple of n_heads=3: every head has the same width.
    Change one of them.
    """
    check_integer("n_heads", n_heads, 1)
    if embedding_dim % n_heads:
        raise ValueError(
            f"embedding_dim={embedding_dim} must be a multiple of n_heads={n_heads}: every head"
            " has the same width. Change one of them."
        )


def check_schedule(schedule: Any, options: Iterable[str], betas: Any) -> None:
    """Raise unless the learning rate's schedule and AdamW's `betas` are known."""
    check_option("schedule", schedule, options)
    if betas is not None:
        check_pair("betas", betas, (0.9, 0.999))
        for beta in betas:
            check_real("each of betas", beta, 0.0, 1.0)


def check_betas_go_with(schedule: str, options: Iterable[str], betas: Any) -> None:
    """Raise a ValueError if a schedule moves the `betas` that were set."""
    if schedule == "one_cycle" and betas is not None:
        others = " or ".join(repr(option) for option in options if option != schedule)
        raise ValueError(
            f"betas={betas!r} goes with schedule={others} only: one cycle moves the first of them"
            f" itself. Set betas=None, or schedule={others}."
        )


def check_spelled_out(cls: type) -> None:
    """Raise unless a class of estimators spells out the parameters of its `__init__`.

    Parameters
    ----------
    cls : type
        The class. An `__init__` that it inherits is not looked at.

    Raises
    ------
    TypeError
        If its `__init__` takes ``**`` parameters, of which scikit-learn does not know.
    """
    init = vars(cls).get("__init__")
    parameters = {} if init is None else inspect.signature(init).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        raise TypeError(
            f"{cls.__name__}.__init__ takes ** parameters, which scikit-learn's clone, and so every"
            " search, would drop: spell out each parameter that may be set, with its default."
        )


def check_label(value: Any) -> None:
    """Raise unless `unlabeled_label` is an integer of 64 bits, text or None."""
    if value is None or isinstance(value, str):
        return
    kind = "an integer, text or None"
    if not is_number(value, Integral):
        raise TypeError(_message("unlabeled_label", kind, value, "", -1))
    if not -(2**63) <= value < 2**63:
        raise ValueError(_message("unlabeled_label", kind, value, "labels have 64 bits", -1))


def _message(name: str, kind: str, value: Any, meaning: str, example: Any) -> str:
    """Say what a parameter must be, what it is, and what to pass instead."""
    meaning = f" ({meaning})" if meaning else ""
    # "each of betas" is no name that can be assigned to.
    remedy = f"{name}={example}" if name.isidentifier() else f"{example}"
    return f"{name} must be {kind}, got {value!r}{meaning}; pass for example {remedy}"


def _or_auto(kind: str, allowed: bool) -> str:
    """Say that a parameter may also be "auto", where that is allowed."""
    return f"'auto' or {kind}" if allowed else kind


def _error_of_kind(value: Any, or_auto: bool) -> type[TypeError | ValueError]:
    """Return the error for a value that is no number; text is of the kind of "auto"."""
    return ValueError if or_auto and isinstance(value, str) else TypeError


def _example(minimum: float, maximum: float, open_minimum: bool, open_maximum: bool) -> float:
    """Return a number in a range: a closed end, the middle, or 1 away from the only bound."""
    if math.isinf(minimum) and math.isinf(maximum):
        return 0.0
    if not open_minimum and math.isfinite(minimum):
        return minimum
    if not open_maximum and math.isfinite(maximum):
        return maximum
    if math.isinf(maximum):
        return minimum + 1
    return maximum - 1 if math.isinf(minimum) else (minimum + maximum) / 2


def _as_float(value: Any) -> float:
    """Return a number as a float; an integer beyond the largest float becomes infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _kind(value: Any) -> type:
    """Return the type by which options are told apart."""
    if isinstance(value, bool | np.bool_):
        return bool
    for kind in (str, Integral, Real):
        if isinstance(value, kind):
            return kind
    return type(value)
