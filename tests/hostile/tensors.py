"""Hostile files of torch.save: published checkpoints, and data sets of tensors."""

import io
import os
import pickle
import struct
import warnings
import zipfile

import numpy as np
import torch

from sklearn_pulse import PulseTransformer
from sklearn_pulse.datasets._tfc import read_parts
from sklearn_pulse.interop import from_reference_checkpoint, to_reference_state
from tests.helpers import SMALL_PULSE, make_windows
from tests.hostile.pickles import SHARED, TUPLES
from tests.hostile.records import Bomb
from tests.hostile.registry import attack, loader

X = make_windows(n=8)[0]
STATE: dict[str, torch.Tensor] = {}
FIRST = "encoder.ts_encoder.input_fc.weight"
BLOCKS = "encoder.ts_encoder.feature_extractor.net."


def prepare():
    STATE.update(to_reference_state(PulseTransformer(**SMALL_PULSE | {"max_epochs": 1}).fit(X)))


@loader("from_reference")
def read_reference(path):
    return from_reference_checkpoint(path)


@loader("read_tfc")
def read_tfc(path):
    return read_parts(path.parent, n_channels=1, n_classes=2)


def works(model):
    return np.isfinite(model.transform(X)).all()


def reference(name, change, *, harmless=None, **options):
    @attack("from_reference", name, harmless=harmless)
    def write(folder):
        path = folder / "published.pt"
        with warnings.catch_warnings(action="ignore"):
            torch.save(change(dict(STATE)), path, **options)
        return path


def changed(**changes):
    """Return a change of the first weight."""
    (change,) = changes.values()
    return lambda state: state | {FIRST: change(state[FIRST])}


def repeated(state):
    return {name: w.flatten()[:1].expand(w.numel() * 10**5) for name, w in state.items()}


def wide(state):
    """A consistent network of enormous layers, all of one stored number."""
    sizes = {8: 20_000}
    return {
        name: w.flatten()[:1].reshape([1] * w.ndim).expand([sizes.get(n, n) for n in w.shape])
        for name, w in state.items()
    }


def fake_blocks(state):
    return state | {f"{BLOCKS}{i}.conv1.conv.bias": torch.zeros(8) for i in range(20_000)}


def shared(n):
    inner = [torch.ones(1)]
    for _ in range(n):
        inner = [inner, inner]
    return inner


OLD = {"_use_new_zipfile_serialization": False}
reference("tensors that repeat one number", wide)
reference("tensors that repeat one number in the old format", wide, **OLD)
reference("long tensors that repeat one number", repeated)
reference(
    "tensors that share all numbers",
    lambda state: (
        state | {f"{BLOCKS}{i}.x": storage for storage in [torch.zeros(2**18)] for i in range(5000)}
    ),
)
reference("blocks without content", fake_blocks)
reference("blocks without content in the old format", fake_blocks, **OLD)
reference("weights that are no numbers", changed(to=lambda w: w * torch.nan))
reference("infinite weights", changed(to=lambda w: w * 0 + torch.inf))
reference("weights of whole numbers", changed(to=torch.Tensor.long))
reference("complex weights", changed(to=lambda w: w.to(torch.complex64)))
reference("weights that are true or false", changed(to=torch.Tensor.bool))
reference("sparse weights", changed(to=torch.Tensor.to_sparse))
reference("weights without memory", changed(to=lambda w: w.to("meta")))
reference(
    "quantized weights", changed(to=lambda w: torch.quantize_per_tensor(w, 0.1, 0, torch.qint8))
)
reference("weights that overflow", lambda s: {name: w * 1e38 for name, w in s.items()})
reference("weights too large for float32", changed(to=lambda w: w.double() * 1e300))
reference("a number for a weight", changed(to=lambda w: 1.0))
reference("a text for a weight", changed(to=lambda w: "weight"))
reference("a weight without axes", changed(to=lambda w: w.sum()))
reference("a weight without numbers", changed(to=lambda w: w[:, :0]))
reference(
    "an even kernel",
    lambda s: (
        s
        | {name: w[..., :2].clone() for name, w in s.items() if "init_proj" in name and w.ndim == 3}
    ),
)
reference(
    "a weight under two names",
    lambda s: s | {f"{BLOCKS}0.conv1.bias": s[f"{BLOCKS}0.conv1.conv.bias"]},
)
reference("names that are numbers", lambda s: dict(enumerate(s.values())))
reference("a list of weights", lambda s: list(s.values()))
reference("one tensor", lambda s: s[FIRST])
reference("nothing in it", lambda s: {})
reference("dictionaries of other names", lambda s: {"model": s, "optimizer": {}})
reference("lists that share lists", lambda s: {"a": shared(28)})
reference("a byte array", lambda s: s | {"a": bytearray(9)})
reference("the usual wrapper", lambda s: {"state_dict": s, "epoch": 3}, harmless=works)
reference("the old format", lambda s: s, harmless=works, **OLD)
reference("parameters", lambda s: {k: torch.nn.Parameter(w) for k, w in s.items()}, harmless=works)
reference("double precision", lambda s: {k: w.double() for k, w in s.items()}, harmless=works)


