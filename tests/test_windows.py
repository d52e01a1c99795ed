"""Windows: the cutters, the label rule, the lazy array and the transformer."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GroupKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import _safe_indexing
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import _num_samples

from sklearn_pulse.windows import (
    RecordingWindows,
    SlidingWindows,
    random_windows,
    segment_windows,
    sliding_windows,
)

quick = settings(deadline=None, max_examples=60)


def ramp(n_timesteps, n_channels=1, offset=0.0):
    """Return a recording in which every value tells its step and channel."""
    steps = np.arange(n_timesteps, dtype=np.float64)[:, None]
    return steps + offset + np.arange(n_channels) / 10


def slow_windows(recordings, length, stride, downsample):
    """Cut windows one at a time, as the rule reads."""
    windows, recording, start = [], [], []
    for i, x in enumerate(recordings):
        kept = x[::downsample]
        s = 0
        while s + length <= len(kept):
            windows.append(kept[s : s + length])
            recording.append(i)
            start.append(s * downsample)
            s += stride
    return np.array(windows, dtype=np.float32), recording, start


def slow_label(steps, label, min_labeled):
    """Label one window of integer steps, as the rule reads."""
    labeled = Counter(int(v) for v in steps if v != -1)
    if sum(labeled.values()) / len(steps) < min_labeled:
        return -1
    if label == "pure" and len(labeled) > 1:
        return -1
    return min(labeled, key=lambda c: (-labeled[c], c))


# ---------------------------------------------------------------- sliding_windows


@quick
@given(
    lengths=st.lists(st.integers(8, 40), min_size=1, max_size=4),
    n_channels=st.integers(1, 3),
    length=st.integers(1, 4),
    stride=st.integers(1, 9),
    downsample=st.integers(1, 2),
    lazy=st.booleans(),
)
def test_sliding_windows_equals_loop(lengths, n_channels, length, stride, downsample, lazy):
    recordings = [ramp(n, n_channels, 100.0 * i) for i, n in enumerate(lengths)]
    expected, recording, start = slow_windows(recordings, length, stride, downsample)
    w = sliding_windows(recordings, length, stride, lazy=lazy, downsample=downsample)
    assert isinstance(w.X, RecordingWindows) is lazy
    X = np.asarray(w.X)
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, expected)
    np.testing.assert_array_equal(w.recording, recording)
    np.testing.assert_array_equal(w.groups, recording)
    np.testing.assert_array_equal(w.start, start)
    assert w.y is None


def test_start_counts_steps_of_the_recording_as_given():
    x = ramp(50)
    w = sliding_windows([x], length=4, stride=3, downsample=5)
    for window, start in zip(w.X, w.start, strict=True):
        np.testing.assert_array_equal(window, x[start : start + 4 * 5 : 5].astype(np.float32))
    assert w.start.tolist() == [0, 15, 30]


def test_stride_none_is_length():
    assert sliding_windows([ramp(11)], 3, None).start.tolist() == [0, 3, 6]
    assert sliding_windows([ramp(11)], 3).start.tolist() == [0, 3, 6]


def test_three_d_array_equals_list():
    X = np.random.default_rng(0).normal(size=(3, 20, 2))
    a, b = sliding_windows(X, 6, 4), sliding_windows(list(X), 6, 4)
    np.testing.assert_array_equal(a.X, b.X)
    np.testing.assert_array_equal(a.recording, b.recording)


@pytest.mark.parametrize("kind", ["1-D", "lists", "frame", "tuple"])
def test_forms_of_a_univariate_recording(kind):
    x = np.arange(9)
    given_as = {
        "1-D": [x],
        "lists": [x.tolist()],
        "frame": [pd.DataFrame({"a": x})],
        "tuple": (x[:, None],),
    }[kind]
    w = sliding_windows(given_as, 4)
    np.testing.assert_array_equal(w.X[..., 0], [[0, 1, 2, 3], [4, 5, 6, 7]])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int16", "uint8", "bool"])
def test_every_real_dtype_becomes_float32(dtype):
    x = np.ones((2, 9, 2), dtype=dtype)
    assert sliding_windows(x, 4).X.dtype == np.float32


def test_input_is_neither_written_to_nor_shared():
    x = ramp(20).astype(np.float32)
    x.flags.writeable = False
    w = sliding_windows([x], 5)
    assert not np.shares_memory(w.X, x)
    w.X[:] = 0
    assert x[1, 0] == 1


@pytest.mark.parametrize(
    "bare", [np.zeros((5, 6)), np.zeros(5), [1.0, 2.0], np.zeros((4, 1)).tolist()[0]]
)
def test_bare_arrays_are_refused_with_both_readings(bare):
    with pytest.raises(ValueError, match=r"pass \[X\].*X\[:, :, None\]"):
        sliding_windows(bare, 2)


@pytest.mark.parametrize(
    ("recordings", "message"),
    [
        (pd.DataFrame({"a": [1.0, 2.0]}), r"bare pandas object; pass \[frame\]"),
        (pd.Series([1.0, 2.0]), r"bare pandas object"),
        ([], "recordings is empty"),
        (np.zeros((0, 5, 2)), "recordings is empty"),
        (np.zeros((1, 2, 3, 4)), "got 4 axes"),
        ([np.zeros((1, 5, 2))], r"recordings\[0\] must have shape"),
        ([np.zeros((5, 2)), np.zeros((5, 3))], r"recordings\[1\] has 3 channels"),
        ([np.zeros((5, 0))], "no channel"),
        ([np.zeros((5, 2), dtype=complex)], r"recordings\[0\] must hold real numbers"),
        ([np.array([["a"], ["b"]])], r"recordings\[0\] must hold real numbers"),
        (np.zeros((2, 5, 1), dtype=object), "recordings must hold real numbers, got dtype object"),
        ([[[1, 2], [3]]], r"recordings\[0\] cannot be read as an array"),
        ([np.ma.masked_less(np.zeros((5, 2)), 1)], r"recordings\[0\] is a masked array"),
        (None, "recordings must hold real numbers"),
    ],
)
def test_unusable_recordings(recordings, message):
    with pytest.raises(ValueError, match=message):
        sliding_windows(recordings, 2)


def test_multiindex_recording_is_refused():
    index = pd.MultiIndex.from_product([range(2), range(5)])
    with pytest.raises(ValueError, match="MultiIndex"):
        sliding_windows([pd.DataFrame({"a": range(10)}, index=index)], 2)


@pytest.mark.parametrize("name", ["length", "stride", "downsample"])
@pytest.mark.parametrize("value", [0, -1, 0.5, 2.0, True, "3", np.float32(2)])
def test_counts_must_be_positive_integers(name, value):
    options = {"length": 2, "stride": 1, "downsample": 1, name: value}
    cutters = [
        lambda: sliding_windows([ramp(9)], **options),
        lambda: random_windows([ramp(9)], **options),
        lambda: segment_windows([ramp(9)], [(0, 0, 9, 1)], **options),
    ]
    for cut in cutters:
        with pytest.raises(ValueError, match=f"^{name} must be a positive integer, got"):
            cut()


def test_length_none_is_refused_and_numpy_integers_are_not():
    with pytest.raises(ValueError, match="length must be a positive integer, got None"):
        sliding_windows([ramp(9)], None)
    assert sliding_windows([ramp(9)], np.int16(3), np.uint8(3)).X.shape == (3, 3, 1)


def test_short_recordings_warn_once_and_keep_their_index():
    recordings = [ramp(3), ramp(10), ramp(4), ramp(5)]
    with pytest.warns(UserWarning, match="2 of 4 recordings are shorter than length=5") as record:
        w = sliding_windows(recordings, 5, groups=["a", "b", "c", "d"])
    assert len(record) == 1
    assert record[0].filename == __file__
    assert w.recording.tolist() == [1, 1, 3]
    assert w.groups.tolist() == ["b", "b", "d"]


def test_no_window_at_all_names_the_longest_recording():
    with pytest.raises(ValueError, match=r"recordings\[1\], has 5 steps .* length=6"):
        sliding_windows([ramp(3), ramp(10)], 6, downsample=2)


def test_groups_must_have_one_entry_per_recording():
    with pytest.raises(ValueError, match=r"groups must hold one group per recording, shape \(2,\)"):
        sliding_windows([ramp(9), ramp(9)], 3, groups=[1, 2, 3])


# ---------------------------------------------------------------- labels


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
    # 0.28 * 25 is above 7 in floating point, yet seven of 25 steps are that fraction
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


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, 2], "y has 3 entries for 2 recordings"),
        ([[0] * 6, [0] * 5], r"y\[1\] has 5 labels but recordings\[1\] has 6 steps"),
        ([[0] * 6, 1], r"y\[1\] has 0 axes and y\[0\] has 1"),
        (np.zeros((2, 6, 1)), r"y\[0\] has 2 axes"),
        ([["a"] * 6, [0] * 6], r"y\[1\] and y\[0\] mix strings with integers"),
        ([[0.5] * 6, [0] * 6], r"y\[0\] must hold class labels"),
        ([["a"] * 5 + [None], ["a"] * 6], r"y\[0\] mixes strings"),
        ([0.5, 1.5], r"target\[windows.recording\]"),
        ([np.inf, 1.0], "y must hold class labels"),
        (["a", None], "y mixes strings"),
        (["a", 1], "y mixes strings"),
        (3, r"pass \[y\]"),
        ([[[1], [1, 2]], [0] * 6], r"y\[0\] cannot be read"),
        (np.array([b"a", b"b"]), "y must hold class labels"),
    ],
)
def test_unusable_labels(y, message):
    with pytest.raises(ValueError, match=message):
        sliding_windows([ramp(6), ramp(6)], 3, y=y)


@pytest.mark.parametrize("label", ["mode", None, 1])
def test_unknown_label_rule(label):
    with pytest.raises(ValueError, match="label must be 'majority' or 'pure'"):
        sliding_windows([ramp(6)], 3, label=label)


@pytest.mark.parametrize("value", [0, -0.5, 1.5, float("nan"), True, "all", None])
def test_fractions_are_checked(value):
    with pytest.raises(ValueError, match=r"min_labeled must be a number in \(0, 1\]"):
        sliding_windows([ramp(6)], 3, min_labeled=value)
    with pytest.raises(ValueError, match=r"fraction must be a number in \(0, 1\]"):
        random_windows([ramp(6)], 3, 1, fraction=value)


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
    for row in rng.integers(0, len(w.y), 50):
        assert w.y[row] == slow_label(steps[row : row + 128], "majority", 0.5)


# ---------------------------------------------------------------- segment_windows


def slow_segments(n_timesteps, segments, length, stride, downsample):
    """Collect windows of kept steps, one segment at a time, as the rule reads."""
    rows = []
    for recording, first, end, label in segments:
        kept = [t for t in range(0, n_timesteps[recording], downsample) if first <= t < end]
        for s in range(0, len(kept), stride):
            if len(kept[s : s + length]) == length:
                rows.append((recording, kept[s], label))
    return rows


@quick
@given(data=st.data(), length=st.integers(1, 4), stride=st.integers(1, 6), f=st.integers(1, 3))
def test_segment_windows_equals_loop(data, length, stride, f):
    n_timesteps = [30, 17]
    bounds = st.lists(st.integers(0, 17), min_size=2, max_size=2, unique=True).map(sorted)
    one = st.tuples(st.integers(0, 1), bounds, st.integers(-1, 3))
    drawn = data.draw(st.lists(one, max_size=4))
    segments = [(r, a, b, c) for r, (a, b), c in drawn] + [(0, 0, 30, 9)]
    recordings = [ramp(n, 2, 100.0 * i) for i, n in enumerate(n_timesteps)]
    w = segment_windows(recordings, segments, length, stride=stride, downsample=f)
    expected = slow_segments(n_timesteps, segments, length, stride, f)
    assert list(zip(w.recording, w.start, w.y, strict=True)) == expected
    for window, (recording, start, _) in zip(w.X, expected, strict=True):
        kept = recordings[recording][start::f][:length]
        np.testing.assert_array_equal(window, kept.astype(np.float32))


@pytest.mark.parametrize("kind", ["list", "array", "float array", "frame", "object array"])
def test_forms_of_segments(kind):
    rows = [(1, 2, 8, 5), (0, 0, 3, 4)]
    segments = {
        "list": rows,
        "array": np.array(rows),
        "float array": np.array(rows, dtype=float),
        "frame": pd.DataFrame(rows, columns=["recording", "start", "end", "label"]),
        "object array": np.array(rows, dtype=object),
    }[kind]
    w = segment_windows([ramp(9), ramp(9, offset=50)], segments, 3, groups=["s", "t"], lazy=True)
    assert w.recording.tolist() == [1, 1, 0]
    assert w.start.tolist() == [2, 5, 0]
    assert w.y.tolist() == [5, 5, 4]
    assert w.groups.tolist() == ["t", "t", "s"]
    assert np.asarray(w.X)[:, 0, 0].tolist() == [52, 55, 0]


def test_segments_with_names():
    frame = pd.DataFrame({"r": [0, 0], "a": [0, 4], "b": [4, 8], "c": ["walk", "sit"]})
    assert segment_windows([ramp(9)], frame, 4).y.tolist() == ["walk", "sit"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((2, 0, 3, 1), "segments row 1 names recording 2"),
        ((-1, 0, 3, 1), "segments row 1 names recording -1"),
        ((0, 3, 3, 1), r"segments row 1 runs from 3 to 3"),
        ((0, 5, 3, 1), r"segments row 1 runs from 5 to 3"),
        ((0, -1, 3, 1), r"segments row 1 runs from -1"),
        ((0, 0, 10, 1), r"end <= 9, the length of recording 0"),
        ((0, 0, 3), "segments row 1 is"),
        (7, "segments row 1 is 7"),
        ((0, 0.5, 3, 1), "segments row 1: start must be an integer, got 0.5"),
        ((0, 0, "3", 1), "segments row 1: end must be an integer"),
        ((True, 0, 3, 1), "segments row 1: recording must be an integer"),
        ((0, 0, 3, None), "label column of segments mixes"),
        ((0, 0, 3, "a"), "label column of segments mixes"),
    ],
)
def test_unusable_segments(row, message):
    with pytest.raises(ValueError, match=message):
        segment_windows([ramp(9), ramp(9)], [(0, 0, 9, 1), row], 2)


@pytest.mark.parametrize("segments", [[], None, np.zeros((0, 4)), "abcd"])
def test_empty_segments(segments):
    with pytest.raises(ValueError, match="segments must be a table with at least one row"):
        segment_windows([ramp(9)], segments, 2)


def test_segments_that_are_all_too_short():
    with pytest.raises(ValueError, match="longest has 4 steps .* length=5"):
        segment_windows([ramp(9)], [(0, 0, 4, 1), (0, 4, 6, 1)], 5)


# ---------------------------------------------------------------- random_windows


def published_starts(n_timesteps, length, stride, fraction, seed):
    """Draw starts with numpy's global generator, as the published code does."""
    state = np.random.get_state()
    try:
        np.random.seed(seed)
        permuted = np.random.permutation(np.arange(n_timesteps - length - 2))
    finally:
        np.random.set_state(state)
    chosen = [permuted[j] for j in range(0, len(permuted), stride)]
    return chosen[: int(fraction * len(chosen))]


