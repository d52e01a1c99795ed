"""Reader of the user's windows: folders of arrays, archives of NumPy, Parquet tables."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._inputs._files import DAMAGE, reason_of
from .._warnings import warn_user
from ..datasets._archive import is_damage

PARTS = ("X", "y", "groups", "recording", "start")  # names of arrays and of columns
FILE = "file"  # name of the numbers of files


def read_windows(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a folder or file by name.

    Parameters
    ----------
    path : Path
        Folder of ``.npy`` files, one per array, or of ``.npz`` or ``.parquet`` files, or one such
        file.

    Returns
    -------
    dict of str to ndarray
        The arrays of `PARTS` that are there; those of several files are concatenated in the order
        of the files' names, and `FILE` holds the number of each window's file.

    Raises
    ------
    ImportError
        If a Parquet file needs pandas or pyarrow.
    ValueError
        If the folder holds no windows or several kinds of files, files hold different arrays, or a
        file is damaged.

    Warns
    -----
    UserWarning
        If arrays, columns or ``.npy`` files have other names.
    """
    visible = (file for file in path.iterdir() if not file.name.startswith("."))
    files = [path] if path.is_file() else sorted(visible)
    _refuse_folders(files)
    kinds = {kind: [f for f in files if f.suffix == kind] for kind in (".npy", ".npz", ".parquet")}
    present = {kind: found for kind, found in kinds.items() if found}
    if len(present) != 1:
        raise ValueError(
            f"it holds {' and '.join(present) or 'no windows'}: pass a folder of X.npy and y.npy,"
            " of .npz files, or of .parquet files, one kind of them."
        )
    (kind, found), *_ = present.items()
    return _named_arrays(path, found) if kind == ".npy" else _joined(path, found, kind)


def _named_arrays(path: Path, files: list[Path]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a folder whose files hold one each."""
    others = [file.name for file in files if file.stem not in PARTS]
    if others:
        warn_user(
            f"{path} holds {', '.join(others)}, which are not read: files are known by the"
            f" names {', '.join(f'{part}.npy' for part in PARTS)}; rename the files that hold"
            " such arrays."
        )
    return {file.stem: _array_of(file) for file in files if file.stem in PARTS}


def _joined(path: Path, files: list[Path], kind: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of files that hold several, joined in the order of the files."""
    read = _arrays_of if kind == ".npz" else _columns_of
    pieces, names = zip(*map(read, files), strict=True)
    others = sorted({*itertools.chain(*names)} - {*PARTS})
    if others:
        warn_user(
            f"{path}: files hold {', '.join(others)}, which are not read: windows are known by the"
            f" names {', '.join(PARTS)}; rename what is meant by them."
        )
    parts = [part for part in PARTS if any(part in piece for piece in pieces)]
    for file, piece in zip(files, pieces, strict=True):
        lacking = [part for part in parts if part not in piece]
        if lacking:
            raise ValueError(f"{file.name} lacks {', '.join(lacking)}, which other files hold.")
        _check_piece(file.name, piece, pieces[0])
    whole = {part: np.concatenate([piece[part] for piece in pieces]) for part in parts}
    if "X" in whole and len(pieces) > 1:
        whole[FILE] = np.repeat(np.arange(len(pieces)), [len(piece["X"]) for piece in pieces])
    return whole


def _refuse_folders(files: list[Path]) -> None:
    """Raise for a folder with the ending of a file; only Parquet writes several files as one."""
    for file in files:
        if file.suffix in (".npy", ".npz") and file.is_dir():
            raise ValueError(
                f"{file.name} is a folder: rename it without the ending {file.suffix}, or, if it"
                " holds windows, pass it by itself."
            )


def _check_piece(name: str, piece: dict[str, NDArray[Any]], first: dict[str, NDArray[Any]]) -> None:
    """Raise unless the arrays of a file have an entry per window, and fit those of the first."""
    for part, array in piece.items():
        n_windows = piece.get("X", array).shape[:1]
        if array.shape[:1] != n_windows:
            raise ValueError(
                f"{name}: {part} has shape {array.shape}, but X has shape {piece['X'].shape}: store"
                " one entry per window."
            )
        if array.shape[1:] != first[part].shape[1:]:
            raise ValueError(
                f"{name}: {part} has shape {array.shape}, and {first[part].shape} in the first"
                " file: cut all windows to one length, with the same channels."
            )
        kinds = {array.dtype.kind, first[part].dtype.kind}
        if "U" in kinds and kinds & set("biuf"):
            raise ValueError(f"{name}: {part} is text in some files, and numbers in others.")


def _array_of(file: Path) -> NDArray[Any]:
    """Map the array of an .npy file into memory."""
    try:
        return np.load(file, mmap_mode="r")
    except DAMAGE as error:
        raise ValueError(
            f"{file.name} is no complete file of numpy.save: {reason_of(error).rstrip('.')}. Save"
            " text as text, for example by np.save('y.npy', y.astype(str))."
        ) from error


def _arrays_of(file: Path) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Return the arrays of an .npz file that are read by name, and the names of all."""
    try:
        # numpy leaves a file open that it opened and then finds damaged.
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            return {part: archive[part] for part in PARTS if part in archive}, archive.files
    except Exception as error:
        if not is_damage(error) and not isinstance(error, DAMAGE):
            raise
        raise ValueError(
            f"{file.name} is no complete file of numpy.savez: {reason_of(error).rstrip('.')}. Save"
            " text as text, for example by y=y.astype(str)."
        ) from error


def _columns_of(file: Path) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Return the columns of a Parquet file that are read by name, and the names of all.

    The windows are one array.
    """
    try:
        import pandas as pd

        frame = pd.read_parquet(file)
    except ImportError as error:
        raise ImportError(
            f"{file} needs pandas and pyarrow: pip install pandas pyarrow, or store .npz files."
        ) from error
    except Exception as error:  # of many kinds: bytes of the file reach several libraries
        if isinstance(error, OSError) and error.errno is not None:  # the disk, not the content
            raise
        raise ValueError(f"{file.name} is no complete Parquet file: {error}") from error
    # pandas stores an index beside the columns, and reads it as an index again.
    frame = frame.reset_index([name for name in frame.index.names if name in PARTS])
    columns = {part: frame[part].to_numpy() for part in PARTS if part in frame}
    if "X" in columns:
        if not len(frame):  # its windows have no length that the others could have
            raise ValueError(f"{file.name} holds no window: remove it.")
        try:
            columns["X"] = np.stack([_window(window) for window in columns["X"]])
        except ValueError as error:
            raise ValueError(
                f"{file.name}: X is ragged ({error}): cut all windows to one length, with the same"
                " channels, and write NaN in every channel of a missing step."
            ) from error
    return columns, [str(name) for name in frame.columns]


def _window(window: Any) -> NDArray[np.float64]:
    """Return the nested lists of a window as an array."""
    steps = np.asarray(window)
    if steps.dtype != object:
        return steps
    rows = steps.tolist()
    if rows is None or any(row is None for row in rows):
        raise ValueError("a window or a step is null")
    return np.stack(rows)
