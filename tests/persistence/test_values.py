import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sklearn_pulse._persistence._values import decode, encode

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=3)
        | st.dictionaries(st.text() | st.integers() | st.floats(), inner, max_size=3)
        | st.dictionaries(st.booleans(), inner)
    ),
    max_leaves=8,
)


def through_json(value):
    return decode(json.loads(json.dumps(encode(value), allow_nan=False)))


@given(VALUES)
def test_plain_values_come_back_with_their_types(value):
    assert repr(through_json(value)) == repr(value)


@given(
    arrays(np.float32, (2, 3))
    | arrays(np.int64, 4)
    | arrays(np.bool_, 2)
    | arrays(np.dtype("U5"), 3)
    | arrays(np.float64, ())
)
def test_arrays_come_back(value):
    restored = through_json(value)
    np.testing.assert_array_equal(restored, value)
    assert restored.dtype.kind == value.dtype.kind
    if value.dtype.kind != "U":
        assert restored.dtype == value.dtype


def test_an_index_of_pandas_comes_back_as_an_array():
    for index in (pd.Index(["ecg", "ppg"]), pd.Index(["ecg", "ppg"], dtype=object)):
        assert through_json(index).tolist() == ["ecg", "ppg"]
    assert through_json(pd.RangeIndex(3)).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "value",
    [
        *(object(), {(1,): 1}, {None: 1}, {1}, 1j, b"x", len, np.array([1j]), np.array([object()])),
        *(np.array(["2026-01-01"], dtype=f"M8[{unit}]") for unit in ("D", "ns")),
        np.array([1], dtype="m8[ns]"),
        *(pd.period_range("2026", periods=2), pd.MultiIndex.from_tuples([(0, 1)])),
    ],
)
def test_everything_else_is_refused(value):
    with pytest.raises(TypeError, match="a file cannot hold a"):
        encode([value])
