"""What every step of the room keeps: shapes, missing values, layouts, containers."""

from __future__ import annotations

import pickle
import tracemalloc
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.utils import _safe_indexing

from sklearn_pulse import preprocessing
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.preprocessing import (
    BandpassFilter,
    ChannelWhitener,
    Resampler,
    WindowScaler,
)
from sklearn_pulse.windows import (
    LazyWindows,
    RecordingWindows,
    SlidingWindows,
    open_recordings,
    sliding_windows,
)
from tests.helpers import accepted, sklearn_suite
from tests.preprocessing.data import IDS, STEPS, as_lazy, hidden, make_gaps, quick, windows

every_step = pytest.mark.parametrize("step", STEPS, ids=IDS)


@sklearn_suite(
    [
        WindowScaler(),
        WindowScaler(per="window", robust=True),
        ChannelWhitener(),
        BandpassFilter(high=20, sampling_rate=64),
        Resampler(64, 100),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@every_step
def test_every_container_holds_the_same_windows(step, tmp_path):
    X = make_gaps()
    expected = clone(step).fit_transform(X)
    assert expected.dtype == np.float32
    np.save(tmp_path / "X.npy", X)
    same = {
        "memory map": np.load(tmp_path / "X.npy", mmap_mode="r"),
        "Fortran order": np.asfortranarray(X),
        "reversed": X[::-1][::-1],
        "bag": X.reshape(3, 2, *X.shape[1:]),
        "masked": hidden(X),
        "list": list(X),
        "masked list": list(hidden(X)),
        "lazy": as_lazy(X),
    }
    before = X.copy()
    for name, given_as in same.items():
        fitted = clone(step).fit(given_as)
        assert (fitted.n_channels_in_, fitted.n_features_in_) == (2, 2)
        result = fitted.transform(given_as)
        assert isinstance(result, list) == ("list" in name)
        result = np.asarray(result).reshape(expected.shape)
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6, err_msg=name)
    first = clone(step).set_params(input_layout="nct").fit_transform(X.swapaxes(1, 2))
    np.testing.assert_allclose(first.swapaxes(1, 2), expected, rtol=1e-6)
    lazy_first = clone(step).fit(X).transform(as_lazy(X))
    np.testing.assert_array_equal(lazy_first[1:3], lazy_first.take([1, 2]))
    np.testing.assert_array_equal(X, before)


@every_step
def test_univariate_input_has_two_axes_or_one(step):
    X = make_gaps(n_channels=1)
    expected = clone(step).fit_transform(X)
    table = clone(step).fit(X[:, :, 0])
    np.testing.assert_array_equal(table.transform(X[:, :, 0]), expected[:, :, 0])
    np.testing.assert_array_equal(table.transform(X), expected)
    series = clone(step).fit_transform([X[0, :, 0], X[1, :-1, 0]])
    assert [x.ndim for x in series] == [1, 1]
    objects = np.empty(2, dtype=object)
    objects[:] = [X[0, :, 0], X[1, :-1, 0]]
    for x, y in zip(clone(step).fit_transform(objects), series, strict=True):
        np.testing.assert_array_equal(x, y)


@quick
@given(X=windows)
@pytest.mark.filterwarnings("ignore:X has more channels:UserWarning")
def test_missing_values_stay_where_they_are(X):
    for step in STEPS:
        fitted = clone(step).fit(X)
        try:
            result = fitted.transform(X)
        except ValueError as error:  # quartiles close together, and a value far away
            assert "too large for float32" in str(error)
            continue
        source = np.arange(result.shape[1])
        if isinstance(step, Resampler):
            source = source * fitted.down_ // fitted.up_
        missing = np.isnan(X)[:, source]
        assert (missing <= np.isnan(result)).all()
        whole = ~np.isnan(X).any(1, keepdims=True)
        assert not (np.isnan(result) & whole).any()
        if len(source) >= X.shape[1]:  # shorter output may fall between the ends of a run
            np.testing.assert_array_equal(np.isnan(result), missing)


@every_step
def test_tensors_of_torch_are_arrays(step):
    X = torch.from_numpy(make_gaps()).to(torch.bfloat16)
    np.testing.assert_array_equal(
        clone(step).fit_transform(X), clone(step).fit_transform(X.float().numpy())
    )


@every_step
@pytest.mark.parametrize("n_rows", [1, 3])
def test_a_row_does_not_depend_on_the_other_rows(step, n_rows):
    X = make_gaps()
    fitted = clone(step).fit(X)
    expected = fitted.transform(X)[:n_rows]
    np.testing.assert_array_equal(fitted.transform(X[:n_rows]), expected)


@every_step
def test_recordings_of_unequal_length(step):
    recordings = [x[: len(x) - 3 * i] for i, x in enumerate(make_gaps(3))]
    fitted = clone(step).fit(recordings)
    for x, y in zip(recordings, fitted.transform(recordings), strict=True):
        assert y.dtype == np.float32
        np.testing.assert_array_equal(y, fitted.transform(x[np.newaxis])[0])


@pytest.mark.parametrize("step", STEPS[:1] + STEPS[3:], ids=IDS[:1] + IDS[3:])
def test_a_long_recording_is_not_held_several_times(step, monkeypatch):
    recording = np.tile(make_gaps(1, 2**12, 8)[0].astype(np.float32), (2**5, 1))
    fitted = clone(step).fit([recording])
    whole = fitted.transform([recording])[0]
    monkeypatch.setattr("sklearn_pulse.preprocessing._runs._PIECE_VALUES", 2**17)  # one channel
    tracemalloc.start()
    changed = fitted.transform([recording])[0]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.8 * (recording.nbytes + changed.nbytes)
    np.testing.assert_array_equal(changed, whole)


@every_step
def test_pandas_holds_tables_and_arrays_hold_windows(step):
    frame = pd.DataFrame(make_gaps(n_channels=1)[:, :, 0]).add_prefix("t")
    table = clone(step).set_output(transform="pandas").fit(frame)
    result = table.transform(frame)
    assert list(result) == table.get_feature_names_out().tolist()
    assert result.index.equals(frame.index)
    if isinstance(step, Resampler):
        assert list(result)[:2] == ["resampler0", "resampler1"]
    else:
        assert list(result) == list(frame)
    X = make_gaps()
    pipe = make_pipeline(clone(step), StatisticsTransformer()).fit(X[:2])
    pipe.set_output(transform="pandas")
    assert isinstance(pipe.transform(X[:2]), pd.DataFrame)
    assert isinstance(pipe[0].transform(X), np.ndarray)
    assert not hasattr(pipe[0], "get_feature_names_out")
    refitted = pipe[0].fit(frame)
    assert isinstance(refitted.transform(frame), pd.DataFrame)


@every_step
def test_only_tables_become_frames_after_a_fit_on_a_table(step):
    X = make_gaps(n_timesteps=60, n_channels=1)
    plain = clone(step).fit(X[:, :, 0])
    table = clone(step).set_output(transform="pandas").fit(X[:, :, 0])
    others = {
        "windows": X,
        "bags": X.reshape(3, 2, 60, 1),
        "list": list(X),
        "unequal list": [X[0, :, 0], X[1, :50, 0]],
        "lazy": as_lazy(X),
        "objects": np.array([*X, None], dtype=object)[:-1],
    }
    for name, other in others.items():
        expected, result = plain.transform(other), table.transform(other)
        assert type(result) is type(expected), name
        for x, y in zip(result, expected, strict=True):
            np.testing.assert_array_equal(x, y)
    assert isinstance(table.transform(X[:, :, 0].tolist()), pd.DataFrame)
    assert isinstance(table.transform(pd.DataFrame(X[:, :, 0])), pd.DataFrame)


@every_step
@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame])
def test_one_channel_may_have_an_axis_beside_recordings_without(step, make):
    one, two = make(np.arange(60.0)[:, np.newaxis]), np.arange(50.0)
    mixed = clone(step).fit_transform([one, two])
    expected = clone(step).fit_transform([one, two[:, np.newaxis]])
    assert type(mixed[0]) is type(one)
    np.testing.assert_array_equal(mixed[0], expected[0])
    np.testing.assert_array_equal(mixed[1], expected[1][:, 0])