def archive(folder, members, compression=zipfile.ZIP_STORED):
    path = folder / "published.pt"
    with zipfile.ZipFile(path, "w", compression) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return path


def members(content):
    """Return the members of a file of torch.save."""
    stream = io.BytesIO()
    torch.save(content, stream)
    with zipfile.ZipFile(stream) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def a_tensor(n_bytes=4):
    """Members of a file with a tensor whose content has a given length."""
    found = members({"a": torch.zeros(1)})
    return found | {"archive/data/0": bytes(n_bytes)}


@attack("from_reference")
def compressed_zeros(folder):
    return archive(folder, a_tensor(2**28), zipfile.ZIP_DEFLATED)


@attack("from_reference")
def a_compressed_pickle(folder):
    found = a_tensor() | {"archive/data.pkl": b"\x80\x02](" + b"N" * 2**27 + b"e."}
    return archive(folder, found, zipfile.ZIP_DEFLATED)


@attack("from_reference")
def a_compiled_module(folder):
    path = folder / "published.pt"
    with warnings.catch_warnings(action="ignore"):
        torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), path)
    return path


@attack("from_reference")
def members_upon_each_other(folder):
    """Many entries of the directory point at the same bytes."""
    path = archive(folder, a_tensor(2**20))
    content = path.read_bytes()
    start = content.index(b"PK\x01\x02")
    end = content.rindex(b"PK\x05\x06")
    directory = content[start:end]
    repeated = b"".join(
        directory.replace(b"archive/data/0", f"archive/data/{i}".encode()) for i in range(2, 9)
    )
    total = directory + repeated
    count = 8 * directory.count(b"PK\x01\x02")
    tail = bytearray(content[end:])
    struct.pack_into("<HHI", tail, 8, count, count, len(total))
    path.write_bytes(content[:start] + total + bytes(tail))
    return path


@attack("from_reference")
def more_numbers_than_the_member_has(folder):
    found = members({"a": torch.zeros(100)})
    return archive(folder, found | {"archive/data/0": bytes(4)})


def pickled(name, content):
    """Replace the pickle in an archive, and stand it alone in the old format."""

    @attack("from_reference", name)
    def write(folder):
        return archive(folder, a_tensor() | {"archive/data.pkl": content})

    @attack("from_reference", f"{name} in the old format")
    def write_old(folder):
        path = folder / "published.pt"
        torch.save({"a": torch.zeros(1)}, path, **OLD)
        parts = path.read_bytes().split(b".\x80\x02")
        assert len(parts) == 5
        body = content.removeprefix(b"\x80\x02").removesuffix(b".")
        path.write_bytes(b".\x80\x02".join([*parts[:3], body, *parts[4:]]))
        return path


pickled(
    "a byte array of ten gigabytes",
    b"\x80\x02c__builtin__\nbytearray\n\x8a\x05" + (10**10).to_bytes(5, "little") + b"\x85R.",
)
pickled(
    "a tensor of ten gigabytes",
    b"\x80\x02ctorch\nTensor\n\x8a\x05" + (10**10).to_bytes(5, "little") + b"\x85R.",
)
pickled(
    "a storage of ten gigabytes",
    b"\x80\x02(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000"
    b"X\x03\x00\x00\x00cpu\x8a\x05" + (10**10).to_bytes(5, "little") + b"NtQ.",
)
pickled("shared lists", b"\x80\x02" + SHARED + b".")
pickled("a deep tuple as a key", b"\x80\x02}" + TUPLES + b"Ns.")
pickled("a high slot of the memo", b"\x80\x02Nr" + struct.pack("<I", 2**28) + b".")
pickled("a function that runs", b"\x80\x02cos\nmkdir\nX\x08\x00\x00\x00executed\x85R.")


