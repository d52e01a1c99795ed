"""Extraction of untrusted zip archives."""

from __future__ import annotations

import errno
import lzma
import re
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

# Errors of zipfile for a damaged archive: RuntimeError for an encrypted member, its subclass
# NotImplementedError for an unknown compression, UnicodeDecodeError for a damaged name, IndexError
# for a member without a name, and errors of the system where one name is a file and a folder.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    FileExistsError,
    IndexError,
    IsADirectoryError,
    NotADirectoryError,
    RuntimeError,
    UnicodeDecodeError,
)
# The system has a number for every error of a disk. Damaged places of an archive lead before its
# beginning, which is an invalid argument, a damaged name may be longer than the file system allows,
# and bz2 raises an OSError without a number.
_ERRNOS_OF_DAMAGE = (None, errno.EINVAL, errno.ENAMETOOLONG)


class DamagedArchiveError(OSError):
    """The archive is damaged or hostile, so that unpacking it again cannot succeed."""


def extract(archive: Path, folder: Path, members: str | None) -> None:
    """Extract a zip archive, and the zip archives at its top level, to a folder.

    Some publishers put their archive into another one. If `members` is a regular expression, only
    members in whose names it finds something are extracted. A `DamagedArchiveError` is raised for
    a file that is no intact zip archive, and, before any member is extracted, for a member whose
    name points outside `folder`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _extract_one(archive, folder, members, archive)
    for nested in sorted(path for path in folder.glob("*.zip") if path.is_file()):
        _extract_one(nested, folder, members, archive)
        nested.unlink()


def is_damage(error: Exception) -> bool:
    """Return whether an error of zipfile shows a damaged archive, rather than a failing disk.

    Examples
    --------
    >>> is_damage(zipfile.BadZipFile()), is_damage(PermissionError(13, "Permission denied"))
    (True, False)
    """
    has_errno_of_damage = isinstance(error, OSError) and error.errno in _ERRNOS_OF_DAMAGE
    return has_errno_of_damage or isinstance(error, _DAMAGE)


def _extract_one(archive: Path, folder: Path, members: str | None, published: Path) -> None:
    """Extract one zip archive, which is the published one or lies in it."""
    with _naming(published):
        opened = zipfile.ZipFile(archive)
    with opened:
        infos = opened.infolist()
        _refuse_outside(published, infos)
        wanted = [info for info in infos if _is_wanted(info.filename, members)]
        _check_space(archive, folder, sum(info.file_size for info in wanted))
        with _naming(published):
            opened.extractall(folder, wanted)


@contextmanager
def _naming(archive: Path) -> Iterator[None]:
    """Raise an error that names the user's archive, where the block shows that it is damaged."""
    try:
        yield
    except Exception as error:
        if not is_damage(error):
            raise
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