class _Lazy(LazyWindows):
    """Lazy windows of ones, of any shape."""

    def __init__(self, *shape):
        self.shape = shape

    def take(self, indices):
        return np.ones((len(indices), *self.shape[1:]), np.float32)


class _Indexed(_Lazy):
    """The same, which an index reads."""

    def __getitem__(self, key):
        return np.asarray(self)[key]


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((0, 40, 2), "Found array with 0 sample"),
        ((6, 0, 2), "0 entries on axis 1"),
        ((6, 40), r"X.shape is \(6, 40\), but lazy windows have three axes"),
        ((6, 3, 40, 2), "lazy windows have three axes"),
    ],
)
@every_step
def test_lazy_windows_have_three_axes_and_none_is_empty(step, shape, message):
    fitted = clone(step).fit(make_gaps())
    for call in (clone(step).fit, fitted.transform):
        with pytest.raises(ValueError, match=message):
            call(_Lazy(*shape))


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("sampling_rate", "64", TypeError, "X.sampling_rate must be"),
        ("sampling_rate", 0, ValueError, "X.sampling_rate must be"),
        ("channel_names", ("a",), ValueError, "X.channel_names has 1 names, but X has 2 channels"),
        ("channel_names", "ab", TypeError, "X.channel_names must be a list of strings"),
    ],
)
@every_step
def test_what_lazy_windows_carry_is_checked(step, name, value, error, message):
    X = _Lazy(6, 40, 2)
    setattr(X, name, value)
    with pytest.raises(error, match=message):
        clone(step).fit(X)


