"""Windows that share steps are not each other's views."""

import numpy as np
import pytest

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse._closed_form._overlap import shift_of
from sklearn_pulse._closed_form._recording_moments import paired_windows
from sklearn_pulse.preprocessing import WindowScaler
from sklearn_pulse.windows import random_windows, sliding_windows

# Two blocks that are quick to compute: which windows are paired depends on none.
SMALL = {
    "block_weights": (1, 1, 0, 0),
    "n_components": 30,
    "embedding_dim": 30,
    "random_state": 0,
}


def cut(overlap, n_recordings=8, lazy=False, n_timesteps=1024):
    """Cut noise of recordings that differ in amplitude, so that a window lasts 1/overlap steps."""
    rng = np.random.default_rng(0)
    noise = [a * rng.normal(size=(n_timesteps, 2)) for a in np.linspace(1, 3, n_recordings)]
    return sliding_windows(noise, 64, 64 // overlap, lazy=lazy)


def n_pairs(w, X=None, **params):
    X = w.X if X is None else X
    return CrossPredictionTransformer(**SMALL, **params).fit(X, groups=w.groups).n_pairs_


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("overlap", [1, 2, 4])
def test_views_share_no_step(overlap, lazy):
    w = cut(overlap, lazy=lazy)
    groups = None if lazy else w.groups
    cross = CrossPredictionTransformer(**SMALL).fit(w.X, groups=groups)
    # A window and the first that begins where it ends.
    assert cross.n_pairs_ == 8 * (16 - 1) * overlap - 8 * (overlap - 1)
    # Noise has nothing in common with noise but its amplitude.
    assert cross.kappa_ < 0.15
    assert cross.alpha_ < 0.4


def test_a_stride_that_does_not_divide_the_length():
    rng = np.random.default_rng(0)
    w = sliding_windows(list(rng.normal(size=(4, 640, 2))), 64, 40)  # two windows reach over 64
    assert n_pairs(w) == len(w.X) - 4 * 2


def test_the_time_of_a_window_places_it():
    w = cut(2)
    order = np.random.default_rng(1).permutation(len(w.X))
    cross = CrossPredictionTransformer(**SMALL)
    cross.fit(w.X[order], groups=w.groups[order], start=w.start[order] / 7)
    assert cross.n_pairs_ == n_pairs(w)


@pytest.mark.parametrize("kept", [0.3, 0.7])
@pytest.mark.parametrize("lazy", [False, True])
def test_windows_that_are_left_out_hide_no_pair(kept, lazy):
    w = cut(4, n_timesteps=4096, lazy=True)
    n = len(w.X)
    rows = np.sort(np.random.default_rng(1).permutation(n)[: int(kept * n)])
    recording, start = w.recording[rows], w.start[rows]
    known = {} if lazy else {"groups": recording, "start": start}
    cross = CrossPredictionTransformer(**SMALL)
    cross.fit(w.X[rows] if lazy else np.asarray(w.X[rows]), **known)
    later = start[None] - start[:, None]
    # A stride of 16 is the usual one while most windows are left. Else partners may be farther.
    is_near = (recording[None] == recording[:, None]) & (later >= 64) & (later <= 64 + 16)
    n_with_partner = is_near.any(0).sum()
    assert cross.n_pairs_ == n_with_partner if kept > 0.5 else cross.n_pairs_ > n_with_partner
    assert abs(cross.kappa_) < 0.1


@pytest.mark.parametrize("overlap", [1, 4])
def test_copies_count_once(overlap):
    w = cut(overlap)
    once, twice = np.arange(len(w.X)), np.random.default_rng(0).permutation(2 * len(w.X)) // 2
    fits = [
        CrossPredictionTransformer(**SMALL).fit(w.X[i], groups=w.groups[i], start=w.start[i])
        for i in (once, twice)
    ]
    assert fits[0].n_pairs_ == fits[1].n_pairs_
    assert fits[1].kappa_ == pytest.approx(fits[0].kappa_, abs=0.03)  # biases come from other rows


@pytest.mark.parametrize("per", ["window", "recording"])
def test_scaled_windows_overlap(per):
    w = cut(2)
    groups = {"groups": w.groups} if per == "recording" else {}
    X = WindowScaler(per=per).fit_transform(w.X, **groups)
    assert n_pairs(w, X) == n_pairs(w)


def test_missing_and_flat_windows_hide_no_overlap():
    w = cut(2)
    X = w.X.copy()
    X[: len(X) // 3] = 5.0
    X[-len(X) // 4 :, ::3] = np.nan
    assert n_pairs(w, X) == n_pairs(w)


def test_short_recordings_keep_half_of_the_pairs():
    w = cut(4, n_recordings=20, n_timesteps=64 + 2 * 16)  # three windows, all of which overlap
    assert n_pairs(w) == 20  # the first and the last, which overlap least


@pytest.mark.parametrize("name", ["flat", "line", "decay", "sine", "steps"])
def test_windows_that_resemble_each_other_do_not_overlap(name):
    time = np.arange(2048.0)
    x = {
        "flat": np.zeros(2048),
        "line": time,
        "decay": np.exp(-time / 100),
        "sine": np.sin(2 * np.pi * time / 16),
        "steps": np.repeat(np.random.default_rng(0).normal(size=32), 64),
    }[name]
    windows = x.reshape(32, 64, 1)
    assert not any(shift_of(*pair) for pair in zip(windows, windows[1:], strict=False))


@pytest.mark.parametrize("n_timesteps", [16, 50, 100])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_shift_is_found(n_timesteps, channels, dtype):
    walk = np.random.default_rng(0).normal(size=(3 * n_timesteps, channels)).cumsum(0) + 100
    x = walk.astype(dtype).astype(float)
    least = max(8, n_timesteps // 8)
    for shift in range(1, n_timesteps + 5):
        y = 3 * x[shift : shift + n_timesteps] - 7
        assert shift_of(x[:n_timesteps], y) == (shift if n_timesteps - shift >= least else 0)


@pytest.mark.parametrize("strides", [(64, 16), (64, 64, 64, 16), (32, 64, 16), (48, 16)])
@pytest.mark.parametrize("knows_start", [False, True])
def test_each_recording_has_its_own_overlap(strides, knows_start):
    """Rare states are often cut more densely than the others."""
    rng = np.random.default_rng(0)
    noise = [a * rng.normal(size=(1024, 2)) for a in np.linspace(1, 3, 24 // len(strides))]
    cuts = [sliding_windows([x], 64, stride) for stride in strides for x in noise]
    X, start = np.concatenate([c.X for c in cuts]), np.concatenate([c.start for c in cuts])
    groups = np.repeat(np.arange(len(cuts)), [len(c.X) for c in cuts])
    X[-1] = 5.0  # a flat window tells nothing
    cross = CrossPredictionTransformer(**SMALL)
    cross.fit(X, groups=groups, start=start if knows_start else None)
    # A window and the first that begins where it ends, or later.
    hidden = [-(-64 // stride) for stride in strides for _ in noise]
    assert cross.n_pairs_ == len(X) - sum(hidden)
    assert cross.kappa_ < 0.15


@pytest.mark.parametrize("stride", [90, 93, 100, 200])
def test_windows_at_random_starts_share_no_step_with_their_partner(stride):
    """Most of them do not overlap, but a third of them do."""
    rng = np.random.default_rng(0)
    noise = [a * rng.normal(size=(16384, 2)) for a in np.linspace(1, 3, 8)]
    w = random_windows(noise, 64, stride, random_state=0)
    cross = CrossPredictionTransformer(**SMALL).fit(w.X, groups=w.recording, start=w.start)
    assert cross.n_pairs_ > len(w.X) / 2
    assert cross.kappa_ < 0.1


def test_windows_that_are_left_out_and_whose_times_are_unknown_overlap():
    w = cut(4, n_timesteps=4096)
    rows = np.random.default_rng(1).random(len(w.X)) < 0.5
    cross = CrossPredictionTransformer(**SMALL).fit(w.X[rows], groups=w.groups[rows])
    assert cross.kappa_ < 0.15


def test_a_few_pairs_of_a_recording_that_overlap_are_no_overlap():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 64, 2))
    X[[4, 24], :32] = X[[3, 23], 32:]
    cross = CrossPredictionTransformer(**SMALL).fit(X, groups=np.repeat([0, 1], 20))
    assert cross.n_pairs_ == 2 * 19


def test_at_least_half_of_the_pairs_remain():
    w = cut(4, n_recordings=20, n_timesteps=64 + 4 * 16)  # five windows, of which two share no step
    assert n_pairs(w) == 20 * 2


def test_times_that_are_rounded_hide_no_pair():
    w = cut(4)
    start = w.start + np.random.default_rng(0).uniform(-0.5, 0.5, len(w.start))
    cross = CrossPredictionTransformer(**SMALL).fit(w.X, groups=w.groups, start=start)
    assert cross.n_pairs_ == n_pairs(w)


def test_windows_at_any_time_share_no_step_with_their_partner():
    rng = np.random.default_rng(0)
    recordings = [a * rng.normal(size=(4096, 2)) for a in np.linspace(1, 3, 6)]
    starts = [np.cumsum(rng.integers(4, 29, size=200)) for _ in recordings]  # usually 16 apart
    X = [x[s : s + 64] for x, own in zip(recordings, starts, strict=True) for s in own]
    groups, start = np.repeat(np.arange(6), 200), np.concatenate(starts)
    cross = CrossPredictionTransformer(**SMALL).fit(np.stack(X), groups=groups, start=start)
    expected = 0
    for own in starts:
        usual = np.median(np.diff(own))
        later = own[None] - own[:, None]
        least = 64 - 0.1 * usual  # times may be a little off
        expected += ((later >= least) & (later <= least + 1.2 * usual)).any(0).sum()
    assert cross.n_pairs_ == pytest.approx(expected, rel=0.02)  # the stride is estimated
    assert abs(cross.kappa_) < 0.1


@pytest.mark.parametrize("span", [2.0, 2.5, 4.0])
def test_windows_of_one_phase_share_no_step(span):
    """Also where more than half of the windows are missing, so that the usual gap is two."""
    rng = np.random.default_rng(0)
    gap = rng.choice([0.5, 1.0, 1.5, 2.0, 9.0], size=200, p=[0.3, 0.3, 0.2, 0.1, 0.1])
    recording = np.repeat(np.arange(4), 50)
    gap[::50] = np.inf
    windows = paired_windows(recording, gap, span)
    time = np.cumsum(np.where(np.isinf(gap), 100, gap))
    for number in range(4):
        for phase in np.unique(windows.phase):
            own = time[(recording == number) & (windows.phase == phase)]
            assert (np.diff(own) >= span).all()