def test_published_count_of_har_windows():
    recordings = [np.zeros((15038, 6), np.float32)] * 41
    w = random_windows(recordings, 128, 32, random_state=1, lazy=True)
    assert len(w.X) == 466 * 41 == 19106
    assert len(random_windows(recordings[:9], 128, 128, lazy=True).X) == 117 * 9 == 1053


@quick
@given(
    lengths=st.lists(st.integers(12, 60), min_size=1, max_size=3),
    length=st.integers(1, 9),
    stride=st.integers(1, 4),
    fraction=st.sampled_from([0.75, 1.0]),
    seed=st.integers(0, 2**31),
    lazy=st.booleans(),
)
def test_random_windows_equal_the_published_draw(lengths, length, stride, fraction, seed, lazy):
    recordings = [ramp(n, 1, 100.0 * i) for i, n in enumerate(lengths)]
    expected = [
        (i, start)
        for i, n in enumerate(lengths)
        for start in published_starts(n, length, stride, fraction, seed + i)
    ]
    counts = Counter(i for i, _ in expected)
    if len(counts) < len(lengths):  # a recording without a window has its own test
        return
    w = random_windows(recordings, length, stride, fraction, seed, lazy=lazy)
    assert list(zip(w.recording, w.start, strict=True)) == expected
    assert len(set(expected)) == len(expected)
    for window, (i, start) in zip(w.X, expected, strict=True):
        np.testing.assert_array_equal(window, recordings[i][start : start + length])
    assert w.y is None


