"""Pages of the API reference, one per public object, written from the packages' `__all__`."""

import inspect
import typing
from pathlib import Path
from types import ModuleType
from typing import Any

from .public import members, public_modules, public_names

# Each public room: what a reader finds in it. A room that is not named here is an error.
ROOMS = {
    "For everyone": {
        "sklearn_pulse": "The estimators",
        "sklearn_pulse.windows": "Recordings cut into windows",
        "sklearn_pulse.preprocessing": "Scaling, resampling, filters",
        "sklearn_pulse.features": "Fixed features of windows",
        "sklearn_pulse.baselines": "Other methods, and controls",
        "sklearn_pulse.pretrained": "Models that come with the package",
        "sklearn_pulse.datasets": "Published recordings, simulated systems",
        "sklearn_pulse.model_selection": "Splits, and labels that are hidden",
        "sklearn_pulse.evaluation": "Probes, scorers, drift",
        "sklearn_pulse.inspection": "Which channels matter",
        "sklearn_pulse.plotting": "Pictures",
        "sklearn_pulse.panel": "Transformers of sktime",
        "sklearn_pulse.presets": "Published settings",
        "sklearn_pulse.corpus": "Recordings larger than memory, and clusters",
        "sklearn_pulse.benchmark": "Comparison of methods",
        "sklearn_pulse.interop": "Weights of the published code",
        "sklearn_pulse.theory": "The graphs of Theorem 1",
    },
    "For authors of methods": {
        "sklearn_pulse.base": "What an estimator is built on",
        "sklearn_pulse.objectives": "Losses",
        "sklearn_pulse.networks": "Networks on (batch, time, channels)",
        "sklearn_pulse.functional": "Functions of tensors",
        "sklearn_pulse.sampling": "Where crops start",
        "sklearn_pulse.augmentations": "Random views of windows",
    },
}


def homes() -> dict[str, str]:
    """Return the page of each public name, both with the path of its room.

    An object that two rooms export has one page: in the room that `ROOMS` names first.
    """
    rooms = {module.__name__: module for module in public_modules()}
    order = [name for part in ROOMS.values() for name in part]
    if unknown := sorted(set(rooms) ^ set(order)):
        raise ValueError(f"docs/_generate/api.py: ROOMS and the package differ in {unknown}.")
    pages: dict[int, str] = {}
    found = {}
    for room in order:
        for name in public_names(rooms[room]):
            full = f"{room}.{name}"
            value = getattr(rooms[room], name)
            documented = inspect.isclass(value) or inspect.isfunction(value)
            found[full] = pages.setdefault(id(value), full) if documented else full
    return found


def pages() -> dict[str, str]:
    """Return the text of each page of the reference, by the name of its file without suffix."""
    rooms = {module.__name__: module for module in public_modules()}
    where = homes()
    found = {"index": _index()}
    for part in ROOMS.values():
        for room, title in part.items():
            found[room] = _room(rooms[room], title, where)
    for full, page in where.items():
        if full == page:
            room, name = full.rsplit(".", 1)
            found[full] = _object(room, name, getattr(rooms[room], name))
    return found


def write(folder: Path) -> None:
    """Write the pages that changed, and delete those of names that are gone."""
    folder.mkdir(exist_ok=True)
    texts = {folder / f"{name}.rst": text for name, text in pages().items()}
    for path in set(folder.glob("*.rst")) - set(texts):
        path.unlink()
    for path, text in texts.items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def _heading(title: str, mark: str = "=") -> str:
    return f"{title}\n{mark * len(title)}\n\n"


def _index() -> str:
    text = _heading("Reference")
    text += "Every public name has a page with an example that the tests run.\n\n"
    for part, rooms in ROOMS.items():
        text += _heading(part, "-") + ".. toctree::\n   :maxdepth: 1\n\n"
        text += "".join(f"   {title} <{room}>\n" for room, title in rooms.items()) + "\n"
    return text


def _room(room: ModuleType, title: str, where: dict[str, str]) -> str:
    names = sorted(public_names(room))
    text = f".. py:module:: {room.__name__}\n\n{_heading(title)}"
    text += f"``{room.__name__}``: {_first_line(room)}\n\n"
    text += ".. list-table::\n   :widths: auto\n\n"
    for name in names:
        page = where[f"{room.__name__}.{name}"]
        text += f"   * - :doc:`{name} <{page}>`\n"
        text += f"     - {_first_line(getattr(room, name))}\n"
    own = [name for name in names if where[f"{room.__name__}.{name}"] == f"{room.__name__}.{name}"]
    text += "\n.. toctree::\n   :hidden:\n\n"
    return text + "".join(f"   {name} <{room.__name__}.{name}>\n" for name in own)


def _first_line(value: Any) -> str:
    if not (inspect.ismodule(value) or inspect.isclass(value) or inspect.isfunction(value)):
        return "A constant."
    return (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")


def _object(room: str, name: str, value: Any) -> str:
    text = f"{_heading(name)}.. currentmodule:: {room}\n\n"
    if inspect.isfunction(value):
        text += f".. autofunction:: {name}\n\n"
    elif inspect.isclass(value):
        text += f".. autoclass:: {name}\n\n"
        unique = {full.rsplit(".", 1)[1]: value for full, value in reversed(members(value).items())}
        for member, what in sorted(unique.items()):
            kind = "autoproperty" if isinstance(what, property) else "automethod"
            text += f"   .. {kind}:: {name}.{member}\n"
    elif typing.get_origin(value):
        text += f".. py:data:: {name}\n\n   Alias of ``{inspect.formatannotation(value)}``.\n"
    else:
        text += f".. autodata:: {name}\n   :no-value:\n\n"
    return text + _examples(f"{room}.{name}")


def _examples(full: str) -> str:
    options = "   :add-heading: Examples in the gallery\n   :heading-level: -\n"
    return f"\n.. minigallery:: {full}\n{options}"
