"""The lazy array of windows."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
import warnings
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GroupKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse.baselines import RandomEncoderTransformer, SimCLRTransformer
from sklearn_pulse.corpus import embed_dataset
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.preprocessing import WindowScaler
from sklearn_pulse.windows import (
    LazyWindows,
    RecordingWindows,
    SlidingWindows,
    sliding_windows,
)
from tests.windows.helpers import ramp


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
def test_selecting_windows_reads_no_window(key):
    X = lazy_windows(Unreadable)
    selected = X[key]
    assert type(selected) is Unreadable
    assert all(a is b for a, b in zip(selected.recordings, X.recordings, strict=True))


class Noted(RecordingWindows):
    """Windows that note which of them are read together."""

    reads = ()

    def take(self, indices):
        """Note the indices."""
        self.reads = (*self.reads, np.asarray(indices).tolist())
        return super().take(indices)


@pytest.mark.parametrize(
    ("key", "rows"),
    [
        (0, [[0]]),
        ((3, 1), [[3]]),
        ((2, Ellipsis, 0), [[2]]),
        ((2, slice(None), [0, 1]), [[2]]),
        ((np.array(2), [0, 1]), [[2]]),
        ((slice(1, 4), slice(None), [0]), [[1, 2], [3]]),
        ((slice(1, 3), [0, 1], [0, 1]), [[1, 2]]),
        ((slice(1, 3), None, [0]), [[1, 2]]),
        (([4, 0, 4], [0, 1, 2]), [[0, 4]]),
        (([[4, 0], [0, 4]], 1), [[0, 4]]),
        ((np.array([True, False, False, True, False]), slice(None), [1]), [[0, 3]]),
        ((Ellipsis, [1, 0]), [[0, 1], [2, 3], [4]]),
    ],
    ids=repr,
)
def test_an_index_reads_no_other_windows_and_keeps_no_others(key, rows, monkeypatch):
    monkeypatch.setattr("sklearn_pulse.windows._lazy._SCAN_BLOCK_SIZE", 16)  # two windows
    expected = np.asarray(lazy_windows())[key]
    np.testing.assert_array_equal(lazy_windows(Unreadable)[key], expected)
    X = lazy_windows(Noted)
    np.testing.assert_array_equal(X[key], expected)
    assert list(X.reads) == rows


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
    again = pickle.loads(pickle.dumps(X))
    for positions in (X.start, X.recording, X[1:].start, X[[0]].recording, again.start):
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
        ([0], [2**63 - 1], {}, r"start\[0\] is 9223372036854775807"),
        ([0.0], [0], {}, "recording must be a 1-D array of integers"),
        ([0], [[0]], {}, "start must be a 1-D array of integers"),
        ([0, 1], np.ma.masked_equal([0, 6], 6), {}, r"start\[1\] is masked: leave out windows"),
        (np.ma.masked_equal([0, 1], 0), [0, 6], {}, r"recording\[0\] is masked"),
        ([0], [0], {"downsample": 0}, "downsample must be an integer of at least 1"),
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


@pytest.mark.parametrize(
    ("recording", "start", "overlaps"),
    [
        ([0, 0], [0, 4], False),
        ([0, 0], [3, 0], True),
        ([0, 1], [0, 0], False),
        ([0, 1, 0], [5, 0, 5], True),
        ([0], [0], False),
    ],
)
def test_overlaps(recording, start, overlaps):
    X = RecordingWindows([np.zeros((12, 1)), np.zeros((12, 1))], recording, start, length=4)
    assert X.overlaps is overlaps


def test_overlaps_counts_the_steps_that_downsampling_spans():
    recordings = [np.zeros((40, 1))]
    assert RecordingWindows(recordings, [0, 0], [0, 9], 4, downsample=3).overlaps
    assert not RecordingWindows(recordings, [0, 0], [0, 10], 4, downsample=3).overlaps


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    length=st.integers(1, 5),
    downsample=st.integers(1, 3),
    scanned=st.integers(1, 40),
)
def test_observed_windows_are_those_with_a_finite_step(data, length, downsample, scanned):
    values = st.floats(-10, 10, width=32) | st.just(np.nan)
    span = (length - 1) * downsample + 1
    sizes = data.draw(st.lists(st.integers(span, span + 12), min_size=1, max_size=3))
    recordings = [data.draw(arrays(np.float32, (size, 2), elements=values)) for size in sizes]
    recording = np.repeat(np.arange(len(sizes)), [size - span + 1 for size in sizes])
    start = np.concatenate([np.arange(size - span + 1) for size in sizes])
    order = data.draw(st.permutations(range(len(start))))
    X = RecordingWindows(recordings, recording[order], start[order], length, downsample)
    expected = np.isfinite(np.asarray(X)).all(2).any(1)
    with mock.patch("sklearn_pulse.windows._lazy._SCAN_BLOCK_SIZE", scanned):
        np.testing.assert_array_equal(X.observed_windows(), expected)


def test_windows_of_an_own_class_are_read_to_find_observed_ones(monkeypatch):
    class Own(LazyWindows):
        shape = (5, 2, 2)

        def take(self, indices):
            return np.array([[[np.nan, i], [i % 3 or np.nan, i]] for i in indices], np.float32)

    monkeypatch.setattr("sklearn_pulse._inputs._lazy._BLOCK_VALUES", 8)  # two windows
    assert Own().observed_windows().tolist() == [False, True, True, False, True]


class _Own(LazyWindows):
    """Windows of a class of the user, of three recordings, that knows no index."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.x = (rng.normal(size=(48, 1, 2)) + rng.normal(size=(48, 20, 2))).astype(np.float32)
        self.shape = self.x.shape
        self.recording = np.repeat(np.arange(3), 16)
        self.start = np.tile(np.arange(16), 3)
        self.sampling_rate, self.channel_names = 10.0, ("a", "b")

    def take(self, indices):
        return self.x[indices]


