"""The reader of untrusted pickles, which allows only arrays and plain containers."""

from __future__ import annotations

import collections
import datetime
import functools
import os
import pickle
import pickletools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

from sklearn_pulse.datasets._safe_pickle import read_pickle
from tests.windows.helpers import quick

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("pickles") / "x.pkl"


def read(path, content):
    path.write_bytes(content)
    return read_pickle(path)


def assert_same(got, expected):
    assert type(got) is type(expected)
    if isinstance(expected, np.ndarray):
        assert got.dtype == expected.dtype and got.shape == expected.shape
        np.testing.assert_array_equal(got, expected)
    elif isinstance(expected, dict):
        assert list(got) == list(expected)
        for key in expected:
            assert_same(got[key], expected[key])
    elif isinstance(expected, (list, tuple)):
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            assert_same(a, b)
    else:
        assert got == expected


# The layout of a WESAD subject.
SUBJECT = {
    "signal": {
        "chest": {"ACC": np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)},
        "wrist": {"BVP": np.random.default_rng(1).normal(size=(30, 1))},
    },
    "label": np.repeat([0, 1, 2], 7).astype(np.int32),
    "subject": "S2",
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_layout_of_wesad(path, protocol):
    assert_same(read(path, pickle.dumps(SUBJECT, protocol)), SUBJECT)


def python2_pickle():
    """Write a pickle like those of Python 2, with names of numpy.core and byte strings."""
    values = np.arange(-3, 3, dtype="<f8").reshape(3, 2)
    raw = values.tobytes()
    return values, b"".join(
        [
            b"\x80\x02}U\x03BVPcnumpy.core.multiarray\n_reconstruct\n",
            b"cnumpy\nndarray\nK\x00\x85U\x01b\x87R",
            b"(K\x01K\x03K\x02\x86cnumpy\ndtype\nU\x02f8K\x00K\x01\x87R",
            b"(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U",
            bytes([len(raw)]) + raw + b"tbs.",
        ]
    )


def test_python_2(path):
    values, content = python2_pickle()
    assert_same(pickle.loads(content, encoding="latin1"), {"BVP": values})
    assert_same(read(path, content), {"BVP": values})


@quick
@given(
    dtype=st.sampled_from("? i1 >i2 <i4 >i8 u1 <u2 >u4 u8 f2 >f4 <f8 c8 >c16 <U3 >U2 S4".split()),
    shape=array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4),
    protocol=st.sampled_from(PROTOCOLS),
    is_fortran=st.booleans(),
)
def test_any_numeric_array(path, dtype, shape, protocol, is_fortran):
    array = np.random.default_rng(0).integers(0, 99, shape).astype(dtype)
    array = np.asfortranarray(array) if is_fortran else array
    assert_same(read(path, pickle.dumps(array, protocol)), array)


def plain():
    whole = st.integers(-(2**64), 2**64)
    leaves = st.one_of(
        st.none(), st.booleans(), whole, st.floats(allow_nan=False), st.text(), st.binary()
    )
    keys = st.one_of(st.text(), whole)
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.lists(inner, max_size=4).map(tuple),
            st.dictionaries(keys, inner, max_size=4),
        ),
        max_leaves=12,
    )


@quick
@given(plain(), st.sampled_from(range(3, pickle.HIGHEST_PROTOCOL + 1)))
def test_any_plain_container(path, data, protocol):
    assert_same(read(path, pickle.dumps(data, protocol)), data)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_scalars_sets_and_bytes(path, protocol):
    data = {"a": np.float32(1.5), "b": np.int64(-2), "c": b"\x00\xff", "d": (np.bool_(True),)}
    assert_same(read(path, pickle.dumps(data, protocol)), data)
    if protocol >= 4:
        assert_same(read(path, pickle.dumps({1, 2}, protocol)), {1, 2})


# Hostile pickles