def test_a_chain_of_steps_in_front_of_an_encoder():
    X = make_gaps(n_timesteps=80)[[0, 1, 3, 5]]
    chain = make_pipeline(
        BandpassFilter(1, 20, 64), Resampler(64, 32), WindowScaler(), StatisticsTransformer()
    )
    lazy = chain.fit_transform(as_lazy(X))
    np.testing.assert_allclose(lazy, chain.fit_transform(X), rtol=1e-4, atol=1e-5)
    recordings = [x[: 80 - 9 * i] for i, x in enumerate(X)]
    bags = make_pipeline(
        Resampler(64, 32), WindowScaler(), SlidingWindows(10), StatisticsTransformer()
    )
    assert make_pipeline(bags, PCA(2)).fit_transform(recordings).shape == (4, 2)


@pytest.mark.parametrize(
    ("step", "changes"),
    [
        (Resampler(50, 25), {"to_rate": 10}),
        (Resampler(50, 25), {"from_rate": 100}),
        (BandpassFilter(1, 20, 50), {"low": 0.1, "sampling_rate": 100}),
        *((WindowScaler(per=per), {"with_mean": False}) for per in ("window", "recording")),
        (WindowScaler(), {"with_mean": False}),
        (WindowScaler(per="window"), {"per": "recording"}),
    ],
)
def test_a_parameter_acts_from_the_next_fit_on(step, changes):
    X = sliding_windows(list(make_gaps(n_timesteps=100)), 50, lazy=True, sampling_rate=50).X
    fitted = clone(step).fit(X)
    expected = fitted.transform(X)
    again = fitted.set_params(**changes).transform(X)
    assert again.sampling_rate == expected.sampling_rate
    np.testing.assert_array_equal(again, expected)


@every_step
def test_more_indices_than_axes_are_refused(step):
    windows = clone(step).fit_transform(as_lazy(make_gaps()))
    for part in (windows, windows[1:]):
        with pytest.raises(IndexError, match="too many indices"):
            part[0:2, :, :, :]


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e39])
@every_step
def test_infinity_is_refused(step, value):
    X = make_gaps()
    fitted = clone(step).fit(X)
    X[2, 3, 0] = value
    for given_as, name in ((X, "2"), (list(X), "2"), (X.reshape(3, 2, 40, 2), "1")):
        message = rf"Input X\[{name}\] contains infinity or a value too large"
        with pytest.raises(ValueError, match=message):
            fitted.transform(given_as)
        with pytest.raises(ValueError, match=message):
            clone(step).fit_transform(given_as)
    lazy = fitted.transform(as_lazy(X))
    with pytest.raises(ValueError, match=r"Input X\[2\] contains infinity"):
        lazy.take([5, 2, 0])
    with pytest.raises(ValueError, match=r"Input X\[1\] contains infinity"):
        WindowScaler().fit(lazy[1:])


