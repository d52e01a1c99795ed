"""Reader of files of torch.save from strangers.

`torch.load` with ``weights_only=True`` runs nothing that a file asks for, but it takes as much
memory as a file names: compressed members, buffers of any length, tensors that repeat one number.
Versions before 2.6 also run a compiled module that poses as a checkpoint. The reader below lets
through only what torch.save writes of tensors, numbers, texts and containers.
"""

from __future__ import annotations

import io
import mmap
import pickle
import re
import zipfile
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ._pickles import check_pickle

if TYPE_CHECKING:
    from torch import Tensor

_MOST_SHARED = 4  # how often honest tensors share a number, such as tied weights and their average
_STORAGE = re.compile(r"\w+Storage", re.ASCII)
_ALLOWED = {
    ("collections", "OrderedDict"),
    ("torch._utils", "_rebuild_parameter"),
    ("torch._utils", "_rebuild_tensor_v2"),
}
_REMEDY = "Download it again, or load it where you trust it and torch.save its tensors alone."
# Errors of zipfile, the unpickler and torch, for a damaged or hostile file.
_DAMAGE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
    zipfile.BadZipFile,
)


def read_tensors(path: str | PathLike[str]) -> Any:
    """Read a file of torch.save that holds tensors, numbers, texts and plain containers.

    Parameters
    ----------
    path : path-like
        The file, of the present (zip) or the former format of torch.save.

    Returns
    -------
    object
        What was saved, on the CPU.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If the file is damaged, holds other objects, or asks for much more memory than it has bytes.
    """
    import torch

    if Path(path).exists() and not Path(path).is_file():
        raise ValueError(f"{path} is refused: it is a folder or a pipe. {_REMEDY}")
    with open(path, "rb") as file:
        try:
            content = _checked(file)
            loaded = torch.load(content, map_location="cpu", weights_only=True)
            _check_memory(loaded, file.seek(0, io.SEEK_END))
        except _DAMAGE as error:
            reason = str(error).partition("\n")[0][:200] or type(error).__name__
            raise ValueError(f"{path} is refused: {reason}. {_REMEDY}") from error
    return loaded


def _checked(file: IO[bytes]) -> IO[bytes]:
    """Return what torch may read: of a zip archive a copy, so that both read the same members."""
    n_bytes = file.seek(0, io.SEEK_END)
    file.seek(0)
    if n_bytes == 0:
        raise ValueError("it is empty")
    if file.read(4) == b"PK\x03\x04":
        return _copied(file, n_bytes)
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as stream:
        # Magic number, protocol and system come before the object, the keys of storages after it.
        # A seed beside the tensors counts too, since operations do not tell it from a size.
        sums = [check_pickle(stream, n_bytes, _allows) for _ in range(5)]
    if sums[3] > _MOST_SHARED * n_bytes + 2**16:
        raise ValueError("a number in it, such as the size of a tensor, is far above its own size")
    file.seek(0)
    return file


def _copied(file: IO[bytes], n_bytes: int) -> IO[bytes]:
    """Copy a zip archive as torch.save writes it; raise if it is of another kind."""
    copy = io.BytesIO()
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(copy, "w") as checked:
        members = archive.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("it is compressed, as torch.save never writes it")
        if sum(member.file_size for member in members) > n_bytes:
            raise ValueError("its members lie upon each other")
        names = [member.filename for member in members]
        if len(set(names)) < len(names) or any("constants.pkl" in name for name in names):
            raise ValueError("it is an archive of another kind, or of a compiled module")
        pickles = [name for name in names if name.split("/")[-1] == "data.pkl"]
        if len(pickles) != 1:
            raise ValueError("it is a zip archive, but none of torch.save")
        for member in members:
            content = archive.read(member)
            if member.filename == pickles[0]:
                check_pickle(io.BytesIO(content), len(content), _allows)
            checked.writestr(member.filename, content)
    copy.seek(0)
    return copy


def _allows(module: str, name: str) -> bool:
    """Return whether a pickle may ask for a name: classes of storages and what rebuilds tensors."""
    is_storage = module in ("torch", "torch.storage") and _STORAGE.fullmatch(name) is not None
    return is_storage or (module, name) in _ALLOWED


def _check_memory(loaded: Any, n_bytes: int) -> None:
    """Raise if tensors have more numbers than the file: many tensors may repeat the same ones."""
    total = sum(tensor.numel() * tensor.element_size() for tensor in _tensors(loaded))
    if total > _MOST_SHARED * n_bytes:
        raise ValueError(f"its tensors have {total} bytes, the file {n_bytes}")


def _tensors(loaded: Any) -> Iterator[Tensor]:
    """Yield the tensors of nested containers, as often as they have names."""
    import torch

    seen: set[int] = set()
    todo = [loaded]
    while todo:
        value = todo.pop()
        if isinstance(value, torch.Tensor):
            yield value
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Mapping):
            todo += value.values()
        elif isinstance(value, list | tuple):
            todo += value
