"""Reader of untrusted pickles that runs nothing that a pickle asks for.

A pickle is a program: Python imports and calls any function that it names. This reader allows a
pickle to build numbers, strings, bytes, lists, tuples, sets, dicts and numeric numpy arrays,
written by any version of numpy and by Python 2 or 3, and refuses everything else. It does not call
numpy's own reconstruction either; arrays are rebuilt from their dtype, shape and bytes.

Before anything is built, :func:`~sklearn_pulse._pickles.check_pickle` reads through the operations,
so that what is built stays in proportion to the file.
"""

from __future__ import annotations

import math
import mmap
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._pickles import check_pickle

_MAX_DEPTH = 30  # of nested containers
# Sum of all whole numbers. Long numbers take time to hash and to multiply, and numbers that differ
# by a multiple of 2**61 - 1 have the same hash, so that a dict of them takes quadratic time.
_MAX_SUM = 2**70
_MAX_VALUES = 10**6  # a value that is held twice counts twice, as for a caller that reads all
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
        If the file is not a pickle, is damaged, asks for anything but plain containers and numeric
        arrays, is nested more than 30 deep, or holds more than 200,000 operations, a million
        values or whole numbers that add up to more than 2**70.

    Notes
    -----
    The file may come from a stranger. Memory is bounded by a few times the size of the file.

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
    if Path(path).exists() and not Path(path).is_file():
        raise ValueError(f"{path} is refused: it is a folder or a pipe; name the file itself.")
    with open(path, "rb") as file:
        try:
            # A mapped file is read from the disk as needed, and never beyond its end.
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as stream:
                if check_pickle(stream, len(stream)) > _MAX_SUM:
                    raise ValueError(f"its whole numbers add up to more than {_MAX_SUM}")
                stream.seek(0)
                return _Finisher().finish(_PlainUnpickler(stream).load()).value
        except _DAMAGE as error:
            raise ValueError(
                f"{path} is refused: {error}. It may hold only plain containers and numeric numpy "
                "arrays; if the file is damaged, unpack or download it again."
            ) from error


class _Array:
    """Stand-in for an array, filled with the shape, dtype and bytes that numpy pickles."""

    __slots__ = ("value",)

    def __init__(self, *_: Any) -> None:
        self.value: NDArray[Any] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, is_fortran, content = state
        self.fill(content, dtype, shape, "F" if is_fortran == 1 else "C")

    @classmethod
    def of(cls, content: Any, dtype: Any, shape: Any, order: Any, *_: Any) -> _Array:
        """Return an array that is filled at once."""
        array = cls()
        array.fill(content, dtype, shape, order)
        return array

    @classmethod
    def of_scalar(cls, dtype: Any, content: Any) -> _Array:
        """Return the array of a scalar."""
        return cls.of(content, dtype, (), "C")

    def fill(self, content: Any, dtype: Any, shape: Any, order: Any) -> None:
        """Build the array; raise unless the content is as long as shape and dtype require."""
        if not isinstance(dtype, _Dtype):
            raise pickle.UnpicklingError("an array has no dtype")
        # A product with a list or a text would repeat it.
        if type(shape) is not tuple or not all(type(n) is int for n in shape):
            raise pickle.UnpicklingError("the shape of an array is no tuple of whole numbers")
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

    def __init__(self, kind: str, *_: Any) -> None:
        if not isinstance(kind, str) or _PLAIN_DTYPE.fullmatch(kind) is None:
            raise pickle.UnpicklingError(f"the dtype {_shown(kind)} is not numeric")
        self.value = np.dtype(kind)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, byte_order, subarray, names, fields = state[:5]
        if (subarray, names, fields) != (None, None, None):
            raise pickle.UnpicklingError("structured dtypes are not numeric")
        if self.value.kind in "SU":  # only the state holds the size of a text dtype
            n_bytes = np.dtype(f"{self.value.kind}1").itemsize  # of a character
            self.value = np.dtype(f"{self.value.kind}{state[5] // n_bytes}")
        self.value = self.value.newbyteorder(byte_order)


def _shown(value: Any) -> str:
    """Show a value of the file; the text of nested values could be long beyond any bound."""
    return repr(value[:80]) if isinstance(value, str) else f"of type {type(value).__name__}"


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
    ("numpy", "dtype"): _Dtype,
    ("__builtin__", "bytes"): _empty_bytes,
    **{
        (f"numpy.{core}.{module}", name): function
        for core in ("core", "_core")
        for module, name, function in (
            ("multiarray", "_reconstruct", _Array),
            ("multiarray", "scalar", _Array.of_scalar),
            ("numeric", "_frombuffer", _Array.of),
        )
    },
}


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler that imports nothing."""

    def __init__(self, stream: mmap.mmap) -> None:
        super().__init__(stream, encoding="latin1")
        self._n_bytes_left = len(stream)

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for a name of numpy; raise for all other names."""
        if (module, name) == ("_codecs", "encode"):
            return _Name(self._encode)
        try:
            return _Name(_ALLOWED[module, name])
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module[:80]}.{name[:80]}") from None

    def _encode(self, text: Any, encoding: Any) -> bytes:
        """Return the bytes of a text; raise if texts are encoded again and again."""
        if encoding not in ("latin1", "latin-1"):
            raise pickle.UnpicklingError(f"the encoding {_shown(encoding)} is not used by numpy")
        content: bytes = text.encode("latin1")
        self._n_bytes_left -= len(content)
        if self._n_bytes_left < 0:
            raise pickle.UnpicklingError("its texts stand for more bytes than the file has")
        return content


class _Finished(NamedTuple):
    """Finished value, with the number of values and the depth of the containers in it."""

    value: Any
    n_values: int = 1
    depth: int = 0


class _Finisher:
    """Replaces stand-ins by their arrays, inside containers too.

    A container that is held many times is finished once, and stays one object.
    """

    def __init__(self) -> None:
        self._done: dict[int, _Finished] = {}
        self._begun: set[int] = set()

    def finish(self, value: Any) -> _Finished:
        """Finish a value; raise if it is too large or holds itself."""
        if isinstance(value, _Array):
            if value.value is None:
                raise pickle.UnpicklingError("an array has no content")
            return _Finished(value.value if value.value.ndim else value.value[()])
        if isinstance(value, (_Name, _Dtype)):
            raise pickle.UnpicklingError("it holds a name or dtype as a value")
        if not isinstance(value, (dict, list, tuple, set, frozenset)):
            return _Finished(value)
        number = id(value)
        if number not in self._done:
            if number in self._begun or len(self._begun) > _MAX_DEPTH:
                raise pickle.UnpicklingError(f"containers are nested more than {_MAX_DEPTH} deep")
            self._begun.add(number)
            self._done[number] = self._finish_container(value)
            self._begun.remove(number)
        return self._done[number]

    def _finish_container(self, value: Any) -> _Finished:
        if isinstance(value, dict):
            parts = [self.finish(part) for item in value.items() for part in item]
            values = [part.value for part in parts]
            finished: Any = dict(zip(values[::2], values[1::2], strict=True))
        else:
            parts = [self.finish(part) for part in value]
            finished = type(value)(part.value for part in parts)
        n_values = 1 + sum(part.n_values for part in parts)
        if n_values > _MAX_VALUES:
            raise pickle.UnpicklingError(f"it holds more than {_MAX_VALUES} values")
        depth = 1 + max((part.depth for part in parts), default=0)
        if depth > _MAX_DEPTH + 1:
            raise pickle.UnpicklingError(f"containers are nested more than {_MAX_DEPTH} deep")
        return _Finished(finished, n_values, depth)
