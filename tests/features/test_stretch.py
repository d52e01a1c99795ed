"""The longest stretch of ones, by words of bits and by places, is what counting finds."""

from itertools import groupby

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sklearn_pulse.features._stretch import by_places, by_words, longest_stretch


def counted(row):
    return max((len(list(run)) for one, run in groupby(row) if one), default=0)


def check(positive):
    expected = np.apply_along_axis(counted, -1, positive)
    rows = torch.from_numpy(positive)
    np.testing.assert_array_equal(by_words(positive), expected)
    np.testing.assert_array_equal(by_places(rows), expected)
    found = longest_stretch(rows)
    assert found.dtype == rows.dtype and found.shape == rows.shape[:-1]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", [1, 2, 62, 63, 64, 65, 127, 128, 129, 300])
@pytest.mark.parametrize("share", [0.5, 0.97])
def test_random_rows(n, share):
    check((np.random.default_rng(n).random((3, 8, n)) < share).astype(np.float32))


@pytest.mark.parametrize("n", [1, 63, 64, 65, 128, 200])
def test_one_stretch_at_every_place(n):
    """A row of ones, rows of zeros, and a stretch of each length at the start and at the end."""
    starts = np.tri(n + 1, n, -1, dtype=np.float32)
    check(np.concatenate([starts, starts[:, ::-1]]))


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 140)), min_size=1, max_size=6))
def test_rows_of_runs(runs):
    check(np.concatenate([np.full(n, one, dtype=np.float32) for one, n in runs])[None])
