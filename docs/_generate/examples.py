"""Which examples of the gallery run: those whose data are on this machine.

An example that calls `fetch_...` reads a published data set. It runs if the files of each of its
data sets lie in the data folder (`SKLEARN_PULSE_DATA`); the site downloads nothing. Otherwise the
example is shown without its output.
"""

import ast
import re
from pathlib import Path

from sklearn_pulse.datasets import _epilepsy, _gesture, _wesad
from sklearn_pulse.datasets._remote import REMOTES, locate, resolve_data_home

# Folders below the data folder, beside the data set's own name, where its files may lie.
_FOLDERS = {
    "har": ("hapt",),
    "epilepsy": ("bonn_epilepsy",),
    "gesture": ("uwave_gesture",),
    "mitbih_af": ("afdb",),
}
# Files of another edition of the data set, which the reader takes too.
_OTHER_FILES = {
    "har": ("RawData/labels.txt",),
    "epilepsy": _epilepsy._BONN_LANDMARKS,
    "gesture": _gesture._TS_LANDMARKS,
    "wesad": _wesad._E4_FILES,
}
# The files that are downloaded do not tell the segments, by which the examples divide.
_OTHERS_ALONE = {"epilepsy"}


def data_sets(example: Path) -> set[str]:
    """Return the names of the published data sets that an example fetches."""
    nodes = ast.walk(ast.parse(example.read_text()))
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    names = [function.id for function in called if isinstance(function, ast.Name)]
    return {name.removeprefix("fetch_") for name in names if name.startswith("fetch_")}


def is_here(data_set: str, data_home: Path | None = None) -> bool:
    """Tell whether a data set's files lie in the data folder."""
    home = resolve_data_home(data_home)
    folders = [home, home / data_set, *(home / name for name in _FOLDERS.get(data_set, ()))]
    folders += [path for path in (home / data_set).glob("*") if path.is_dir()]
    editions = [_OTHER_FILES.get(data_set, ())]
    if data_set not in _OTHERS_ALONE:
        editions.append(REMOTES[data_set].landmarks)
    return any(landmarks and locate(folders, landmarks) for landmarks in editions)


def runs(example: Path, data_home: Path | None = None) -> bool:
    """Tell whether `make docs` runs an example."""
    return all(is_here(name, data_home) for name in data_sets(example))


def pattern(folder: Path) -> str:
    """Return the regular expression of the files that sphinx-gallery runs."""
    names = [path.stem for path in sorted(folder.glob("plot_*.py")) if runs(path)]
    return rf"[\\/]({'|'.join(map(re.escape, names))})\.py$"