@pytest.mark.parametrize("robust", [False, True])
def test_a_lazy_window_with_an_infinity_is_named(robust, monkeypatch):
    monkeypatch.setattr("sklearn_pulse.preprocessing._source._BLOCK_VALUES", 160)  # two windows
    X = make_gaps()
    X[3, 3, 0] = np.inf
    with pytest.raises(ValueError, match=r"X\[3\] contains infinity"):
        WindowScaler(robust=robust).fit(as_lazy(X))


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (np.full((40, 2), np.inf), "contains infinity"),
        (np.zeros((40, 3)), "has 40 steps and 3 channels"),
    ],
)
@pytest.mark.parametrize("step", [*STEPS, SlidingWindows(4)], ids=str)
def test_a_damaged_recording_is_named(step, damaged, message, tmp_path):
    recordings = [np.zeros((40, 2)), damaged]
    for name, recording in zip("ab", recordings, strict=True):
        np.save(tmp_path / f"{name}.npy", recording)
    with pytest.raises(ValueError, match=rf"X\[1\] {message}"):
        clone(step).fit_transform(recordings)
    with pytest.raises(ValueError, match=rf"X\[1\] \(.*b.npy\) {message}"):
        clone(step).fit_transform(open_recordings(tmp_path))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((1, 2, 2, 9, 2)), "X has 5 dimensions, .* takes 2"),
        (np.zeros((2, 0, 3)), "0 entries on axis 1"),
        (np.zeros((0, 5, 2)), "0 sample"),
        (np.zeros(5), "Reshape your data"),
        ([], "0 sample"),
        ([np.zeros((5, 2)), np.zeros((4, 3))], r"X\[1\] has 4 steps and 3 channels; .* the 2"),
        ([np.zeros((5, 2)), None], r"X\[1\] is None: leave it out"),
        ([None], r"X\[0\] is None: leave it out"),  # as wfdb returns where it finds no lead
        ([np.zeros((5, 2)), np.full((4, 2), "a")], r"X\[1\] has dtype <U1: convert it"),
        ([pd.DataFrame({"a": [1]}, pd.MultiIndex.from_tuples([(0, 0)]))], r"X\[0\] is a frame"),
        (np.zeros((2, 5, 2), complex), "Complex data not supported"),
    ],
)
@every_step
def test_unusable_input_leaves_the_step_as_it_was(step, X, message):
    fitted = clone(step).fit(make_gaps())
    before = dict(vars(fitted))
    with pytest.raises((TypeError, ValueError), match=message):
        fitted.fit(X)
    assert vars(fitted) == before


@every_step
def test_other_channels_are_refused(step):
    fitted = clone(step).fit(make_gaps())
    for X in (np.zeros((2, 40, 3)), [np.zeros((40, 3)), np.zeros((39, 3))], np.zeros((2, 40))):
        with pytest.raises(ValueError, match=r"X has \d channels, but .* is expecting 2"):
            fitted.transform(X)
    with pytest.raises(ValueError, match="looks transposed"):
        fitted.transform(np.zeros((1, 2, 40)))


@pytest.mark.parametrize("n_channels", [1, 2])
@every_step
def test_one_window_without_the_axis_of_samples(step, n_channels):
    X = make_gaps(n_channels=n_channels)
    fitted = clone(step).fit(X)
    frame = pd.DataFrame(X[0])
    for one, remedy, remedied in ((X[0], r"X\[None\]", X[:1]), (frame, r"\[X\]", [frame])):
        with pytest.raises(ValueError, match=f"window of {n_channels} channels, pass {remedy};"):
            fitted.transform(one)
        assert len(fitted.transform(remedied)) == 1


@pytest.mark.parametrize("kind", ["arrays", "objects", "pandas", "polars"])
def test_recordings_of_one_channel_may_happen_to_be_as_long(kind):
    scaler = WindowScaler(per="recording")
    recordings = list(3 + 2 * np.random.default_rng(0).normal(size=(3, 80)))
    shorter = [*recordings[:2], recordings[2][:-1]]
    passed = recordings
    if kind == "objects":
        passed = np.empty(3, dtype=object)
        passed[:] = recordings
    elif kind != "arrays":
        passed = [pytest.importorskip(kind).Series(x) for x in recordings]
    scaled = scaler.fit_transform(passed)
    for x, longer in zip(scaler.fit_transform(shorter)[:2], scaled, strict=False):
        np.testing.assert_allclose(longer, x, rtol=1e-6)
    groups = [0, 0, 1]
    expected = scaler.fit_transform(np.stack(recordings), groups=groups)
    np.testing.assert_array_equal(scaler.fit_transform(recordings, groups=groups), expected)
    with pytest.raises(ValueError, match="per='recording' needs"):
        scaler.fit_transform([x.tolist() for x in recordings])  # a table


