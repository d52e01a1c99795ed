"""Frames and Series whose times or values pandas stores in another way."""

import datetime
import io
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.lib.recfunctions import structured_to_unstructured
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from sklearn_pulse import (
    CrossPredictionTransformer,
    FineTuneClassifier,
    FineTuneRegressor,
    RandomEncoderTransformer,
)
from sklearn_pulse._inputs import _times
from sklearn_pulse.evaluation import LabeledSubsetClassifier
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.model_selection import mask_labels
from sklearn_pulse.preprocessing import BandpassFilter, Resampler, WindowScaler
from sklearn_pulse.windows import SlidingWindows, segment_windows, sliding_windows
from tests.helpers import SMALL_ENCODER

_TIMES = pd.date_range("2026-10-25 01:00", periods=240, freq="min", tz="Europe/Berlin")
_STEPS = [WindowScaler(), BandpassFilter(None, 0.4, 1), SlidingWindows(10)]


def _as_text(index):
    """Write and read times that cross a change of clocks, which pandas leaves as text."""
    text = "time,x\n" + "\n".join(f"{time.isoformat()},0" for time in index)
    return pd.read_csv(io.StringIO(text), index_col="time", parse_dates=True).index


_KINDS = {
    "text": _as_text,
    "objects": lambda index: index.astype(object),
    "arrow": lambda index: index.astype("timestamp[ns, UTC][pyarrow]"),
    "differences": lambda index: index - index[0],
    "objects of differences": lambda index: (index - index[0]).astype(object),
    "numbers": lambda index: np.arange(len(index)),
    "objects of numbers": lambda index: pd.Index([*range(len(index))], dtype=object),
    "arrow differences": lambda index: (index - index[0]).astype("duration[ns][pyarrow]"),
}


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("as_series", [False, True])
def test_a_gap_is_found_in_every_kind_of_times(kind, as_series):
    if "arrow" in kind:
        pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": np.arange(240.0)}, index=_KINDS[kind](_TIMES))
    whole, gapped = (
        part["x"] if as_series else part for part in (frame, frame.drop(frame.index[100:150]))
    )
    assert len(sliding_windows([whole], 30).X) == 8
    for cut in (lambda x: sliding_windows(x, 30), Resampler(2, 1).fit_transform):
        with pytest.raises(ValueError, match="irregular time index"):
            cut([gapped])


@pytest.mark.parametrize("names", [["s1", "s2", "s3", "s4"], ["b", "a", "10", "7"]])
def test_text_that_is_no_time_is_a_name(names):
    frame = pd.DataFrame({"x": np.arange(4.0)}, index=names)
    assert sliding_windows([frame], 2).X[:, :, 0].tolist() == [[0.0, 1.0], [2.0, 3.0]]


@pytest.mark.parametrize(
    "names", [["a-b", "b-a"], ["v1.2", "v1.3"], ["1-2", "3-4"], ["1.2.3", "1.2.4"], ["1:x", "2:x"]]
)
def test_names_with_the_marks_of_times_are_names(names):
    frame = pd.DataFrame({"x": np.arange(2.0)}, index=names)
    assert sliding_windows([frame], 2).X.shape == (1, 2, 1)


@pytest.mark.parametrize(
    "form", ["%d.%m.%Y %H:%M:%S", "%H:%M:%S.%f", "%d/%m/%Y", "%m/%d/%Y %I:%M %p", "%d-%b-%Y %H:%M"]
)
def test_text_that_looks_like_times_but_is_not_read(form):
    frame = pd.DataFrame({"x": np.arange(240.0)}, index=_TIMES.strftime(form))
    calls = (lambda x: sliding_windows(x, 30), Resampler(2, 1).fit_transform)
    for call in calls:
        with pytest.warns(UserWarning, match=r"entries such as .*to_datetime\(index, format"):
            call([frame])
    durations = frame.set_axis((_TIMES - _TIMES[0]).astype(str))
    for index in (durations.index, pd.Index(pd.date_range("2026", periods=240, freq="min").time)):
        message = f"entries such as {index[0]!r}, .*"
        with pytest.warns(UserWarning, match=re.escape(message[:-2]) + r".*to_timedelta\(index"):
            sliding_windows([frame.set_axis(index)], 30)
        frame.index = pd.to_timedelta(index.astype(str))
        assert len(sliding_windows([frame], 30, sampling_rate=1 / 60).X) == 8


def test_days_with_slashes_are_times():
    days = pd.date_range("2026", periods=8).strftime("%Y/%m/%d")
    frame = pd.DataFrame({"x": np.arange(8.0)}, index=days)
    assert len(sliding_windows([frame], 4).X) == 2
    with pytest.raises(ValueError, match=r"row 4 \(2026/01/06\) comes after a gap of 2 steps"):
        sliding_windows([frame.drop(frame.index[4])], 4)


def _rounded(rate, n_times, way):
    """Times at a rate in Hz, rounded to milliseconds."""
    offset = np.random.default_rng(int(rate)).random()
    seconds = pd.to_timedelta((np.arange(n_times) + offset) / rate, unit="s")
    return getattr(pd.Timestamp("2026") + seconds, way)("ms")


