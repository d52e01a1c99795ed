"""Reader of untrusted pickles that runs nothing that a pickle asks for.

A pickle is a program: Python imports and calls any function that it names. This reader allows a
pickle to build numbers, strings, bytes, lists, tuples, sets, dicts and numeric numpy arrays,
written by any version of numpy and by Python 2 or 3, and refuses everything else. It does not call
numpy's own reconstruction either; arrays are rebuilt from their dtype, shape and bytes.
"""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MAX_DEPTH = 30  # of nested containers, since a container that holds itself never ends
_PLAIN_DTYPE = re.compile(r"[<>|=]?[?biufcSU]\d*")
_DAMAGE = (  # errors that a damaged or hostile stream can raise in the unpickler
    pickle.UnpicklingError,
    AttributeError,
    EOFError,
    IndexError,
    KeyError,
    MemoryError,
    OverflowError,
    TypeError,
    ValueError,
)


def read_pickle(path: Path) -> Any:
    """Read a pickle of plain containers and numeric numpy arrays.

    Parameters
    ----------
    path : pathlib.Path
        The file. Strings of Python 2 are read as latin-1, which the bytes of numpy arrays need.

    Returns
    -------
    data : object
        The pickled object.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If the file is not a pickle, is damaged, or asks for anything but plain containers and
        numeric arrays.

    Examples
    --------
    >>> import pickle, tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "x.pkl")
    ...     _ = path.write_bytes(pickle.dumps({"label": np.arange(3)}))
    ...     read_pickle(path)
    {'label': array([0, 1, 2])}
    """
    with open(path, "rb") as stream:
        try:
            return _finish(_PlainUnpickler(stream, encoding="latin1").load())
        except _DAMAGE as error:
            raise ValueError(
                f"{path} is refused: {error}. It may hold only plain containers and numeric numpy "
                "arrays; if the file is damaged, unpack or download it again."
            ) from error


class _Array:
    """Stand-in for an array, filled with the shape, dtype and bytes that numpy pickles."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: NDArray[Any] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, is_fortran, content = state
        self.fill(content, dtype, shape, "F" if is_fortran else "C")

    def fill(self, content: Any, dtype: Any, shape: tuple[int, ...], order: str) -> None:
        """Build the array; raise unless the content is as long as shape and dtype require."""
        if not isinstance(dtype, _Dtype):
            raise pickle.UnpicklingError("an array has no dtype")
        if isinstance(content, str):  # bytes that Python 2 has pickled
            content = content.encode("latin1")
        if not isinstance(content, (bytes, bytearray)):
            raise pickle.UnpicklingError(f"an array's content is {type(content).__name__}")
        n_bytes = math.prod(shape) * dtype.value.itemsize
        if any(n < 0 for n in shape) or n_bytes != len(content):
            raise pickle.UnpicklingError(f"an array of shape {shape} has {len(content)} bytes")
        flat = np.frombuffer(content, dtype.value)
        self.value = flat.reshape(shape, order="F" if order == "F" else "C")


class _Dtype:
    """Stand-in for a dtype, which is pickled as kind and size, followed by the byte order."""

    __slots__ = ("value",)

    def __init__(self, kind: str) -> None:
        if not isinstance(kind, str) or _PLAIN_DTYPE.fullmatch(kind) is None:
            raise pickle.UnpicklingError(f"the dtype {kind!r} is not numeric")
        self.value = np.dtype(kind)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, byte_order, subarray, names, fields = state[:5]
        if (subarray, names, fields) != (None, None, None):
            raise pickle.UnpicklingError("structured dtypes are not numeric")
        if self.value.kind in "SU":  # only the state holds the size of a text dtype
            self.value = np.dtype(f"{self.value.kind}{state[5] // _text_unit(self.value)}")
        self.value = self.value.newbyteorder(byte_order)


def _text_unit(dtype: np.dtype[Any]) -> int:
    """Return the number of bytes per character of a text dtype."""
    return 4 if dtype.kind == "U" else 1


def _empty_array(*_: Any) -> _Array:
    return _Array()


def _dtype(kind: str, *_: Any) -> _Dtype:
    return _Dtype(kind)


def _array_from_buffer(content: Any, dtype: Any, shape: Any, order: str, *_: Any) -> _Array:
    array = _Array()
    array.fill(content, dtype, shape, order)
    return array


def _scalar(dtype: Any, content: Any) -> Any:
    array = _Array()
    array.fill(content, dtype, (), "C")
    return array


def _encode(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"the encoding {encoding!r} is not used by numpy")
    return text.encode("latin1")


def _empty_bytes(*args: Any) -> bytes:
    if args:
        raise pickle.UnpicklingError("bytes is called with arguments")
    return b""


class _Name:
    """Stand-in for a function that a pickle names: it can be called, but not changed."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("the pickle tries to change a function")


def _no_call(*_: Any) -> None:
    raise pickle.UnpicklingError("numpy.ndarray is called")


# Names in pickles of numpy arrays, written before and since numpy 2, with our replacements.
_ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "ndarray"): _no_call,  # an argument of other functions; never called itself
    ("numpy", "dtype"): _dtype,
    ("_codecs", "encode"): _encode,
    ("__builtin__", "bytes"): _empty_bytes,
    **{
        (f"numpy.{core}.{module}", name): function
        for core in ("core", "_core")
        for module, name, function in (
            ("multiarray", "_reconstruct", _empty_array),
            ("multiarray", "scalar", _scalar),
            ("numeric", "_frombuffer", _array_from_buffer),
        )
    },
}


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler that imports nothing."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for a name of numpy; raise for all other names."""
        try:
            return _Name(_ALLOWED[module, name])
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}") from None


def _finish(value: Any, depth: int = 0) -> Any:
    """Return `value` with arrays in place of their stand-ins, inside containers too."""
    if depth > _MAX_DEPTH:
        raise pickle.UnpicklingError(f"containers are nested more than {_MAX_DEPTH} deep")
    if isinstance(value, _Array):
        if value.value is None:
            raise pickle.UnpicklingError("an array has no content")
        return value.value if value.value.ndim else value.value[()]
    if isinstance(value, dict):
        return {_finish(k, depth + 1): _finish(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_finish(item, depth + 1) for item in value)
    if isinstance(value, (_Name, _Dtype)):
        raise pickle.UnpicklingError("it holds a name or dtype as a value")
    return value