@every_step
def test_arrays_of_one_channel_are_recordings_however_long(step):
    x = np.random.default_rng(0).normal(size=90)
    fitted = clone(step).fit([x, x[::-1]])
    assert fitted.n_features_in_ == 1
    for recordings in ([x[:80], x[10:]], [x[:70]], (x[:60], x[30:])):
        result = fitted.transform(recordings)
        assert isinstance(result, list)
        for y, recording in zip(result, recordings, strict=True):
            np.testing.assert_array_equal(y, fitted.transform([recording, x[:50]])[0])
    table = clone(step).fit([x.tolist(), x.tolist()])
    assert table.n_features_in_ == 90
    assert table.transform([x.tolist()]).ndim == 2


@every_step
def test_series_of_one_length_keep_names_and_times(step):
    times = pd.date_range("2026-01-01", periods=80, freq=pd.Timedelta(seconds=1 / 64))
    rate = step.from_rate if isinstance(step, Resampler) else 64
    times = times[0] + (times - times[0]) * (64 / rate)
    series = [pd.Series(np.arange(80.0), times, name=name) for name in ("bvp", "eda")]
    for given_as in (series, series[:1]):
        for before, after in zip(given_as, clone(step).fit_transform(given_as), strict=True):
            assert after.name == before.name
            assert after.index[0] == times[0]
            if not isinstance(step, Resampler):
                assert after.index.equals(times)


@pytest.mark.parametrize("step", [*STEPS, SlidingWindows(4)], ids=[*IDS, "bags"])
def test_frames_have_the_same_columns_and_regular_times(step):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)), columns=["ecg", "ppg"])
    clone(step).fit([frame, frame])
    for other in (frame[["ppg", "ecg"]], frame.rename(columns={"ppg": 0})):
        with pytest.raises(ValueError, match=r"X\[1\] has the channels .*the same columns"):
            clone(step).fit([frame, other])
        with pytest.raises(ValueError, match=r"X\[2\] has the channels .*the same columns"):
            clone(step).fit([frame, frame.to_numpy(), other])
    times = pd.date_range("2026-01-01", periods=90, freq="s").delete(range(70, 80))
    with pytest.raises(ValueError, match="X has an irregular time index in instance 1"):
        clone(step).fit([frame.to_numpy(), frame.set_index(times)])
    with pytest.raises(ValueError, match="X has an irregular time index in instance 0"):
        clone(step).fit([frame["ecg"].set_axis(times)] * 2)


@pytest.mark.parametrize("step", [WindowScaler, Resampler, BandpassFilter])
def test_the_layout_is_checked(step):
    rates = {"rate": 64, "high": 20, "from_rate": 2, "to_rate": 1}
    with pytest.raises(ValueError, match="input_layout must be one of 'ntc', 'nct'"):
        step(**accepted(step, rates), input_layout="tnc").fit(make_gaps())


@every_step
def test_lazy_windows_are_not_read_transposed_by_the_next_step(step):
    own = as_lazy(np.ones((6, 40, 2))), _Lazy(6, 2, 40)
    last, first = (
        clone(step).set_params(input_layout=layout).fit_transform(lazy)
        for lazy, layout in zip(own, ("ntc", "nct"), strict=True)
    )
    for lazy, other, message in (
        (last, "nct", "MappedWindows, whose channels are last: fit with input_layout='ntc',"),
        (first, "ntc", "MappedWindows, whose channels are first: fit with input_layout='nct',"),
        (own[0], "nct", "RecordingWindows, whose channels are last"),
    ):
        for reads in (clone(step), StatisticsTransformer(), SlidingWindows(1)):
            reads.set_params(input_layout=other)
            name = type(reads).__name__
            with pytest.raises(
                ValueError, match=f"{name} has input_layout='{other}', .* {message}"
            ):
                reads.fit(lazy)
            reads.fit(np.asarray(lazy).swapaxes(1, 2))  # the remedy
            with pytest.raises(ValueError, match=message):
                reads.transform(lazy)


