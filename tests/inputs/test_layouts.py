"""A recording is read alike wherever it goes: lists, arrays of objects, channels first, frames."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from sklearn_pulse import PulseTransformer
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.preprocessing import WindowScaler
from sklearn_pulse.windows import (
    SlidingWindows,
    open_recordings,
    random_windows,
    segment_windows,
    sliding_windows,
)
from tests.helpers import SMALL_PULSE

RNG = np.random.default_rng(0)
RECORDINGS = [RNG.normal(size=(n, 2)).astype(np.float32) for n in (24, 32, 40)]
FIRST = [x.T for x in RECORDINGS]  # aeon's
FRAMES = [pd.DataFrame(x, columns=["a", "b"]) for x in RECORDINGS]


def objects(recordings):
    array = np.empty(len(recordings), dtype=object)
    for i, recording in enumerate(recordings):
        array[i] = recording
    return array


POLARS = [pl.DataFrame(x, schema=["a", "b"]) for x in RECORDINGS]
FORMS = {
    "channels first": (FIRST, "nct"),
    "tuple, channels first": (tuple(FIRST), "nct"),
    "objects": (objects(RECORDINGS), "ntc"),
    "objects, channels first": (objects(FIRST), "nct"),
    "frames": (FRAMES, "ntc"),
    "frames beside a layout of arrays": (FRAMES, "nct"),
    "frames of polars": (POLARS, "ntc"),
    "frames of polars beside a layout of arrays": (POLARS, "nct"),
}


@pytest.mark.parametrize(("recordings", "layout"), FORMS.values(), ids=FORMS)
def test_lists(recordings, layout):
    expected = sliding_windows(RECORDINGS, 8)
    np.testing.assert_array_equal(sliding_windows(recordings, 8, input_layout=layout).X, expected.X)
    lazy = sliding_windows(recordings, 8, lazy=True, input_layout=layout).X
    np.testing.assert_array_equal(np.asarray(lazy), expected.X)
    np.testing.assert_array_equal(
        random_windows(recordings, 8, 5, random_state=0, input_layout=layout).X,
        random_windows(RECORDINGS, 8, 5, random_state=0).X,
    )
    intervals = [[0, 0, 16, 1], [2, 8, 40, 0]]
    np.testing.assert_array_equal(
        segment_windows(recordings, intervals, 8, input_layout=layout).X,
        segment_windows(RECORDINGS, intervals, 8).X,
    )
    bags = SlidingWindows(8, input_layout=layout)
    np.testing.assert_array_equal(
        bags.fit_transform(recordings), SlidingWindows(8).fit_transform(RECORDINGS)
    )
    scaled = WindowScaler(input_layout=layout).fit_transform(recordings)
    for got, plain in zip(scaled, WindowScaler().fit_transform(RECORDINGS), strict=True):
        is_first = layout == "nct" and not hasattr(got, "columns")
        np.testing.assert_allclose(got.T if is_first else got, plain, rtol=1e-5)
    pipe = make_pipeline(WindowScaler(input_layout=layout), bags)
    np.testing.assert_allclose(
        pipe.fit_transform(recordings),
        make_pipeline(WindowScaler(), SlidingWindows(8)).fit_transform(RECORDINGS),
        rtol=1e-5,
    )


def test_files_beside_a_layout_of_arrays(tmp_path):
    for number, recording in enumerate(FIRST):
        np.save(tmp_path / f"{number}.npy", recording)
    files = open_recordings(tmp_path, input_layout="nct")
    scaled = WindowScaler(input_layout="nct").fit_transform(files)
    for got, plain in zip(scaled, WindowScaler().fit_transform(RECORDINGS), strict=True):
        np.testing.assert_array_equal(got.T, plain)


def test_frames_name_their_channels_alike():
    for frames in (FRAMES, POLARS):
        with pytest.raises(ValueError, match=r"recordings\[1\] has the channels \['b', 'a'\]"):
            sliding_windows([frames[0], frames[1][["b", "a"]]], 8)


def test_a_panel_frame_has_a_column_per_channel():
    frame = pd.concat(FRAMES, keys=["x", "y", "z"])
    np.testing.assert_array_equal(
        sliding_windows(frame, 8, input_layout="nct").X, sliding_windows(RECORDINGS, 8).X
    )


def test_univariate_recordings_have_no_layout():
    series = [x[:, 0] for x in RECORDINGS]
    np.testing.assert_array_equal(
        sliding_windows(series, 8, input_layout="nct").X, sliding_windows(series, 8).X
    )


def test_objects_in_a_cross_validation():
    """A splitter makes arrays of objects of lists that hold recordings."""
    recordings, y = objects(RECORDINGS * 2), [0, 1, 0, 1, 0, 1]
    pipe = make_pipeline(SlidingWindows(8), StatisticsTransformer(), DummyClassifier())
    assert len(cross_val_score(pipe, recordings, y, cv=KFold(2))) == 2


def test_objects_of_equal_length_are_windows():
    windows = np.stack([RECORDINGS[0], RECORDINGS[0] + 1])
    got = PulseTransformer(**SMALL_PULSE).fit(objects(windows)).transform(objects(windows))
    np.testing.assert_array_equal(got, PulseTransformer(**SMALL_PULSE).fit_transform(windows))


def test_bad_input():
    with pytest.raises(ValueError, match=r"channels, on the last axis .* input_layout='nct'"):
        sliding_windows(FIRST, 8)
    with pytest.raises(ValueError, match=r"channels, on the first axis .* input_layout='ntc'"):
        sliding_windows(RECORDINGS, 8, input_layout="nct")
    with pytest.raises(ValueError, match="(?s)X is ragged .* cut them with"):
        PulseTransformer().fit(objects(RECORDINGS))
    with pytest.raises(ValueError, match="recordings is empty"):
        sliding_windows(objects([]), 8)