def test_random_windows_are_drawn_after_down_sampling():
    x = ramp(200)
    w = random_windows([x], 10, 4, random_state=3, downsample=3)
    assert w.start.tolist() == [3 * s for s in published_starts(67, 10, 4, 1.0, 3)]
    np.testing.assert_array_equal(w.X[0], x[w.start[0] :: 3][:10])


def test_random_state_forms():
    x = [ramp(300)]

    def starts(random_state):
        return random_windows(x, 8, 4, random_state=random_state).start.tolist()

    assert starts(7) == starts(np.int64(7)) != starts(8)
    assert starts(np.random.RandomState(0)) == starts(np.random.RandomState(0))
    generator = np.random.RandomState(0)
    assert starts(generator) != starts(generator)
    seed = int(np.random.RandomState(0).randint(2**31, dtype=np.int64))
    assert starts(np.random.RandomState(0)) == starts(seed)
    state = np.random.get_state()
    try:
        np.random.seed(0)
        assert starts(None) == starts(seed)
        np.random.seed(5)
        starts(7)
        assert np.random.randint(10**6) == np.random.RandomState(5).randint(10**6)
    finally:
        np.random.set_state(state)


@pytest.mark.parametrize("value", [-1, 2**32, True, "seed", np.random.default_rng(0), 0.5])
def test_unusable_random_state(value):
    with pytest.raises(ValueError, match="random_state must be an integer"):
        random_windows([ramp(9)], 2, 1, random_state=value)