class Hostile:
    """An object that runs a function when it is unpickled."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def marker(path):
    return path.with_name("marker")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("function", [os.mkdir, os.system, eval, functools.partial, getattr])
def test_code_is_not_run(path, function, protocol):
    args = {
        os.mkdir: (str(marker(path)),),
        os.system: (f"mkdir {marker(path)}",),
        eval: (f"__import__('os').mkdir({str(marker(path))!r})",),
        functools.partial: (os.mkdir, str(marker(path))),
        getattr: ("os", "mkdir"),
    }[function]
    hostile = {"signal": SUBJECT["signal"], "label": Hostile(function, *args)}
    with pytest.raises(ValueError, match="is refused: it asks for "):
        read(path, pickle.dumps(hostile, protocol))
    assert not marker(path).exists()


def test_the_hostile_pickle_would_have_run(path):
    pickle.loads(pickle.dumps(Hostile(os.mkdir, str(marker(path)))))
    assert marker(path).exists()
    marker(path).rmdir()


@pytest.mark.parametrize(
    "data",
    [
        collections.OrderedDict(a=1),
        datetime.date(2024, 1, 1),
        np.array([{"a": 1}, None], dtype=object),
        np.zeros(2, dtype=[("a", "f8")]),
        np.array(["2024-01-01"], dtype="M8[D]"),
        np.ma.masked_array([1, 2], [0, 1]),
        np.random.default_rng(0),
        np.float64,
        np.dtype("f8"),
        np.ndarray,
        len,
        Hostile(np.ndarray, (1,), "O"),
        Hostile(np.load, "x"),
    ],
    ids=lambda data: type(data).__name__,
)
def test_other_objects_are_refused(path, data):
    with pytest.raises(ValueError, match="is refused"):
        read(path, pickle.dumps(data))


RECONSTRUCT = b"cnumpy.core.multiarray\n_reconstruct\n"
ARRAY = RECONSTRUCT + b"cnumpy\nndarray\nK\x00\x85C\x01b\x87R"
F8 = b"cnumpy\ndtype\n\x8c\x02f8\x85R"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (RECONSTRUCT + b"}\x8c\x01ahb.", "."),  # an attribute for a stand-in
        (RECONSTRUCT + b"N}\x8c\x0c__defaults__N\x86s\x86b.", "."),
        (RECONSTRUCT + b"}b.", "change a function"),
        (RECONSTRUCT + b")\x81.", "."),  # NEWOBJ: a class is needed
        (b"cnumpy\nndarray\n(K\x01\x85tR.", "ndarray is called"),
        (ARRAY + b".", "no content"),
        (ARRAY + b"(K\x01K\x05\x85" + F8 + b"\x89C\x08" + bytes(8) + b"tb.", "has 8 bytes"),
        (ARRAY + b"(K\x01J\xff\xff\xff\xff\x85" + F8 + b"\x89C\x00tb.", "."),
        (ARRAY + b"(K\x01K\x01\x85N\x89C\x08" + bytes(8) + b"tb.", "no dtype"),
        (ARRAY + b"(K\x01K\x01\x85" + F8 + b"\x89]tb.", "content is list"),
        (b"cnumpy\ndtype\n\x8c\x01O\x85R.", "not numeric"),
        (b"cnumpy\ndtype\n\x8c\x05f8,O8\x85R.", "not numeric"),
        (b"c__builtin__\nbytes\nK\x05\x85R.", "with arguments"),
        (b"c_codecs\nencode\n\x8c\x01a\x8c\x03hex\x86R.", "encoding 'hex'"),
        (b"]q\x00h\x00a.", "nested"),  # a list that holds itself
        (b"\x8c\x02idQ.", "persistent"),
        (b"\x82\x01.", "."),  # an extension code
        (b"not a pickle", "."),
        (b"", "."),
        (pickle.dumps(SUBJECT)[:-200], "."),
        (b"\x80\x63.", "protocol"),
    ],
)
def test_crafted_pickles_are_refused(path, content, message):
    with pytest.raises(ValueError, match="is refused") as caught:
        read(path, b"\x80\x04" + content if content[:1] not in (b"\x80", b"n", b"") else content)
    assert message in str(caught.value)


@quick
@given(st.binary(max_size=60), st.integers(0, 10**6))
def test_damaged_pickles_are_errors_or_plain(path, noise, place):
    """Whatever the bytes are, the result is a ValueError or plain data."""
    content = pickle.dumps({"a": np.arange(3), "b": [1, "x"]}, 4)
    place %= len(content)
    try:
        read(path, content[:place] + noise + content[place + len(noise) :])
    except ValueError as error:
        assert "is refused" in str(error)


def test_missing_file(tmp_path):
    with pytest.raises(OSError):
        read_pickle(tmp_path / "nothing.pkl")


def test_crafted_pickles_are_pickles(path):
    """The pieces above make a valid pickle when nothing in them is changed."""
    good = b"\x80\x04" + ARRAY + b"(K\x01K\x01\x85" + F8 + b"\x89C\x08" + bytes(8) + b"tb."
    assert sum(1 for _ in pickletools.genops(good)) > 10
    assert_same(read(path, good), np.zeros(1))


def test_a_value_that_is_held_twice_stays_one_object(path):
    inner = [np.arange(3)]
    data = read(path, pickle.dumps([inner, inner]))
    assert data[0] is data[1]
    assert_same(data, [[np.arange(3)], [np.arange(3)]])


def long_number(value):
    """Return the operation that puts a whole number of any length on the stack."""
    digits = pickle.encode_long(value)
    return b"\x8b" + len(digits).to_bytes(4, "little") + digits


def nested(n):
    value = []
    for _ in range(n):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps(nested(28)), "more than 1000000 values"),
        (b"}" + b"N" + b"\x85" * 10**5 + b"Ns.", "nested more than 100 deep"),
        (b"Nr\x00\x00\x00\x10.", "slot 268435456 of the memo"),
        (b"]" * 200 + b"a" * 199 + b".", "nested more than 100 deep"),
        (pickle.dumps([None] * 300_000), "more than 200000 operations"),
        (b"\x80\x04\x8e" + b"\xff" * 7 + b"\x00ab.", "remain"),
        (ARRAY + b"(K\x01](K\x01eK\x02\x86" + F8 + b"\x89C\x00tb.", "tuple of whole numbers"),
        # Numbers of one hash, which a set compares one by one.
        (
            b"\x8f(" + b"".join(long_number(k * (2**61 - 1)) for k in range(999)) + b"\x90.",
            "add up",
        ),
        # A number that takes long to hash, and a shape that takes long to multiply.
        (long_number(256**9999) + b"q\x000\x8f(" + b"h\x00" * 99 + b"\x90.", "add up"),
        (
            ARRAY + b"(K\x01(" + long_number(256**9999) * 99 + b"t" + F8 + b"\x89C\x00tb.",
            "add up",
        ),
        # Without a bound, the time of a hash doubles with every level.
        (b"}" + b"N" + b"2\x86" * 60 + b"Ns.", "holds other values"),
    ],
    ids="twice tuples memo lists operations bytes shape hash number product key".split(),
)
def test_what_a_pickle_asks_for_is_bounded(path, content, message):
    with pytest.raises(ValueError, match=f"is refused: .*{message}"):
        read(path, content)
