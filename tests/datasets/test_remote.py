"""Unpacking and downloading of data sets, from a server on this machine."""

from __future__ import annotations

import builtins
import concurrent.futures
import dataclasses
import errno
import functools
import hashlib
import http.server
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import zipfile

import numpy as np
import pytest

from sklearn_pulse import datasets
from sklearn_pulse.datasets import (
    _download,
    _remote,
    _sleep_edf,
    _synthetic_cache,
    _systems,
    fetch_har,
    fetch_sleep_edf,
    fetch_wesad,
)
from tests.datasets.test_har import LENGTHS, random_label_rows, write_folder

FETCHERS = [getattr(datasets, name) for name in datasets.__all__ if name.startswith("fetch_")]

pooch = pytest.importorskip("pooch")


class Server:
    """An HTTP server that can break, ignore ranges or refuse, and that records its requests."""

    def __init__(self):
        self.files = {}
        self.log = []  # (path, Range header)
        self.break_after = []  # bytes to send before hanging up, one for each of the next answers
        self.has_ranges = True
        self.wrong_range = False
        self.half_way = lambda: None  # called when half of a body has been sent
        handler = functools.partial(_Handler, self)
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


class _Handler(http.server.BaseHTTPRequestHandler):
    def __init__(self, server, *args):
        self.behaviour = server
        super().__init__(*args)

    def log_message(self, *args):
        pass

    def do_GET(self):
        behaviour, wanted = self.behaviour, self.headers["Range"]
        behaviour.log.append((self.path, wanted))
        content = behaviour.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        begin = 0
        if wanted and behaviour.has_ranges:
            begin = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])
            if begin >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            claimed = begin - 1 if behaviour.wrong_range else begin
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {claimed}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        body = content[begin:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        stop = behaviour.break_after.pop(0) if behaviour.break_after else None
        middle = len(body) // 2 if stop is None else 0
        self.wfile.write(body[:middle])
        behaviour.half_way()
        self.wfile.write(body[middle:stop])


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    # pooch waits seconds between retries, which would slow the tests down.
    monkeypatch.setattr(pooch.core.time, "sleep", lambda seconds: None)
    server = Server()
    yield server
    server.close()


def zip_bytes(members, compression=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


# Two megabytes that do not compress, so that a download is long enough to break.
NOISE = np.random.default_rng(0).bytes(2_500_000)
MEMBERS = {"top/data/a.dat": NOISE, "top/data/a.txt": b"text", "top/readme": b"read me"}


@pytest.fixture
def remote(server, monkeypatch):
    """Publish a small data set "toy" on the server; return its entry."""
    content = zip_bytes(MEMBERS)
    server.files["/toy.zip"] = content
    return publish(monkeypatch, server, sha256=hashlib.sha256(content).hexdigest())


def publish(monkeypatch, server, **changes):
    entry = _remote.Remote(
        name="toy",
        title="Toy data",
        url=f"{server.url}/toy.zip",
        licence="none",
        landmarks=("*.dat", "*.txt"),
        filename="toy-1.0.zip",
        size=300_000_000,
    )
    entry = dataclasses.replace(entry, **changes)
    monkeypatch.setitem(_remote.REMOTES, "toy", entry)
    return entry


def assert_complete(folder, home):
    """Assert that the data set is complete and that the download has left only its lock file."""
    assert folder == home / "toy"
    assert (folder / "a.dat").read_bytes() == NOISE
    assert (folder / "a.txt").read_bytes() == b"text"
    assert names(home) == ["toy"]


def names(home):
    """List the files of a data home, without the lock file, which stays."""
    return [path.name for path in home.iterdir() if path.name != ".toy.lock"]


def test_every_source_has_its_entry_and_its_members():
    assert set(_remote.REMOTES) == {fetch.__name__.removeprefix("fetch_") for fetch in FETCHERS}
    for name, entry in _remote.REMOTES.items():
        assert entry.name == name and entry.licence and entry.title and entry.landmarks
        assert entry.url.startswith("https://")
        assert entry.sha256 is None or re.fullmatch("[0-9a-f]{64}", entry.sha256)
    wanted = _remote.REMOTES["sleep_edf"].members
    for name, is_wanted in {
        "x-1.0.0/sleep-cassette/SC4001E0-PSG.edf": True,
        "x-1.0.0/sleep-cassette/SC4192EV-Hypnogram.edf": True,
        "x-1.0.0/sleep-cassette/SC4201E0-PSG.edf": False,
        "x-1.0.0/sleep-telemetry/ST7011J0-PSG.edf": False,
    }.items():
        assert (re.search(wanted, name) is not None) == is_wanted
    wanted = _remote.REMOTES["wesad"].members
    assert re.search(wanted, "WESAD/S10/S10.pkl") and re.search(wanted, "S2/S2.pkl")
    assert not re.search(wanted, "WESAD/S2/S2_respiban.txt")


# Downloading


def test_what_is_there_is_not_downloaded_again(remote, server, tmp_path):
    home = tmp_path / "not" / "there"
    assert_complete(_remote.ensure("toy", home), home)
    assert server.log == [("/toy.zip", None)]
    assert_complete(_remote.ensure("toy", str(home)), home)
    assert len(server.log) == 1


def test_broken_download_is_resumed(remote, server, tmp_path):
    server.break_after = [1_200_000, 500_000]
    assert_complete(_remote.ensure("toy", tmp_path), tmp_path)
    ranges = [int(wanted[6:-1]) if wanted else 0 for _, wanted in server.log]
    assert len(ranges) == 3 and 0 < ranges[1] <= 1_200_000 < ranges[2] <= 1_700_000


def test_broken_download_is_resumed_by_the_next_call(remote, server, tmp_path):
    n_tries = _download.N_RETRIES + 1
    server.break_after = [400_000] * n_tries
    with pytest.raises(OSError, match="The partial file is kept"):
        _remote.ensure("toy", tmp_path)
    assert names(tmp_path) == ["toy-1.0.zip.part"]
    arrived = (tmp_path / "toy-1.0.zip.part").stat().st_size
    assert arrived > 0
    assert_complete(_remote.ensure("toy", tmp_path), tmp_path)
    assert server.log[n_tries:] == [("/toy.zip", f"bytes={arrived}-")]


@pytest.mark.parametrize("n_bytes", ["all", "too many"])
def test_part_that_is_complete_or_longer(remote, server, tmp_path, n_bytes):
    content = server.files["/toy.zip"]
    part = tmp_path / "toy-1.0.zip.part"
    part.write_bytes(content if n_bytes == "all" else content + b"more")
    assert_complete(_remote.ensure("toy", tmp_path), tmp_path)


def test_server_without_ranges(remote, server, tmp_path):
    server.has_ranges = False
    server.break_after = [1_200_000]
    assert_complete(_remote.ensure("toy", tmp_path), tmp_path)
    assert len(server.log) == 2


def test_server_that_sends_another_range(remote, server, tmp_path):
    server.wrong_range = True
    server.break_after = [1_200_000]
    with pytest.raises(OSError, match="not from"):
        _remote.ensure("toy", tmp_path)


@pytest.fixture
def held_half_way(server):
    """Hold a download half way; return an event that tells so, and one that lets it go on."""
    is_under_way, go_on = threading.Event(), threading.Event()

    def wait():
        is_under_way.set()
        go_on.wait(60)

    server.half_way = wait
    return is_under_way, go_on


def test_a_second_caller_waits_for_the_download_of_the_first(
    remote, server, held_half_way, tmp_path
):
    is_under_way, go_on = held_half_way
    with concurrent.futures.ThreadPoolExecutor(2) as callers:
        first = callers.submit(_remote.ensure, "toy", tmp_path)
        assert is_under_way.wait(60)
        second = callers.submit(_remote.ensure, "toy", tmp_path)
        with pytest.raises(concurrent.futures.TimeoutError):
            second.result(0.3)
        go_on.set()
        assert first.result(60) == second.result(60) == tmp_path / "toy"
    assert_complete(tmp_path / "toy", tmp_path)
    assert server.log == [("/toy.zip", None)]


@pytest.mark.parametrize("n_times", [1, _download.N_RETRIES + 1])
def test_bytes_of_another_writer(server, monkeypatch, tmp_path, n_times):
    """No checksum would tell: the end of a zip archive is found from behind."""
    server.files["/toy.zip"] = zip_bytes(MEMBERS)
    publish(monkeypatch, server)
    n_bytes = len(server.files["/toy.zip"])
    part = tmp_path / "toy-1.0.zip.part"

    def write_too():
        if len(server.log) > n_times:
            return
        while not part.stat().st_size:  # until the answer has reached the file
            threading.Event().wait(0.01)
        with open(part, "ab") as stream:
            stream.write(b"more")

    server.half_way = write_too
    if n_times > _download.N_RETRIES:
        message = rf"states {n_bytes} bytes, and {n_bytes + 4} bytes are in .*start over"
        with pytest.raises(OSError, match=message):
            _remote.ensure("toy", tmp_path)
        assert names(tmp_path) == []
    assert_complete(_remote.ensure("toy", tmp_path), tmp_path)
    assert len(server.log) == n_times + 1


def test_wrong_checksum(server, monkeypatch, tmp_path):
    server.files["/toy.zip"] = zip_bytes(MEMBERS)
    publish(monkeypatch, server, sha256="0" * 64)
    with pytest.raises(OSError, match="not the published file") as caught:
        _remote.ensure("toy", tmp_path)
    message = str(caught.value)
    by_hand = f"unpack the archive into {tmp_path / 'toy'} yourself"
    for part in ("0" * 64, "was deleted", "try again later", by_hand):
        assert part in message
    assert names(tmp_path) == []
    assert len(server.log) == 1  # the file is not downloaded again


def test_address_that_is_gone(remote, server, tmp_path):
    server.files.clear()
    with pytest.raises(OSError, match="404"):
        _remote.ensure("toy", tmp_path)
    assert len(server.log) == 1


def test_no_connection(remote, server, tmp_path):
    server.close()
    with pytest.raises(OSError) as caught:
        _remote.ensure("toy", tmp_path)
    message = str(caught.value)
    for part in (
        "Toy data",
        remote.url,
        "toy-1.0.zip",
        str(tmp_path),
        str(tmp_path / "toy"),
        "0.3 GB",
        "SKLEARN_PULSE_DATA",
    ):
        assert part in message
    assert names(tmp_path) == []


def test_download_if_missing_false(remote, server, tmp_path):
    home = tmp_path / "nothing"
    for flag in (False, np.False_):
        with pytest.raises(OSError, match=r"download_if_missing is False.*by hand") as caught:
            _remote.ensure("toy", home, download_if_missing=flag)
        assert remote.url in str(caught.value) and server.log == []
    assert not home.exists()


def test_a_large_download_is_asked_for(remote, server, monkeypatch, tmp_path):
    large = dataclasses.replace(remote, size=8_100_000_000)
    monkeypatch.setitem(_remote.REMOTES, "toy", large)
    home = tmp_path / "home"
    with pytest.raises(OSError, match=r"8\.1 GB\): pass download_if_missing=True") as caught:
        _remote.ensure("toy", home)
    assert "by hand" in str(caught.value) and server.log == [] and not home.exists()
    with pytest.raises(TypeError, match="download_if_missing must be True or False"):
        _remote.ensure("toy", home, download_if_missing="yes")
    said = []
    monkeypatch.setattr(pooch.get_logger(), "info", lambda text, *args: said.append(text % args))
    monkeypatch.setattr(_remote, "_download_archive", lambda *args: said.append("started"))
    _remote.ensure("toy", home, download_if_missing=True)
    assert said == [f"Downloading {remote.title} (about 8.1 GB) into {home}.", "started"]


@pytest.mark.parametrize(("fetch", "size"), [(fetch_sleep_edf, "8.1 GB"), (fetch_wesad, "2.5 GB")])
def test_large_data_sets_ask(fetch, size, monkeypatch, tmp_path):
    monkeypatch.setattr(_remote, "download", lambda *args: pytest.fail("it has not asked"))
    monkeypatch.setattr(_sleep_edf, "_import_mne", lambda: None)
    with pytest.raises(OSError, match=f"{size}.*pass download_if_missing=True to start"):
        fetch(tmp_path)


def test_without_pooch(remote, monkeypatch, tmp_path):
    monkeypatch.setattr(builtins, "__import__", without("pooch"))
    with pytest.raises(ImportError, match=r"sklearn-pulse\[download\]") as caught:
        _remote.ensure("toy", tmp_path)
    assert remote.url in str(caught.value)
    (tmp_path / "toy-1.0.zip").write_bytes(zip_bytes(MEMBERS))
    publish_by_hand = dataclasses.replace(remote, sha256=None)
    monkeypatch.setitem(_remote.REMOTES, "toy", publish_by_hand)
    assert (_remote.ensure("toy", tmp_path) / "a.txt").read_bytes() == b"text"


def without(package):
    real = builtins.__import__

    def fake(name, *args, **kwargs):
        if name.split(".")[0] == package:
            raise ImportError(f"No module named {package!r}")
        return real(name, *args, **kwargs)

    return fake


@pytest.mark.parametrize("data_home", [3, b"data", ["data"]])
def test_data_home_of_another_type(data_home):
    with pytest.raises(TypeError, match="data_home must be a path"):
        _remote.ensure("har", data_home)


# Archives that were put there by hand


@pytest.mark.parametrize("place", ["", "toy"])
def test_archive_by_hand_is_used_and_kept(remote, server, tmp_path, place):
    archive = tmp_path / place / "toy-1.0.zip"
    archive.parent.mkdir(exist_ok=True)
    archive.write_bytes(server.files["/toy.zip"])
    (archive.parent / ".DS_Store").write_bytes(b"")
    folder = _remote.ensure("toy", tmp_path, download_if_missing=False)
    assert folder == tmp_path / "toy" and (folder / "a.dat").read_bytes() == NOISE
    assert (tmp_path / "toy-1.0.zip").read_bytes() == server.files["/toy.zip"]
    assert server.log == []


def test_archive_by_hand_with_another_checksum(remote, server, tmp_path):
    archive = tmp_path / "toy-1.0.zip"
    archive.write_bytes(zip_bytes({"a.dat": b"1", "a.txt": b"2"}))
    with pytest.raises(OSError, match="Delete it and try again later"):
        _remote.ensure("toy", tmp_path)
    assert archive.is_file() and server.log == []


@pytest.mark.parametrize("depth", ["", "top", "top/data"])
def test_unpacked_by_hand(remote, server, tmp_path, depth):
    folder = tmp_path / "toy" / depth
    folder.mkdir(parents=True)
    (folder / "a.dat").write_bytes(b"1")
    (folder / "a.txt").write_bytes(b"2")
    assert _remote.ensure("toy", tmp_path) == folder
    assert server.log == []


def test_other_files_in_the_way(remote, server, tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "notes").write_text("mine")
    with pytest.raises(OSError, match="is in the way"):
        _remote.ensure("toy", tmp_path)
    assert (tmp_path / "toy" / "notes").read_text() == "mine"
    assert server.log == []  # once it was downloaded first


@pytest.mark.parametrize("place", [None, "", "toy"])
def test_hidden_files_of_the_user_are_kept(remote, server, tmp_path, place):
    """Once they were deleted with their folder, in silence."""
    (tmp_path / "toy" / ".git").mkdir(parents=True)
    (tmp_path / "toy" / ".git" / "mine").write_text("mine")
    if place is not None:
        (tmp_path / place / "toy-1.0.zip").write_bytes(server.files["/toy.zip"])
    folder = _remote.ensure("toy", tmp_path)
    assert folder == tmp_path / "toy" / "toy" and (folder / "a.txt").read_bytes() == b"text"
    assert (tmp_path / "toy" / ".git" / "mine").read_text() == "mine"
    assert _remote.ensure("toy", tmp_path) == folder and len(server.log) == (place is None)


@pytest.mark.parametrize("place", [None, "", "toy"])
def test_a_link_to_a_folder_elsewhere_is_filled(remote, server, tmp_path, place):
    """As where the data set is to lie on a larger disk; an archive by hand stays where it is."""
    home = tmp_path / "home"
    (tmp_path / "disk").mkdir()
    home.mkdir()
    (home / "toy").symlink_to(tmp_path / "disk")
    if place is not None:
        archive = home / place / "toy-1.0.zip"
        archive.write_bytes(server.files["/toy.zip"])
    folder = _remote.ensure("toy", home)
    assert folder == home / "toy" / "toy" and (folder / "a.txt").read_bytes() == b"text"
    assert (home / "toy").is_symlink() and (place is None or archive.is_file())
    assert _remote.ensure("toy", home) == folder
    assert len(server.log) == (place is None)


def test_a_link_in_the_way(remote, server, tmp_path):
    """Say so where the folder is a link to nothing, and keep the archive."""
    (tmp_path / "toy").symlink_to(tmp_path / "disk")
    with pytest.raises(OSError, match="toy is in the way.* Move it away and try again"):
        _remote.ensure("toy", tmp_path)
    (tmp_path / "toy").unlink()
    assert (_remote.ensure("toy", tmp_path) / "a.txt").read_bytes() == b"text"
    assert len(server.log) == 1


# Hostile and damaged archives


@pytest.mark.parametrize(
    "member",
    ["../evil.txt", "top/../../evil.txt", "/evil.txt", "C:/evil.txt", "..\\evil.txt", "\\\\h\\x"],
)
def test_member_outside_the_folder(server, monkeypatch, tmp_path, member):
    server.files["/toy.zip"] = zip_bytes({"a.dat": b"1", "a.txt": b"2", member: b"evil"})
    publish(monkeypatch, server)
    home = tmp_path / "home"
    with pytest.raises(OSError, match="points outside the folder"):
        _remote.ensure("toy", home)
    assert names(tmp_path) == ["home"] and names(home) == []


def test_names_with_dots_are_no_attack(server, monkeypatch, tmp_path):
    server.files["/toy.zip"] = zip_bytes({"a..b.dat": b"1", "..a.txt": b"2", "a.txt": b"3"})
    publish(monkeypatch, server)
    folder = _remote.ensure("toy", tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["..a.txt", "a..b.dat", "a.txt"]


def flip(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]


def far_off(content):
    """Damage the end of an archive, which says where its directory begins."""
    place = content.rindex(b"PK\5\6") + 12  # size and place of the directory, in four bytes each
    return content[:place] + b"\xff\xff\xff\x7f" + content[place + 4 :]


@pytest.mark.parametrize(
    "content",
    [
        b"<html>not found</html>",
        zip_bytes(MEMBERS)[:1_000_000],
        flip(zip_bytes(MEMBERS)),
        flip(zip_bytes(MEMBERS, zipfile.ZIP_STORED)),
        flip(zip_bytes(MEMBERS, zipfile.ZIP_LZMA)),
        zip_bytes(MEMBERS | {"é": b""}).replace("é".encode(), b"\xff\xff"),
        zip_bytes({"other": b"1"}),
        flip(zip_bytes(MEMBERS, zipfile.ZIP_BZIP2)),
        far_off(zip_bytes(MEMBERS)),
        zip_bytes({"a.dat": b"1", "a.txt": b"2", "zz": b"3"}).replace(b"zz", b"\0z"),
        zip_bytes({"a.dat": b"1", "a.dat/b.txt": b"2"}),
        zip_bytes({"a.dat": b"1", "a.txt": b"2", "a.zip": b"3"}),
        zip_bytes({"a.dat": b"1", "a.txt": b"2", "z" * 300: b"3"}),
    ],
    ids=[
        "html", "cut", "flipped", "flipped stored", "flipped lzma", "name", "another archive",
        "flipped bzip2", "place before the file", "no name", "file and folder", "nested",
        "long name",
    ],
)  # fmt: skip
def test_damaged_archive(server, monkeypatch, tmp_path, content):
    server.files["/toy.zip"] = content
    publish(monkeypatch, server)
    wrong = "is no intact zip archive|does not hold .* not the archive of Toy data"
    with pytest.raises(OSError, match=rf"^{tmp_path}/toy-1\.0\.zip ({wrong})"):
        _remote.ensure("toy", tmp_path)
    assert names(tmp_path) == []  # the next call starts afresh
    server.files["/toy.zip"] = zip_bytes(MEMBERS)
    assert_complete(_remote.ensure("toy", tmp_path), tmp_path)


def test_members_nested_archive_and_room(server, monkeypatch, tmp_path):
    inner = zip_bytes({"d/a.dat": b"1", "d/a.txt": b"2", "d/unwanted.bin": b"3"})
    server.files["/toy.zip"] = zip_bytes({"inner.zip": inner, "d/skip.zip": b"", "x": b"4"})
    publish(monkeypatch, server, members=r"\.(dat|txt)$")
    folder = _remote.ensure("toy", tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["a.dat", "a.txt"]

    usage = type("usage", (), {"free": 1})
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    with pytest.raises(OSError, match="make room"):
        _remote.ensure("toy", tmp_path / "b")
    # Keep the archive, which would have to be downloaded again.
    assert (tmp_path / "b" / "toy-1.0.zip").is_file()


def test_nothing_half_unpacked_is_left(remote, monkeypatch, tmp_path):
    def killed(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(_remote.os, "replace", killed)
    (tmp_path / "toy-1.0.zip").write_bytes(zip_bytes(MEMBERS))
    monkeypatch.setitem(_remote.REMOTES, "toy", dataclasses.replace(remote, sha256=None))
    with pytest.raises(KeyboardInterrupt):
        _remote.ensure("toy", tmp_path)
    assert names(tmp_path) == ["toy-1.0.zip"]


def test_what_a_killed_process_has_unpacked_is_deleted(remote, server, tmp_path):
    """A signal that ends a process leaves it no time to delete gigabytes."""
    (tmp_path / "toy-1.0.zip").write_bytes(server.files["/toy.zip"])
    code = f"""
import os, pathlib, signal
from sklearn_pulse.datasets import _remote
entry = _remote.{remote!r}
_remote._find_root = lambda *args: os.kill(os.getpid(), signal.SIGTERM)  # the archive is unpacked
home = pathlib.Path({str(tmp_path)!r})
_remote._unpack(home / "toy-1.0.zip", home, entry)
"""
    killed = subprocess.run([sys.executable, "-c", code], check=False)
    assert killed.returncode == -signal.SIGTERM
    assert len(names(tmp_path)) == 2
    (tmp_path / ".toy-of-mine").mkdir()
    assert (_remote.ensure("toy", tmp_path) / "a.txt").read_bytes() == b"text"
    assert sorted(names(tmp_path)) == [".toy-of-mine", "toy", "toy-1.0.zip"]


def test_a_killed_download_leaves_its_part_alone(remote, server, held_half_way, tmp_path):
    """Once each kill left an empty file of pooch, for ever."""
    is_under_way, go_on = held_half_way
    code = f"""
from sklearn_pulse.datasets import _remote
_remote.REMOTES["toy"] = _remote.{remote!r}
_remote.ensure("toy", {str(tmp_path)!r})
"""
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        assert is_under_way.wait(60)
        process.kill()
    go_on.set()
    assert names(tmp_path) == ["toy-1.0.zip.part"]
    server.half_way = lambda: None
    assert_complete(_remote.ensure("toy", tmp_path), tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="permissions of users")
@pytest.mark.parametrize(("folder", "lock"), [(0o700, 0o600), (0o775, 0o664), (0o1777, 0o666)])
def test_whoever_may_write_in_the_folder_may_take_its_lock(remote, tmp_path, folder, lock):
    """Once the lock of the first user kept the others out."""
    tmp_path.chmod(folder)
    mask = os.umask(0o022)
    try:
        _remote.ensure("toy", tmp_path)
    finally:
        os.umask(mask)
    assert (tmp_path / ".toy.lock").stat().st_mode & 0o777 == lock


# Plain files that a figshare article lists


def publish_files(server, monkeypatch, **changes):
    files = {"train.pt": b"train" * 9, "test.pt": b"test" * 9}
    entries = [
        {
            "name": name,
            "download_url": f"{server.url}/files/{name}",
            "computed_md5": hashlib.md5(content).hexdigest(),
        }
        for name, content in files.items()
    ]
    for name, content in files.items():
        server.files[f"/files/{name}"] = content
    entries.append({"name": "unwanted", "download_url": f"{server.url}/files/unwanted"})
    server.files["/article/1"] = json.dumps({"files": entries}).encode()
    publish(
        monkeypatch,
        server,
        url=f"{server.url}/article/1",
        filename=None,
        landmarks=tuple(files),
        **changes,
    )
    return files


def test_the_files_of_an_article_land_in_one_folder(server, monkeypatch, tmp_path):
    files = publish_files(server, monkeypatch)
    folder = _remote.ensure("toy", tmp_path)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
    assert names(tmp_path) == ["toy"]


def test_the_files_of_an_article_land_behind_a_link(server, monkeypatch, tmp_path):
    files = publish_files(server, monkeypatch)
    (tmp_path / "disk").mkdir()
    (tmp_path / "toy").symlink_to(tmp_path / "disk")
    test = server.files.pop("/files/test.pt")
    with pytest.raises(OSError, match="could not be downloaded"):
        _remote.ensure("toy", tmp_path)
    server.files["/files/test.pt"] = test
    folder = _remote.ensure("toy", tmp_path)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
    assert folder == _remote.ensure("toy", tmp_path) == tmp_path / "toy" / "toy"
    assert server.log.count(("/files/train.pt", None)) == 1


def test_article_whose_download_breaks(server, monkeypatch, tmp_path):
    files = publish_files(server, monkeypatch)
    test = server.files.pop("/files/test.pt")
    with pytest.raises(OSError, match="could not be downloaded"):
        _remote.ensure("toy", tmp_path)
    assert not (tmp_path / "toy").exists()
    server.files["/files/test.pt"] = test
    folder = _remote.ensure("toy", tmp_path)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
    assert server.log.count(("/files/train.pt", None)) == 1


def test_article_with_another_checksum_or_list(server, monkeypatch, tmp_path):
    publish_files(server, monkeypatch)
    server.files["/files/test.pt"] = b"another"
    with pytest.raises(OSError, match=r"md5 checksum.* put the files into .*/toy yourself"):
        _remote.ensure("toy", tmp_path)
    assert not (tmp_path / "toy").exists()
    for answer in ({"files": []}, [], {"files": None}, {"files": [{"name": "train.pt"}, "x"]}):
        server.files["/article/1"] = json.dumps(answer).encode()
        with pytest.raises(OSError, match=r"lists no train\.pt, test\.pt"):
            _remote.ensure("toy", tmp_path)
    server.files["/article/1"] = b"<html>"
    with pytest.raises(OSError, match="could not be downloaded"):
        _remote.ensure("toy", tmp_path)


# Through the fetchers


@pytest.mark.filterwarnings("ignore:.* recordings that have segments")
def test_fetch_har_downloads(server, monkeypatch, tmp_path):
    rows = random_label_rows(np.random.default_rng(3), LENGTHS)
    write_folder(tmp_path / "made" / "RawData", LENGTHS, rows)
    made = sorted((tmp_path / "made" / "RawData").iterdir())
    server.files["/har.zip"] = zip_bytes({f"RawData/{p.name}": p.read_bytes() for p in made})
    har = dataclasses.replace(_remote.REMOTES["har"], url=f"{server.url}/har.zip", sha256=None)
    monkeypatch.setitem(_remote.REMOTES, "har", har)
    X, y = fetch_har(tmp_path, return_X_y=True)
    assert X.shape[1:] == (128, 6) and len(X) == len(y) > 0
    assert (tmp_path / "har" / "RawData" / "labels.txt").is_file()
    fetch_har(tmp_path, download_if_missing=False)
    assert len(server.log) == 1


@pytest.mark.parametrize("fetch", FETCHERS)
def test_flags_are_booleans(fetch, tmp_path):
    flags = [("return_X_y", "no"), ("download_if_missing", "no"), ("return_X_y", None)]
    if fetch is fetch_sleep_edf:
        flags.append(("truncate", 1))
    for name, value in flags:
        with pytest.raises(TypeError, match=f"{name} must be True or False"):
            fetch(tmp_path, **({"download_if_missing": False} | {name: value}))


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch, number):
    def refuse(*args, **kwargs):
        raise OSError(number, os.strerror(number), str(tmp_path / ".har.lock"))

    message = "the data folder .* cannot be written: .*data_home or by the .*SKLEARN_PULSE_DATA"
    (tmp_path / _remote.REMOTES["har"].filename).write_bytes(b"an archive")
    store = _synthetic_cache.TrialStore(tmp_path, _systems.SYSTEMS["lorenz"], "midpoint")
    monkeypatch.setattr(_remote, "alone", refuse)
    with pytest.raises(PermissionError, match=message):
        _remote.ensure("har", tmp_path)
    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with pytest.raises(PermissionError, match=message):
        datasets.get_data_home(tmp_path / "new")
    with pytest.raises(PermissionError, match=message):
        store[0, 0.0] = np.zeros((1, 1), np.float32)
