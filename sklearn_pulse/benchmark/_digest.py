"""Digest of an unfitted estimator: its parameters, what it is frozen with, and the code behind."""

from __future__ import annotations

import ast
import hashlib
import importlib.machinery
import importlib.util
import io
import pickle
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

from .._training._identity import snapshot

_STDLIB = sysconfig.get_path("stdlib")
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
    if snapshot(copy) != held:
        raise TypeError("a pickled copy of it has another digest, as if each copy drew a number")
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
    """Return the version of each package, and a digest of each other module, that modules need."""
    known: dict[str, str] = {}
    version_of = cache(_version)
    waiting = set(modules)
    while waiting:
        name = waiting.pop()
        package = name.partition(".")[0]
        version = version_of(package)
        if version is not None:
            known[package] = version
        elif name not in known:
            content = _content(name)
            known[name] = hashlib.blake2b(content, digest_size=16).hexdigest()
            waiting |= set(filter(_spec, _imports(name, content)))
    return known


def _version(package: str) -> str | None:
    """Return the version of an installed package; None where code changes without a version."""
    file = _file(package)
    is_installed = not _INSTALLED.isdisjoint(Path(file or "").parts)
    if package in sys.stdlib_module_names and (file is None or Path(file).is_relative_to(_STDLIB)):
        return ""  # unlike a module of the user that has such a name
    if package != __name__.partition(".")[0] and not is_installed:
        return None
    if package in sys.modules:
        version = getattr(sys.modules[package], "__version__", None)
    else:
        owners = metadata.packages_distributions().get(package, [])
        version = metadata.version(owners[0]) if owners else None
    return version if isinstance(version, str) else None


def _spec(name: str) -> Any:
    """Find a module without running it; None for a name that is no module.

    A function may import a module that is not loaded yet.
    """
    if name in sys.modules:
        return sys.modules[name].__spec__ or sys.modules[name]
    package = name.rpartition(".")[0]
    if not package:
        return importlib.util.find_spec(name)
    places = getattr(_spec(package), "submodule_search_locations", None)
    return None if places is None else importlib.machinery.PathFinder.find_spec(name, places)


def _file(name: str) -> str | None:
    """Return the file of a module; None for a folder of modules, and where there is none."""
    if name in sys.modules:
        return getattr(sys.modules[name], "__file__", None)
    spec = _spec(name)
    return spec.origin if spec is not None and spec.has_location else None


def _content(name: str) -> bytes:
    """Return the content of the file of a module."""
    file = _file(name)
    if file is None and getattr(_spec(name), "submodule_search_locations", None) is not None:
        return b""  # a folder of modules without a file of its own
    if name == "__main__" or file is None:
        raise TypeError(f"code of it is in {name}, which is no module with a file{_REMEDY}")
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise TypeError(f"the file of {name} cannot be read ({error})") from error


def _imports(name: str, content: bytes) -> Iterator[str]:
    """Yield the names of the modules that a module may import, and of their packages."""
    if not (_file(name) or "").endswith(".py"):
        return  # compiled, or a folder of modules
    package = getattr(_spec(name), "parent", None) or name
    for node in ast.walk(_tree(name, content)):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            relative = "." * node.level + (node.module or "")
            try:
                base = importlib.util.resolve_name(relative, package)
            except ImportError:  # above the top: an import that fails, which the code may expect
                continue
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
