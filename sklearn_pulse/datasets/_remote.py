"""Addresses of the published data sets, and their way into the data folder.

`REMOTES` is the table of addresses, and of the folders where a data set may lie. `find` looks for
it there. `ensure` finds it, unpacks an archive that the user has put into the data folder, or
downloads it (paper, Appendix D).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._parameters import check_boolean
from ._archive import DamagedArchiveError, extract
from ._download import DownloadError, alone, check_file, download, import_pooch, read_json
from ._home import locate, resolve_data_home, writable

_FIGSHARE = "https://api.figshare.com/v2/articles"
_ASKS_ABOVE = 1_000_000_000  # bytes; a larger download has to be asked for
_UNPACKING = ".unpacking"  # end of the name of a temporary folder
_PHYSIONET = "https://physionet.org/static/published-projects"


@dataclass(frozen=True)
class Remote:
    """A published data set.

    Attributes
    ----------
    name : str
        Name of the data set's folder in the data home.
    title : str
        Name of the data set in messages.
    url : str
        Address of the zip archive, or of a figshare article if `filename` is None.
    licence : str
        Terms of use of the publisher.
    landmarks : tuple of str
        Glob patterns of files. A folder that holds a file for each of them is the data set's
        folder.
    filename : str or None
        Name of the archive; None if `url` is a figshare article with plain files.
    sha256 : str or None
        SHA-256 of the archive; None if it is not known.
    size : int or None
        Approximate size of the download in bytes, for messages; None if it is not known.
    members : str or None
        Regular expression that the members to unpack match; None unpacks all members.
    folders : tuple of str
        Other folders in the data home where the data set may lie.
    """

    name: str
    title: str
    url: str
    licence: str
    landmarks: tuple[str, ...]
    filename: str | None = None
    sha256: str | None = None
    size: int | None = None
    members: str | None = None
    folders: tuple[str, ...] = ()

    @property
    def checksum(self) -> str | None:
        """Checksum of the archive with the name of its algorithm; None if it is not known."""
        return None if self.sha256 is None else f"sha256:{self.sha256}"

    def places(self, home: Path) -> list[Path]:
        """Return where the data set may lie in the data home, its own folder first."""
        return [home / folder for folder in (self.name, *self.folders)]


def physionet_folders(database: str) -> tuple[str, ...]:
    """Return where a database of PhysioNet lies if it was fetched with awscli, wfdb or wget."""
    mirror = f"physionet.org/files/{database}"  # `wget --recursive`, as PhysioNet advises, makes it
    return database, f"{database}/1.0.0", mirror, f"{mirror}/1.0.0"


REMOTES: dict[str, Remote] = {
    remote.name: remote
    for remote in (
        Remote(
            name="har",
            title="Smartphone-Based Recognition of Human Activities and Postural Transitions "
            "(data set 341 of the UCI Machine Learning Repository)",
            url="https://archive.ics.uci.edu/static/public/341/"
            "smartphone+based+recognition+of+human+activities+and+postural+transitions.zip",
            licence="commercial use prohibited; cite the authors",
            landmarks=("RawData/labels.txt", "RawData/acc_exp*.txt", "RawData/gyro_exp*.txt"),
            filename="smartphone+based+recognition+of+human+activities+and+"
            "postural+transitions.zip",
            folders=("hapt", "HAPT Data Set"),
        ),
        Remote(
            name="wesad",
            title="WESAD (Wearable Stress and Affect Detection)",
            url="https://uni-siegen.sciebo.de/s/HGdUkoNlW1Ub0Gx/download",
            licence="academic, non-commercial use; cite the authors",
            landmarks=("S[0-9]*/S[0-9]*.pkl",),
            filename="WESAD.zip",
            size=2_500_000_000,
            members=r"(^|/)(S\d+/S\d+(\.pkl|_quest\.csv|_readme\.txt)|wesad_readme\.pdf)$",
            folders=("WESAD",),
        ),
        Remote(
            name="mitbih_af",
            title="MIT-BIH Atrial Fibrillation Database",
            url=f"{_PHYSIONET}/afdb/mit-bih-atrial-fibrillation-database-1.0.0.zip",
            licence="Open Data Commons Attribution License 1.0",
            landmarks=("*.dat", "*.hea", "*.atr"),
            filename="mit-bih-atrial-fibrillation-database-1.0.0.zip",
            size=440_000_000,
            folders=physionet_folders("afdb"),
        ),
        Remote(
            name="sleep_edf",
            title="Sleep-EDF Database Expanded",
            url=f"{_PHYSIONET}/sleep-edfx/sleep-edf-database-expanded-1.0.0.zip",
            licence="Open Data Commons Attribution License 1.0",
            landmarks=("SC4*-PSG.edf", "SC4*-Hypnogram.edf"),
            filename="sleep-edf-database-expanded-1.0.0.zip",
            size=8_100_000_000,
            # Subjects 0 to 19 of the study of healthy people, as in the publication.
            members=r"(^|/)SC4[01]\d[12]\w\w-(PSG|Hypnogram)\.edf$",
            # The last is mne's, of a few nights.
            folders=("sleep-cassette", *physionet_folders("sleep-edfx"), "physionet-sleep-data"),
        ),
        Remote(
            name="epilepsy",
            title="Epilepsy (figshare article 19930199)",
            url=f"{_FIGSHARE}/19930199",
            licence="named on the figshare page",
            landmarks=("train.pt", "val.pt", "test.pt"),
            folders=("bonn_epilepsy",),
        ),
        Remote(
            name="gesture",
            title="Gesture (figshare article 19930247)",
            url=f"{_FIGSHARE}/19930247",
            licence="named on the figshare page",
            landmarks=("train.pt", "val.pt", "test.pt"),
            folders=("uwave_gesture", "UWaveGestureLibrary"),
        ),
    )
}


def check_flags(download_if_missing: bool | None, **flags: bool) -> None:
    """Raise a TypeError unless all are booleans; `download_if_missing` may be None, too."""
    if download_if_missing is not None:
        check_boolean("download_if_missing", download_if_missing)
    for name, flag in flags.items():
        check_boolean(name, flag)


def find(name: str, home: Path, landmarks: tuple[str, ...] | None = None) -> Path | None:
    """Return the folder of a data set: one of its own in the data home, or the data home itself.

    The data home comes last, since it may hold other files whose names fit. The folder is one of
    :meth:`Remote.places`, or up to two levels below. `landmarks` are glob patterns of files of
    another edition than the published one.
    """
    remote = REMOTES[name]
    wanted = remote.landmarks if landmarks is None else landmarks
    own = (_find_root(place, wanted) for place in remote.places(home))
    return next((folder for folder in own if folder is not None), locate([home], wanted))


def is_there(name: str, home: Path) -> bool:
    """Return whether a data set, or its archive, lies where `ensure` looks for it."""
    return find(name, home) is not None or _archive_by_hand(home, REMOTES[name]) is not None


def ensure(
    name: str,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool | None = None,
) -> Path:
    """Return the folder of a data set; unpack or download the data set first if it is missing.

    The unpacked data set is used if it exists. Otherwise, an archive in the data home or in the
    data set's folder is unpacked. If both are missing, the data set is downloaded; a broken
    download is resumed by the next call. The folder appears only when it is complete; where
    ``<data_home>/<name>`` is a link to a folder, or holds hidden files alone, it appears inside of
    this folder. A second process waits for the first, by a lock file ``.<name>.lock`` that stays in
    the data home.

    Parameters
    ----------
    name : str
        Key of the data set in `REMOTES`.
    data_home : str or path-like, default=None
        The data folder. None means the default of :func:`get_data_home`.
    download_if_missing : bool or None, default=None
        Whether to download the data set if it is missing. If False, a missing data set raises an
        OSError. None downloads up to 1 GB, and raises an OSError for a larger data set.

    Returns
    -------
    folder : pathlib.Path
        The folder with the files: where :func:`find` finds it, or ``<data_home>/<name>``.

    Raises
    ------
    OSError
        If the data set is missing and is not or cannot be downloaded, or if its archive is
        damaged or hostile.
    ImportError
        If the data set has to be downloaded and pooch is not installed, or if it has to be put in
        place and filelock is not installed.
    TypeError
        If ``data_home`` is no path, or ``download_if_missing`` is no boolean.
    """
    remote = REMOTES[name]
    check_flags(download_if_missing)
    home = resolve_data_home(data_home)
    found = find(name, home)
    if found is not None:
        return found
    _archive_to_unpack(home, remote, download_if_missing)  # raises before a file is written
    with writable(home), alone(home / f".{name}.lock"):
        found = find(name, home)
        if found is not None:
            return found  # another process has put the data set in place
        archive = _archive_to_unpack(home, remote, download_if_missing)
        # Before gigabytes are downloaded; an archive there is moved out once it is unpacked.
        _refuse_in_the_way(_place(home, remote), remote, remote.filename)
        if archive is None:
            return _download(home, remote)
        _check(archive, remote.checksum, home, remote)
        return _unpack(archive, home, remote)


def _archive_to_unpack(home: Path, remote: Remote, download_if_missing: bool | None) -> Path | None:
    """Return the archive to unpack; None for a download; raise if a download is not allowed."""
    archive = _archive_by_hand(home, remote)
    if archive is not None:
        return archive
    if download_if_missing is None and (remote.size or 0) > _ASKS_ABOVE:
        raise OSError(
            f"{remote.title} is not in {home}, and its download is large{_size(remote)}: pass"
            f" download_if_missing=True to start it. Or: {_by_hand(home, remote)}"
        )
    if download_if_missing is not None and not download_if_missing:  # also numpy's False
        raise OSError(
            f"{remote.title} is not in {home}, and download_if_missing is False. "
            f"{_by_hand(home, remote)}"
        )
    return None


def _download(home: Path, remote: Remote) -> Path:
    """Download a data set; errors say how to get it by hand."""
    try:
        import_pooch().get_logger().info(
            "Downloading %s%s into %s.", remote.title, _size(remote), home
        )
        if remote.filename is None:
            return _download_files(home, remote)
        return _download_archive(home, remote)
    except ImportError as error:
        raise ImportError(
            f"{remote.title} is not in {home}. {error} Without pooch: {_by_hand(home, remote)}"
        ) from error
    except DownloadError as error:
        raise OSError(
            f"{remote.title} could not be downloaded: {error}. The partial file is kept; call "
            f"again to resume the download. Without a connection: {_by_hand(home, remote)}"
        ) from error


def _find_root(folder: Path, landmarks: tuple[str, ...]) -> Path | None:
    """Find the data set's files in `folder` or at most two levels below, hidden folders aside."""
    below = [path for level in ("[!.]*", "[!.]*/[!.]*") for path in sorted(folder.glob(level))]
    return locate([folder, *(path for path in below if path.is_dir())], landmarks)


