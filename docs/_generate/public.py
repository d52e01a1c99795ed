"""Public objects of the package: what the site documents and the tests check."""

import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Any

import sklearn_pulse


def public_modules() -> list[ModuleType]:
    """Return the package, and its modules and rooms whose path holds no underscore."""
    names = [info.name for info in pkgutil.walk_packages(sklearn_pulse.__path__, "sklearn_pulse.")]
    public = [name for name in names if not any(part[0] == "_" for part in name.split("."))]
    return [sklearn_pulse, *map(importlib.import_module, public)]


def public_names(module: ModuleType) -> list[str]:
    """Return `__all__`, or else the names without an underscore that the module defines itself."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if name[0] != "_"]
    return [
        name
        for name, value in vars(module).items()
        if name[0] != "_" and getattr(value, "__module__", None) == module.__name__
    ]


def members(cls: type) -> dict[str, Any]:
    """Return public methods and properties that the package defines, by full name."""
    found = {}
    for owner in cls.__mro__:
        if owner.__module__.split(".")[0] != "sklearn_pulse":
            continue
        for name, value in vars(owner).items():
            value = getattr(value, "__func__", value)  # of a class method or a static method
            if name[0] != "_" and (inspect.isfunction(value) or isinstance(value, property)):
                found[f"{owner.__module__}.{owner.__qualname__}.{name}"] = value
    return found


def classes_and_functions() -> dict[str, Any]:
    """Return each public class and function by the full name of its definition."""
    found = {}
    for module in public_modules():
        for name in public_names(module):
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return found
