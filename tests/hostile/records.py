"""Hostile cells of a benchmark, logs of looks and stored arrays."""

import io
import json
import os
import struct
import zipfile

import numpy as np

from sklearn_pulse.benchmark import Cell, Results
from sklearn_pulse.datasets._arrays import map_array
from tests.hostile.registry import attack, loader

CELL = Cell("linear-probe", "har", "pulse", 0, "val", "small")


@loader("read_cells")
def read_cells(path):
    results = Results(path.parents[len(CELL.path.parts)])
    try:
        return results.read(CELL)
    finally:
        list(results)


@loader("read_looks")
def read_looks(path):
    return Results(path.parent).looks()


@loader("read_array")
def read_array(path):
    return np.array(map_array(path, np.float32, (None, 3)))


def cell(folder, change=lambda text: text):
    """Write a finished cell, with a change of its text."""
    Results(folder).write(CELL, {"lr": 0.1}, {"scores": {"accuracy": 0.5}})
    path = folder / "cells" / CELL.path
    content = change(path.read_text())
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def entry(**entries):
    return lambda text: json.dumps(json.loads(text) | entries)


for name, change in {
    "half a cell": lambda text: text[: len(text) // 2],
    "no JSON": lambda text: "accuracy = 0.5",
    "nothing": lambda text: "",
    "binary junk": lambda text: bytes(range(256)),
    "a list": lambda text: "[1, 2]",
    "a deep list": lambda text: "[" * 100_000,
    "no format": lambda text: "{}",
    "a format of text": entry(format="1"),
    "another cell": entry(cell={**json.loads('{"dataset": "har"}')}),
    "a cell under the name of another": lambda text: text.replace('"pulse"', '"majority"'),
    "a seed of text": lambda text: text.replace('"seed": 0', '"seed": "0"'),
    "a cell that is a list": entry(cell=[1, 2]),
    "no identity": lambda text: text.replace('"identity"', '"identit"'),
    "scores that are a text": entry(scores="good"),
    "a score that is no number": lambda text: text.replace("0.5", "NaN"),
    "a score that is a text": lambda text: text.replace("0.5", '"good"'),
    "a score without end": lambda text: text.replace("0.5", "1e999"),
    "another score": lambda text: text.replace("0.5", "0.6"),
    "a checksum that is a list": entry(checksum=[1]),
    "a note that is a list": entry(note=[1, 2]),
}.items():
    attack("read_cells", name)(lambda folder, change=change: cell(folder, change))


@attack("read_cells")
def a_cell_without_end(folder):
    path = cell(folder)
    with open(path, "ab") as file:
        file.truncate(2**40)  # no bytes on the disk
    return path


@attack("read_cells", harmless=lambda record: record is None)
def a_later_format(folder):
    return cell(folder, entry(format=99))


def looks(folder, *lines):
    results = Results(folder)
    results.log_look(CELL)
    path = folder / "test_looks.jsonl"
    path.write_bytes(b"".join([path.read_bytes(), *lines]))
    return path


for name, line in {
    "half a line": b'{"time": "2024-01-01T00:00:00Z", "protoc',
    "no JSON": b"looked at it\n",
    "binary junk": bytes(range(256)),
    "another dictionary": b'{"a": 1}\n',
    "a number": b"1\n",
    "deep": b"[" * 100_000 + b"\n",
}.items():
    attack("read_looks", name)(lambda folder, line=line: looks(folder, line))


@attack("read_looks", harmless=len)
def the_log_is_whole(folder):
    return looks(folder)


def npy(folder, content):
    path = folder / "embedding.npy"
    path.write_bytes(content)
    return path


def saved(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def with_header(text, data=b""):
    text = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


GOOD = saved(np.ones((5, 3), np.float32))


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


for name, content in {
    "nothing": b"",
    "half an array": GOOD[: len(GOOD) - 20],
    "text": b"1,2,3\n",
    "a header without end": GOOD[:40],
    "another type": saved(np.ones((5, 3))),
    "another byte order": saved(np.ones((5, 3), ">f4")),
    "another shape": saved(np.ones((5, 4), np.float32)),
    "more numbers than bytes": with_header(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 3), }"
    ),
    "a shape that overflows": with_header(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2**62, 3), }"
    ),
    "a negative shape": with_header(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-5, 3), }", bytes(60)
    ),
    "a header of code": with_header("__import__('os').system('touch executed')"),
    "a deep header": with_header("(" * 9000),
}.items():
    attack("read_array", name)(lambda folder, content=content: npy(folder, content))


@attack("read_array")
def an_array_of_objects(folder):
    objects = np.empty((2, 3), object)
    objects[:] = Bomb(folder / "executed")
    return npy(folder, saved(objects, allow_pickle=True))


@attack("read_array")
def an_archive(folder):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", bytes(2**28))
    return npy(folder, stream.getvalue())


@attack("read_array")
def a_pipe(folder):
    os.mkfifo(folder / "embedding.npy")
    return folder / "embedding.npy"


@attack("read_array", harmless=lambda array: array.shape == (5, 3))
def columns_first(folder):
    return npy(folder, saved(np.asfortranarray(np.ones((5, 3), np.float32))))
