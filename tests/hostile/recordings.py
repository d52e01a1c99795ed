"""Hostile records of WFDB."""

import importlib.util

import numpy as np

from sklearn_pulse.datasets import _mitbih_af as reader
from tests.datasets.wfdb_records import write_signals
from tests.hostile.registry import attack, loader

N = 3000


def read(path):
    import wfdb

    folder = path.parent
    rhythms = reader.read_rhythms(wfdb, folder, "04015")
    return reader.read_signals(wfdb, folder, rhythms, reader.common_length([rhythms]))


def write(folder, name):
    """Write a record of two leads, and return the path of one of its files."""
    import wfdb

    signals = np.round(100 * np.sin(np.arange(2 * N).reshape(N, 2) / 9)) / 200
    write_signals(folder, "04015", signals)
    wfdb.wrann(
        "04015",
        "atr",
        np.array([10, 1000]),
        symbol=["+", "+"],
        aux_note=["(N", "(AFIB"],
        write_dir=str(folder),
    )
    return folder / f"04015.{name}"


def header(name, change):
    @attack("read_wfdb", name)
    def write_header(folder):
        path = write(folder, "hea")
        content = change(path.read_text())
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


def file(name, suffix, change, *, harmless=None):
    @attack("read_wfdb", name, harmless=harmless)
    def write_file(folder):
        path = write(folder, suffix)
        path.write_bytes(change(path.read_bytes()))
        return path


if importlib.util.find_spec("wfdb"):
    loader("read_wfdb")(read)
    header("more samples than bytes", lambda text: text.replace(" 3000", " 300000000000000", 1))
    header("fewer bytes than samples", lambda text: text.replace(" 3000", " 4000", 1))
    header("no number of samples", lambda text: text.replace(" 3000", "", 1))
    header("no samples", lambda text: text.replace(" 3000", " 0", 1))
    header("many leads", lambda text: text.replace("04015 2 ", "04015 100000 "))
    header("one lead", lambda text: text.replace("04015 2 ", "04015 1 "))
    header("no sampling rate", lambda text: text.replace(" 250 ", " 0 ", 1))
    header("an infinite sampling rate", lambda text: text.replace(" 250 ", " 1e300 ", 1))
    header("a slow sampling rate", lambda text: text.replace(" 250 ", " 0.0001 ", 1))
    header("signals of another folder", lambda text: text.replace("04015.dat", "../../x.dat"))
    header("signals of the system", lambda text: text.replace("04015.dat", "/etc/passwd"))
    header("signals of another address", lambda text: text.replace("04015.dat", "http://x/y.dat"))
    header("an unknown format", lambda text: text.replace(" 212 ", " 999 "))
    header("a compressed format", lambda text: text.replace(" 212 ", " 508 "))
    header(
        "another record in segments", lambda text: "04015/2 2 250 6000\n04015 3000\n04015 3000\n"
    )
    header("nothing", lambda text: "")
    header("only comments", lambda text: "# 04015\n")
    header("binary junk", lambda text: bytes(range(256)))
    header("half a header", lambda text: text[: len(text) // 2])
    file("no signals", "dat", lambda content: b"")
    file("half the signals", "dat", lambda content: content[: len(content) // 2])
    file("no annotations", "atr", lambda content: b"")
    file("annotations of zeros", "atr", lambda content: bytes(1000))
    file("annotations of ones", "atr", lambda content: b"\xff" * 1001)
    file("annotations of junk", "atr", lambda content: bytes(range(256)) * 20)
    file("half the annotations", "atr", lambda content: content[:11])
    file("a skip far ahead", "atr", lambda content: b"\x00\xec\xff\x7f\xff\xff" + content)
    file("a skip far back", "atr", lambda content: b"\x00\xec\x00\x80\x00\x00" + content)
    file("a whole record", "dat", bytes, harmless=lambda signals: signals.shape[1] == 2)
