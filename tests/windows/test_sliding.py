"""Windows at regular starts, and the forms of recordings that all cutters take."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.preprocessing import WindowScaler
from sklearn_pulse.windows import (
    RecordingWindows,
    SlidingWindows,
    random_windows,
    segment_windows,
    sliding_windows,
)
from tests.windows.helpers import quick, ramp


def slow_windows(recordings, length, stride, downsample):
    """Cut windows one at a time."""
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
    with pytest.raises(ValueError, match=r"pass \[X\].*numpy.asarray\(X\)\[:, :, None\]"):
        sliding_windows(bare, 2)


@pytest.mark.parametrize(
    ("recordings", "message"),
    [
        (pd.DataFrame({"a": [1.0, 2.0]}), r"bare pandas object; pass \[frame\]"),
        (pd.Series([1.0, 2.0]), r"bare pandas object"),
        (pd.Series([np.zeros((5, 2))] * 2), r"a Series of recordings: .*recordings\.to_list\(\)"),
        ([], "recordings is empty"),
        (np.zeros((0, 5, 2)), "recordings is empty"),
        (np.zeros((1, 2, 3, 4)), "got 4 axes"),
        ([np.zeros((1, 5, 2))], r"recordings\[0\] must have shape"),
        ([np.zeros((5, 2)), np.zeros((5, 3))], r"recordings\[1\] has 3 channels"),
        ([np.zeros((5, 0))], "no channel"),
        ([np.zeros((5, 2), dtype=complex)], r"Complex .* recordings\[0\] .* two channels"),
        (np.full((2, 5, 1), "a", object), "recordings holds 'a', which is no number"),
        ([[[1, 2], [3]]], r"recordings\[0\] is ragged"),
        (None, "got 0 axes"),
        ([np.zeros((5, 2)), None], r"recordings\[1\] is None: leave it out"),
    ],
)
def test_unusable_recordings(recordings, message):
    with pytest.raises(ValueError, match=message):
        sliding_windows(recordings, 2)


@pytest.mark.parametrize(
    ("collection", "message"),
    [
        (lambda frames: dict(enumerate(frames)), r"X is a dict .*\[0, 1\]: .*list\(X.values\(\)\)"),
        (iter, r"X is a list_iterator, .*pass list\(X\)"),
        (lambda frames: {0: frames[0]}.values(), r"X is a dict_values: pass list\(X\)"),
        (
            lambda frames: pd.concat(frames).groupby([0] * 5 + [1] * 5),
            r"X is a DataFrameGroupBy: pass \[frame\[channels\] for _, frame in X\]",
        ),
        (lambda frames: "folder", r"X is 'folder': .*open_recordings\(folder\)"),
        (lambda frames: Path("folder"), r"X is .*Path\('folder'\): if it is a file, read it"),
    ],
)
def test_collections_of_recordings_are_refused_with_the_list_to_pass(collection, message):
    frames = [pd.DataFrame(np.ones((5, 2)), columns=["x", "y"]) for _ in range(2)]
    with pytest.raises(TypeError, match=message.replace("X", "recordings")):
        sliding_windows(collection(frames), 2)
    for step in (WindowScaler(), SlidingWindows(2), StatisticsTransformer()):
        with pytest.raises(TypeError, match=message):
            step.fit(collection(frames))


def test_recordings_of_readers_are_refused_with_the_values_to_pass():
    mne, wfdb = pytest.importorskip("mne"), pytest.importorskip("wfdb")
    raw = mne.io.RawArray(np.ones((2, 400)), mne.create_info(2, 100), verbose="error")
    epochs = mne.make_fixed_length_epochs(raw, 1.0, preload=True, verbose="error")
    record = wfdb.Record(p_signal=np.ones((9, 2)))
    digital = wfdb.Record(d_signal=np.ones((9, 2), int))
    several_rates = wfdb.Record(e_p_signal=[np.ones(9), np.ones(18)])
    for source, message in (
        ([raw], r"recordings\[0\] is a RawArray: pass what its get_data\(\) returns, .*'nct'"),
        (epochs, r"recordings is a Epochs: pass what its get_data\(\) returns, .*'nct'"),
        ([record], r"recordings\[0\] is a Record: pass recordings\[0\].p_signal"),
        ([digital], r"recordings\[0\] is a Record without physical values: .* physical=True"),
        ([several_rates], r"recordings\[0\] is a Record whose signals .* smooth_frames=True"),
        ([(np.ones((9, 2)), {"fs": 360})], r"wfdb.rdsamp returns: pass recordings\[0\]\[0\]"),
    ):
        with pytest.raises(TypeError, match=message):
            sliding_windows(source, 2)


def test_a_group_of_zarr_is_refused_with_its_arrays():
    group = pytest.importorskip("zarr").group({})
    group.create_array("anna", shape=(9, 2), dtype="f4")
    message = r" is a Group with the arrays \['anna'\]: pass one of them, "
    with pytest.raises(TypeError, match=r"recordings\[0\]" + message + r"recordings\[0\]\[key"):
        sliding_windows([group], 2)
    with pytest.raises(TypeError, match="X" + message):
        StatisticsTransformer().fit(group)


def test_files_and_unread_frames_are_no_recordings():
    with pytest.raises(TypeError, match=r"recordings\[0\] is 'anna.csv': .* read it first"):
        sliding_windows(["anna.csv", "ben.csv"], 2)
    lazy = pytest.importorskip("polars").LazyFrame({"x": [1.0, 2.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # polars warns of each look at the columns
        with pytest.raises(TypeError, match=r"\[0\] is a LazyFrame, .* pass its .collect\(\)"):
            sliding_windows([lazy], 2)
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    with pytest.raises(TypeError, match=r"\[0\] is a DataFrame, .* pass its .compute\(\)"):
        sliding_windows([pytest.importorskip("dask.dataframe").from_pandas(frame)], 2)
    arrow = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    with pytest.raises(TypeError, match=r"\[0\] is a Table of Arrow: pass .*\.to_pandas\(\)"):
        sliding_windows([arrow], 2)


def test_text_is_refused_and_numbers_as_objects_are_not():
    with pytest.raises(TypeError, match=r"recordings\[0\] has dtype <U1: convert it"):
        sliding_windows([np.array([["a"], ["b"]])], 2)
    numbers = np.arange(10.0).reshape(2, 5, 1)
    np.testing.assert_array_equal(
        sliding_windows(numbers.astype(object), 2).X, sliding_windows(numbers, 2).X
    )


def test_multiindex_recording_is_refused():
    index = pd.MultiIndex.from_product([range(2), range(5)])
    with pytest.raises(TypeError, match=r"recordings\[0\] is a frame with a MultiIndex"):
        sliding_windows([pd.DataFrame({"a": range(10)}, index=index)], 2)


@pytest.mark.parametrize("name", ["length", "stride", "downsample"])
def test_counts_must_be_positive_integers(name):
    options = {"length": 2, "stride": 1, "downsample": 1, name: 0}
    cutters = [
        lambda: sliding_windows([ramp(9)], **options),
        lambda: random_windows([ramp(9)], **options),
        lambda: segment_windows([ramp(9)], [(0, 0, 9, 1)], **options),
    ]
    for cut in cutters:
        with pytest.raises(ValueError, match=f"^{name} must be an integer of at least 1, got 0"):
            cut()


def test_lazy_is_true_or_false():
    cutters = [
        lambda: sliding_windows([ramp(9)], 2, lazy="False"),
        lambda: random_windows([ramp(9)], 2, 1, lazy="False"),
        lambda: segment_windows([ramp(9)], [(0, 0, 9, 1)], 2, lazy="False"),
    ]
    for cut in cutters:
        with pytest.raises(TypeError, match="lazy must be True or False, got 'False'"):
            cut()


def test_length_none_is_refused_and_numpy_integers_are_not():
    with pytest.raises(TypeError, match="length must be an integer of at least 1, got None"):
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
    with pytest.raises(ValueError, match=r"groups has shape \(3,\), but there are 2 recordings"):
        sliding_windows([ramp(9), ramp(9)], 3, groups=[1, 2, 3])
    with pytest.raises(ValueError, match="groups cannot be read .*pass one group per recording"):
        sliding_windows([ramp(9), ramp(8)], 3, groups=[[1] * 9, [2] * 8])


@pytest.mark.parametrize("cut", [sliding_windows, lambda x, n: random_windows(x, n, 4)])
def test_recordings_whose_axes_are_the_other_way_round(cut):
    transposed = ramp(90, 3).T
    with pytest.raises(ValueError, match="has 3 steps .*or another input_layout if these are its"):
        cut([transposed], 30)