@pytest.mark.parametrize("rate", [128, 250, 256, 300, 360, 400, 480, 500])
@pytest.mark.parametrize("n_times", [8, 12, 40, 4000])
@pytest.mark.parametrize("way", ["round", "floor"])
@pytest.mark.parametrize("kind", [lambda times: times, lambda t: (t - t[0]).total_seconds()])
def test_times_in_milliseconds_are_regular(rate, n_times, way, kind):
    times = _rounded(rate, n_times, way)
    frames = [pd.DataFrame({"x": np.zeros(n_times)}, index=kind(times))] * 2
    frames.append(frames[0].iloc[: n_times // 2])  # its own rate is rounded more
    assert len(sliding_windows(frames, 4, sampling_rate=rate).X)
    row = n_times // 2
    dropped, repeated = times.delete(row), times.insert(row, times[row])
    for wrong in (dropped, repeated, times[::-1]):
        index = pd.Index([*kind(wrong)]) if kind(times) is not times else wrong
        with pytest.raises(ValueError, match="irregular time index in instance 0"):
            sliding_windows([pd.DataFrame({"x": np.zeros(len(wrong))}, index=index)], 4)


@pytest.mark.parametrize("rate", [200, 250, 500])
@pytest.mark.parametrize("n_times", [40, 20_000])
def test_milliseconds_that_are_cut_off_are_regular(rate, n_times):
    """A product of floats may lie just below its integer."""
    times = (np.arange(n_times) / rate * 1000).astype(int)
    series = pd.Series(np.zeros(n_times), times)
    assert len(sliding_windows([series], 40).X) == n_times // 40
    for row in (1, n_times // 3, n_times - 2):
        with pytest.raises(ValueError, match="irregular time index"):
            sliding_windows([series.drop(times[row])], 4)


@pytest.mark.parametrize("rate", [32, 64])
def test_a_gap_between_rounded_times_has_its_length(rate):
    """Steps of 15.625 milliseconds are 15 or 16 of them."""
    frame = pd.DataFrame({"x": np.zeros(2000)}, index=_rounded(rate, 2000, "round"))
    with pytest.raises(ValueError, match=r"row 500 .* after a gap of 401 steps"):
        sliding_windows([frame.drop(frame.index[500:900])], 4)


def test_times_rounded_to_more_than_half_a_step_are_not_called_gaps():
    frame = pd.DataFrame({"x": np.zeros(700)}, index=_rounded(700, 700, "floor"))
    with pytest.raises(ValueError, match=r"as 299 rows do: reset the index if .* rounded"):
        sliding_windows([frame], 4)
    missing = pd.date_range("2026", periods=700, freq="10ms").delete(range(5, 500, 50))
    with pytest.raises(ValueError, match=r"reindex it on .* after a gap of 2 steps, or reset"):
        sliding_windows([pd.DataFrame({"x": np.zeros(690)}, index=missing)], 4)


def test_noisy_times_are_not_called_gaps():
    """The nearest rows would leave steps missing though no row is."""
    seconds = np.arange(800) / 50
    noise = np.random.default_rng(0).normal(scale=0.2 / 50, size=800)
    times = pd.Timestamp("2026") + pd.to_timedelta(np.sort(seconds + noise), unit="s")
    frame = pd.DataFrame({"x": np.sin(seconds), "y": seconds}, index=times)
    with pytest.raises(ValueError, match=r"early: if .* noisy, interpolate .* or reset") as refused:
        sliding_windows([frame], 100, sampling_rate=50)
    grid = pd.date_range(times[0], times[-1], freq="20ms")
    remedy = re.search(r"as by (frame\.reindex.*reindex\(grid\))", str(refused.value))[1]
    regular = eval(remedy, {"frame": frame, "grid": grid})
    assert len(sliding_windows([regular], 100, sampling_rate=50).X) == len(grid) // 100
    expected = np.interp(grid, times, frame["y"])
    np.testing.assert_allclose(regular["y"], expected, atol=1e-9)
    lost = frame.drop(times[300:400])
    regular = eval(remedy, {"frame": lost, "grid": grid})
    assert 97 <= regular["y"].isna().sum() <= 99


def test_times_of_a_clock_that_drifts_can_be_interpolated():
    """The pace of a recorder's clock changes by millionths, with its temperature."""
    seconds = np.arange(32 * 3600) / 32
    late = 0.02 * np.sin(2 * np.pi * seconds / seconds[-1])
    times = pd.Timestamp("2026-10-25", tz="Europe/Berlin") + pd.to_timedelta(seconds + late, "s")
    frame = pd.DataFrame({"x": seconds}, index=times)
    with pytest.raises(ValueError, match=r"0.0312489 to 0.0312511 apart; .* drifts") as refused:
        sliding_windows([frame], 64, sampling_rate=32)
    grid = pd.date_range(times[0], times[-1], freq="31.25ms")
    remedy = re.search(r"as by (frame\.reindex.*reindex\(grid\))", str(refused.value))[1]
    regular = eval(remedy, {"frame": frame, "grid": grid})
    assert len(sliding_windows([regular], 64, sampling_rate=32).X) == 1800
    assert np.abs(regular["x"] - (grid - grid[0]).total_seconds()).max() < 0.021


def test_clocks_that_were_set_forward_are_no_gap():
    times = pd.date_range("2026-03-29 00:59:59", periods=100, freq="20ms", tz="UTC")
    local = times.tz_convert("Europe/Berlin")
    frame = pd.DataFrame({"x": np.zeros(100)}, index=local.tz_localize(None))
    with pytest.raises(ValueError, match=r"row 50 .* 3600.02 seconds .* set forward .* the zone"):
        sliding_windows([frame], 4)
    with pytest.raises(ValueError, match=r"row 47 .* set forward .* the zone"):
        sliding_windows([frame.drop(frame.index[10:13])], 4)  # lost before the clocks were set
    frame.index = frame.index.tz_localize("Europe/Berlin")
    assert len(sliding_windows([frame], 4, sampling_rate=50).X) == 25


def test_one_late_time_is_shared_with_the_others():
    """The deviations are taken from their middle, not from the first time."""
    seconds = np.arange(50) / 300
    seconds[0] += 0.15 / 300
    times = pd.Timestamp("2026") + pd.to_timedelta(seconds, unit="s")
    frames = [pd.DataFrame({"x": np.zeros(50)}, index=times)]
    assert len(sliding_windows(frames, 10, sampling_rate=300).X) == 5
    late = times[:1] + pd.Timedelta(seconds=0.3 / 300)
    with pytest.raises(ValueError, match="irregular time index"):
        sliding_windows([frames[0].set_axis(late.append(times[1:]))], 10)


@pytest.mark.parametrize("kind", ["dates", "seconds"])
def test_an_index_that_was_reset_is_not_compared_with_times(kind):
    """The error of an irregular index says: reset it. A count of rows has no rate to compare."""
    times = pd.date_range("2026", periods=100, freq="31.25ms")
    frame = pd.DataFrame({"x": np.arange(100.0)}, times if kind == "dates" else np.arange(100) / 32)
    wrong = frame.set_axis(frame.index[[0, *range(2, 100), 99]])
    with pytest.raises(ValueError, match="in instance 1: .* or reset the index if"):
        sliding_windows([frame, wrong], 50)
    reset = wrong.reset_index(drop=True)
    for frames in ([frame, reset], [reset, frame]):
        assert len(sliding_windows(frames, 50, sampling_rate=32).X) == 4
        assert [len(part) for part in Resampler(32, 16).fit_transform(frames)] == [50, 50]
    with pytest.raises(ValueError, match="different time steps, 1 and, in instance 2, 2: bring"):
        sliding_windows([reset, frame, reset.iloc[::2]], 50)
    with pytest.raises(ValueError, match="different time steps, 0.03125 and, in instance 2, 0.062"):
        sliding_windows([frame, reset, frame.iloc[::2]], 50)


def test_numbers_in_milliseconds_beside_dates_are_told_by_their_unit():
    times = pd.date_range("2026", periods=100, freq="31.25ms")
    dated = pd.DataFrame({"x": np.arange(100.0)}, times)
    steps = np.arange(100)
    assert len(sliding_windows([dated, dated.set_axis(steps / 32)], 50).X) == 4
    with pytest.raises(ValueError, match=r"31.25: give numbers beside times in seconds, or bring"):
        sliding_windows([dated, dated.set_axis(steps * 31.25)], 50)
    with pytest.raises(ValueError, match=r"0.0625: bring the recordings"):
        sliding_windows([dated, dated[::2]], 50)


def test_the_first_wrong_row_of_an_index_is_named():
    times = pd.date_range("2026", periods=20, freq="s")
    back = "goes back in time; if another recording begins there, pass a frame for each.* sort"
    uneven = times + pd.to_timedelta(np.tile([0, 0.3], 10), unit="s")
    cases = {
        r"0: reindex it .*'nearest'.* row 5 \(2026-01-01 00:00:07\) comes after a gap of 3": (
            times.delete([5, 6])
        ),
        r"0: row 6 \(2026-01-01 00:00:05\) repeats .*duplicated": times.insert(5, times[5]),
        rf"0: row 10 \(2026-01-01 00:00:04\) {back}": times.insert(10, times[4]),
        rf"0: row 3 \(2026-01-01 00:00:02\) {back}": times[[0, 1, 3, 2, *range(4, 20)]],
        rf"0: row 20 \(2026-01-01 00:00:00\) {back}": times.append(times[:9]),
        # To sort the rows would mix two hours.
        r"0: row 3 \(2026-01-01 00:00:00\) .*; if the clocks .* name the zone before .*'infer'": (
            (times[:3] + pd.Timedelta(hours=1, seconds=-3)).append(times)
        ),
        # To drop repeated times would leave one row of 32.
        r"0: row 1 .* repeats .*, as most rows do: reset the index if the times are rounded": (
            times.repeat(32)
        ),
        r"0: row 9 \(2026-01-01 00:00:10\) repeats": times.delete([3, 4]).insert(9, times[10]),
        "0: row 4 has no time; drop it": pd.Index([0.0, 1.0, 2.0, 3.0, np.inf]),
        "0: row 3 has no time; drop it": times[:3].append(pd.DatetimeIndex([pd.NaT, times[4]])),
        r"0: its times are 0.7 to 1.3 apart; .* interpolate .* or reset it if .* rounded": uneven,
    }
    for message, index in cases.items():
        with pytest.raises(ValueError, match=message):
            sliding_windows([pd.DataFrame({"x": np.zeros(len(index))}, index=index)], 4)


@pytest.mark.parametrize("dtype", ["Float64", "Int64", "float32[pyarrow]", "int16[pyarrow]"])
def test_values_of_pandas_and_arrow_are_numbers(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    values = pd.DataFrame({"x": np.arange(40), "y": 1}, dtype="float64")
    values.iloc[3, 0] = np.nan
    table = values.astype(dtype) if "loat" in dtype else values.astype("Float64").astype(dtype)
    expected = sliding_windows([values], 10).X
    np.testing.assert_array_equal(sliding_windows([table], 10).X, expected)
    np.testing.assert_array_equal(sliding_windows([table["x"]], 10).X, expected[:, :, :1])
    panel = pd.concat({"a": table, "b": table})
    np.testing.assert_array_equal(sliding_windows(panel, 10).X, np.tile(expected, (2, 1, 1)))


@pytest.mark.parametrize("dtype", ["Float64", "float32[pyarrow]", "bool[pyarrow]"])
def test_missing_values_of_pandas_and_arrow_are_missing_in_estimators(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    values = np.random.default_rng(0).normal(size=(6, 40)).astype(np.float32)
    missing = values > 1
    values = (values > 0).astype(np.float32) if "bool" in dtype else values
    values[missing] = np.nan
    table = pd.DataFrame(values).astype(dtype)
    expected = StatisticsTransformer().fit_transform(values)
    np.testing.assert_array_equal(StatisticsTransformer().fit_transform(table), expected)
    windows = [pd.DataFrame({"x": row}).astype(dtype) for row in values]
    np.testing.assert_array_equal(StatisticsTransformer().fit_transform(windows), expected)


@pytest.mark.parametrize("missing", [pd.NA, pd.NaT, None, np.nan])
def test_missing_values_among_objects_are_missing(missing):
    """pandas' NA among objects was refused, and its NaT became a number of nanoseconds."""
    table = pd.DataFrame({"x": np.arange(20.0), "y": 1.0}).astype(object)
    if missing is not pd.NaT:  # in a column of a frame it is a time
        table.iloc[3, 0] = missing
        for each in (table, table.to_numpy(), table.to_numpy().tolist()):
            X = sliding_windows([each], 10).X
            assert np.argwhere(np.isnan(X)).tolist() == [[0, 3, 0]]
    row = [1.0, 2.0, missing, 4.0]
    for each in (row, np.array(row, dtype=object)):
        X = WindowScaler(per="window").fit_transform([each, each])
        assert np.isnan(X).nonzero()[1].tolist() == [2, 2]


@pytest.mark.parametrize("time", [np.datetime64("2026"), np.timedelta64(3, "s"), pd.Timestamp(0)])
@pytest.mark.parametrize("make", [list, tuple, lambda rows: np.array(rows, dtype=object)])
def test_times_among_objects_are_no_numbers(time, make):
    """NumPy's were read as years or seconds, and a list's of pandas as nanoseconds."""
    rows = make([[1.0, time], [2.0, time], [3.0, time], [4.0, time]])
    with pytest.raises((TypeError, ValueError), match="holds times|does not hold numbers"):
        sliding_windows([rows], 4)
    with pytest.raises((TypeError, ValueError), match="holds times|does not hold numbers"):
        WindowScaler(per="window").fit([make([1.0, time, 2.0])])


@pytest.mark.parametrize("step", _STEPS, ids=lambda step: type(step).__name__)
@pytest.mark.parametrize("dtype", ["Float64", "boolean", "float32[pyarrow]", "bool[pyarrow]"])
def test_missing_values_of_pandas_and_arrow_are_missing_in_series(step, dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    values = np.arange(40) % 3 > 0
    series = pd.Series(values.astype(float)).astype(dtype).mask(np.arange(40) == 7)
    expected = np.where(np.arange(40) == 7, np.nan, values)
    for last in (40, 39):
        given = step.fit_transform([series, series[:last]])
        for x, y in zip(given, step.fit_transform([expected, expected[:last]]), strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("kind", ["time", "duration"])
def test_times_are_no_channel(library, kind):
    frames = pytest.importorskip(library)
    times = pd.date_range("2026", periods=40, freq="s").to_numpy()
    times = times - times[0] if kind == "duration" else times
    frame = frames.DataFrame({"time": times, "ppg": np.arange(40.0)})
    calls = [
        lambda x: sliding_windows(x, 10),
        WindowScaler().fit,
        SlidingWindows(10).fit,
        StatisticsTransformer().fit,
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"column 'time' of \w+\[0\] holds times.*: drop it"):
            call([frame, frame])
    for call in (WindowScaler().fit, StatisticsTransformer().fit):
        with pytest.raises(ValueError, match="column 'time' of X holds times"):
            call(frame)


@pytest.mark.parametrize("step", _STEPS, ids=lambda step: type(step).__name__)
def test_series_and_arrays_of_times_are_no_channel(step):
    times = pd.Series(_TIMES)
    frame = pd.DataFrame({"time": times, "ppg": 1.0})
    array = times.to_numpy(dtype="datetime64[ns]")
    for recordings in ([times] * 2, [times, times[1:]], [array[:, None]] * 2):
        with pytest.raises(ValueError, match=r"X\[0\] holds times, which are no channel"):
            step.fit(recordings)
    for windows in (frame, array[:, None], array[:, None, None]):
        with pytest.raises(ValueError, match="X holds times, which are no channel"):
            step.fit(windows)


@pytest.mark.parametrize("dtype", ["datetime64[ns]", "period[min]", "time64[ns][pyarrow]"])
def test_a_column_of_times_is_named_in_panels_and_lists(dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    times = pd.Series(_TIMES.tz_localize(None))
    times = (pd.Series(times.dt.time) if dtype.startswith("time") else times).astype(dtype)
    frame = pd.DataFrame({"time": times, "ppg": 1.0})
    nested = pd.DataFrame({name: [frame[name]] * 2 for name in frame})
    for recordings in ([frame], pd.concat({"a": frame, "b": frame}), nested):
        with pytest.raises(ValueError, match="the column 'time' of recordings.* holds times"):
            sliding_windows(recordings, 10)
    for call in (WindowScaler().fit, SlidingWindows(10).fit, StatisticsTransformer().fit):
        with pytest.raises(ValueError, match=r"the column 'time' of X\[0\] holds times"):
            call([frame])


def _polars(segments):
    return pytest.importorskip("polars").DataFrame(segments.to_dict("list"))


def _structured(segments):
    return segments.to_records(index=False)


@pytest.mark.parametrize("library", [lambda segments: segments, _polars, _structured])
@pytest.mark.parametrize("label", [[1, 0], ["sit", "walk"]])
def test_columns_of_segments_are_known_by_name(library, label):
    recordings = [np.arange(100.0), 1000 + np.arange(100.0)]
    columns = {"label": label, "note": ["a", "b"], "start": [0, 50], "end": [50, 100]}
    frame = pd.DataFrame(columns | {"recording": [0, 1]})
    windows = segment_windows(recordings, library(frame), 50)
    assert windows.recording.tolist() == [0, 1]
    assert windows.start.tolist() == [0, 50]
    assert windows.y.tolist() == label
    unnamed = pd.DataFrame(frame[["recording", "start", "end", "label"]].to_numpy())
    assert segment_windows(recordings, unnamed, 50).y.tolist() == label


@pytest.mark.parametrize(
    "fit",
    [
        StatisticsTransformer().fit,
        WindowScaler().fit,
        SlidingWindows(8).fit,
        lambda X: sliding_windows(X, 8),
    ],
)
def test_bags_of_frames_are_refused(fit):
    """Their columns may stand in another order in each window."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(32, 2)), columns=["a", "b"])
    with pytest.raises(ValueError, match=r"^(X|recordings)\[0\] is a list of frames"):
        fit([[frame, frame[["b", "a"]]], [frame, frame]])


def test_segments_with_two_columns_of_a_name_are_refused():
    segments = pd.DataFrame([[0, 0, 50, 1, 2]])
    segments.columns = ["recording", "start", "end", "label", "label"]
    with pytest.raises(ValueError, match="segments has more than one column named 'label'"):
        segment_windows([np.arange(100.0)], segments, 50)


@pytest.mark.parametrize("text", ["1", "-1,5", " 2.25", ".5", "-1,5E-03", "2.5e3", "1.234,5"])
def test_numbers_as_text_are_to_be_read_as_numbers(text):
    frame = pd.DataFrame({"x": [text] * 64, "y": np.arange(64.0)})
    with pytest.raises(TypeError, match=r"column 'x'.* holds the number .* as text: convert it"):
        sliding_windows([frame], 32)


def test_a_comma_may_divide_thousands(tmp_path):
    """Read with a decimal comma, such numbers would become a thousandth without an error."""
    values = np.arange(20_000, 20_064)
    path = tmp_path / "counts.csv"
    path.write_text("x\n" + "\n".join(f'"{value:,}"' for value in values), encoding="utf-8")
    with pytest.raises(TypeError, match=r"decimal=',.*, or thousands=',' where .* thousands"):
        sliding_windows([pd.read_csv(path)], 32)
    X = sliding_windows([pd.read_csv(path, thousands=",")], 32).X
    np.testing.assert_array_equal(X.ravel(), values)


@pytest.mark.parametrize("text", ["1.234,5", "1,234.5"])
def test_both_marks_in_a_number_tell_which_is_the_decimal_one(text):
    table = "x;y\n" + f"{text};0\n" * 32
    with pytest.raises(TypeError, match="as by pandas.read_csv") as refused:
        sliding_windows([pd.read_csv(io.StringIO(table), sep=";")], 32)
    marks = dict(re.findall("(decimal|thousands)='(.)'", str(refused.value)))
    X = sliding_windows([pd.read_csv(io.StringIO(table), sep=";", **marks)], 32).X
    assert (X[:, :, 0] == 1234.5).all()


def test_numbers_may_begin_behind_marks_of_missing_values():
    frame = pd.read_csv(io.StringIO("x\n" + "--\n" + "0.5\n" * 64))
    with pytest.raises(TypeError, match=r"holds the number '0\.5' as text.*na_values"):
        sliding_windows([frame], 32)


def test_marks_of_missing_values_are_no_decimal_comma(tmp_path):
    path = tmp_path / "steps.csv"
    path.write_text("x\n" + "0.5\n-\n" * 32, encoding="utf-8")
    with pytest.raises(TypeError, match=r"holds the number '0\.5' as text.*na_values") as refused:
        sliding_windows([pd.read_csv(path)], 32)
    assert "decimal" not in str(refused.value)
    X = sliding_windows([pd.read_csv(path, na_values=["-"])], 32).X
    assert np.isnan(X).sum() == 32


@pytest.mark.parametrize("mark", [";", "\t"])
@pytest.mark.parametrize("row", ["1,5;2,5", "0;2,5", "0.5;2.5", "0.5;walk", "0;2,5;1,5"])
@pytest.mark.parametrize(
    "read",
    [
        lambda frame: sliding_windows([frame], 32),
        lambda frame: sliding_windows([np.zeros((64, 1)), frame], 32),
        lambda frame: WindowScaler().fit([frame]),
        StatisticsTransformer().fit,
    ],
)
def test_the_columns_of_a_file_that_are_read_as_one_are_to_be_divided(row, mark, read):
    """Decimals, behind the last comma, would be the only channel."""
    header = "t;x;y" if row.count(";") > 1 else "x;y"
    text = (header + "\n" + f"{row}\n" * 64).replace(";", mark)
    frame = pd.read_csv(io.StringIO(text))
    with pytest.raises(
        TypeError, match=r"the single column '[tx].*sep='.*'\), with decimal=',' if"
    ):
        read(frame)


def test_a_panel_whose_columns_are_read_as_one_is_to_be_divided():
    frame = pd.read_csv(io.StringIO("x;y\n" + "1,5;2,5\n" * 64))
    with pytest.raises(TypeError, match=r"recordings has the single column 'x;y'.*sep=';'"):
        sliding_windows(frame, 32)
    divided = pd.read_csv(io.StringIO("x;y\n" + "1,5;2,5\n" * 64), sep=";", decimal=",")
    assert sliding_windows([divided], 32).X[0, 0].tolist() == [1.5, 2.5]
    with pytest.raises(TypeError, match="polars.read_csv.*separator=';'.*decimal_comma=True"):
        sliding_windows([pl.DataFrame({"x;y": ["1,5;2,5"] * 64})], 32)
    named = pd.DataFrame({"ecg;raw": np.arange(64.0)})  # a name, and nothing else
    assert len(sliding_windows([named], 32).X) == 2


@pytest.mark.parametrize("as_records", [False, True])
def test_the_fields_of_a_structured_array_become_channels(as_records):
    frame = pd.DataFrame(np.arange(128.0).reshape(64, 2), columns=["x", "y"])
    records = frame.to_records(index=False)
    if not as_records:
        text = io.StringIO(frame.to_csv(index=False))
        records = np.genfromtxt(text, names=True, delimiter=",")
    remedy = r"recordings\[0\] is a structured array .* fields x, y: .*structured_to_unstructured"
    with pytest.raises(TypeError, match=remedy):
        sliding_windows([records], 32)
    X = sliding_windows([structured_to_unstructured(records[["x", "y"]])], 32).X
    np.testing.assert_array_equal(X, sliding_windows([frame], 32).X)


def test_labels_of_steps_have_the_index_of_their_frame():
    times = pd.date_range("2026", periods=100, freq="s")
    frame = pd.DataFrame({"x": np.arange(100.0)}, index=times)
    y = pd.Series(np.arange(100) // 50, index=times)
    for fits in (y, y.reset_index(drop=True), y.to_numpy()):
        assert sliding_windows([frame], 50, y=[fits]).y.tolist() == [0, 1]
    frames, labels = np.empty((2, 1), dtype=object)  # which lists become, for example in a splitter
    frames[0] = frame
    problem = r"y\[0\] has another index than recordings\[0\]"
    for other in (y[::-1], y.shift(1, freq="s")):
        labels[0] = other
        for recordings in ([frame], frames):
            for given in ([other], labels):
                with pytest.raises(ValueError, match=problem):
                    sliding_windows(recordings, 50, y=given)


@pytest.mark.parametrize("as_list", [False, True])
def test_groups_of_text_and_numbers_are_refused(as_list):
    groups = ["P1", 2] if as_list else pd.Series(["P1", 2])
    with pytest.raises(ValueError, match="groups mixes text with numbers: make all of them text"):
        sliding_windows([np.ones(20)] * 2, 20, groups=groups)


def test_groups_without_an_order_are_refused():
    groups = [datetime.date(2026, 1, 1), 2]
    with pytest.raises(ValueError, match="groups holds values without an order .* make all of"):
        sliding_windows([np.ones(20)] * 2, 20, groups=groups)
    with pytest.raises(ValueError, match="groups holds values without an order"):
        WindowScaler(per="recording").fit_transform(np.ones((2, 20)), groups=groups)


def timed(columns, rate=64.0, n_recordings=6, n_timesteps=128):
    """Frames of noise with a time index."""
    rng = np.random.default_rng(0)
    step = pd.Timedelta(seconds=1 / rate)
    times = pd.date_range("2026", periods=n_timesteps, freq=step)
    shape = n_timesteps, len(columns)
    return [pd.DataFrame(rng.normal(size=shape), times, columns) for _ in range(n_recordings)]


@pytest.mark.parametrize("layout", ["ntc", "nct"])
def test_frames_go_through_a_step_as_frames(layout):
    frames = timed(["ecg", "ppg"])
    frames[1] = frames[1][:100]
    scaled = WindowScaler(input_layout=layout).fit_transform(frames)
    plain = WindowScaler().fit_transform([frame.to_numpy() for frame in frames])
    for before, after, values in zip(frames, scaled, plain, strict=True):
        expected = pd.DataFrame(values, before.index, before.columns)
        pd.testing.assert_frame_equal(after, expected)
    series = [pd.Series(np.arange(n) * 1.0, name="bvp") for n in (30, 40)]
    assert [x.name for x in WindowScaler().fit_transform(series)] == ["bvp", "bvp"]
    unscaled = WindowScaler().fit(frames).inverse_transform(scaled)
    assert [list(frame.columns) for frame in unscaled] == [["ecg", "ppg"]] * 6


@pytest.mark.parametrize("kind", ["dates", "durations", "numbers"])
def test_resampled_frames_have_the_times_of_the_new_rate(kind):
    frame = timed(["ecg", "ppg"])[0]
    if kind == "durations":
        frame.index = frame.index - frame.index[0]
    elif kind == "numbers":
        frame = frame.reset_index(drop=True)
    (resampled,) = Resampler(from_rate=64, to_rate=16).fit_transform([frame])
    assert list(resampled.columns) == ["ecg", "ppg"]
    expected = frame.index[::4] if kind != "numbers" else pd.RangeIndex(32)
    assert list(resampled.index) == list(expected)
    if kind != "numbers":
        with pytest.raises(ValueError, match="the time index of recordings has 16 steps a second"):
            sliding_windows([resampled], 8, sampling_rate=64)
    lazy = sliding_windows([resampled], 8, lazy=True).X
    assert lazy.channel_names == ("ecg", "ppg")


def test_a_panel_of_sktime_in_polars_is_no_table():
    index = {"__index__instances": [0, 0, 1, 1], "__index__timepoints": [0, 1, 0, 1]}
    panel = pl.DataFrame(index | {"ecg": [1.0, 2.0, 3.0, 4.0]})
    for step in (StatisticsTransformer(), WindowScaler()):
        with pytest.raises(TypeError, match="panel of sktime .*convert_to.X, 'pd-multiindex'"):
            step.fit(panel)


def test_frames_of_polars_go_through_a_step_as_frames():
    polars = pytest.importorskip("polars")
    frames = [polars.DataFrame({"a": np.arange(20.0), "b": np.ones(20)})] * 2
    for after in WindowScaler().fit_transform(frames):
        assert isinstance(after, polars.DataFrame)
        assert after.columns == ["a", "b"]
    for step in (WindowScaler(), Resampler(2, 1), BandpassFilter(None, 0.4, 1)):
        for after in step.fit_transform([frames[0]["a"], frames[0]["b"][:15]]):
            assert isinstance(after, polars.Series)
        assert after.name == "b"


STATED = {"num_kernels": 84, "n_components": 4, "embedding_dim": 8, "random_state": 0}


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_an_encoder_behind_steps_compares_rates_and_names(lazy, scaled):
    def windows(*args, **kwargs):
        frames = timed(*args, **kwargs)
        return sliding_windows(frames, 64, lazy=True).X if lazy else frames

    encoder = CrossPredictionTransformer(
        sampling_rate=64, channel_names=["ecg", "ppg"], views="halves", **STATED
    )
    model = make_pipeline(WindowScaler(), encoder) if scaled else encoder
    right = windows(["ecg", "ppg"])
    swapped, faster = windows(["ppg", "ecg"]), windows(["ecg", "ppg"], rate=128.0)
    model.fit(right)
    for call in (clone(model).fit, model.transform):
        with pytest.raises(ValueError, match="channel"):
            call(swapped)
    with pytest.raises(ValueError, match="the time index of X has 128 steps a second"):
        clone(model).fit(faster)
    resample = r"was fitted on 64 Hz: resample X by .*Resampler\(from_rate=128, to_rate=64\)"
    with pytest.raises(ValueError, match=resample):
        model.transform(faster)
    assert model.transform(windows(["ecg", "ppg"], rate=64.5)).shape[1] == 8


def test_selected_and_down_sampled_windows_keep_the_rate_of_the_index():
    X = sliding_windows(timed(["a"]), 16, lazy=True, downsample=4).X
    encoder = CrossPredictionTransformer(sampling_rate=64, views="halves", **STATED)
    for part in (X, X[:8], X[np.arange(8)]):
        with pytest.raises(ValueError, match="the time index of X has 16 steps a second"):
            encoder.fit(part)


def test_the_rate_of_an_index_of_text_needs_one_index(monkeypatch):
    index = pd.date_range("2024", periods=30, freq="s").astype(str)
    frames = [pd.DataFrame({"x": np.zeros(n)}, index=index[:n]) for n in (5, 30, 7, 1)]
    read, n_read = _times.as_times, []
    monkeypatch.setattr(_times, "as_times", lambda x: n_read.append(len(x)) or read(x))
    assert _times.index_rate(frames) == pytest.approx((1.0, 0.02))
    assert n_read == [30]


def text_frame(library, kind="text"):
    """A frame whose second column holds digits as text, as labels often are."""
    values = {"ecg": np.random.default_rng(0).normal(size=32), "state": ["0", "1"] * 16}
    if library == "pandas":
        return pd.DataFrame(values).astype({"state": {"text": "str", "object": object}[kind]})
    frame = pytest.importorskip("polars").DataFrame(values)
    polars = pytest.importorskip("polars")
    return frame if kind == "text" else frame.cast({"state": getattr(polars, kind)})


@pytest.mark.parametrize(
    ("library", "kind"),
    [("pandas", "text"), ("pandas", "object"), ("polars", "text"), ("polars", "Categorical")],
)
def test_digits_as_text_are_no_channel(library, kind):
    frame = text_frame(library, kind)
    message = r"the column 'state' of \w+(\[0\])? holds the number '0' as text: convert it"
    for read in (
        lambda: StatisticsTransformer().fit([frame, frame]),
        lambda: WindowScaler().fit([frame, frame]),
        lambda: sliding_windows([frame], 16, 16),
        lambda: StatisticsTransformer().fit(frame),
    ):
        with pytest.raises(TypeError, match=message):
            read()
    column = frame["state"] if library == "pandas" else frame.get_column("state")
    with pytest.raises(ValueError, match="holds '0', which is no number"):
        sliding_windows([column], 16, 16)
    with pytest.raises(ValueError, match="holds '0', which is no number"):
        StatisticsTransformer().fit(np.array([[0.5, "0"]] * 4, dtype=object))


def test_digits_as_text_in_a_panel_are_no_channel():
    frame = text_frame("pandas")
    panel = pd.concat({0: frame, 1: frame})
    with pytest.raises(TypeError, match="the column 'state' of .* holds the number '0' as text"):
        sliding_windows(panel, 16, 16)


@pytest.mark.parametrize("step", [WindowScaler(), Resampler(100, 50), StatisticsTransformer()])
def test_entries_of_a_list_that_hold_no_values_are_named(step):
    class Raw:
        def get_data(self):
            return np.zeros((2, 32))

    lazy = pytest.importorskip("polars").DataFrame({"a": [0.0] * 32}).lazy()
    for entry, message in [
        (Raw(), r"X\[0\] is a Raw: pass what its get_data\(\) returns"),
        (lazy, r"X\[0\] is a LazyFrame, .* \.collect\(\)"),
    ]:
        with pytest.raises(TypeError, match=message):
            step.fit([entry, entry])


def test_frames_and_arrays_in_one_list_with_channels_first():
    values = np.random.default_rng(0).normal(size=(3, 20, 20))
    frames = [pd.DataFrame(x) for x in values]
    features = StatisticsTransformer(input_layout="nct")
    expected = features.fit_transform(frames)
    mixed = [frames[0], values[1].T, frames[2]]
    np.testing.assert_array_equal(features.fit_transform(mixed), expected)


@pytest.mark.parametrize("library", [pd, pl])
def test_columns_of_arrays_are_refused_by_name(library):
    """A column may hold a window, or several targets, in each cell."""
    windows = np.random.default_rng(0).normal(size=(6, 24))
    cells = pd.Series(list(windows)) if library is pd else pl.Series(windows.tolist())
    encoder = RandomEncoderTransformer(embedding_dim=4)
    # A frame of pandas with such a column is a panel, of which the message is another.
    for X in [cells] if library is pd else [cells, pl.DataFrame({"ppg": cells})]:
        with pytest.raises(ValueError, match=r"X has entries that hold several .*\.to_list\(\)"):
            encoder.fit(X)
    listed = encoder.fit(cells.to_list()).transform(cells.to_list())
    np.testing.assert_array_equal(listed, encoder.transform(windows))
    settings = {**SMALL_ENCODER, "max_epochs": 1}
    y = "y holds arrays as its entries: pass numpy.stack"
    for fit, message in [
        (lambda: FineTuneRegressor(**settings).fit(windows, cells), y),
        (lambda: FineTuneClassifier(**settings).fit(windows, cells), y),
        (lambda: mask_labels(cells, 0.5), y),
        (lambda: LabeledSubsetClassifier().fit(windows, cells), y),
        (
            lambda: CrossPredictionTransformer(**STATED).fit(windows, groups=cells),
            "groups holds arrays as its entries",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            fit()


def test_ragged_targets_and_numbers_as_objects_are_named():
    windows = np.zeros((6, 24))
    with pytest.raises(ValueError, match="y cannot be read as an array .*as many targets for each"):
        FineTuneRegressor(**SMALL_ENCODER).fit(windows, [[1, 2], [3]] * 3)
    with pytest.raises(ValueError, match=r"y has dtype object .*: pass y.astype\(int\)"):
        FineTuneClassifier(**SMALL_ENCODER).fit(windows, np.array([0, 1] * 3, dtype=object))


def test_groups_in_a_dict_have_no_order_of_the_windows():
    groups = {"ben": 1, "anna": 0}
    with pytest.raises(
        ValueError, match=r"groups is a dict.*: pass \[groups\[key\] for key in keys\]"
    ):
        sliding_windows([np.zeros((8, 1))] * 2, 4, groups=groups)


def test_segments_that_are_not_read_yet_are_named():
    segments = pl.DataFrame({"recording": [0], "start": [0], "end": [8], "label": [1]}).lazy()
    with pytest.raises(TypeError, match=r"segments is a LazyFrame.*: pass its \.collect\(\)"):
        segment_windows([np.zeros((8, 1))], segments, length=4)