def raw(name, write_content):
    @attack("from_reference", name)
    def write(folder):
        path = folder / "published.pt"
        path.write_bytes(write_content(folder))
        return path


def good(folder):
    torch.save(STATE, folder / "x")
    return (folder / "x").read_bytes()


raw("nothing", lambda folder: b"")
raw("text", lambda folder: b"weights")
raw("binary junk", lambda folder: bytes(range(256)) * 9)
raw("an empty archive", lambda folder: b"PK\x05\x06" + bytes(18))
raw("half a file", lambda folder: good(folder)[: len(good(folder)) // 2])
raw(
    "another bit",
    lambda folder: good(folder).replace(STATE[FIRST].numpy().tobytes(), bytes(STATE[FIRST].nbytes)),
)
raw("a pickle that runs", lambda folder: pickle.dumps(Bomb(folder / "executed"), 2))


@attack("from_reference")
def a_checkpoint_that_runs(folder):
    torch.save(STATE | {"a": Bomb(folder / "executed")}, folder / "published.pt")
    return folder / "published.pt"


@attack("from_reference")
def a_pipe(folder):
    os.mkfifo(folder / "published.pt")
    return folder / "published.pt"


@attack("from_reference")
def a_folder(folder):
    (folder / "published.pt").mkdir()
    return folder / "published.pt"


@attack("from_reference")
def no_file(folder):
    return folder / "published.pt"


GOOD = {"samples": torch.zeros(4, 1, 16), "labels": torch.tensor([0, 1, 0, 1])}


def parts(name, content, *, harmless=None):
    @attack("read_tfc", name, harmless=harmless)
    def write(folder):
        for part in ("train", "val", "test"):
            torch.save(GOOD, folder / f"{part}.pt")
        value = content(folder) if callable(content) else content
        if isinstance(value, bytes):
            (folder / "val.pt").write_bytes(value)
        else:
            with warnings.catch_warnings(action="ignore"):
                torch.save(value, folder / "val.pt")
        return folder / "val.pt"


parts("what is published", GOOD, harmless=lambda data: data.X.shape == (12, 16, 1))
parts(
    "tensors with a gradient",
    GOOD | {"samples": torch.nn.Parameter(torch.zeros(4, 1, 16))},
    harmless=lambda data: data.X.shape == (12, 16, 1),
)
parts("nested lists that share lists", {"samples": shared(28), "labels": shared(28)})
parts(
    "a tensor that repeats one number",
    {"samples": torch.zeros(1).expand(10**7, 1, 16), "labels": torch.zeros(1).expand(10**7)},
)
parts("no labels", {"samples": torch.zeros(4, 1, 16)})
parts("a tensor", torch.zeros(3))
parts("lists", {"samples": [[1.0]], "labels": [0]})
parts("a text", "samples")
parts("labels that are no numbers", GOOD | {"labels": torch.full((4,), torch.nan)})
parts("labels between whole numbers", GOOD | {"labels": torch.full((4,), 0.5)})
parts("labels out of range", GOOD | {"labels": torch.full((4,), 2**62)})
parts("labels of another length", GOOD | {"labels": torch.zeros(5)})
parts("complex samples", GOOD | {"samples": torch.zeros(4, 1, 16, dtype=torch.complex64)})
parts("sparse samples", GOOD | {"samples": torch.zeros(4, 1, 16).to_sparse()})
parts("too many axes", GOOD | {"samples": torch.zeros(4, 1, 16, 1, 1)})
parts("a function that runs", lambda folder: {"samples": Bomb(folder / "executed")})
parts("a pickle that runs", lambda folder: pickle.dumps(Bomb(folder / "executed"), 2))
parts("nothing", b"")
parts("junk", bytes(range(256)))
parts("half a file", lambda folder: (folder / "train.pt").read_bytes()[:-300])
