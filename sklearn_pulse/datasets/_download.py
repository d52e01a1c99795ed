"""Download of one file by pooch, with retries, progress and resumption."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .._extras import needs

N_RETRIES = 3  # pooch waits 1, 2 and 3 s before the retries
_CHUNK_SIZE = 1 << 16  # bytes; a broken download loses less than one chunk
_TIMEOUT = 60  # seconds that a server may take to answer


class DownloadError(OSError):
    """The file could not be downloaded."""


def import_pooch() -> Any:
    """Import pooch, or raise an ImportError that names the extra to install."""
    with needs("pooch is needed to download data", "download"):
        import pooch
    return pooch


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until no other process or thread holds a lock file, and hold it inside the block.

    The file stays: a process that waits for a deleted file would hold another lock than the next.

    Parameters
    ----------
    path : pathlib.Path
        The lock file; its folder is created if it does not exist.

    Raises
    ------
    ImportError
        If filelock is not installed.
    """
    with needs("filelock is needed to put data in place", "download"):
        from filelock import FileLock
    path.parent.mkdir(parents=True, exist_ok=True)
    # Whoever may write in the folder may hold its lock, also after another user.
    mode = path.parent.stat().st_mode & 0o666 | 0o600
    with FileLock(path, mode=mode):
        yield


def download(url: str, path: Path) -> None:
    """Download a file, or resume a download that a broken connection has stopped.

    The partial file is ``<path>.part``; the next call, in any process, appends to it. `path`
    itself appears only when the file is complete. If `path` exists, nothing happens. The caller
    holds a lock (:func:`alone`), since two downloads would mix their bytes in the partial file.

    Parameters
    ----------
    url : str
        Address, http or https.
    path : pathlib.Path
        File to write; its folder is created if it does not exist.

    Raises
    ------
    DownloadError
        If the address cannot be reached, does not answer with a file, or answers with another
        number of bytes than it states.
    ImportError
        If pooch is not installed.
    """
    pooch = import_pooch()
    import requests

    # pooch gets no checksum, since it takes a file with another checksum for a broken download.
    # If the publisher has replaced a data set, pooch would download gigabytes on every retry.
    manager = pooch.create(
        path=path.parent,
        base_url="",
        registry={path.name: None},
        urls={path.name: url},
        retry_if_failed=N_RETRIES,
    )
    downloader = _ResumingDownloader(path)
    try:
        manager.fetch(path.name, downloader=downloader)
    except requests.RequestException as error:
        raise DownloadError(str(error)) from error
    finally:
        downloader.drop_empty_part()


def read_json(url: str) -> Any:
    """Return the parsed JSON that an address answers with; raise the same errors as `download`."""
    import_pooch()
    import requests

    try:
        answer = requests.get(url, timeout=_TIMEOUT)
        answer.raise_for_status()
        return answer.json()
    except requests.RequestException as error:
        raise DownloadError(str(error)) from error


def check_file(path: Path, checksum: str | None) -> None:
    """Raise an OSError unless a file has the given checksum.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    checksum : str or None
        Algorithm and hexadecimal digest, "sha256:..." or "md5:...". If None, the file is not
        checked.
    """
    if checksum is None:
        return
    algorithm, _, expected = checksum.partition(":")
    with open(path, "rb") as stream:
        digest = hashlib.file_digest(stream, algorithm).hexdigest()
    if digest != expected:
        raise OSError(
            f"{path} is not the published file: its {algorithm} checksum is {digest} instead of "
            f"{expected}. The file is damaged, or the publisher has replaced it."
        )


class _ResumingDownloader:
    """A downloader for pooch that completes a partial file."""

    def __init__(self, path: Path) -> None:
        self.part = path.with_name(f"{path.name}.part")

    def __call__(self, url: str, output_file: str, _: Any) -> None:
        """Complete the partial file and move it to `output_file`."""
        import requests

        # It is empty, and of pooch: a process that is killed would leave it behind.
        Path(output_file).unlink(missing_ok=True)
        with open(self.part, "ab") as stream:
            try:
                _append(stream, url)
            except requests.HTTPError as error:
                # A client error is final, except a time-out, a bad range or too many requests.
                status = None if error.response is None else error.response.status_code
                if status is not None and status < 500 and status not in (408, 416, 429):
                    raise DownloadError(str(error)) from error
                raise
        os.replace(self.part, output_file)

    def drop_empty_part(self) -> None:
        """Delete the partial file if nothing has arrived."""
        if self.part.is_file() and self.part.stat().st_size == 0:
            self.part.unlink()


def _append(stream: Any, url: str) -> None:
    """Append the missing bytes; start over if the server cannot resume."""
    import pooch
    import requests

    offset = stream.tell()
    stated: list[int | None] = []

    def start_over_unless_resumed(response: requests.Response, **_: Any) -> None:
        content_range = response.headers.get("Content-Range", "")
        if response.status_code == 206 and not content_range.startswith(f"bytes {offset}-"):
            raise requests.ConnectionError(f"{url} sent {content_range!r}, not from {offset}")
        if response.status_code in (200, 416):
            # The server sends the whole file, or the partial file is longer than the file.
            stream.truncate(0)
        stated.append(_stated_length(response))

    # Offsets count bytes of the file itself, so the server must not compress the transfer.
    headers = {"Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
    pooch.HTTPDownloader(
        progressbar=find_spec("tqdm") is not None,
        chunk_size=_CHUNK_SIZE,
        headers=headers,
        timeout=_TIMEOUT,
        hooks={"response": start_over_unless_resumed},
    )(url, stream, None)
    _check_length(stream, stated[-1], url)  # the last answer, behind any redirections


def _stated_length(response: Any) -> int | None:
    """Return the length of the whole file that an answer states; None without a statement."""
    if response.status_code == 206:
        length = response.headers.get("Content-Range", "").rpartition("/")[2]
    elif response.headers.get("Content-Encoding", "identity") == "identity":
        length = response.headers.get("Content-Length", "")
    else:  # the length is that of the compressed transfer
        return None
    return int(length) if length.isdecimal() else None


def _check_length(stream: Any, stated: int | None, url: str) -> None:
    """Raise an error that pooch retries after, unless the partial file has the stated length."""
    import requests

    stream.flush()
    length = os.fstat(stream.fileno()).st_size
    if stated in (None, length):
        return
    consequence = "the rest is missing"
    if length > stated:  # nothing tells which bytes are too many
        stream.truncate(0)
        consequence = "it has to start over; let no other program write to this file"
    raise requests.ConnectionError(
        f"{url} states {stated} bytes, and {length} bytes are in {stream.name}: {consequence}"
    )
