"""From the name of a model to a folder: on disk, in the package, or on the Hugging Face Hub."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .. import _shipped
from .._extras import command
from .._parameters import as_path
from ._files import CARD, CONFIG, WEIGHTS, read_config

_NAME = re.compile(r"\w[\w.-]{0,95}/\w[\w.-]{0,95}", re.ASCII)  # not ../name, which is a path
_PLAIN = re.compile(r"[\w.-]+", re.ASCII)  # without a folder before it
_FILES = [f"{folder}{name}" for folder in ("", "step*/") for name in (CARD, CONFIG, WEIGHTS)]


@contextlib.contextmanager
def local_folder(name: str | os.PathLike[str], revision: str | None) -> Iterator[Path]:
    """Yield the folder of a model: that on disk, that in the package, or a copy of a repository.

    A file of a stranger cannot be a link out of the folder, since the copy holds files and no
    links; the cache of huggingface_hub, which is made of links, stays as it is.

    Parameters
    ----------
    name : path-like
        A folder, the name of a model that comes with the package, or "organisation/name". A
        folder goes before a model of the same name.
    revision : str or None
        Branch, tag or commit of the repository.

    Yields
    ------
    Path
        The folder.

    Raises
    ------
    FileNotFoundError
        If the name is neither a folder, nor a model of the package, nor a repository that can be
        read.
    TypeError
        If the revision is no name.
    ValueError
        If a revision is asked for, and the name is no repository, or if the configuration in the
        repository is not of this package.
    """
    path = as_path("folder", name)  # the parameter of those who call
    if revision is not None and not (isinstance(revision, str) and revision):
        raise TypeError(
            f"revision must be the name of a branch, a tag or a commit, got {revision!r}; pass for"
            " example revision='main', or None."
        )
    if os.path.lexists(path) or not isinstance(name, str):
        _refuse_revision(revision, f"{name} is a folder")
        yield path
        return
    if name in _shipped.names():
        _refuse_revision(revision, f"{name} is a model that comes with the package")
        with _shipped.folder(name) as shipped:
            yield shipped
        return
    if _PLAIN.fullmatch(name):
        raise FileNotFoundError(
            f"there is no folder {name}, and no model of this name comes with the package: pass a"
            " folder that save_pretrained has written, or one of the names of"
            f" sklearn_pulse.pretrained.available(), {_shipped.names()}."
        )
    if not _NAME.fullmatch(name):
        yield path
        return
    start = f"there is no folder {name}: pass a folder that save_pretrained has written. To"
    hub = _hub(start, FileNotFoundError)
    with tempfile.TemporaryDirectory(prefix="sklearn_pulse-") as home:
        copied = Path(home) / "model"
        copied.mkdir()
        with _named(name, copied):
            # The weights of a stranger's model may be huge: its configuration comes first.
            for patterns in ([CONFIG], _FILES):
                _copy(_cached(hub, name, revision, patterns), patterns, copied)
                if not (copied / CONFIG).exists():
                    raise FileNotFoundError(
                        f"the repository {name} of the Hugging Face Hub holds no model of"
                        f" sklearn_pulse: it has no {CONFIG}. Name one that push_to_hub has"
                        " written."
                    )
                read_config(copied)
            yield copied


def _cached(hub: Any, name: str, revision: str | None, patterns: list[str]) -> Path:
    """Return the folder of the cache to which files of a repository were downloaded."""
    try:
        return Path(hub.snapshot_download(name, revision=revision, allow_patterns=patterns))
    except Exception as error:  # of its client of HTTP too, whose errors are of no common kind
        raise FileNotFoundError(
            f"there is no folder {name}, and the Hugging Face Hub has no such model, or is out"
            f" of reach ({type(error).__name__}: {error}). Pass a folder that save_pretrained"
            " has written, or the name of a repository that you may read."
        ) from error


def _copy(cached: Path, patterns: list[str], copied: Path) -> None:
    """Copy files of a model; the cache may hold others of the repository, however large."""
    for pattern in patterns:
        for file in cached.glob(pattern):
            target = copied / file.relative_to(cached)
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(file, target)


@contextlib.contextmanager
def _named(name: str, copied: Path) -> Iterator[None]:
    """Let errors name the repository instead of its copy, which is deleted by then."""
    try:
        yield
    except (FileNotFoundError, ValueError) as error:
        if str(copied) not in str(error):
            raise
        kind = FileNotFoundError if isinstance(error, FileNotFoundError) else ValueError
        reason = str(error).replace(str(copied), name)
        raise kind(f"the repository {name} of the Hugging Face Hub: {reason}") from error


def _refuse_revision(revision: str | None, found: str) -> None:
    """Raise if a revision is asked for of what is no repository."""
    if revision is not None:
        raise ValueError(
            f"revision={revision!r}, but {found}, which has no revisions: leave revision out, or"
            " load the repository from a working folder without a folder of this name."
        )


def upload(save: Callable[[Path], None], repo_id: str, private: bool | None) -> str:
    """Save a model into a repository; return the address of the commit.

    Parameters
    ----------
    save : callable
        Function that saves the model in a folder.
    repo_id : str
        "organisation/name".
    private : bool or None
        Whether a new repository is private.

    Returns
    -------
    str
        Address of the commit.
    """
    if not isinstance(repo_id, str) or not _NAME.fullmatch(repo_id):
        raise ValueError(f"repo_id must be 'organisation/name', got {repo_id!r}")
    hub = _hub("to")
    with tempfile.TemporaryDirectory(prefix="sklearn_pulse-") as home:
        folder = Path(home) / "model"
        save(folder)
        hub.create_repo(repo_id, private=private, exist_ok=True)
        # An earlier chain may have had more encoders than this model.
        stale = [f"step{digits}/*" for digits in ("[0-9]", "[0-9][0-9]")]
        return str(hub.upload_folder(repo_id=repo_id, folder_path=folder, delete_patterns=stale))


def _hub(start: str, missing: type[Exception] = ImportError) -> Any:
    """Import huggingface_hub; an error of type `missing` says what it is needed for."""
    try:
        return importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise missing(
            f"{start} read or write models of the Hugging Face Hub by 'organisation/name', install"
            f" huggingface_hub: {command('hub')}."
        ) from error