def test_windows_of_an_own_class_keep_what_they_know_when_they_are_divided():
    own = _Own()
    part = own[own.recording < 2][::2]
    assert isinstance(pickle.loads(pickle.dumps(part)), LazyWindows)
    np.testing.assert_array_equal(part, own.x[:32:2])
    np.testing.assert_array_equal(part.recording, own.recording[:32:2])
    np.testing.assert_array_equal(part.start, own.start[:32:2])
    assert (part.sampling_rate, part.channel_names) == (10.0, ("a", "b"))
    for key in (3, -1, (), None, (2, 1), (slice(4), slice(None), 0), ([1, 2], [0, 1]), (..., 1)):
        np.testing.assert_array_equal(part[key], own.x[:32:2][key])
    np.testing.assert_array_equal(part.take(np.arange(16) == 3), own.x[[6]])
    assert part.take([]).shape == (0, 20, 2)
    assert len(list(own)) == 48
    with pytest.raises(IndexError):
        own[48]
    cross = CrossPredictionTransformer(
        views="adjacent", num_kernels=84, embedding_dim=16, random_state=0
    )
    train, _ = train_test_split(own, shuffle=False, train_size=32)
    assert cross.fit(train).n_pairs_ == 30  # of two recordings
    expected = cross.fit_transform(own.x[:32], groups=own.recording[:32], start=own.start[:32])
    np.testing.assert_array_equal(cross.fit_transform(train), expected)


def test_no_windows_are_no_observed_windows():
    assert RecordingWindows([ramp(9, 1)], [], [], length=2).observed_windows().shape == (0,)


def test_the_memory_of_a_scan_does_not_grow_with_the_recording(monkeypatch):
    monkeypatch.setattr("sklearn_pulse.windows._lazy._SCAN_BLOCK_SIZE", 2**12)
    recording = ramp(2**19, 1)[:]
    recording[::3] = np.nan
    X = RecordingWindows([recording], [0] * 100, np.arange(100) * 5000, 100)
    tracemalloc.start()
    assert X.observed_windows().all()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < recording.nbytes / 4


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e39])
def test_infinity_is_refused_only_in_windows_that_hold_it(value):
    recording = ramp(30, 2)[:].astype(np.float64)
    recording[20, 1] = value
    between = RecordingWindows([recording], [0, 0], [0, 24], 4)
    assert between.observed_windows().all()
    holding = RecordingWindows([recording[:, 1:]], [0, 0, 0], [19, 20, 24], length=1)
    assert holding.observed_windows().tolist() == [True, False, True]
    outside = RecordingWindows([recording], [0], [0], 4)
    assert outside.observed_windows().all()
    transformer = RandomEncoderTransformer(embedding_dim=4, encoder_depth=2, random_state=0)
    transformer.fit(outside)  # no window holds the infinite value
    transformer.fit(between)
    with pytest.raises(ValueError, match="infinity or a value too large for float32"):
        transformer.fit(RecordingWindows([recording], [0, 0], [0, 18], 4))