def test_the_largest_seed_serves_many_recordings():
    assert len(random_windows([ramp(9)] * 3, 2, 5, random_state=2**32 - 1).X) == 3


@pytest.mark.parametrize("extra", [0, 1, 2, 3])
def test_short_recordings_give_the_window_at_zero(extra):
    w = random_windows([ramp(8 + extra)], 8, 1, 0.5 if extra < 3 else 1.0)
    assert w.start.tolist() == [0]


def test_random_windows_warn_of_recordings_without_a_window():
    with pytest.warns(UserWarning, match="1 of 2 recordings are shorter"):
        w = random_windows([ramp(5), ramp(40)], 8, 4)
    assert set(w.recording.tolist()) == {1}
    with pytest.warns(UserWarning, match="fraction=0.2 keeps no window of 1 of 2 recordings"):
        w = random_windows([ramp(14), ramp(60)], 8, 2, 0.2)
    assert set(w.recording.tolist()) == {1}
    with pytest.raises(ValueError, match=r"fraction=0\.2 keeps no window of any recording"):
        random_windows([ramp(14)], 8, 2, 0.2)


# ---------------------------------------------------------------- RecordingWindows


class Unreadable(RecordingWindows):
    """Windows that fail when all of them are read."""

    def __array__(self, dtype=None, copy=None):
        """Fail."""
        raise AssertionError("all windows were read")


