"""Channels in another order, or another rate, are refused wherever their names are known."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

from sklearn_pulse import FineTuneClassifier, PulseTransformer, load_pretrained, save_pretrained
from sklearn_pulse.corpus import embed_dataset
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.preprocessing import BandpassFilter, Resampler, WindowScaler
from sklearn_pulse.windows import (
    LazyWindows,
    SlidingWindows,
    random_windows,
    segment_windows,
    sliding_windows,
)
from tests.helpers import SMALL_PULSE

_X = np.random.default_rng(0).normal(size=(200, 2))
_FRAME = pd.DataFrame(_X, columns=["bvp", "eda"])
_SWAPPED = _FRAME[["eda", "bvp"]]
_REFUSAL = r"X has the channels \['eda', 'bvp'\], but {} was fitted on \['bvp', 'eda'\]"

_CUTTERS = {
    "sliding": sliding_windows,
    "random": lambda x, length, **k: random_windows(x, length, 50, **k),
    "segment": lambda x, length, **k: segment_windows(x, [(0, 0, 200, 1)], length, **k),
}


@pytest.mark.parametrize("cut", _CUTTERS.values(), ids=_CUTTERS)
def test_windows_of_frames_carry_the_columns(cut):
    assert cut([_FRAME], 50).channel_names == ("bvp", "eda")
    assert cut([_FRAME], 50, lazy=True).X.channel_names == ("bvp", "eda")
    with pytest.raises(ValueError, match=r"but recordings carries the channel names \['eda', 'bvp"):
        cut([_SWAPPED], 50, channel_names=["bvp", "eda"])


@pytest.mark.parametrize("columns", [[0, 1], ["x", "x"], ["x", 1]])
def test_columns_without_different_names_say_nothing(columns):
    frame = pd.DataFrame(_X, columns=columns)
    assert sliding_windows([frame], 50).channel_names is None
    named = sliding_windows([frame], 50, channel_names=["bvp", "eda"])
    assert named.channel_names == ("bvp", "eda")


def test_panels_carry_the_columns_too():
    panel = pd.concat({"a": _FRAME, "b": _FRAME})
    assert sliding_windows(panel, 50).channel_names == ("bvp", "eda")


@pytest.mark.parametrize("rate", [49.5, 50, 50.5])
def test_a_rate_is_compared_with_the_time_index(rate):
    frame = _FRAME.set_index(pd.date_range("2026", periods=200, freq="20ms"))
    assert sliding_windows([frame], 50, sampling_rate=rate).sampling_rate == rate
    with pytest.raises(ValueError, match="the time index of recordings has 50 steps a second"):
        sliding_windows([frame], 50, sampling_rate=64)


def _periods(times):
    return pd.PeriodIndex(times, freq=pd.Timedelta(times[1] - times[0]))


def _containers(rate):
    """Frames of two recordings in each container, at a rate in Hz."""
    times = pd.date_range("2026", periods=200, freq=pd.Timedelta(seconds=1 / rate))
    frames = [_FRAME.set_index(times)] * 2
    objects = np.empty(2, dtype=object)
    objects[:] = frames
    nested = pd.DataFrame({name: [frame[name] for frame in frames] for name in ("bvp", "eda")})
    return {
        "list": frames,
        "beside an array": [_FRAME.to_numpy(), frames[1]],
        "beside names": [_FRAME.set_axis([f"step {i}" for i in range(200)]), frames[1]],
        "periods": [frame.set_axis(_periods(times)) for frame in frames],
        "objects": objects,
        "panel": pd.concat({"a": frames[0], "b": frames[1]}),
        "nested panel": nested,
    }


@pytest.mark.parametrize("container", _containers(50))
def test_the_rate_of_frames_is_compared_in_every_container(container):
    right, wrong = (_containers(rate)[container] for rate in (50.5, 64))
    assert sliding_windows(right, 50, sampling_rate=50).sampling_rate == 50
    with pytest.raises(
        ValueError, match="sampling_rate=50, but the time index of recordings has 6"
    ):
        sliding_windows(wrong, 50, sampling_rate=50)
    if "panel" in container:
        return
    for step in (Resampler(50, 25), BandpassFilter(None, 20, 50)):
        fitted = clone(step).fit(right)
        with pytest.raises(ValueError, match="rate=50, but the time index of X has 64 steps"):
            clone(step).fit(wrong)
        with pytest.raises(ValueError, match="X has 64 steps a second by its time index"):
            fitted.transform(wrong)
    fitted = StatisticsTransformer(sampling_rate=50).fit(right)
    with pytest.raises(ValueError, match="sampling_rate=50, but the time index of X has 64 steps"):
        StatisticsTransformer(sampling_rate=50).fit(wrong)
    with pytest.raises(ValueError, match="X has 64 steps a second by its time index"):
        fitted.transform(wrong)


@pytest.mark.parametrize("rate", [32, 64, 128])
@pytest.mark.parametrize("n_rows", [2, 3, 5])
def test_short_frames_may_have_rounded_times(rate, n_rows):
    times = pd.to_datetime(np.round(np.arange(6400) * 1000 / rate).astype(int), unit="ms")
    whole = pd.DataFrame({"bvp": np.zeros(6400)}, index=times)
    for first in range(1, 9):
        frames = [whole.iloc[first : first + n_rows], whole]
        WindowScaler().fit(frames)
        BandpassFilter(None, rate / 4, rate).fit(frames[::-1])


def test_months_are_of_one_length():
    frames = [
        pd.DataFrame({"x": np.zeros(n)}, index=pd.date_range(start, periods=n, freq="MS"))
        for start, n in (("2026-01-01", 12), ("2026-07-01", 4), ("2026-02-01", 3))
    ]
    WindowScaler().fit(frames)


def test_numbers_as_names_are_no_years():
    frame = _FRAME.set_axis([str(1800 + k) for k in range(200)])
    StatisticsTransformer(sampling_rate=50).fit([frame, frame])
    assert sliding_windows([frame], 50, sampling_rate=50).sampling_rate == 50


def test_frames_of_two_rates_are_refused():
    frames = [_containers(rate)["list"][0] for rate in (50, 54)]
    with pytest.raises(ValueError, match="instances with different time steps"):
        sliding_windows(frames, 50)


def test_periods_of_two_lengths_are_refused():
    periods = [pd.period_range("2026", periods=200, freq=freq) for freq in ("ms", "s")]
    with pytest.raises(ValueError, match=r"time steps, 0\.001 and, in instance 1, 1: bring"):
        sliding_windows([_FRAME.set_axis(index) for index in periods], 50)
    months = [pd.period_range(start, periods=200, freq="M") for start in ("1926-01", "2026-06")]
    assert len(sliding_windows([_FRAME.set_axis(index) for index in months], 50).X) == 8


_STEPS = [WindowScaler(), Resampler(64, 32), BandpassFilter(None, 20, 64), SlidingWindows(50)]


@pytest.mark.parametrize("step", _STEPS, ids=lambda step: type(step).__name__)
def test_a_step_refuses_swapped_frames(step, tmp_path):
    step.fit([_FRAME])
    assert step.channel_names_in_.tolist() == ["bvp", "eda"]
    step.transform([_FRAME.to_numpy()])
    save_pretrained(make_pipeline(step), tmp_path / "chain")
    (loaded,) = load_pretrained(tmp_path / "chain").named_steps.values()
    for each in (step, loaded):
        with pytest.raises(ValueError, match=_REFUSAL.format(type(step).__name__)):
            each.transform([_SWAPPED])
    assert step.fit([_FRAME.to_numpy()]).channel_names_in_ is None


def test_a_step_and_an_estimator_refuse_swapped_lazy_windows():
    first, second = (sliding_windows([x], 50, lazy=True).X for x in (_FRAME, _SWAPPED))
    for estimator in (WindowScaler(), SlidingWindows(10), StatisticsTransformer()):
        with pytest.raises(ValueError, match=_REFUSAL.format(type(estimator).__name__)):
            estimator.fit(first).transform(second)
        assert estimator.channel_names_in_.tolist() == ["bvp", "eda"]


def test_an_estimator_refuses_swapped_frames_in_a_list():
    fitted = StatisticsTransformer().fit([_FRAME, _FRAME])
    with pytest.raises(ValueError, match=_REFUSAL.format("StatisticsTransformer")):
        fitted.transform([_SWAPPED])
    with pytest.raises(ValueError, match="but X carries the channel names"):
        StatisticsTransformer(channel_names=["eda", "bvp"]).fit([_FRAME, _FRAME])


def test_frames_have_a_column_per_channel_in_every_layout():
    X = [_FRAME[:60], _FRAME[60:120]]
    expected = StatisticsTransformer().fit(X)
    swapped = StatisticsTransformer(input_layout="nct").fit(X)
    assert swapped.channel_names_in_.tolist() == ["bvp", "eda"]
    assert np.array_equal(swapped.transform(X), expected.transform(X))


class _Own(LazyWindows):
    shape, sampling_rate, channel_names = (30, 64, 2), 100.0, ("eda", "bvp")

    def take(self, indices):
        return np.ones((len(indices), 64, 2), np.float32) * np.add.outer(indices, [1, 2])[:, None]


@pytest.mark.parametrize("scaled", [False, True])
def test_own_lazy_windows_are_compared_while_they_are_embedded(scaled, tmp_path):
    pytest.importorskip("zarr")
    source = WindowScaler().fit_transform(_Own()) if scaled else _Own()
    X = np.random.default_rng(0).normal(size=(9, 64, 2))
    fits = StatisticsTransformer(sampling_rate=100, channel_names=["eda", "bvp"]).fit(X)
    embedded = embed_dataset(fits, source, tmp_path / "fits", chunk_size=7)
    assert np.array_equal(embedded["embedding"][:], fits.transform(source))
    for wrong in ({"sampling_rate": 64}, {"channel_names": ["bvp", "eda"]}):
        with pytest.raises(ValueError, match=r"X (is sampled at 100 Hz|has the channels)"):
            embed_dataset(StatisticsTransformer(**wrong).fit(X), source, tmp_path / "wrong")


@pytest.fixture(scope="module")
def known():
    recordings = [np.random.default_rng(i).normal(size=(640, 2)) for i in range(4)]
    options = {"lazy": True, "sampling_rate": 64, "channel_names": ["ecg", "ppg"]}
    return sliding_windows(recordings, 64, y=[0, 1] * 2, **options)


def test_what_is_learnt_from_arrays_keeps_the_rate_and_channels(known):
    settings = SMALL_PULSE | {"max_epochs": 1}
    pulse = PulseTransformer(**settings | {"warm_start": True}).fit(known.X)
    X = np.asarray(known.X)
    tuned = FineTuneClassifier(FrozenEstimator(pulse), max_epochs=1).fit(X, known.y)
    for estimator in (tuned, pulse.fit(X)):
        assert estimator.sampling_rate_in_ == 64
        assert estimator.channel_names_in_.tolist() == ["ecg", "ppg"]


def test_other_channels_keep_their_names(known):
    pulse = PulseTransformer(**SMALL_PULSE | {"max_epochs": 1}).fit(known.X)
    X = np.asarray(known.X)[:, :, [0, 1, 1]]
    tuned = FineTuneClassifier(FrozenEstimator(pulse), max_epochs=1).fit(X, known.y)
    assert tuned.channel_names_in_ is None
    assert tuned.sampling_rate_in_ == 64
    names = ["x", "y"]
    named = FineTuneClassifier(FrozenEstimator(pulse), channel_names=names, max_epochs=1)
    assert named.fit(X[:, :, :2], known.y).channel_names_in_.tolist() == names