def test_a_scan_reads_no_steps_that_are_far_from_every_window(monkeypatch):
    monkeypatch.setattr("sklearn_pulse.windows._lazy._SCAN_BLOCK_SIZE", 16)
    recording = np.full((1000, 1), np.inf, np.float32)  # which would be found if it were read
    recording[500:505] = [[1.0], [np.nan], [np.nan], [np.nan], [np.nan]]
    recording[900:904] = 1.0
    X = RecordingWindows([recording], [0, 0, 0, 0], [900, 501, 500, 900], length=4)
    assert X.observed_windows().tolist() == [True, False, True, True]


def test_lazy_windows_are_scanned_recording_by_recording(monkeypatch):
    recording = ramp(30, 2)
    recording[10:20] = np.nan
    X = RecordingWindows([recording], [0, 0], [0, 12], 4)
    transformer = StatisticsTransformer()
    with pytest.raises(ValueError, match=r"no finite time step in sample 1.*X\[X.observed_windows"):
        transformer.fit(X)
    many = RecordingWindows([recording], np.zeros(700, int), np.arange(700) % 6, 4)
    read, take = [], RecordingWindows.take
    monkeypatch.setattr(
        RecordingWindows, "take", lambda self, rows: read.append(len(rows)) or take(self, rows)
    )
    transformer.fit(many)
    assert sum(read) == 64  # whose amplitude is noted


class _Cleaned(RecordingWindows):
    """Windows of which `take` masks the artefacts of a recording."""

    def take(self, indices):
        windows = super().take(indices)
        windows[np.abs(windows).max((1, 2)) > 50] = np.nan
        return windows


def test_what_a_subclass_masks_is_not_observed():
    recording = ramp(40, 1) / 40
    recording[10:12] = 99.0
    X = _Cleaned([recording], [0] * 10, np.arange(0, 40, 4), 4)
    assert np.flatnonzero(~X.observed_windows()).tolist() == [2]
    assert np.flatnonzero(~X[::2].observed_windows()).tolist() == [1]
    for estimator in (
        StatisticsTransformer(),
        CrossPredictionTransformer(num_kernels=84, embedding_dim=8),
        SimCLRTransformer(embedding_dim=8, encoder_depth=2, max_epochs=1),
    ):
        with pytest.raises(ValueError, match=r"no finite time step in sample 2.*observed_windows"):
            estimator.fit(X)
    transformer = SimCLRTransformer(embedding_dim=8, encoder_depth=2, max_epochs=1, random_state=0)
    kept = X[X.observed_windows()]
    expected = transformer.fit_transform(np.asarray(kept))  # no context beyond what `take` gives
    np.testing.assert_array_equal(transformer.fit_transform(kept), expected)


class _Worn(_Own):
    """Windows that know more than their values tell."""

    def observed_windows(self):
        return super().observed_windows() & (np.arange(48) > 3)


def test_an_own_rule_of_what_is_observed_may_build_on_the_values():
    assert np.flatnonzero(~_Worn().observed_windows()).tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="no finite time step in sample 0"):
        StatisticsTransformer().fit(_Worn())


