"""Which windows are views of one another."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.windows import RecordingWindows, SlidingWindows, sliding_windows
from tests.helpers import make_windows

from .literal import SMALL


def test_views_and_recordings():
    X, y = make_windows(60, 64)
    groups = np.arange(60) // 20
    order = np.lexsort((y, groups))  # a state lasts for some windows
    X, y = X[order], y[order]
    adjacent = CrossPredictionTransformer(**SMALL).fit(X, groups=groups)
    assert (adjacent.views_, adjacent.n_pairs_) == ("adjacent", 57)
    assert 0 <= adjacent.alpha_ <= 1
    halves = CrossPredictionTransformer(**SMALL).fit(X)
    assert (halves.views_, halves.n_pairs_, halves.alpha_) == ("halves", 60, 0.0)
    assert np.isnan(halves.kappa_)
    one = CrossPredictionTransformer(views="adjacent", **SMALL).fit(X)  # a single recording
    assert one.n_pairs_ == 59
    for fitted in (adjacent, halves, one):
        assert list(fitted.predictability_["blocks"]) == [
            *("statistics", "autocorrelation", "minirocket", "multirocket", "quantiles", "hydra"),
            "covariance",
        ]
        assert fitted.predictability_["directions"].shape == (16,)
        shares = [*fitted.predictability_["blocks"].values()]
        shares += fitted.predictability_["directions"].tolist()
        assert all(share <= 1 + 1e-6 for share in shares)
    probe = make_linear_probe().fit(halves.transform(X[:40]), y[:40])
    assert probe.score(halves.transform(X[40:]), y[40:]) > 0.95
    lazy = RecordingWindows(X.reshape(3, -1, 2), groups, 64 * (np.arange(60) % 20), length=64)
    own = CrossPredictionTransformer(**SMALL).fit(lazy)
    np.testing.assert_array_equal(own.transform(X), adjacent.transform(X))
    bags = CrossPredictionTransformer(**SMALL).fit(X.reshape(3, 20, 64, 2))
    np.testing.assert_array_equal(bags.transform(X), adjacent.transform(X))


def test_lazy_windows_and_bags_know_better_than_groups():
    X, _ = make_windows(24, 32)
    lazy = sliding_windows(list(X.reshape(3, -1, 2)), 32, lazy=True).X
    for given_as in (lazy, X.reshape(3, 8, 32, 2)):
        cross = CrossPredictionTransformer(**SMALL, views="adjacent")
        expected = clone(cross).fit(given_as)
        wrong = np.arange(len(given_as)) % len(given_as)  # which divide recordings
        misled = clone(cross).fit(given_as, groups=wrong)
        assert misled.n_pairs_ == expected.n_pairs_ == 21
        np.testing.assert_array_equal(misled.transform(X), expected.transform(X))


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ([0, 1], "start must hold one number or time per window, shape \\(6,\\)"),
        (list("abcdef"), "start must hold one number or time per window"),
        ([0, 1, 2, np.nan, 4, np.inf], "start is unknown or infinite for 2 windows"),
        (np.array(["2026-01-01"] * 5 + ["NaT"], "datetime64[s]"), "unknown or infinite for 1 win"),
        (list(pd.date_range("2026", periods=6, tz="UTC")), "pass numbers, or datetime64 \\(of"),
        ([[0], [1, 2]] * 3, "start must hold one number .* lists of different lengths: pass num"),
    ],
)
def test_starts_that_do_not_fit(start, message):
    X, _ = make_windows(6, 16, 2)
    with pytest.raises(ValueError, match=message):
        CrossPredictionTransformer(**SMALL).fit(X, start=start)


def _pairs(start, groups):
    X = np.random.default_rng(0).normal(size=(len(start), 32, 2))
    return CrossPredictionTransformer(**SMALL).fit(X, groups=groups, start=start).n_pairs_


def test_each_recording_has_its_own_usual_distance():
    """Recorders count their starts in steps of their own rate."""
    slow, fast = 64 * np.arange(16), 256 * np.arange(8)
    assert _pairs(np.r_[slow, fast], [0] * 16 + [1] * 8) == 15 + 7
    gapped = slow[:8] + 4 * 64 * (np.arange(8) > 3)
    assert _pairs(np.r_[gapped, 256 * np.arange(16)], [0] * 8 + [1] * 16) == 6 + 15
    # a single step is compared with those of the others
    assert _pairs(np.r_[slow, 0, 64, 0, 128], [0] * 16 + [1] * 2 + [2] * 2) == 15 + 1


@pytest.mark.parametrize("as_series", [False, True])
def test_a_change_of_clocks_is_no_gap(as_series):
    times = pd.date_range("2026-10-25 00:30", periods=24, freq="15min", tz="Europe/Berlin")
    assert _pairs(pd.Series(times) if as_series else times, np.zeros(24)) == 23


@pytest.mark.parametrize("as_series", [False, True])
def test_the_time_may_be_a_period(as_series):
    times = pd.period_range("2026-10-25", periods=24, freq="15min").delete(7)
    assert _pairs(pd.Series(times) if as_series else times, np.zeros(23)) == 21


def test_starts_as_times_and_of_bags():
    X, _ = make_windows(12, 16)
    groups, steps = np.arange(12) // 6, np.array([0, 2, 4, 8, 10, 13] * 2)
    numbers = CrossPredictionTransformer(**SMALL).fit(X, groups=groups, start=steps)
    assert numbers.n_pairs_ == 8
    times = np.datetime64("2026-01-01") + 10 * steps.astype("timedelta64[s]")
    dated = CrossPredictionTransformer(**SMALL).fit(X, groups=groups, start=times)
    bags = CrossPredictionTransformer(**SMALL).fit(
        X.reshape(2, 6, 16, 2), start=steps.reshape(2, 6)
    )
    for other in (dated, bags):
        np.testing.assert_array_equal(other.transform(X), numbers.transform(X))


def test_recordings_whose_rows_take_turns():
    X, _ = make_windows(12, 16)
    groups = np.array([0, 0, 1, 0, 1, 1, 2, 0, 2, 1, 2, 2])
    order = np.argsort(groups, kind="stable")
    params = SMALL | {"block_weights": (1, 0, 0, 0)}
    mixed = CrossPredictionTransformer(**params).fit(X, groups=groups)
    one_by_one = CrossPredictionTransformer(**params).fit(X[order], groups=groups[order])
    assert mixed.n_pairs_ == one_by_one.n_pairs_ == 9
    np.testing.assert_array_equal(mixed.transform(X), one_by_one.transform(X))


def test_copies_are_no_neighbours():
    X, _ = make_windows(6, 16)
    twice = np.concatenate([X, X])
    cross = CrossPredictionTransformer(**SMALL)
    one = np.concatenate([X[:1]] * 12)
    with pytest.warns(UserWarning, match="All windows of X have the same features"):
        assert cross.fit(one, groups=np.zeros(12), start=[0] * 12).views_ == "halves"
    assert cross.fit(twice, groups=np.zeros(12), start=[*range(6), *range(6)]).n_pairs_ == 5
    twice[:, 0] = np.nan
    assert cross.fit(twice, groups=np.zeros(12), start=[*range(6), *range(6)]).n_pairs_ == 5


def test_copies_count_once():
    """As a bootstrap draws them; a copy would say that a window predicts itself."""
    X, _ = make_windows(24, 32)
    recording, start = np.repeat([0, 1, 2], 8), np.tile(np.arange(8), 3)
    cross = CrossPredictionTransformer(**SMALL | {"block_weights": (1, 0, 0, 0)})
    one = cross.fit(X, groups=recording, start=start).transform(X)
    twice = cross.fit(np.tile(X, (2, 1, 1)), groups=np.tile(recording, 2), start=np.tile(start, 2))
    two = twice.transform(X)
    np.testing.assert_allclose(two @ two.T, one @ one.T, atol=0.1)


def test_recordings_of_one_group_are_named_apart():
    """Otherwise each window of a recording would be paired with one of another."""
    recordings = list(np.random.default_rng(0).normal(size=(4, 64, 2)))
    w = sliding_windows(recordings, 16, groups=["anna", "anna", "ben", "ben"])
    cross = CrossPredictionTransformer(**SMALL)
    with pytest.warns(UserWarning, match=r"start repeats within groups .*the windows 0 and 4\)"):
        cross.fit(w.X, groups=w.groups, start=w.start)
    assert cross.fit(w.X, groups=w.recording, start=w.start).n_pairs_ == 12
    assert cross.fit(w.X, groups=w.groups).n_pairs_ == 14  # without starts nothing is known


def test_a_start_that_repeats_in_bags_or_lazy_windows_is_warned_of():
    """Whole seconds, for example, of windows that begin every half of a second."""
    recordings = list(np.random.default_rng(0).normal(size=(3, 96, 2)))
    bags = SlidingWindows(16).fit_transform(recordings).copy()
    cross = CrossPredictionTransformer(**SMALL)
    seconds = np.tile(np.arange(6) * 0.5, (3, 1))
    with pytest.warns(UserWarning, match=r"within bags \(first in the windows 0 and 1 of bag 0\)"):
        cross.fit(bags, start=np.floor(seconds))
    w = sliding_windows(recordings, 16, lazy=True)
    with pytest.warns(
        UserWarning, match=r"within recordings \(first .* 0 and 1\).* leave start out"
    ):
        cross.fit(w.X, start=np.floor(seconds).ravel())
    bags[1:, 4:] = np.nan  # bags of fewer windows, whose other starts say nothing
    seconds[1:, 4:] = 0.0
    assert cross.fit(bags, start=seconds).n_pairs_ == 5 + 3 + 3
    bags[2, 3], seconds[2, 3] = bags[2, 2], seconds[2, 2]  # a copy
    assert cross.fit(bags, start=seconds).n_pairs_ == 5 + 3 + 2


def test_windows_that_a_bag_lacks_need_no_time():
    recordings = [np.random.default_rng(n).normal(size=(n, 2)) for n in (96, 64)]
    bags = SlidingWindows(16).fit_transform(recordings)
    start = np.tile(np.arange(6.0), (2, 1))
    known = CrossPredictionTransformer(**SMALL).fit(bags, start=start)
    start[1, 4:] = np.nan
    dates = pd.to_datetime(start.ravel(), unit="s").to_numpy().reshape(start.shape)
    for times in (start, np.ma.masked_invalid(start), dates):
        some = CrossPredictionTransformer(**SMALL).fit(bags, start=times)
        assert some.n_pairs_ == 5 + 3
        np.testing.assert_array_equal(some.transform(bags), known.transform(bags))
    start[0, 5] = np.nan
    with pytest.raises(ValueError, match="start is unknown or infinite for 1 windows"):
        CrossPredictionTransformer(**SMALL).fit(bags, start=start)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_starts_of_few_bits_do_not_overflow(dtype):
    start = np.array([np.iinfo(dtype).min, 0, np.iinfo(dtype).max], dtype=dtype)
    assert _pairs(start, np.zeros(3)) == 2


def test_adjacent_views_need_adjacent_windows():
    X, _ = make_windows(6, 16)
    with pytest.raises(ValueError, match="views='adjacent' finds no two adjacent windows"):
        CrossPredictionTransformer(views="adjacent", **SMALL).fit(X, groups=np.arange(6))


def test_a_start_that_repeats_everywhere_is_warned_of():
    """The start of the recording, for example, in place of that of the window."""
    X = np.random.default_rng(0).normal(size=(24, 40, 1))
    groups, start = np.repeat([0, 1], 12), np.repeat([0.0, 500.0], 12)
    cross = CrossPredictionTransformer(**SMALL)
    with pytest.warns(UserWarning, match="start repeats within groups .*that neighbours are not"):
        assert cross.fit(X, groups=groups, start=start).views_ == "halves"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CrossPredictionTransformer(**SMALL, views="halves").fit(X, groups=groups, start=start)


def test_windows_of_which_one_half_is_missing_take_no_part():
    X = np.random.default_rng(0).normal(size=(40, 32, 2))
    X[30:, :16] = np.nan
    X[30:, 16:] *= 100
    settings = SMALL | {"block_weights": (1, 0, 0, 0)}
    fits = [CrossPredictionTransformer(**settings).fit(windows) for windows in (X, X[:30])]
    assert fits[0].n_pairs_ == 30
    np.testing.assert_array_equal(*(cross.transform(X[:30]) for cross in fits))


def test_the_middle_of_an_odd_window_is_in_no_half():
    X = np.random.default_rng(0).normal(size=(20, 33, 1))
    X[:, 17:] = np.nan
    with pytest.warns(UserWarning, match="both halves"):
        assert CrossPredictionTransformer(**SMALL).fit(X).n_pairs_ == 0


@pytest.mark.parametrize(
    ("start", "groups", "n_pairs"),
    [
        ([0, 10, 20, 30, 46, 56], [0] * 6, 4),  # 16 is more than one and a half of 10
        ([0, 10, 20, 30, 45, 55], [0] * 6, 5),
        ([*range(16), 0, 9, 18], [0] * 16 + [1] * 3, 15 + 2),  # two steps have their own median
        ([0, 1, 5], [0] * 3, 1),  # the median of 1 and 4 is 2.5
    ],
)
def test_adjacent_windows_are_one_and_a_half_usual_steps_apart_at_most(start, groups, n_pairs):
    assert _pairs(np.array(start), np.array(groups)) == n_pairs