def _archive_by_hand(home: Path, remote: Remote) -> Path | None:
    """Return the archive in the data home or in the data set's folder; None without one."""
    if remote.filename is None:
        return None
    places = (home / remote.filename, home / remote.name / remote.filename)
    return next((place for place in places if place.is_file()), None)


def _by_hand(home: Path, remote: Remote) -> str:
    """Return the sentences that tell how to get the data set by hand."""
    files = ", ".join(remote.landmarks)
    if remote.filename is None:
        source = f"the files {files} that {remote.url} lists"
        target = f"put them into {home / remote.name}"
    else:
        source = f"{remote.url}{_size(remote)}"
        target = (
            f"put it as {remote.filename} into {home}, or unpack it so that {files} lie in "
            f"{home / remote.name}"
        )
    return (
        f"Download {source} by hand and {target}; or set data_home or the environment variable "
        "SKLEARN_PULSE_DATA to the folder that holds the data set."
    )


def _size(remote: Remote) -> str:
    """Return the size of a download for a message; nothing if it is not known."""
    return "" if remote.size is None else f" (about {remote.size / 1e9:.1f} GB)"


def _download_archive(home: Path, remote: Remote) -> Path:
    """Download the archive and unpack it."""
    archive = home / str(remote.filename)
    download(remote.url, archive)
    try:
        _check(archive, remote.checksum, home, remote, delete=True)
        folder = _unpack(archive, home, remote)
    except DamagedArchiveError:
        archive.unlink()
        raise
    archive.unlink()
    return folder


