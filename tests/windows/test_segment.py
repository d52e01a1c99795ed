"""Windows inside labelled segments."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_pulse.windows import segment_windows
from tests.windows.helpers import quick, ramp


def slow_segments(n_timesteps, segments, length, stride, downsample):
    """Collect windows of kept steps, one segment at a time."""
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
    segments = [(r, a, b, c) for r, (a, b), c in drawn]
    segments += [(0, 0, 30, c) for c in {9, *(segment[3] for segment in segments)}]
    segments += [(1, 0, 17, 9)]
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


@pytest.mark.parametrize(
    ("columns", "lacking"),
    [
        (["label", "recording", "start", "stop"], "end"),
        (["recording", "onset", "duration", "label"], "start, end"),
    ],
)
def test_segments_of_which_some_columns_are_known_by_name(columns, lacking):
    frame = pd.DataFrame([[0, 0, 4, 1], [1, 4, 8, 0]], columns=columns)
    with pytest.raises(ValueError, match=rf"without {lacking}: rename .*segments\.rename"):
        segment_windows([ramp(9), ramp(9)], frame, 2)


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "int8[pyarrow]"])
def test_na_of_pandas_is_an_unlabelled_segment(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"recording": [0, 0], "start": [0, 4], "end": [4, 8], "label": [1, pd.NA]})
    frame = frame.astype({"start": "Int64", "label": "Int64"}).astype({"label": dtype})
    assert segment_windows([ramp(9)], frame, 4).y.tolist() == [1, -1]
    rows = [(0, 0, 4, 1), (0, 4, 8, None)]
    assert segment_windows([ramp(9)], rows, 4).y.tolist() == [1, -1]
    with pytest.raises(ValueError, match="row 1: start must be an integer, got nan"):
        segment_windows([ramp(9)], frame.assign(start=frame["label"].astype("Int64")), 2)
    with pytest.raises(ValueError, match="start must be an integer, got Timestamp.*searchsorted"):
        segment_windows([ramp(9)], frame.assign(start=pd.Timestamp("2026")), 4)


@pytest.mark.parametrize("kind", ["integers", "objects", "structured"])
def test_masked_entries_are_missing(kind):
    dtype = [(name, int) for name in ("recording", "start", "end", "label")]

    def masked(column):
        rows = [(0, 0, 4, 1), (0, 4, 8, 2)]
        missing = [(False,) * 4, tuple(i == column for i in range(4))]
        types = {"integers": int, "objects": object, "structured": dtype}
        return np.ma.array(rows, types[kind], mask=missing)

    assert segment_windows([ramp(9)], masked(3), 4).y.tolist() == [1, -1]
    with pytest.raises(ValueError, match="segments row 1: start must be an integer, got nan"):
        segment_windows([ramp(9)], masked(1), 4)


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
        ((0, -1, 3, 1), r"row 1 runs from -1 .* -1 is no step; .*: .*\.searchsorted\(times\)"),
        ((0, 0, 10, 1), r"end <= 9, the length of recording 0"),
        ((0, 0, 3), "segments row 1 is"),
        (7, "segments row 1 is 7"),
        (
            {"recording": 0, "start": 0, "end": 3, "label": 1},
            r"segments row 1 is a dict: pass pandas\.DataFrame\(segments\)",
        ),
        (  # an annotation of MNE
            {"onset": 0.0, "duration": 3.0, "description": "W"},
            r"row 1 has the names onset, duration, description; .* be \(recording, start, end",
        ),
        (
            pd.Series({"recording": 0, "start": 0, "end": 3, "label": 1}),
            r"segments row 1 is a Series: pass pandas\.DataFrame\(segments\)",
        ),
        (
            (0, 0.5, 3, 1),
            r"row 1: start must be an integer, got 0.5: .*round\(seconds \* sampling_rate\)",
        ),
        ((0, np.nan, 3, 1), r"segments row 1: start must be an integer, got nan\.$"),
        ((0.5, 0, 3, 1), r"segments row 1: recording must be an integer, got 0\.5\.$"),
        ((True, 0, 3, 1), "segments row 1: recording must be an integer"),
        (("anna", 0, 3, 1), r"recording must be an integer, got 'anna': .*names\.index\(name\)"),
        (
            (0, pd.Timestamp(0), 3, 1),
            r"start must be an integer, got Timestamp.*: count time steps, .*searchsorted\(times\)",
        ),
        ((0, 0, 3, "a"), "label column of segments mixes"),
    ],
)
def test_unusable_segments(row, message):
    with pytest.raises(ValueError, match=message):
        segment_windows([ramp(9), ramp(9)], [(0, 0, 9, 1), row], 2)


def test_rows_that_numpy_made_text_of():
    segments = np.array([(0, 0, 4, "walk"), (0, 4, 8, "sit")])
    with pytest.raises(ValueError, match="segments is an array of text, .* list of rows"):
        segment_windows([ramp(9)], segments, 4)


@pytest.mark.parametrize("segments", [[], None, np.zeros((0, 4)), "abcd"])
def test_empty_segments(segments):
    with pytest.raises(ValueError, match="segments must be a table with at least one row"):
        segment_windows([ramp(9)], segments, 2)


def test_segments_that_are_all_too_short():
    with pytest.raises(ValueError, match="longest has 4 steps .* length=5.* in seconds, multiply"):
        segment_windows([ramp(9)], [(0, 0, 4, 1), (0, 4, 6, 1)], 5)


def test_classes_whose_segments_are_all_too_short_are_named():
    segments = [(0, 0, 6, "walk"), (0, 6, 8, "sit"), (0, 6, 7, "fall"), (0, 6, 7, "walk")]
    with pytest.warns(UserWarning, match="class 'fall', 'sit' is as long as length=3"):
        assert segment_windows([ramp(9)], segments, 3).y.tolist() == ["walk", "walk"]
    unlabeled = [(0, 0, 6, 0), (0, 6, 8, -1)]
    assert segment_windows([ramp(9)], unlabeled, 3).y.tolist() == [0, 0]


def test_channels_that_come_first():
    transposed = ramp(90, 3).T
    with pytest.raises(ValueError, match="If channels come first, set input_layout='nct'"):
        segment_windows([transposed], [(0, 0, 90, 1)], 30)
    assert len(segment_windows([transposed], [(0, 0, 90, 1)], 30, input_layout="nct").X) == 3
    for layout, recording in (("ntc", ramp(90, 3)), ("nct", ramp(90, 3))):
        with pytest.raises(
            ValueError, match=r"as passed\. If the recording was resampled, .* by up_"
        ):
            segment_windows([recording], [(0, 0, 91, 1)], 30, input_layout=layout)
    with pytest.raises(ValueError, match=r"as passed\.$"):
        segment_windows([ramp(90, 3)], [(0, 9, 9, 1)], 30)


@pytest.mark.parametrize("unit", ["ns", "s", "D"])
def test_a_duration_is_no_number_of_steps(unit):
    start, end = np.array([0, 20], dtype=f"m8[{unit}]")
    with pytest.raises(ValueError, match="segments row 0: start must be an integer, got .*count"):
        segment_windows([np.zeros((50, 1))], [(0, start, end, "a")], length=8)
