"""Extraction of untrusted zip archives."""

from __future__ import annotations

import lzma
import re
import shutil
import zipfile
import zlib
from pathlib import Path, PurePosixPath

_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    RuntimeError,
    UnicodeDecodeError,
)


class DamagedArchiveError(OSError):
    """The archive is damaged or hostile, so that unpacking it again cannot succeed."""


def extract(archive: Path, folder: Path, members: str | None = None) -> None:
    """Extract a zip archive, and the zip archives at its top level.

    Some publishers put their archive into another one.

    Parameters
    ----------
    archive : pathlib.Path
        The zip file.
    folder : pathlib.Path
        Folder to extract to; created if it does not exist.
    members : str, default=None
        Regular expression that is searched in the names of the members; a member without a match
        is not extracted. None extracts all members.

    Raises
    ------
    DamagedArchiveError
        If the file is no intact zip archive, or if the name of a member points outside `folder`.
        In the second case no member of this archive is extracted.
    OSError
        If the disk has too little free space.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _extract_one(archive, folder, members)
    for nested in sorted(folder.glob("*.zip")):
        _extract_one(nested, folder, members)
        nested.unlink()


def _extract_one(archive: Path, folder: Path, members: str | None) -> None:
    """Extract one zip archive."""
    try:
        with zipfile.ZipFile(archive) as opened:
            infos = opened.infolist()
            _refuse_outside(archive, infos)
            wanted = [info for info in infos if _is_wanted(info.filename, members)]
            _check_space(archive, folder, sum(info.file_size for info in wanted))
            opened.extractall(folder, wanted)
    # zipfile raises RuntimeError for an encrypted member and its subclass NotImplementedError
    # for an unknown compression, UnicodeDecodeError for a damaged name.
    except _DAMAGE as error:
        raise DamagedArchiveError(
            f"{archive} is no intact zip archive ({error}). Delete the file if it still exists "
            "and try again."
        ) from error


def _refuse_outside(archive: Path, infos: list[zipfile.ZipInfo]) -> None:
    """Raise if the name of a member points outside the folder that it is extracted to."""
    for info in infos:
        path = PurePosixPath(info.filename.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts or re.match("[A-Za-z]:", info.filename):
            raise DamagedArchiveError(
                f"{archive} is refused: its member {info.filename!r} points outside the folder "
                "that the archive is unpacked into, so this is not the published archive. Delete "
                "it."
            )


def _is_wanted(name: str, members: str | None) -> bool:
    """Return whether a member matches the pattern or is an archive at the top level."""
    is_nested_archive = name.endswith(".zip") and "/" not in name
    return members is None or is_nested_archive or re.search(members, name) is not None


def _check_space(archive: Path, folder: Path, needed: int) -> None:
    """Raise if the disk of `folder` has less than `needed` bytes free."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            f"{archive.name} unpacks to {needed / 1e9:.2f} GB, but {folder} has only "
            f"{free / 1e9:.2f} GB free; make room or choose another data_home."
        )
