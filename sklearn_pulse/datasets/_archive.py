"""Unpack zip archives that come from outside."""

from __future__ import annotations

import re
import shutil
import zipfile
import zlib
from pathlib import Path, PurePosixPath


class DamagedArchiveError(OSError):
    """The archive is not intact, or is hostile: unpacking it again cannot succeed."""


def extract(archive: Path, folder: Path, members: str | None = None) -> None:
    """Extract a zip archive, and an archive at its top level, which some publishers nest.

    Parameters
    ----------
    archive : pathlib.Path
        The zip file.
    folder : pathlib.Path
        Where to; made if it is not there.
    members : str, default=None
        Regular expression, searched in the members' names; what it does not match is left out.
        None extracts all.

    Raises
    ------
    DamagedArchiveError
        If it is no intact zip archive, or a member's name points outside `folder`: then nothing
        is written at all.
    OSError
        If there is not enough room.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _extract_one(archive, folder, members)
    for nested in sorted(folder.glob("*.zip")):
        _extract_one(nested, folder, members)
        nested.unlink()


def _extract_one(archive: Path, folder: Path, members: str | None) -> None:
    try:
        with zipfile.ZipFile(archive) as opened:
            infos = opened.infolist()
            _refuse_outside(archive, infos)
            wanted = [info for info in infos if _is_wanted(info.filename, members)]
            _check_space(archive, folder, sum(info.file_size for info in wanted))
            opened.extractall(folder, wanted)
    # RuntimeError, NotImplementedError: an encrypted member, an unknown compression
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise DamagedArchiveError(
            f"{archive} is no intact zip archive ({error}). Delete it if it is still there and "
            "try again."
        ) from error


def _refuse_outside(archive: Path, infos: list[zipfile.ZipInfo]) -> None:
    for info in infos:
        path = PurePosixPath(info.filename.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or re.match("[A-Za-z]:", info.filename):
            raise DamagedArchiveError(
                f"{archive} is refused: its member {info.filename!r} points outside the folder "
                "that it is unpacked into, so it is not the published archive. Delete it."
            )


def _is_wanted(name: str, members: str | None) -> bool:
    is_nested_archive = name.endswith(".zip") and "/" not in name
    return members is None or is_nested_archive or re.search(members, name) is not None


def _check_space(archive: Path, folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            f"{archive.name} unpacks to {needed / 1e9:.2f} GB, but {folder} has only "
            f"{free / 1e9:.2f} GB free; make room or choose another data_home."
        )
