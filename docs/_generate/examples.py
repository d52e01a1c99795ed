"""Which examples of the gallery run: those whose data are on this machine.

An example that calls `fetch_...` reads a published data set. It runs if the files of each of its
data sets lie in the data folder (`SKLEARN_PULSE_DATA`); the site downloads nothing. Otherwise the
example is shown without its output.
"""

import ast
import re
from pathlib import Path

from sklearn_pulse.datasets import _epilepsy, _gesture, _wesad
from sklearn_pulse.datasets._home import resolve_data_home
from sklearn_pulse.datasets._remote import find

# Files of each edition that the reader takes, where it takes others than the published one, None.
# The published files of Epilepsy do not tell the segments, by which the examples divide.
_EDITIONS = {
    "har": [("RawData/labels.txt",)],
    "epilepsy": [_epilepsy._BONN_LANDMARKS],
    "gesture": [_gesture._TS_LANDMARKS, None],
    "wesad": [_wesad._E4_FILES, None],
}


def data_sets(example: Path) -> set[str]:
    """Return the names of the published data sets that an example fetches."""
    nodes = ast.walk(ast.parse(example.read_text()))
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    names = [function.id for function in called if isinstance(function, ast.Name)]
    return {name.removeprefix("fetch_") for name in names if name.startswith("fetch_")}


def is_here(data_set: str, data_home: Path | None = None) -> bool:
    """Tell whether a data set's files lie in the data folder."""
    home = resolve_data_home(data_home)
    return any(find(data_set, home, edition) for edition in _EDITIONS.get(data_set, [None]))


def runs(example: Path, data_home: Path | None = None) -> bool:
    """Tell whether `make docs` runs an example."""
    return all(is_here(name, data_home) for name in data_sets(example))


def pattern(folder: Path) -> str:
    """Return the regular expression of the files that sphinx-gallery runs."""
    names = [path.stem for path in sorted(folder.glob("plot_*.py")) if runs(path)]
    return rf"[\\/]({'|'.join(map(re.escape, names))})\.py$"
