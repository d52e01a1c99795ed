"""States of a training in files: with a checksum, and beside the previous state."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import pickle
import re
import socket
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from .._warnings import warn_user

FILE, PREVIOUS = "checkpoint.pt", "checkpoint.previous.pt"
_HEADER = b"sklearn_pulse checkpoint 1\n"
_ABANDONED = 3600.0  # seconds after which a partial file of an unknown writer is taken as left over
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_WRITING: set[str] = set()  # names of the partial files that this process is writing


class DamagedError(ValueError):
    """A file does not hold a state of this training."""


def read_state(path: Path) -> dict[str, Any]:
    """Read a file that :func:`store_state` wrote.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict
        The state, with its tensors on the CPU.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    DamagedError
        If the file does not hold what was written.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedError(f"it cannot be read: {error.strerror}") from error
    header, rest = content[: len(_HEADER)], content[len(_HEADER) :]
    if header != _HEADER:
        raise DamagedError("it does not begin as a checkpoint does")
    checksum, payload = rest[:32], rest[32:]
    if hashlib.sha256(payload).digest() != checksum:
        raise DamagedError("its checksum is another")
    try:
        state = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, ValueError, TypeError, EOFError) as error:
        raise DamagedError("torch cannot read it") from error
    if not isinstance(state, dict):
        raise DamagedError(f"it holds a {type(state).__name__}")
    return state


def newest_state(
    folder: Path, check: Callable[[dict[str, Any]], Any]
) -> tuple[dict[str, Any] | None, bool]:
    """Read the newest good state of a folder.

    Parameters
    ----------
    folder : Path
        Folder of one training.
    check : callable
        Function of the state that a file holds, which raises a DamagedError if it does not fit.

    Returns
    -------
    state : dict or None
        The state as it was stored; None if the folder holds no state.
    is_current : bool
        Whether the state is the last that was written.

    Raises
    ------
    OSError
        If there are states, all of them damaged.
    """
    damage: list[str] = []
    for path in (folder / FILE, folder / PREVIOUS):
        try:
            state = read_state(path)
            check(state)
        except FileNotFoundError:
            continue
        except DamagedError as error:
            damage.append(f"{path} is no checkpoint of this training ({error})")
            continue
        if damage:
            warn_user(f"{damage[0]}: fit resumes from the one before, {path.name}.")
        return state, path.name == FILE
    if damage:
        raise OSError(
            f"{'; '.join(damage)}, and no other one is left: delete the folder {folder} to train"
            " from the start."
        )
    return None, False


def store_state(
    folder: Path,
    state: dict[str, Any],
    check: Callable[[dict[str, Any]], Any] | None,
    *,
    rotate: bool,
) -> None:
    """Write a state, read it back, and only then put it in the place of the older state.

    Parameters
    ----------
    folder : Path
        Folder of one training. Several trainings with the same parameters and data may write to
        it at a time: each file is whole at any moment.
    state : dict
        Plain values and tensors.
    check : callable or None
        Function of the state that was read back, as for :func:`newest_state`; None compares the
        bytes alone.
    rotate : bool
        Whether the older state is good, and kept as the previous one.

    Raises
    ------
    OSError
        If the state cannot be written. The older state stays.
    """
    buffer = io.BytesIO()
    torch.save(state, buffer)
    payload = buffer.getvalue()
    content = _HEADER + hashlib.sha256(payload).digest() + payload
    try:
        _replace(folder, content, check, rotate)
    except FileNotFoundError:  # another process took the partial file for a left-over
        _replace(folder, content, check, rotate)


def _replace(
    folder: Path, content: bytes, check: Callable[[dict[str, Any]], Any] | None, rotate: bool
) -> None:
    name = f"checkpoint-{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex}.partial"
    partial = folder / name
    _WRITING.add(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(partial, content)
        if partial.read_bytes() != content:
            raise DamagedError("it reads otherwise")
        if check is not None:
            check(read_state(partial))
        if rotate:
            # Another training of the same run may just have moved it.
            with contextlib.suppress(FileNotFoundError):
                os.replace(folder / FILE, folder / PREVIOUS)
        os.replace(partial, folder / FILE)
    except FileNotFoundError:
        raise
    except (OSError, DamagedError) as error:
        known = error if isinstance(error, OSError) else OSError(errno.EIO, str(error))
        remedy = "free space there, or set" if known.errno in _FULL else "set"
        raise OSError(
            known.errno,
            f"the checkpoint cannot be written ({known.strerror}): {remedy} checkpoint_dir to"
            " another folder",
            str(known.filename2 or partial),
        ) from error
    finally:
        _WRITING.discard(name)
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def _write(path: Path, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def remove_left_overs(folder: Path) -> None:
    """Remove the partial files of writers that were killed.

    Parameters
    ----------
    folder : Path
        Folder of one training.
    """
    for path in folder.glob("checkpoint-*.partial"):
        with contextlib.suppress(OSError):  # another process may remove it at the same time
            if _is_left_over(path):
                path.unlink()


def _is_left_over(path: Path) -> bool:
    """Whether no living writer owns a partial file, as far as this machine can tell."""
    if path.name in _WRITING:
        return False
    match = re.fullmatch(r"checkpoint-(.*)-(\d+)-[0-9a-f]{32}\.partial", path.name)
    if match is not None and match[1] == socket.gethostname() and os.name == "posix":
        return int(match[2]) == os.getpid() or not _is_running(int(match[2]))
    return time.time() - path.stat().st_mtime > _ABANDONED


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:  # a PermissionError: the process of another user
        return not isinstance(error, ProcessLookupError)
    return True
