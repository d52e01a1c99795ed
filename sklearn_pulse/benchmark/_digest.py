"""Digest of an unfitted estimator: its parameters, what it is frozen with, and the code behind."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import io
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

from .._training._identity import snapshot

_INSTALLED = {"site-packages", "dist-packages"}  # folders whose packages change with their version
_REMEDY = ", so define its classes and functions in a module that you import"


def digest(estimator: Any) -> str:
    """Return a digest that is equal, in every process, for estimators that compute the same.

    The code of an installed package is known by the version of the package. Other code is known by
    the files of the modules that define it, and of the modules that these import.

    Parameters
    ----------
    estimator : estimator
        The estimator, with its parameters.

    Returns
    -------
    str
        The digest.

    Raises
    ------
    TypeError
        If estimators that compute differently could have the same digest: the estimator cannot be
        pickled, a pickled copy has another digest, or code of it is in no module with a file, as
        in a script or a notebook.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> digest(PCA(2)) == digest(PCA(2)), digest(PCA(2)) == digest(PCA(3))
    (True, False)
    """
    pickler = _NamesModules()
    try:
        pickler.dump(estimator)
        copy = pickle.loads(pickler.file.getvalue())
    except Exception as error:  # of whatever kind: objects that cannot be pickled choose it
        raise TypeError(f"it cannot be pickled ({error}){_REMEDY}") from error
    held = snapshot(estimator)
    if snapshot(copy) != held:  # as with an identifier that each copy draws
        raise TypeError("a pickled copy of it has another digest, as of a frozen network")
    found = hashlib.blake2b(held, digest_size=6)
    for name, code in sorted(_code_of(pickler.modules).items()):
        found.update(f"{name} {code} ".encode())
    return found.hexdigest()


class _NamesModules(pickle.Pickler):
    """Pickler that notes the modules of all classes and functions that it meets."""

    def __init__(self) -> None:
        self.file = io.BytesIO()
        super().__init__(self.file)
        self.modules: set[str] = set()

    def reducer_override(self, value: Any) -> Any:
        """Note where a class, its bases or a function are defined, and pickle them as usual."""
        if isinstance(value, type):
            self.modules |= {base.__module__ for base in value.__mro__}
        elif isinstance(value, FunctionType | BuiltinFunctionType) and value.__module__:
            self.modules.add(value.__module__)
        return NotImplemented


def _code_of(modules: set[str]) -> dict[str, str]:
    """Return what the code of modules, and of those that they import, is known by, by name."""
    known: dict[str, str] = {}
    waiting = set(modules)
    while waiting:
        name = waiting.pop()
        package = name.partition(".")[0]
        version = _version(package)
        if version is not None:
            known[package] = version
        elif name not in known:
            content = _content(name)
            known[name] = hashlib.blake2b(content, digest_size=16).hexdigest()
            waiting |= {*_imports(name, content)} & sys.modules.keys()
    return known


def _version(package: str) -> str | None:
    """Return the version of an installed package; None where code changes without a version."""
    if package in sys.stdlib_module_names:
        return ""
    module = sys.modules.get(package)
    place = Path(getattr(module, "__file__", None) or "").parts
    if package != __name__.partition(".")[0] and not _INSTALLED.intersection(place):
        return None
    version = getattr(module, "__version__", None)
    return version if isinstance(version, str) else None


def _content(name: str) -> bytes:
    """Return the content of the file of a module."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if name == "__main__" or file is None:
        raise TypeError(f"code of it is in {name}, which is no module with a file{_REMEDY}")
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise TypeError(f"the file of {name} cannot be read ({error})") from error


def _imports(name: str, content: bytes) -> Iterator[str]:
    """Yield the names of the modules that a module may import, and of their packages."""
    module = sys.modules[name]
    if not str(module.__file__).endswith(".py"):
        return  # compiled
    for node in ast.walk(_tree(name, content)):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            relative = "." * node.level + (node.module or "")
            base = importlib.util.resolve_name(relative, module.__package__ or name)
            found = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for imported in found:
            parts = imported.split(".")
            yield from (".".join(parts[:n]) for n in range(1, len(parts) + 1))


def _tree(name: str, content: bytes) -> ast.Module:
    """Return the syntax of a module."""
    try:
        return ast.parse(content)
    except (SyntaxError, ValueError) as error:  # the file was changed after it was loaded
        raise TypeError(f"the file of {name} is no code ({error})") from error
