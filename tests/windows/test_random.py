"""Windows at random starts, against the published draw."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_pulse.windows import random_windows
from tests.windows.helpers import quick, ramp


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


def test_unusable_random_state():
    with pytest.raises(ValueError, match="random_state must be an integer from 0 to 4294967295"):
        random_windows([ramp(9)], 2, 1, random_state=-1)


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