def _download_files(home: Path, remote: Remote) -> Path:
    """Download the plain files of a figshare article; their folder appears when it is complete."""
    entries = _files_of_article(read_json(remote.url))
    missing = [name for name in remote.landmarks if name not in entries]
    if missing:
        raise OSError(
            f"{remote.url} lists no {', '.join(missing)}: the publisher has changed {remote.title}."
        )
    place = _place(home, remote)
    partial = place.with_name(f".{remote.name}.part")  # hidden from the search below a link
    for name in remote.landmarks:
        download(entries[name]["download_url"], partial / name)
        md5 = entries[name].get("computed_md5")
        _check(partial / name, md5 and f"md5:{md5}", home, remote, delete=True)
    _move_into_place(partial, place, remote)
    return place


def _files_of_article(article: Any) -> dict[str, dict[str, Any]]:
    """Return the files with an address that figshare's answer lists, by name."""
    files = article.get("files") if isinstance(article, dict) else None
    entries = [entry for entry in files or [] if isinstance(entry, dict)]
    return {entry["name"]: entry for entry in entries if {"name", "download_url"} <= set(entry)}


def _check(
    path: Path, checksum: str | None, home: Path, remote: Remote, *, delete: bool = False
) -> None:
    """Raise if a file does not have the checksum; delete the file first if `delete`."""
    try:
        check_file(path, checksum)
    except OSError as error:
        if delete:
            path.unlink()
        advice = "It was deleted; try" if delete else "Delete it and try"
        by_hand = "put the files" if remote.filename is None else "unpack the archive"
        raise OSError(
            f"{error} {advice} again later. If the checksum stays the same, {by_hand} into "
            f"{home / remote.name} yourself: files in this folder are used unchecked."
        ) from error