def lazy_windows(kind=RecordingWindows, downsample=1):
    recordings = [ramp(30, 2), ramp(25, 2, 100.0)]
    return kind(recordings, [0, 1, 0, 1, 0], [0, 3, 7, 5, 2], 4, downsample)


KEYS = [
    0,
    -1,
    np.int64(2),
    np.array(3),
    slice(None),
    slice(4, 0, -2),
    slice(9, 12),
    [3, 0, -1, 3],
    [],
    np.array([1, 2], dtype=np.uint8),
    np.array([True, False, True, False, True]),
    [False] * 5,
    Ellipsis,
    (),
    (Ellipsis,),
    None,
    (2, Ellipsis),
    (-2, Ellipsis, 1),
    (slice(1, 4), Ellipsis),
    ([1, 1, 0], Ellipsis),
    ([1, 0], slice(None), slice(None)),
    (np.array([True, False, True, False, False]), Ellipsis),
    (1, 2, 1),
    (1, slice(0, 2)),
    ([2, 3], 1, 0),
    ([2, 3], slice(None), 1),
    ([2, 3], slice(1, 3), slice(None)),
    (slice(None), 0),
    (slice(None), slice(None), -1),
    (Ellipsis, 0),
    (None, 1),
    ([0, 1], [2, 3]),
    ([0, 1], [2, 3], [0, 0]),
    (slice(None), [0, 2]),
    (1, None),
    ([0, 1], Ellipsis, [0, 0]),
]


@pytest.mark.parametrize("key", KEYS, ids=repr)
@pytest.mark.parametrize("downsample", [1, 3])
def test_indexing_equals_numpy(key, downsample):
    X = lazy_windows(downsample=downsample)
    expected = np.asarray(X)[key]
    selected = X[key]
    assert np.shape(selected) == np.shape(expected)
    assert selected.dtype == np.float32
    np.testing.assert_array_equal(np.asarray(selected), expected)


@pytest.mark.parametrize(
    "key",
    [slice(1, 3), [0, 2], np.arange(3), [True] * 5, Ellipsis, (slice(2), Ellipsis)]
    + [([4, 1], Ellipsis), (np.array([0]), slice(None), slice(None))],
    ids=repr,
)
def test_selecting_windows_reads_none(key):
    X = lazy_windows(Unreadable)
    selected = X[key]
    assert type(selected) is Unreadable
    assert all(a is b for a, b in zip(selected.recordings, X.recordings, strict=True))


@pytest.mark.parametrize("key", [0, (3, 1), (2, Ellipsis, 0)], ids=repr)
def test_reading_one_window_reads_no_other(key):
    expected = np.asarray(lazy_windows())[key]
    np.testing.assert_array_equal(lazy_windows(Unreadable)[key], expected)


@pytest.mark.parametrize("key", [5, -6, [0, 5], [-6], True, "a", 1.5, [0.5], [[0, 1]], [True]])
def test_unusable_index(key):
    with pytest.raises(IndexError):
        lazy_windows()[key]
    with pytest.raises(IndexError):
        lazy_windows()[key, ...]


def test_too_many_indices():
    with pytest.raises(IndexError):
        lazy_windows()[0, 0, 0, 0]


def test_array_attributes_and_protocol():
    X = lazy_windows()
    array = np.asarray(X)
    assert array.shape == X.shape == (5, 4, 2)
    assert (X.ndim, X.size, X.nbytes, X.dtype, len(X)) == (3, 40, 160, np.float32, 5)
    assert np.asarray(X, dtype=np.float64).dtype == np.float64
    assert np.array(X, copy=True).dtype == np.float32
    with pytest.raises(ValueError, match="numpy.asarray"):
        X.__array__(copy=False)
    assert len(list(X)) == 5
    assert repr(X) == "RecordingWindows(shape=(5, 4, 2), n_recordings=2, downsample=1)"
    np.testing.assert_array_equal(np.mean(X, axis=0), array.mean(axis=0))