class _Odd(_Own):
    """Windows whose `take` returns what estimators read, though it is no plain array."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.x[:, :3, 0] = np.nan

    def take(self, indices):
        taken = self.x[indices]
        if self.kind == "masked":
            return [np.ma.masked_invalid(np.nan_to_num(x, nan=np.inf)) for x in taken]
        if self.kind == "graph":
            return torch.tensor(taken, requires_grad=True)
        return taken.astype(object)


@pytest.mark.parametrize("kind", ["masked", "graph", "objects"])
def test_own_windows_are_read_as_estimators_read_them(kind):
    odd = _Odd(kind)
    np.testing.assert_array_equal(np.asarray(odd), odd.x)
    np.testing.assert_array_equal(odd[3], odd.x[3])
    assert odd.observed_windows().all()
    transformer = StatisticsTransformer().fit(odd.x)
    np.testing.assert_array_equal(transformer.transform(odd), transformer.transform(odd.x))


def test_an_array_is_made_block_by_block(monkeypatch):
    monkeypatch.setattr("sklearn_pulse._inputs._lazy._BLOCK_VALUES", 7 * 40)
    asked = []

    class Counts(_Own):
        def take(self, indices):
            asked.append(len(indices))
            return super().take(indices)

    np.testing.assert_array_equal(np.asarray(Counts()), _Own().x)
    assert asked == [7] * 6 + [6]
    with pytest.raises(IndexError, match="too many indices"):
        Counts()[[0, 1], :, :, :]


def test_own_windows_of_a_file_are_copied(recwarn):
    class ReadOnly(_Own):
        def take(self, indices):
            x = self.x[indices[0] : indices[-1] + 1]
            x.flags.writeable = False
            return x

    RandomEncoderTransformer(embedding_dim=4, encoder_depth=2).fit_transform(ReadOnly())
    assert not [w for w in recwarn if "writable" in str(w.message)]


def test_the_advice_is_left_out_where_channels_come_first():
    """The windows do not know their layout, which the estimator alone is told."""

    class First(LazyWindows):
        shape = (4, 2, 20)

        def take(self, indices):
            x = np.random.default_rng(0).normal(size=self.shape)[indices]
            x[np.asarray(indices) == 1] = np.nan
            return x

    with pytest.raises(ValueError, match="Drop these samples") as caught:
        StatisticsTransformer(input_layout="nct").fit(First())
    assert "observed_windows" not in str(caught.value)


def test_windows_apart_cover_the_same_steps_once():
    X = RecordingWindows(np.arange(12.0).reshape(1, 12, 1), [0] * 4, [7, 0, 2, 5], length=3)
    apart = X.apart(np.arange(4))
    covered = np.asarray(apart).ravel()
    assert len(set(covered)) == len(covered)
    assert set(range(9)) <= set(covered) <= set(range(10))  # of the steps that X holds
    assert not apart.start.flags.writeable
    assert X.apart(np.empty(0, dtype=int)).shape == (0, 3, 1)
    for same in ([3, -2], [False, False, True, True]):
        np.testing.assert_array_equal(X.apart(same).start, X.apart(np.array([2, 3])).start)
    for key in ([4], [0.5], [[0, 1]], None):
        with pytest.raises(IndexError, match=r"out of bounds|RecordingWindows takes"):
            X.apart(key)


def test_lazy_windows_of_a_user_are_an_array():
    class Ones(LazyWindows):
        shape = (3, 4, 2)

        def take(self, indices):
            return np.ones((len(indices), 4, 2))

    X = Ones()
    assert (len(X), X.ndim, X.dtype) == (3, 3, np.float32)
    np.testing.assert_array_equal(np.asarray(X), np.ones((3, 4, 2), np.float32), strict=True)
    with pytest.raises(ValueError, match="Ones cannot become an array without a copy"):
        X.__array__(copy=False)


VALUES = np.random.default_rng(0).normal(size=(12, 8, 2)).astype(np.float32)


class Own(LazyWindows):
    """Lazy windows of a user, who changes what is read."""

    def __init__(self, change=lambda x: x, shape=VALUES.shape, **known):
        self.change, self.shape = change, shape
        vars(self).update(known)

    def take(self, indices):
        return self.change(VALUES[indices])


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x[:1],  # which NumPy would repeat
        lambda x: x[:-1],
        lambda x: x[:, :4],
        lambda x: x[..., :1],
        lambda x: x.swapaxes(1, 2),
        lambda x: x.reshape(len(x), -1),
    ],
    ids=["first", "too few", "shorter", "a channel", "channels first", "rows of a table"],
)
@pytest.mark.parametrize(
    "use",
    [
        lambda X: (
            RandomEncoderTransformer(embedding_dim=4, encoder_depth=1).fit(VALUES).transform(X)
        ),
        lambda X: StatisticsTransformer().fit(X),
        lambda X: WindowScaler().fit(X),
        lambda X: np.asarray(WindowScaler().fit(VALUES).transform(X)),
        lambda X: SlidingWindows(4).fit(X),
        np.asarray,
    ],
    ids=["a network", "features", "a step", "lazy windows of a step", "bags", "an array"],
)
def test_windows_of_another_shape_than_a_user_promises_are_refused(use, change):
    with pytest.raises(
        ValueError, match=r"^Own.take returned an array of shape .* promises \((12|1), 8"
    ):
        use(Own(change))


def test_windows_of_a_user_are_read_as_arrays_are():
    expected = StatisticsTransformer().fit(VALUES).transform(VALUES)
    np.testing.assert_array_equal(
        StatisticsTransformer().fit(Own(list)).transform(Own(list)), expected
    )
    gaps = np.broadcast_to(np.arange(8)[:, None] < 3, VALUES.shape)
    masked = Own(lambda x: np.ma.masked_array(x, gaps[: len(x)]))
    missing = np.where(gaps, np.nan, VALUES)
    np.testing.assert_array_equal(np.asarray(masked), missing)
    np.testing.assert_array_equal(np.asarray(Own(list)), VALUES)
    np.testing.assert_array_equal(
        StatisticsTransformer().fit_transform(masked),
        StatisticsTransformer().fit_transform(missing),
    )
    for values, kind in ((VALUES + 1j, ValueError), (VALUES.astype(str), TypeError)):
        with pytest.raises(kind, match=r"what Own.take returned has dtype"):
            StatisticsTransformer().fit(Own(lambda x, values=values: values[: len(x)]))
    with pytest.raises(ValueError, match="X has 4 dimensions, StatisticsTransformer takes 2"):
        StatisticsTransformer().fit(Own(shape=(3, 4, 8, 2)))


@pytest.mark.parametrize("name", ["recording", "start"])
def test_places_of_a_users_windows_may_be_a_list_with_one_for_each(name, tmp_path):
    pytest.importorskip("zarr")
    places = np.arange(12) // 4

    def uses(**known):
        X = Own(**{"recording": places, "start": np.arange(12), **known})
        yield CrossPredictionTransformer(random_state=0).fit(X).transform(VALUES)
        yield embed_dataset(StatisticsTransformer().fit(VALUES), X, tmp_path / "X")[name][:]
        if name == "recording":
            yield np.asarray(WindowScaler(per="recording").fit_transform(X))

    given = (places if name == "recording" else np.arange(12)).tolist()
    for of_list, of_array in zip(uses(**{name: given}), uses(), strict=True):
        np.testing.assert_array_equal(of_list, of_array)
    X = Own(**{"recording": places, name: given[:-1]})
    fitted, unfitted = StatisticsTransformer().fit(VALUES), CrossPredictionTransformer()
    for use in (lambda: embed_dataset(fitted, X, tmp_path / "short"), lambda: unfitted.fit(X)):
        with pytest.raises(ValueError, match=rf"^X.{name} has shape \(11,\), but X holds 12 "):
            use()


def test_a_value_beyond_float32_is_an_infinity_that_fits_refuse():
    recording = np.ones((8, 2))
    recording[3, 0] = 1e300
    X = RecordingWindows([recording], recording=[0, 0], start=[0, 4], length=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # NumPy's cast would warn
        assert np.isinf(X.take([0])).sum() == 1
        with pytest.raises(ValueError, match="value too large for float32 .first in sample 0"):
            StatisticsTransformer().fit(X)


def test_an_own_class_of_one_channel_finds_what_is_observed():
    class Univariate(LazyWindows):
        shape = (4, 5)

        def take(self, indices):
            x = np.ones((4, 5), dtype=np.float32)
            x[1], x[2, :3] = np.nan, np.nan
            return x[np.asarray(indices)]

    np.testing.assert_array_equal(Univariate().observed_windows(), [True, False, True, True])
