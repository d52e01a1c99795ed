"""The label rule and the forms of labels."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sklearn_pulse.windows import random_windows, sliding_windows
from tests.windows.helpers import quick, ramp, slow_label


@quick
@given(
    steps=hnp.arrays(np.int64, st.integers(6, 30), elements=st.integers(-1, 3)),
    length=st.integers(1, 6),
    stride=st.integers(1, 4),
    label=st.sampled_from(["majority", "pure"]),
    min_labeled=st.sampled_from([0.1, 1 / 3, 0.5, 0.6, 2 / 3, 1.0]),
)
def test_label_rule_equals_loop(steps, length, stride, label, min_labeled):
    w = sliding_windows(
        [np.zeros(len(steps))], length, stride, y=[steps], label=label, min_labeled=min_labeled
    )
    expected = [slow_label(steps[s : s + length], label, min_labeled) for s in w.start]
    assert w.y.tolist() == expected
    assert w.y.dtype == np.int64


def test_min_labeled_is_an_exact_fraction():
    # 0.28 * 25 is above 7 in floating point, yet seven of 25 steps are the fraction 0.28
    steps = np.full(25, -1)
    steps[:7] = 2
    assert sliding_windows([np.zeros(25)], 25, y=[steps], min_labeled=0.28).y.tolist() == [2]
    assert sliding_windows([np.zeros(25)], 25, y=[steps], min_labeled=0.29).y.tolist() == [-1]


def test_ties_go_to_the_lowest_class():
    assert sliding_windows([np.zeros(4)], 4, y=[[7, 3, 7, 3]]).y.tolist() == [3]


def test_step_labels_are_down_sampled_like_the_recording():
    steps = np.tile([0, 1], 6)
    w = sliding_windows([np.zeros(12)], 3, y=[steps], label="pure", downsample=2)
    assert w.y.tolist() == [0, 0]


def test_labels_per_recording_are_repeated():
    recordings = [ramp(6), ramp(9)]
    assert sliding_windows(recordings, 3, y=[-1, 4]).y.tolist() == [-1, -1, 4, 4, 4]
    assert sliding_windows(recordings, 3, y=("b", "a")).y.tolist() == ["b", "b", "a", "a", "a"]
    assert sliding_windows(recordings, 3, y=pd.Series([True, False])).y.tolist() == [1, 1, 0, 0, 0]


@pytest.mark.parametrize(
    "y",
    [
        [[0, 0, 1], [1, 1, 1]],
        np.array([[0, 0, 1], [1, 1, 1]]),
        (np.array([0, 0, 1]), pd.Series([1, 1, 1])),
        np.array([[0.0, 0.0, 0.0], [np.nan, 1.0, 1.0]]),
    ],
)
def test_forms_of_labels_per_step(y):
    w = sliding_windows(np.zeros((2, 3, 1)), 3, y=y)
    assert w.y.tolist() == [0, 1]
    assert w.y.dtype == np.int64


def test_nan_is_unlabelled_among_integral_floats():
    steps = [np.nan, np.nan, 3.0, np.nan, np.nan, np.nan]
    assert sliding_windows([np.zeros(6)], 3, y=[steps], min_labeled=0.3).y.tolist() == [3, -1]
    assert sliding_windows([ramp(3), ramp(3)], 3, y=[np.nan, 2]).y.tolist() == [-1, 2]


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", "int8[pyarrow]", "bool[pyarrow]"])
def test_na_of_pandas_is_unlabelled(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    values = pd.Series([1, 0, pd.NA, pd.NA], dtype="Int64").astype(dtype)
    assert sliding_windows(np.zeros((4, 3, 1)), 3, y=values).y.tolist() == [1, 0, -1, -1]
    assert sliding_windows([ramp(4)], 1, y=[values]).y.tolist() == [1, 0, -1, -1]
    panel = pd.concat({name: pd.DataFrame({"x": np.zeros(3)}) for name in range(4)})
    assert sliding_windows(panel, 3, y=values).y.tolist() == [1, 0, -1, -1]


@pytest.mark.parametrize("missing", [None, pd.NA, pd.NaT, np.nan])
@pytest.mark.parametrize("make", [list, tuple, lambda y: np.array(y, dtype=object)])
def test_a_missing_entry_among_numbers_is_unlabelled(missing, make):
    y = make([2**60 + 1, missing, 0, 0])  # which a float does not hold
    expected = [2**60 + 1, -1, 0, 0]
    if missing is not np.nan or make not in (list, tuple):  # of which NumPy makes floats
        assert sliding_windows([ramp(4)], 1, y=[y]).y.tolist() == expected
        assert sliding_windows(np.zeros((4, 3, 1)), 3, y=y).y.tolist() == expected
    assert sliding_windows([ramp(2)], 1, y=[make([True, missing])]).y.tolist() == [1, -1]
    steps = make([missing] * 4)
    assert sliding_windows([ramp(4)], 2, y=[steps]).y.tolist() == [-1, -1]


def test_axes_of_the_entries_decide_not_sizes():
    # three recordings of three steps: sizes alone could not tell
    X = np.zeros((3, 3, 1))
    assert sliding_windows(X, 1, y=[0, 1, 2]).y.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert sliding_windows(X, 1, y=[[0, 1, 2]] * 3).y.tolist() == [0, 1, 2] * 3


def test_string_labels_per_step():
    steps = ["b", "a", "c", "c", "c", "a"]
    assert sliding_windows([np.zeros(6)], 2, y=[steps]).y.tolist() == ["a", "c", "a"]
    with pytest.raises(ValueError, match="encode y as integers"):
        sliding_windows([np.zeros(6)], 2, y=[steps], label="pure")
    w = sliding_windows([np.zeros(4)], 2, y=[["a", "a", "b", "b"]], label="pure")
    assert w.y.tolist() == ["a", "b"]


@pytest.mark.parametrize("lengths", [(4, 0, 4), (0, 4, 4)])
def test_a_recording_without_a_step_has_no_labels_of_any_kind(lengths):
    recordings = [np.zeros(n) for n in lengths]
    with pytest.warns(UserWarning, match="1 of 3 recordings are shorter"):
        w = sliding_windows(recordings, 2, y=[["a"] * n for n in lengths])
    assert w.y.tolist() == ["a"] * 4


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, 2], "y has 3 entries for 2 recordings"),
        ({"ben": 1, "anna": 0}, r"pass \[y\[name\] for name in names\], where names lists"),
        (pd.DataFrame({"s": [0, 1]}), r"y\[0\] has 1 labels .*; give y\['s'\], if it has one"),
        (pl.DataFrame({"s": [0, 1]}), r"y\[0\] has 1 labels .*; give y\['s'\], if it has one"),
        ([[0] * 6, [0] * 5], r"y\[1\] has 5 labels but recordings\[1\] has 6 steps"),
        (np.zeros((2, 1)), r"y\[0\] has 1 labels .*; give numpy.ravel\(y\), if it has one"),
        ([[0] * 6, 1], r"y\[1\] has 0 axes and y\[0\] has 1"),
        (np.zeros((2, 6, 1)), r"y\[0\] has 2 axes.*: pass the column, numpy.ravel\(y\[0\]\)"),
        ([[[0]] * 6] * 2, r"y\[0\] has 2 axes.*: pass the column, numpy.ravel\(y\[0\]\)"),
        (np.zeros((2, 6, 2)), r"y\[0\] has 2 axes, but a step has one label: pass numpy.argmax"),
        ([pd.DataFrame({"s": [0] * 6})] * 2, r"y\[0\] has 2 axes.*: pass the column, frame\['s'\]"),
        ([["a"] * 6, [0] * 6], r"y\[1\] and y\[0\] mix strings with integers"),
        ([[0.5] * 6, [0] * 6], r"y\[0\] must hold class labels.* average each window"),
        ([["a"] * 5 + [None], ["a"] * 6], r"y\[0\] mixes strings"),
        ([["a"] * 5 + [np.nan], ["a"] * 6], r"y\[0\] mixes strings"),
        ([["a"] * 5 + [-1], ["a"] * 6], r"y\[0\] mixes strings"),
        ([0.5, 1.5], r"target\[windows.recording\]"),
        ([np.inf, 1.0], "y must hold class labels"),
        (["a", None], "y mixes strings"),
        (["a", 1], "y mixes strings"),
        (3, r"pass \[y\] for a single recording"),
        ({"anna": [0] * 6, "ben": [1] * 6}, r"pass \[y\[name\] for name in names\]"),
        (iter([[0] * 6, [1] * 6]), r"pass list\(y\)"),
        ({"anna": [0] * 6, "ben": [1] * 6}.values(), r"pass list\(y\)"),
        ([[[1], [1, 2]], [0] * 6], r"y\[0\] cannot be read"),
        (np.array([b"a", b"b"]), r"y holds bytes: pass text, numpy.array\(y\).astype\(str\)"),
        (np.array([b"a", b"b"], dtype=object), "y holds bytes"),
        (np.array([2**64 - 1, 3], np.uint64), "y holds numbers beyond 64-bit integers"),
        (np.array([2**63, 3], np.uint64), "y holds numbers beyond 64-bit integers"),
        ([1e19, 2e19], "y holds numbers beyond 64-bit integers"),
        ([2.0**63, 0.0], "y holds numbers beyond 64-bit integers"),
    ],
)
def test_unusable_labels(y, message):
    with pytest.raises(ValueError, match=message):
        sliding_windows([ramp(6), ramp(6)], 3, y=y)


@pytest.mark.parametrize(
    "largest", [np.uint64(2**63 - 1), np.uint64(2**63 - 2), np.float64(-(2.0**63))]
)
def test_the_largest_labels(largest):
    y = np.array([largest, 3], dtype=largest.dtype)
    assert sliding_windows([ramp(3), ramp(3)], 3, y=y).y.tolist() == [int(largest), 3]


def test_bad_parameters():
    with pytest.raises(ValueError, match="label must be one of 'majority', 'pure'"):
        sliding_windows([ramp(6)], 3, label="mode")
    with pytest.raises(ValueError, match=r"min_labeled must be a number in \(0, 1\]"):
        sliding_windows([ramp(6)], 3, min_labeled=0)
    with pytest.raises(ValueError, match=r"^fraction must be a number in \(0, 1\]"):
        random_windows([ramp(6)], 3, 1, fraction=0)


def test_labels_and_recordings_are_left_as_they_were():
    steps = np.array([0.0, np.nan, 1.0, 1.0])
    before = steps.copy()
    sliding_windows([np.zeros(4)], 2, y=[steps])
    np.testing.assert_array_equal(steps, before)


def test_a_million_steps_are_labelled_without_a_loop_per_window():
    rng = np.random.default_rng(0)
    steps = np.repeat(rng.integers(-1, 6, 10_000), 100)
    w = sliding_windows([np.zeros(len(steps), np.float32)], 128, 1, y=[steps], lazy=True)
    assert len(w.y) == len(steps) - 127
    tracemalloc.start()
    sliding_windows([np.zeros(len(steps), np.float32)], 128, y=[steps], lazy=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * steps.nbytes  # however many classes
    for row in rng.integers(0, len(w.y), 50):
        assert w.y[row] == slow_label(steps[row : row + 128], "majority", 0.5)
