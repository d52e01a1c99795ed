"""Files of a saved model: written together, and checked before they are read."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import re
import shutil
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import sklearn
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from .._version import __version__

CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
STEP = re.compile(r"step\d{1,2}", re.ASCII)  # folder of an encoder in the folder of a chain
FORMAT, FORMAT_VERSION = "sklearn_pulse", 1

_T = TypeVar("_T")
_TRIES = 50  # to put a folder in place, or to read one, while other processes replace it
_MAX_CONFIG_BYTES = 2**23  # the history of some 20,000 epochs
_MAX_HEADER_BYTES = 2**23  # names and shapes of some 80,000 weights
# Errors, beside ValueError, that meaningless values can raise while a net is built from them.
_DAMAGE = (AttributeError, LookupError, MemoryError, OverflowError, RuntimeError, TypeError)
_SIGNATURES = {
    b"PK\x03\x04": "It is a file of torch.save, which can run code when it is opened: it was not.",
    b"\x80": "It may be a pickle, which can run code when it is opened: it was not.",
    b"version https://git-lfs": "It is a pointer of Git LFS: fetch the file by `git lfs pull`.",
}


@contextlib.contextmanager
def blamed(path: Path) -> Iterator[None]:
    """Turn errors that come from the content of `path` into a ValueError that names the file."""
    try:
        yield
    except (ValueError, *_DAMAGE) as error:
        raise ValueError(f"{path} holds no model that can be loaded: {error}") from error


def digest(content: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def seal(config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with a checksum of its values, which does not depend on layout."""
    content = {name: value for name, value in config.items() if name != "checksum"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return {**content, "checksum": digest(canonical.encode())}


def header(model: Any) -> dict[str, Any]:
    """Return the entries that the configuration of every model begins with."""
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "class": type(model).__name__,
        "versions": {
            "sklearn_pulse": __version__,
            "scikit-learn": sklearn.__version__,
            "torch": str(torch.__version__),
        },
    }


def write_model(
    folder: Path, config: dict[str, Any], tensors: dict[str, Tensor], card: str
) -> None:
    """Write the files of a model; the configuration gets checksums of the others."""
    weights, text = save(tensors, {"format": "pt"}), card.encode("utf-8", "backslashreplace")
    sealed = seal(
        {
            **config,
            "weights": {"n_bytes": len(weights), "sha256": digest(weights)},
            "card_sha256": digest(text),
        }
    )
    (folder / WEIGHTS).write_bytes(weights)
    (folder / CARD).write_bytes(text)
    (folder / CONFIG).write_text(json.dumps(sealed, indent=2) + "\n", encoding="ascii")


def check_reads_back(model: Any, read: Callable[[Path], Any], partial: Path, folder: Path) -> None:
    """Raise unless `read` reads what was written into `partial`, which will become `folder`."""
    try:
        read(partial)
    except ValueError as error:
        reason = str(error).replace(str(partial), str(folder))
        raise ValueError(f"this {type(model).__name__} cannot be saved: {reason}") from error


def read_config(folder: Path) -> dict[str, Any]:
    """Read the configuration of a model; raise unless it is intact and of a known format."""
    path = folder / CONFIG
    if not folder.is_dir():
        remedy = "pass a folder that save_pretrained has written"
        if kept := _kept(folder):
            remedy = f"a save was interrupted, and its earlier model lies in {kept[0]}. Rename that"
        raise FileNotFoundError(f"there is no folder {folder}: {remedy}.")
    config = _parse(path)
    version = config.get("format_version")
    if version != FORMAT_VERSION:
        versions = config.get("versions")
        writer = versions.get("sklearn_pulse") if isinstance(versions, dict) else None
        raise ValueError(
            f"{path} has format version {version!r} and was written by sklearn_pulse {writer}; this"
            f" is sklearn_pulse {__version__}, which reads version {FORMAT_VERSION}: install"
            " sklearn_pulse in the version that wrote it, or a later one."
        )
    with blamed(path):
        if config != seal(config):
            raise ValueError(
                "it was changed after it was saved (its checksum differs). Copy the folder again;"
                " to change a parameter, load the model, set_params it and save it again."
            )
    return config


def read_weights(path: Path, n_bytes: Any, checksum: Any) -> dict[str, Tensor]:
    """Read the weights; raise unless the configuration was written with these weights."""
    size = _regular(path).st_size
    content = path.read_bytes() if size == n_bytes else b""
    if digest(content) != checksum:
        state = f"{size} bytes, not {n_bytes}" if size != n_bytes else "another checksum"
        raise ValueError(
            f"{path} is damaged or of another model: it has {state}. Copy the folder again."
            f"{_signature(path)}"
        )
    try:
        if int.from_bytes(content[:8], "little") > _MAX_HEADER_BYTES:
            raise ValueError("its header is too large")
        return load(content)
    except (SafetensorError, AssertionError, ValueError, *_DAMAGE) as error:
        raise ValueError(
            f"{path} is no safetensors file ({error}). Save the model again.{_signature(path)}"
        ) from error