@every_step
@pytest.mark.parametrize("layout", ["ntc", "nct"])
def test_windows_of_an_own_class_are_divided_after_two_steps(step, layout):
    shape = (6, 40, 2) if layout == "ntc" else (6, 2, 40)
    steps = [each.set_params(input_layout=layout) for each in (clone(step), WindowScaler())]
    for own in (_Lazy(*shape), _Indexed(*shape)):
        lazy = make_pipeline(*steps).fit_transform(own)
        whole = np.asarray(lazy)
        for rows in ([4, 0], slice(1, 5, 2), np.arange(6) > 3):
            np.testing.assert_array_equal(_safe_indexing(lazy, rows), whole[rows])
        assert lazy.apart(np.arange(3)) is None


@every_step
def test_lazy_results_are_divided_pickled_and_read_as_arrays(step):
    lazy = clone(step).fit_transform(as_lazy(make_gaps()))
    whole = np.asarray(lazy)
    assert (lazy.shape, lazy.dtype, lazy.ndim) == (whole.shape, whole.dtype, whole.ndim)
    for rows in ([4, 0], slice(1, 5, 2), np.arange(6) > 3):
        part = pickle.loads(pickle.dumps(_safe_indexing(lazy, rows)))
        assert isinstance(part, LazyWindows)
        np.testing.assert_array_equal(part, whole[rows])
        np.testing.assert_array_equal(part.recording, lazy.recording[rows])
        np.testing.assert_array_equal(part.start, lazy.start[rows])
    keys = (3, -1, (), (slice(None), 0), (2, slice(1, 3)), ([1, 2], [0, 1]), (..., 1))
    for key in (*keys, (slice(2), slice(None), [0]), (3, slice(None), [0, 1])):
        np.testing.assert_array_equal(lazy[key], whole[key])
    pieces = lazy.apart(np.arange(3))
    np.testing.assert_array_equal(pieces, whole[:3])
    observed = lazy.observed_windows()
    np.testing.assert_array_equal(observed, np.isfinite(whole).all(2).any(1))
    assert isinstance(lazy[observed], LazyWindows)
    StatisticsTransformer().fit(lazy[observed])
    assert "windows" in repr(lazy).lower()
    with pytest.raises(ValueError, match="without a copy"):
        lazy.__array__(copy=False)


@pytest.mark.parametrize(
    ("step", "call"),
    [
        (BandpassFilter(high=20, sampling_rate=64), "_bandpass._both_ways"),
        (Resampler(64, 48), "_resampler._resample_run"),
    ],
)
def test_channels_with_the_same_gaps_are_computed_together(step, call, monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    X[::50] = X[1::50] = np.nan  # too long for the filter to bridge
    alone = [step.fit_transform([X[:, [c]]])[0] for c in range(8)]
    module, _, name = call.partition(".")
    computed = getattr(getattr(preprocessing, module), name)
    calls = []
    monkeypatch.setattr(
        getattr(preprocessing, module), name, lambda *a, **k: calls.append(a) or computed(*a, **k)
    )
    (together,) = step.fit_transform([X])
    np.testing.assert_array_equal(together, np.hstack(alone))
    assert len(calls) == 6  # runs


@every_step
def test_an_index_reads_no_other_windows(step):
    lazy = clone(step).fit_transform(as_lazy(make_gaps()))
    for key in ((slice(1, 3), slice(None), [0]), ([1, 2], [0, 1]), (2, [0, 1])):
        with mock.patch.object(RecordingWindows, "take", autospec=True) as take:
            take.side_effect = lambda X, rows: np.ones((len(rows), *X.shape[1:]), np.float32)
            assert np.shape(lazy[key]) == np.shape(np.empty(lazy.shape)[key])
        assert set(take.call_args.args[1].tolist()) <= {1, 2}


@pytest.mark.parametrize("step", [WindowScaler(per="window"), Resampler(64, 32)])
def test_a_few_of_very_many_lazy_windows_need_no_list_of_all(step):
    class Endless(LazyWindows):
        shape = (2**50, 6, 1)

        def take(self, indices):
            return np.multiply.outer(np.asarray(indices) % 7, np.arange(6.0))[..., np.newaxis]

    mapped = step.fit(np.zeros((2, 6, 1))).transform(Endless())
    expected = step.transform(Endless().take([3, 2**50 - 2, 5]))
    np.testing.assert_array_equal(mapped.take(np.array([3, -2, 5])), expected)
    np.testing.assert_array_equal(mapped[3:6:2], expected[::2])
    np.testing.assert_array_equal(mapped[-2], expected[1])
