import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sklearn_pulse.sampling import (
    aligned_steps,
    crop_starts,
    geometric_mask,
    length_in_steps,
    lengths_in_steps,
    observed_span,
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


lengths = st.one_of(st.integers(1, 40), st.floats(0.01, 0.99))


@given(n_timesteps=st.integers(2, 60), minimum=lengths, seed=st.integers(0, 99))
def test_crops_leave_enough_to_predict(n_timesteps, minimum, seed):
    starts = crop_starts(3, (50, n_timesteps), minimum, generator(seed))
    least = length_in_steps(minimum, n_timesteps)
    assert 1 <= least <= n_timesteps - 1
    assert starts.shape == (3, 50)
    assert starts.min() >= 0
    assert (n_timesteps - 1 - starts).min() >= least


def test_a_share_of_numpy_is_a_share():
    assert length_in_steps(np.float32(0.5), 128) == 64
    assert length_in_steps(np.int64(64), 128) == 64
    assert type(length_in_steps(np.int64(64), 128)) is int
    starts = [
        crop_starts(2, (3, 10), share, generator()).tolist() for share in (0.5, np.float32(0.5))
    ]
    assert starts[0] == starts[1]


@given(percent=st.integers(1, 99), n_timesteps=st.sampled_from([100, 200, 1000]))
def test_a_share_that_gives_an_integer_gives_no_step_less(percent, n_timesteps):
    """0.29 * 100 is 28.999999999999996 in floating point."""
    share, exact = percent / 100, percent * n_timesteps // 100
    assert length_in_steps(share, n_timesteps) == exact
    of_windows = lengths_in_steps(share, torch.tensor([n_timesteps, 2 * n_timesteps]))
    assert of_windows.tolist() == [exact, 2 * exact]
    starts = crop_starts(1, (2000, n_timesteps), share, generator())
    assert starts.max() <= n_timesteps - 1 - exact
    single = np.float32(share)  # which lies up to 3e-8 of itself below the share
    assert length_in_steps(single, n_timesteps) == exact
    assert lengths_in_steps(single, torch.tensor([n_timesteps])).tolist() == [exact]


@given(length=lengths, n_timesteps=st.integers(1, 60))
def test_lengths_of_windows_are_those_of_each(length, n_timesteps):
    of_windows = lengths_in_steps(length, torch.tensor([n_timesteps, 7]))
    assert of_windows.tolist() == [length_in_steps(length, n) for n in (n_timesteps, 7)]


def test_starts_are_uniform_over_the_published_range():
    """t0 ~ U{0, ..., W - R - 1}."""
    starts = crop_starts(1, (64_000, 128), 64, generator()).flatten()
    counts = torch.bincount(starts, minlength=128)
    assert not counts[64:].any()
    np.testing.assert_allclose(counts[:64], 1000, atol=5 * np.sqrt(1000))


@given(n_timesteps=st.integers(1, 200), minimum=lengths, seed=st.integers(0, 9))
def test_a_mask_that_hides_nothing_draws_the_same(n_timesteps, minimum, seed):
    everything = torch.ones(6, n_timesteps, dtype=torch.bool)
    draws = [
        crop_starts(2, (6, n_timesteps), minimum, generator(seed), observed)
        for observed in (None, everything)
    ]
    assert torch.equal(*draws)


def test_starts_in_padded_windows_stay_off_the_padding():
    observed = torch.zeros(2000, 30, dtype=torch.bool)
    observed[:, 5:15] = True  # ten steps, so five are left after a start in 5..9
    starts = crop_starts(1, (2000, 30), 0.5, generator(), observed).flatten()
    assert starts.unique().tolist() == [5, 6, 7, 8, 9]


def test_starts_of_a_window_with_one_observed_step():
    observed = torch.zeros(3, 8, dtype=torch.bool)
    observed[:, 4] = True
    assert crop_starts(2, (3, 8), 0.5, generator(), observed).unique().tolist() == [4]


@given(st.lists(st.booleans(), min_size=1, max_size=20).filter(any))
def test_the_observed_span_is_from_the_first_step_to_the_last(mask):
    first, stop = observed_span(torch.tensor([mask]))
    assert first.item() == mask.index(True)
    assert stop.item() == len(mask) - mask[::-1].index(True)


@given(n_timesteps=st.integers(2, 20), data=st.data())
def test_aligned_steps_literally(n_timesteps, data):
    starts = data.draw(
        st.lists(st.integers(0, n_timesteps - 2), min_size=1, max_size=4), label="starts"
    )
    length = data.draw(st.integers(1, n_timesteps), label="length")
    index, inside = aligned_steps(torch.tensor([starts]), n_timesteps, torch.tensor([[length]]))
    for i, start in enumerate(starts):
        expected = [t for t in range(start + 1, n_timesteps) if t <= start + length]
        assert index[inside[:, 0, i], 0, i].tolist() == expected
    assert index.max() < n_timesteps


@pytest.mark.parametrize("n_timesteps", [2, 3])
def test_the_shortest_windows_leave_a_step_to_predict(n_timesteps):
    starts = crop_starts(2, (4, n_timesteps), 0.5, generator())
    _, inside = aligned_steps(starts, n_timesteps, torch.full((2, 1), n_timesteps))
    assert inside.any(0).all()


@pytest.mark.parametrize(
    ("n_timesteps", "mask_ratio", "mean_length", "message"),
    [
        (0, 0.5, 3.0, "holds no time step"),
        (9, 0.8, 3.0, "mask_ratio must be from 0 to 0.75 with mean_length=3.0, got 0.8"),
        (9, -0.1, 3.0, "mask_ratio must be from 0"),
        (9, 1.0, 3.0, "mask_ratio must be from 0"),
        (9, 0.2, 0.5, "mean_length must be at least 1 step"),
    ],
)
def test_runs_that_no_chain_can_have_are_refused(n_timesteps, mask_ratio, mean_length, message):
    with pytest.raises(ValueError, match=message):
        geometric_mask((2, n_timesteps, 1), mask_ratio, mean_length, generator())
    assert geometric_mask((2, 9, 1), 0.9, 9.0, generator()).shape == (2, 9, 1)
    assert not geometric_mask((2, 9, 1), 0.0, 3.0, generator()).any()


def test_torchs_default_type_changes_no_mask():
    expected = geometric_mask((4, 50, 2), 0.5, 3.0, generator())
    torch.set_default_dtype(torch.float64)
    try:
        mask = geometric_mask((4, 50, 2), 0.5, 3.0, generator())
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(mask, expected)