def _unpack(archive: Path, home: Path, remote: Remote) -> Path:
    """Unpack an archive into a temporary folder, then rename this to the data set's folder.

    The caller holds the lock, so that no other process is unpacking this data set.
    """
    place = _place(home, remote)
    beside, prefix = place.parent, f".{remote.name}-"  # a folder can be renamed on its disk alone
    for left in beside.glob(f"{prefix}*{_UNPACKING}"):  # by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(_UNPACKING, prefix, beside) as temporary:
        content = Path(temporary) / "content"
        extract(archive, content, remote.members)
        root = _find_root(content, remote.landmarks)
        if root is None:
            raise DamagedArchiveError(
                f"{archive} does not hold {', '.join(remote.landmarks)}, so it is not the archive "
                f"of {remote.title}. Delete it if it still exists. {_by_hand(home, remote)}"
            )
        if archive.parent == place:
            os.replace(archive, home / archive.name)
        _move_into_place(root, place, remote)
    return place


def _place(home: Path, remote: Remote) -> Path:
    """Return where the data set's folder appears: inside of a folder that nothing may replace.

    This is a folder behind a link, or one with hidden files alone, such as the user's ``.git``.
    """
    folder = home / remote.name
    content = _content(folder, remote.filename)
    is_hidden = bool(content) and all(name.startswith(".") for name in content)
    is_kept = is_hidden or (folder.is_symlink() and folder.is_dir())
    return folder / remote.name if is_kept else folder


def _content(folder: Path, archive: str | None) -> list[str]:
    """Return the names in a folder, an archive and what a file manager leaves aside."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    aside = (".DS_Store", archive)
    return [name for name in names if name not in aside and not name.startswith("._")]


def _refuse_in_the_way(place: Path, remote: Remote, archive: str | None = None) -> None:
    """Raise if anything but an archive is where the data set's folder is to appear."""
    is_folder = place.is_dir() and not place.is_symlink()
    if _content(place, archive) if is_folder else os.path.lexists(place):
        raise OSError(
            f"{place} is in the way: it does not hold {', '.join(remote.landmarks)}. Move it "
            "away and try again."
        )


def _move_into_place(source: Path, folder: Path, remote: Remote) -> None:
    """Rename `source` to the data set's folder."""
    _refuse_in_the_way(folder, remote)
    if folder.is_dir():
        shutil.rmtree(folder)
    os.replace(source, folder)