def check_replaceable(folder: Path) -> None:
    """Raise unless `folder` is new, empty, or holds only an earlier model."""
    remedy = "Name a new folder."
    if folder.is_symlink():
        raise FileExistsError(f"{folder} is a symbolic link: name the folder itself.")
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file. {remedy}")
    if folder.resolve() == Path.cwd():
        raise FileExistsError(f"{folder} is the working folder, which cannot be replaced. {remedy}")
    if folder.is_mount():
        raise FileExistsError(f"{folder} is a mount point: name a folder in it.")
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if not names:
        return
    steps = [name for name in names if STEP.fullmatch(name) and (folder / name).is_dir()]
    others = [name for name in names if name not in (CONFIG, WEIGHTS, CARD, *steps)]
    if others:
        raise FileExistsError(f"{folder} holds something else, {others[0]!r}. {remedy}")
    try:
        config = _parse(folder / CONFIG)
    except (OSError, ValueError) as error:
        raise FileExistsError(f"{folder} holds no earlier model ({error}). {remedy}") from error
    card = folder / CARD
    if card.exists() and digest(card.read_bytes()) != config.get("card_sha256"):
        raise FileExistsError(
            f"{card} was edited since it was written, and would be lost: move it away, or name a"
            " new folder."
        )
    for name in steps:
        check_replaceable(folder / name)


@contextlib.contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield a sibling folder to write into, which replaces `folder` unless an error occurs."""
    folder = Path(os.path.abspath(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    stem = f".{folder.name[:32]}.{uuid.uuid4().hex}"  # a name may be as long as a disk takes it
    partial, earlier = (folder.with_name(f"{stem}.{part}") for part in ("partial", "earlier"))
    partial.mkdir()
    try:
        yield partial
        with contextlib.suppress(FileNotFoundError):  # a private folder stays private
            shutil.copymode(folder, partial)
        _swap(partial, folder, earlier)
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(  # that of a full disk names no file
            error.errno,
            f"the model cannot be written ({error.strerror}): free space there, or name another"
            " folder",
            str(folder),
        ) from error
    finally:  # also after Ctrl-C between the two calls
        if earlier.exists() and not folder.exists():
            os.rename(earlier, folder)
        for rest in (partial, earlier):
            shutil.rmtree(rest, ignore_errors=True)


def _swap(partial: Path, folder: Path, earlier: Path) -> None:
    """Put `partial` in the place of `folder`, which becomes `earlier` if it exists."""
    # No portable call swaps two folders. A kill between these two calls leaves both intact.
    for tries in range(_TRIES):
        shutil.rmtree(earlier, ignore_errors=True)  # what another process has just put there
        with contextlib.suppress(FileNotFoundError):
            os.rename(folder, earlier)
        try:
            os.rename(partial, folder)
            return
        except OSError:
            if tries == _TRIES - 1 or not (folder.is_dir() and any(folder.iterdir())):
                raise


def undisturbed(folder: Path, read: Callable[[], _T]) -> _T:
    """Return what `read` returns; begin anew if another process replaces `folder` meanwhile."""
    for _ in range(_TRIES - 1):
        before = _identity(folder)
        try:
            return read()
        except (OSError, ValueError):
            if _identity(folder) == before and not _is_between(folder):
                raise
            time.sleep(0.01)
    return read()


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return what differs between a folder and one that replaces it; None if there is none."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _is_between(folder: Path) -> bool:
    """Return whether a folder is missing while another one takes its place."""
    return not folder.exists() and bool(_kept(folder))


def _kept(folder: Path) -> list[Path]:
    """Return the folders in which a model makes room for another one of its name."""
    folder = Path(os.path.abspath(folder))
    return sorted(folder.parent.glob(f".{glob.escape(folder.name[:32])}.*.earlier"))


def _parse(path: Path) -> dict[str, Any]:
    """Read JSON; raise unless sklearn_pulse wrote it."""
    if _regular(path).st_size > _MAX_CONFIG_BYTES:
        raise ValueError(
            f"{path} is too large for the configuration of a model, which has at most"
            f" {_MAX_CONFIG_BYTES} bytes: copy it again, or pickle a model with a longer history."
        )
    try:
        config = json.loads(path.read_bytes().decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not JSON, or damaged ({error}): copy the folder again."
        ) from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ValueError(
            f"{path} was not written by sklearn_pulse: name a folder that save_pretrained wrote."
        )
    return config


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _regular(path: Path) -> os.stat_result:
    """Return the status of a regular file; raise for a link, which could leave the folder."""
    try:
        status = os.lstat(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"there is no file {path}: a saved model has {CONFIG} and {WEIGHTS}; copy both."
        ) from error
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(
            f"{path} is a link or no regular file, and is not followed: copy the file itself into"
            " the folder."
        )
    return status


def _signature(path: Path) -> str:
    """Return a sentence on the kind of a file that is not a safetensors file."""
    with open(path, "rb") as stream:
        head = stream.read(32)
    if head[8:9] == b"{":  # a safetensors file, whose length may look like another kind
        return ""
    return "".join(f" {text}" for start, text in _SIGNATURES.items() if head.startswith(start))
