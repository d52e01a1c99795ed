"""Hostile pickles, as a data set of a stranger may hold them."""

import os
import pickle
import struct

import numpy as np

from sklearn_pulse.datasets._safe_pickle import read_pickle
from tests.hostile.records import Bomb
from tests.hostile.registry import attack, loader


@loader("read_pickle")
def read(path):
    return read_pickle(path)


def write(folder, content):
    path = folder / "S2.pkl"
    path.write_bytes(content)
    return path


DTYPE = b"cnumpy\ndtype\n"
ARRAY = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
F8 = DTYPE + b"\x8c\x02f8\x85R"
SHARED = b"]q\x00" + b"".join(
    b"](h" + bytes([i]) + b"h" + bytes([i]) + b"eq" + bytes([i + 1]) for i in range(28)
)
TUPLES = b"N" + b"\x85" * 1_000_000  # a tuple in a tuple in a tuple ...


def colliding(n):
    """A dictionary of whole numbers that all have one hash, which Python compares with each other.

    The pickle is written by hand, as the dictionary itself would take minutes to make.
    """
    keys = ((k * (2**61 - 1)).to_bytes(10, "little") for k in range(1, n))
    return b"\x80\x02}(" + b"".join(b"\x8a\x0a" + key + b"N" for key in keys) + b"u."


for name, content in {
    "lists that share lists": SHARED + b".",
    "a list that holds itself twice": b"]q\x00(h\x00h\x00e.",
    "a deep tuple as a key": b"}" + TUPLES + b"Ns.",
    "a deep tuple in a set": b"\x80\x04\x8f(" + TUPLES + b"\x90.",
    "a deep tuple": TUPLES + b".",
    "a deep list": b"]" * 500_000 + b"a" * 499_999 + b".",
    "a high slot of the memo": b"Nr" + struct.pack("<I", 2**28) + b".",
    "a higher slot of the memo in text": b"Np" + b"9" * 18 + b"\n.",
    "slots of the memo far apart": b"N"
    + b"".join(b"r" + struct.pack("<I", 2**k) for k in range(10, 29))
    + b".",
    "bytes beyond the end": b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"abc.",
    "four gigabytes of bytes": b"B" + struct.pack("<I", 2**32 - 1) + b"abc.",
    "four gigabytes of text": b"\x80\x04\x8d" + struct.pack("<Q", 2**32) + b"abc.",
    "a buffer beyond the end": b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b"abc.",
    "a frame beyond the end": b"\x80\x04\x95" + struct.pack("<Q", 2**60) + b"N.",
    "a shape that repeats a list": ARRAY
    + b"(K\x01](K\x01K\x02K\x03eJ\x00\x00\x00\x7f\x86"
    + F8
    + b"\x89C\x00tb.",
    "a shape that repeats a text": ARRAY
    + b"(K\x01\x8c\x03abcJ\x00\x00\x00\x7f\x86"
    + F8
    + b"\x89C\x00tb.",
    "a shape of huge numbers": ARRAY
    + b"(K\x01K\x00\x8a\x08"
    + b"\xff" * 7
    + b"\x7f\x86"
    + F8
    + b"\x89C\x00tb.",
    "a type shown as shared lists": b"\x80\x04" + SHARED + DTYPE + b"h\x1c\x85R.",
    "a text encoded again and again": b"X"
    + struct.pack("<I", 2**20)
    + b"a" * 2**20
    + b"q\x000]("
    + b"c_codecs\nencode\nh\x00\x8c\x06latin1\x86R" * 3000
    + b"e.",
    "keys of one hash": colliding(150_000),
    "too many operations": b"](" + b"N" * 5_000_000 + b"e.",
    "an unknown protocol": b"\x80\x63N.",
    "an extension code": b"\x80\x02\x82\x01.",
    "an object outside": b"\x80\x04\x8c\x02idQ.",
    "a class of the old kind": b"(ios\nsystem\n.",
    "a name that is a value": b"cnumpy\nndarray\n.",
    "an array without content": ARRAY + b".",
    "a structured type": pickle.dumps(np.zeros(2, [("a", "f8")])),
    "an array of objects": pickle.dumps(np.array([{}, None])),
    "an array in a set": b"\x80\x04\x8f("
    + ARRAY
    + b"(K\x01K\x01\x85"
    + F8
    + b"\x89C\x08"
    + bytes(8)
    + b"tb\x90.",
    "half a pickle": pickle.dumps({"a": np.arange(99)})[:-100],
    "nothing": b"",
    "text": b"not a pickle",
    "zeros": bytes(1000),
    "an archive": b"PK\x03\x04" + bytes(100),
}.items():
    attack("read_pickle", name)(lambda folder, content=content: write(folder, content))


@attack("read_pickle")
def a_function_that_runs(folder):
    return write(folder, pickle.dumps({"signal": Bomb(folder / "executed")}))


@attack("read_pickle")
def a_function_that_runs_in_text(folder):
    return write(folder, pickle.dumps(Bomb(folder / "executed"), 0))


@attack("read_pickle")
def a_pipe(folder):
    os.mkfifo(folder / "S2.pkl")
    return folder / "S2.pkl"


@attack("read_pickle", harmless=lambda data: len(data["a"]) == 2 and data["a"][0] is data["a"][1])
def a_value_held_twice(folder):
    array = [1, 2]
    return write(folder, pickle.dumps({"a": [array, array]}))
