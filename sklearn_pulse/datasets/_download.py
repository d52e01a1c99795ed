"""Download one file: pooch streams, retries and shows progress; broken downloads go on."""

from __future__ import annotations

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

N_RETRIES = 3  # pooch waits 1, 2, 3 s before them
_CHUNK_SIZE = 1 << 16  # bytes; a broken download loses less than this
_TIMEOUT = 60  # seconds without an answer


class DownloadError(OSError):
    """The file could not be downloaded."""


def import_pooch() -> Any:
    """Import pooch, or raise an ImportError that names the extra."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            "pooch is needed to download data: pip install sklearn-pulse[download]."
        ) from error
    return pooch


def download(url: str, path: Path) -> None:
    """Download a file; what a broken connection has brought lies in ``<path>.part``.

    The next call, in this process or another, goes on where that ends. `path` appears in one
    step, complete; if it is there, nothing happens.

    Parameters
    ----------
    url : str
        Address, http or https.
    path : pathlib.Path
        Where to; its folder is made if it is not there.

    Raises
    ------
    DownloadError
        If the address cannot be reached or does not answer with a file.
    ImportError
        If pooch is not installed.
    """
    pooch = import_pooch()
    import requests

    # pooch gets no checksum: it takes any other file for a broken download, and would fetch a
    # data set that its publisher has replaced, gigabytes, once for each retry.
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
    """Return what a web interface answers, parsed; errors as `download`."""
    import_pooch()
    import requests

    try:
        answer = requests.get(url, timeout=_TIMEOUT)
        answer.raise_for_status()
        return answer.json()
    except requests.RequestException as error:
        raise DownloadError(str(error)) from error


def check_file(path: Path, checksum: str | None) -> None:
    """Raise an OSError unless the file has the checksum, "sha256:..." or "md5:..."; None has all.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    checksum : str or None
        Algorithm and hexadecimal digest.
    """
    if checksum is None:
        return
    algorithm, _, expected = checksum.partition(":")
    with open(path, "rb") as stream:
        digest = hashlib.file_digest(stream, algorithm).hexdigest()
    if digest != expected:
        raise OSError(
            f"{path} is not the published file: its {algorithm} checksum is {digest} instead of "
            f"{expected}. It is damaged, or the publisher has replaced it."
        )


class _ResumingDownloader:
    """A downloader for pooch that completes a partial file."""

    def __init__(self, path: Path) -> None:
        self.part = path.with_name(f"{path.name}.part")

    def __call__(self, url: str, output_file: str, _: Any) -> None:
        """Complete the partial file and move it to `output_file`."""
        import requests

        with open(self.part, "ab") as stream:
            try:
                _append(stream, url)
            except requests.HTTPError as error:
                status = error.response.status_code
                if status < 500 and status not in (408, 416, 429):
                    raise DownloadError(str(error)) from error  # a retry cannot help
                raise
        os.replace(self.part, output_file)

    def drop_empty_part(self) -> None:
        """Delete the partial file if nothing has arrived."""
        if self.part.is_file() and self.part.stat().st_size == 0:
            self.part.unlink()


def _append(stream: Any, url: str) -> None:
    """Append the bytes that are missing; start over where the server cannot resume."""
    import pooch
    import requests

    offset = stream.tell()

    def start_over_unless_resumed(response: requests.Response, **_: Any) -> None:
        content_range = response.headers.get("Content-Range", "")
        if response.status_code == 206 and not content_range.startswith(f"bytes {offset}-"):
            raise requests.ConnectionError(f"{url} sent {content_range!r}, not from {offset}")
        if response.status_code in (200, 416):
            # The whole file follows, or the partial file is longer than the file.
            stream.truncate(0)

    # Offsets count bytes of the file itself, so it may not be compressed on the way.
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
