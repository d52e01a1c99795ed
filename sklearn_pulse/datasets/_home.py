"""The data folder: where it is, whether it can be written, and which folder holds which files."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from .._parameters import as_path, file_in_the_way

_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)


def get_data_home(data_home: str | os.PathLike[str] | None = None) -> str:
    """Return the folder of the data sets, and create it if it does not exist.

    Parameters
    ----------
    data_home : str or path-like, default=None
        The folder. A leading ``~`` is the user's home. None means the folder in the environment
        variable ``SKLEARN_PULSE_DATA`` if that is set, and ``~/sklearn_pulse_data`` otherwise.

    Returns
    -------
    str
        Path of the folder.

    Raises
    ------
    TypeError
        If ``data_home`` is no path.
    ValueError
        If ``data_home`` is empty or holds a null character.
    OSError
        If ``data_home`` is a file, or the folder cannot be created.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn_pulse.datasets import get_data_home
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     home = get_data_home(os.path.join(folder, "recordings"))
    ...     os.path.isdir(home)
    True
    """
    home = resolve_data_home(data_home)
    with writable(home):
        home.mkdir(parents=True, exist_ok=True)
    return str(home)


@contextlib.contextmanager
def writable(home: Path) -> Iterator[None]:
    """Let the error of a folder that cannot be written name the data home, and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        raise PermissionError(
            error.errno,
            f"the data folder {home} cannot be written: put the files there as another user, or"
            " name another folder, by data_home or by the environment variable SKLEARN_PULSE_DATA",
            error.filename,
        ) from error


def default_data_home() -> str:
    """Return the name of the data folder where none is passed."""
    return os.environ.get("SKLEARN_PULSE_DATA") or "~/sklearn_pulse_data"


def resolve_data_home(data_home: str | os.PathLike[str] | None) -> Path:
    """Return the path of the data folder without creating it."""
    given = default_data_home() if data_home is None else data_home
    home = as_path("data_home", given, optional=True)
    if file := file_in_the_way(home):
        what = "is a file" if file == home else f"lies in {str(file)!r}, which is a file"
        raise NotADirectoryError(
            f"data_home={str(home)!r} {what}: name the folder that holds the data sets."
        )
    return home


def locate(folders: Iterable[Path], landmarks: tuple[str, ...]) -> Path | None:
    """Return the first folder that holds a file for each glob pattern, hidden ones aside."""

    def holds(folder: Path, pattern: str) -> bool:
        return any(not path.name.startswith(".") for path in folder.glob(pattern))

    for folder in folders:
        if all(holds(folder, pattern) for pattern in landmarks):
            return folder
    return None
