"""The longest stretch above a threshold is, in each of three ways, what counting finds."""

from itertools import groupby

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sklearn_pulse.features._stretch import by_places, by_steps, by_words, longest_stretches


def counted(row):
    return max((len(list(run)) for one, run in groupby(row) if one), default=0)


def check(positive):
    """Compare all ways on rows of zeros and ones, shape (n_kernels, n, n_timesteps)."""
    expected = np.apply_along_axis(counted, -1, positive)
    rows = torch.from_numpy(positive)
    np.testing.assert_array_equal(by_words(positive > 0.5), expected)
    np.testing.assert_array_equal(by_places(rows > 0.5), expected)
    if positive.shape[-1] <= 255:
        np.testing.assert_array_equal(by_steps(rows, torch.full((1, len(rows)), 0.5))[0], expected)


@pytest.mark.parametrize("n", [1, 2, 62, 63, 64, 65, 127, 128, 129, 300])
@pytest.mark.parametrize("share", [0.5, 0.97])
def test_random_rows(n, share):
    check((np.random.default_rng(n).random((3, 8, n)) < share).astype(np.float32))


@pytest.mark.parametrize("n", [1, 63, 64, 65, 128, 255])
def test_one_stretch_at_every_place(n):
    """A row of ones, rows of zeros, and a stretch of each length at the start and at the end."""
    starts = np.tri(n + 1, n, -1, dtype=np.float32)
    check(np.concatenate([starts, starts[:, ::-1]])[None])


@pytest.mark.parametrize("n", [1, 9, 255, 256, 300])
@pytest.mark.parametrize("n_thresholds", [1, 3, 9])
def test_thresholds_of_each_kernel(n, n_thresholds):
    rng = np.random.default_rng(n)
    outputs = rng.normal(size=(4, 5, n)).astype(np.float32).cumsum(-1)
    thresholds = rng.normal(size=(n_thresholds, 4)).astype(np.float32)
    found = longest_stretches(torch.from_numpy(outputs), torch.from_numpy(thresholds), at_once=2)
    assert found.dtype == torch.float32
    expected = np.apply_along_axis(counted, -1, outputs > thresholds[:, :, None, None])
    np.testing.assert_array_equal(found, expected)


def test_a_step_that_does_not_count_ends_a_stretch():
    outputs = torch.tensor([[[1.0, 1.0, -torch.inf, 1.0]]])
    assert longest_stretches(outputs, torch.tensor([[-5.0]]), at_once=1).item() == 2


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 140)), min_size=1, max_size=6))
def test_rows_of_runs(runs):
    check(np.concatenate([np.full(n, one, dtype=np.float32) for one, n in runs])[None, None])