def test_take_gathers_in_the_given_order():
    X = lazy_windows(downsample=2)
    indices = [4, 0, 0, -2]
    windows = X.take(indices)
    assert windows.dtype == np.float32
    for window, i in zip(windows, [4, 0, 0, 3], strict=True):
        x = X.recordings[X.recording[i]]
        expected = x[[X.start[i] + 2 * t for t in range(4)]].astype(np.float32)
        np.testing.assert_array_equal(window, expected)
    assert X.take([]).shape == (0, 4, 2)


def test_take_reads_only_the_recordings_it_needs():
    class Untouchable:
        def __array__(self, dtype=None, copy=None):
            raise AssertionError("a recording was read without need")

    X = lazy_windows()
    X.recordings = (X.recordings[0], Untouchable())
    np.testing.assert_array_equal(X.take([0, 2, 4]), np.asarray(lazy_windows())[[0, 2, 4]])


def test_memory_maps_stay_memory_maps(tmp_path):
    path = tmp_path / "recordings.npy"
    values = np.random.default_rng(0).normal(size=(2, 50, 3)).astype(np.float32)
    np.save(path, values)
    mapped = np.load(path, mmap_mode="r")
    w = sliding_windows(mapped, 8, 4, lazy=True, downsample=2)
    assert all(isinstance(x, np.memmap) for x in w.X.recordings)
    assert all(np.shares_memory(x, mapped) for x in w.X[[1, 0], ...].recordings)
    np.testing.assert_array_equal(w.X, sliding_windows(values, 8, 4, downsample=2).X)
    one = np.lib.format.open_memmap(tmp_path / "one.npy", mode="w+", dtype="f4", shape=(9,))
    assert isinstance(sliding_windows([one], 3, lazy=True).X.recordings[0], np.memmap)


def test_recordings_are_kept_by_reference():
    x = ramp(20)
    X = RecordingWindows([x], [0], [3], 5)
    assert X.recordings[0] is x


def test_pickle_and_copy():
    X = lazy_windows(downsample=2)[[3, 1]]
    for other in (pickle.loads(pickle.dumps(X)), copy.copy(X), copy.deepcopy(X)):
        assert type(other) is RecordingWindows
        np.testing.assert_array_equal(other, X)
    assert copy.copy(X).recordings is X.recordings


def test_positions_are_read_only_copies():
    start = np.array([0, 3])
    X = RecordingWindows([ramp(9)], [0, 0], start, 4)
    start[:] = 100
    np.testing.assert_array_equal(X.start, [0, 3])
    for positions in (X.start, X.recording, X[1:].start, X[[0]].recording):
        with pytest.raises(ValueError, match="read-only"):
            positions[0] = 1


@pytest.mark.parametrize(
    ("recording", "start", "options", "message"),
    [
        ([0], [0, 1], {}, "recording has 1 entries and start has 2"),
        ([0, 2], [0, 0], {}, r"recording\[1\] is 2, but there are 2 recordings"),
        ([-1], [0], {}, r"recording\[0\] is -1"),
        ([0, 1], [0, 7], {}, r"start\[1\] is 7: .* 10 steps of recording 1"),
        ([0], [-1], {}, r"start\[0\] is -1"),
        ([0], [2], {"downsample": 3}, r"start\[0\] is 2"),
        ([0.0], [0], {}, "recording must be a 1-D array of integers"),
        ([0], [[0]], {}, "start must be a 1-D array of integers"),
        ([0], [0], {"downsample": 0}, "downsample must be a positive integer"),
    ],
)
def test_windows_must_lie_inside_their_recording(recording, start, options, message):
    recordings = [ramp(10), ramp(10)]
    with pytest.raises(ValueError, match=message):
        RecordingWindows(recordings, recording, start, 4, **options)
    RecordingWindows(recordings, [0, 1], [6, 0], 4)
    RecordingWindows(recordings, [0], [0], 4, downsample=3)


class CountingClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that looks only at the number of samples and at the type of X."""

    def fit(self, X, y):
        """Fit."""
        assert type(X) is Unreadable
        assert len(X) == len(y)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        """Predict the first class."""
        assert type(X) is Unreadable
        return np.repeat(self.classes_[:1], len(X))


def test_scikit_learn_selects_without_reading():
    w = sliding_windows(np.zeros((4, 20, 2)), 4, y=[0, 1, 0, 1], lazy=True)
    X = Unreadable(w.X.recordings, w.X.recording, w.X.start, 4)
    assert _num_samples(X) == 20
    for key in ([3, 1], np.arange(5), slice(2, 6), np.arange(20) % 2 == 0):
        assert type(_safe_indexing(X, key)) is Unreadable
    train, test, _, y_test = train_test_split(X, w.y, random_state=0)
    assert (type(train), len(train), len(test)) == (Unreadable, 15, len(y_test))
    options = {"cv": GroupKFold(2), "groups": w.groups}
    assert len(cross_val_score(CountingClassifier(), X, w.y, **options)) == 2
    assert len(cross_val_score(DummyClassifier(), X, w.y, **options)) == 2
    passed_on = make_pipeline(FunctionTransformer(), CountingClassifier())
    assert len(cross_val_score(passed_on, X, w.y, **options)) == 2


# ---------------------------------------------------------------- SlidingWindows


@parametrize_with_checks([SlidingWindows(), SlidingWindows(length=2, stride=1)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def slow_bag(series, length, stride):
    """Build the bag one window at a time, as the rule reads."""
    per_series = []
    for x in series:
        starts = [s for s in range(0, len(x), stride) if s + length <= len(x)] or [0]
        windows = []
        for s in starts:
            window = np.full((length, x.shape[1]), np.nan, np.float32)
            piece = x[s : s + length]
            window[: len(piece)] = piece
            windows.append(window)
        per_series.append(windows)
    most = max(len(windows) for windows in per_series)
    missing = np.full((length, series[0].shape[1]), np.nan, np.float32)
    return np.array([windows + [missing] * (most - len(windows)) for windows in per_series])


@quick
@given(
    lengths=st.lists(st.integers(1, 20), min_size=1, max_size=4),
    n_channels=st.integers(1, 3),
    length=st.integers(1, 8),
    stride=st.one_of(st.none(), st.integers(1, 10)),
    layout=st.sampled_from(["ntc", "nct"]),
)
@pytest.mark.filterwarnings("ignore:X has more channels:UserWarning")
def test_bags_equal_loop(lengths, n_channels, length, stride, layout):
    rng = np.random.default_rng(0)
    series = [rng.normal(size=(n, n_channels)) for n in lengths]
    window = SlidingWindows(length, stride, layout)
    given_as = [x.T for x in series] if layout == "nct" else series
    bag = window.fit_transform(given_as)
    assert bag.dtype == np.float32
    np.testing.assert_array_equal(bag, slow_bag(series, length, stride or length))
    equal = np.stack([series[0]] * 2)
    expected = slow_bag(list(equal), length, stride or length)
    X = np.moveaxis(equal, 2, 1) if layout == "nct" else equal
    np.testing.assert_array_equal(window.transform(X), expected)
    if n_channels == 1:
        table = SlidingWindows(length, stride).fit_transform(equal[:, :, 0])
        np.testing.assert_array_equal(table, expected)


def test_bag_is_a_read_only_view_of_float32_input():
    X = np.zeros((3, 50, 2), np.float32)
    for given_as, layout in [(X, "ntc"), (np.zeros((3, 2, 50), np.float32), "nct")]:
        bag = SlidingWindows(10, 1, layout).fit_transform(given_as)
        assert bag.shape == (3, 41, 10, 2)
        assert np.shares_memory(bag, given_as)
        assert not bag.flags.writeable
    table = X[:, :, 0].copy()
    assert np.shares_memory(SlidingWindows(10, 1).fit_transform(table), table)


def test_univariate_lists_of_unequal_length():
    bag = SlidingWindows(2).fit_transform([[1.0, 2.0, 3.0], [4.0]])
    assert bag.shape == (2, 1, 2, 1)
    np.testing.assert_array_equal(bag[:, 0, :, 0], [[1, 2], [4, np.nan]])


def test_fitted_attributes_and_feature_names():
    frame = pd.DataFrame(np.zeros((3, 6)), columns=list("abcdef"))
    window = SlidingWindows(2).fit(frame)
    assert (window.n_features_in_, window.n_channels_in_) == (6, 1)
    assert window.feature_names_in_.tolist() == list("abcdef")
    with pytest.raises(ValueError, match="feature names should match"):
        window.transform(frame[list("fedcba")])
    window.fit(np.zeros((3, 6, 2)))
    assert (window.n_features_in_, window.n_channels_in_) == (2, 2)
    assert not hasattr(window, "feature_names_in_")
    nct = SlidingWindows(2, input_layout="nct").fit([np.zeros((2, 6)), np.zeros((2, 9))])
    assert (nct.n_features_in_, nct.n_channels_in_) == (2, 2)


def test_number_of_time_steps_may_change_in_three_d_input_only():
    window = SlidingWindows(4).fit(np.zeros((2, 20, 3)))
    assert window.transform(np.zeros((2, 9, 3))).shape == (2, 2, 4, 3)
    table = SlidingWindows(4).fit(np.zeros((2, 20)))
    with pytest.raises(ValueError, match="X has 9 features"):
        table.transform(np.zeros((2, 9)))
    assert table.transform(np.zeros((2, 9, 1))).shape == (2, 2, 4, 1)
    univariate = SlidingWindows(4).fit(np.zeros((2, 20, 1)))
    assert univariate.transform(np.zeros((2, 9))).shape == (2, 2, 4, 1)


def test_another_number_of_channels_is_refused():
    window = SlidingWindows(4).fit(np.zeros((2, 20, 3)))
    for X in (np.zeros((2, 20, 2)), [np.zeros((20, 2)), np.zeros((9, 2))]):
        with pytest.raises(ValueError, match="X has 2 channels, but SlidingWindows was fitted"):
            window.transform(X)
    with pytest.raises(ValueError, match="X has 1 channels"):
        window.transform(np.zeros((2, 20)))
    with pytest.raises(ValueError, match="looks transposed"):
        window.transform(np.zeros((2, 3, 20)))


def test_more_channels_than_steps_warns():
    with pytest.warns(UserWarning, match="more channels .* set input_layout") as record:
        SlidingWindows(4).fit(np.zeros((2, 3, 20)))
    assert record[0].filename == __file__
    SlidingWindows(4, input_layout="nct").fit(np.zeros((2, 3, 20)))


@pytest.mark.parametrize(
    "make", [lambda x: x[:, :, 0], lambda x: x, list, lambda x: np.asfortranarray(x)]
)
@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e39])
def test_infinity_is_refused_and_nan_is_not(make, value):
    X = np.zeros((2, 10, 2))
    X[1, 4, 0] = np.nan
    bag = SlidingWindows(5).fit_transform(make(X))
    assert np.isnan(bag).sum() == 1
    X[0, 3, 0] = value
    with pytest.raises(ValueError, match="infinity or a value too large"):
        SlidingWindows(5).fit(make(X))
    with pytest.raises(ValueError, match="infinity or a value too large"):
        SlidingWindows(5).fit(np.zeros((2, 10, 2))).transform(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((2, 3, 4, 5)), "X has 4 axes"),
        (np.zeros((2, 0, 3)), "empty axis"),
        (np.zeros((2, 5, 0)), "empty axis"),
        (np.zeros((0, 5, 2)), "0 sample"),
        (np.zeros(5), "Reshape your data"),
        ([np.zeros((5, 2)), np.zeros((4, 3))], r"X\[1\] has 4 steps and 3 channels"),
        ([np.zeros((5, 0))], "0 feature"),
        ([np.zeros((5, 2)), np.zeros((0, 2))], "0 sample"),
        ([np.zeros((5, 2)), np.full((4, 2), np.inf)], r"X\[1\] contains infinity"),
        (np.array([[["a"]]]), "could not convert string"),
        ([], "Reshape your data|0 sample"),
    ],
)
def test_unusable_series(X, message):
    with pytest.raises(ValueError, match=message):
        SlidingWindows(2).fit(X)


def test_panels_of_pandas_are_refused():
    index = pd.MultiIndex.from_product([range(2), range(5)])
    panel = pd.DataFrame({"a": np.zeros(10)}, index=index)
    nested = pd.DataFrame({"a": [pd.Series([1.0, 2.0]), pd.Series([3.0, 4.0])]})
    for X in (panel, nested, [panel, panel]):
        with pytest.raises(ValueError, match="pandas panel"):
            SlidingWindows(2).fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 0}, "length must be a positive integer, got 0"),
        ({"length": 0.5}, "length must be a positive integer, got 0.5"),
        ({"length": None}, "length must be a positive integer"),
        ({"stride": 0}, "stride must be a positive integer"),
        ({"stride": True}, "stride must be a positive integer"),
        ({"input_layout": "tnc"}, "input_layout must be 'ntc' or 'nct'"),
        ({"input_layout": None}, "input_layout must be 'ntc' or 'nct'"),
    ],
)
def test_parameters_are_checked_in_fit(options, message):
    window = SlidingWindows(**options)
    with pytest.raises(ValueError, match=message):
        window.fit(np.zeros((2, 5)))
    assert clone(window).get_params() == window.get_params()


def test_set_output_is_not_available():
    assert not hasattr(SlidingWindows(), "set_output")


def test_no_torch_is_imported():
    # a package without the initialisation that imports the estimators, which need torch
    folder = str(Path(sys.modules[SlidingWindows.__module__].__file__).parent)
    code = (
        "import sys, types\n"
        "package = sys.modules['sklearn_pulse'] = types.ModuleType('sklearn_pulse')\n"
        f"package.__path__ = [{folder!r}]\n"
        "import sklearn_pulse.windows\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
