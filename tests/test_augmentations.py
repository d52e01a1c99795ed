import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sklearn_pulse.augmentations import Jitter, RandomApply, Scale
from sklearn_pulse.sampling import draw_shifts, random_integers, shift_within, take_steps


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


AUGMENTATIONS = [Scale(), Jitter(), RandomApply(Scale()), RandomApply(Jitter(), p=0.3)]


@pytest.mark.parametrize("augmentation", AUGMENTATIONS, ids=repr)
def test_out_of_place_and_repeatable(augmentation):
    x = torch.randn(50, 8, 2, generator=generator(9))
    before = x.clone()
    first = augmentation(x, generator(1))
    assert first.shape == x.shape
    assert torch.equal(first, augmentation(x, generator(1)))
    assert not torch.equal(first, augmentation(x, generator(2)))
    first.zero_()
    assert torch.equal(x, before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("augmentation", AUGMENTATIONS, ids=repr)
def test_a_view_has_the_type_of_the_windows(augmentation, dtype):
    """Layers in half precision take no other windows."""
    x = torch.randn(50, 8, 2, generator=generator(9)).to(dtype)
    view = augmentation(x, generator(1))
    assert view.dtype == dtype
    expected = augmentation(x.double(), generator(1)).to(dtype)
    torch.testing.assert_close(view, expected)
    assert augmentation(x.int(), generator(1)).dtype == torch.float32


@pytest.mark.parametrize("augmentation", AUGMENTATIONS, ids=repr)
def test_torchs_default_type_changes_no_view(augmentation):
    x = torch.ones(50, 8, 2, dtype=torch.float32)
    expected = augmentation(x, generator())
    torch.set_default_dtype(torch.float64)
    try:
        view = augmentation(x, generator())
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(view, expected)


def test_scale_is_one_uniform_factor_a_window():
    x = torch.randn(4000, 3, 2) + 5.0
    factor = Scale(0.5, 1.5)(x, generator()) / x
    torch.testing.assert_close(factor, factor[:, :1, :1].expand_as(factor))
    factor = factor[:, 0, 0]
    assert factor.min() >= 0.5 - 1e-5
    assert factor.max() <= 1.5 + 1e-5
    counts = np.histogram(factor.numpy(), bins=10, range=(0.5, 1.5))[0]
    assert counts.min() > 330  # 400 expected, standard deviation 19


def test_jitter_is_independent_noise_in_units_of_the_data():
    x = torch.randn(2, 50_000, 2)
    noise = Jitter(0.2)(x, generator(), unit=torch.tensor([1.0, 10.0])) - x
    np.testing.assert_allclose(noise.std((1, 2)), [0.2, 2.0], rtol=0.02)
    np.testing.assert_allclose(noise.mean((1, 2)), 0.0, atol=0.05)
    rows = noise.permute(0, 2, 1).flatten(0, 1)
    np.testing.assert_allclose(np.corrcoef(rows), np.eye(4), atol=0.02)
    torch.testing.assert_close(
        Jitter(0.2)(x, generator(3)), Jitter(0.2)(x, generator(3), unit=torch.ones(2))
    )


@pytest.mark.parametrize("p", [0.0, 0.25, 1.0])
def test_random_apply_takes_whole_windows_by_chance(p):
    x = torch.ones(4000, 5, 2)
    scaled = RandomApply(Scale(2.0, 2.0), p)(x, generator())
    assert set(scaled.unique().tolist()) <= {1.0, 2.0}
    per_window = scaled.flatten(1)
    assert (per_window == per_window[:, :1]).all()
    assert (per_window[:, 0] == 2.0).float().mean().item() == pytest.approx(p, abs=0.03)


@pytest.mark.parametrize("p", [-0.1, 1.5, float("nan")])
def test_a_probability_beyond_its_range_is_refused(p):
    with pytest.raises(ValueError, match="p must be a probability from 0 to 1"):
        RandomApply(Scale(), p)


@pytest.mark.parametrize(("low", "high"), [(1.0, 0.5), (np.nan, 1.0), (0.5, np.inf)])
def test_bounds_that_are_no_range_are_refused(low, high):
    with pytest.raises(ValueError, match="low and high must be finite, and low at most high"):
        Scale(low, high)


@pytest.mark.parametrize("std", [-0.1, np.nan, np.inf])
def test_noise_without_a_size_is_refused(std):
    with pytest.raises(ValueError, match="std must be a finite number from 0 on"):
        Jitter(std)


# --- cuts and shifts ---


@given(
    n=st.integers(1, 6),
    n_steps=st.integers(1, 8),
    starts=st.lists(st.integers(-9, 9), min_size=1, max_size=4),
)
def test_take_steps_literally(n, n_steps, starts):
    x = torch.randn(len(starts), n, 2)
    cut = take_steps(x, torch.tensor(starts), n_steps)
    for i, start in enumerate(starts):
        for t in range(n_steps):
            assert torch.equal(cut[i, t], x[i, min(max(start + t, 0), n - 1)])


def test_random_integers_reach_both_bounds_evenly():
    low = torch.tensor([-2, 0, 5]).repeat(6000, 1)
    high = torch.tensor([3, 0, 4]).repeat(6000, 1)
    drawn = random_integers(low, high, generator())
    counts = torch.bincount(drawn[:, 0] + 2, minlength=6)
    assert len(counts) == 6
    assert (counts - 1000).abs().max() < 150  # standard deviation 29
    assert (drawn[:, 1] == 0).all()
    assert (drawn[:, 2] == 5).all()  # crossed bounds


def test_shifts_stay_in_half_a_window_and_in_the_recording():
    lengths = torch.full((5000,), 7)
    assert draw_shifts(0.5, lengths, generator()).unique().tolist() == list(range(-3, 4))
    assert draw_shifts(1.0, lengths, generator()).unique().tolist() == list(range(-7, 7))
    assert draw_shifts(0.0, lengths, generator()).unique().tolist() == [0]
    assert draw_shifts(0.5, torch.ones(9, dtype=int), generator()).unique().tolist() == [0]
    room = torch.tensor([[0, 1]]).expand(5000, -1)
    assert draw_shifts(0.5, lengths, generator(), room).unique().tolist() == [0, 1]


@pytest.mark.parametrize("share", [0.07, 0.14, 0.29, 0.57])
def test_the_interval_of_shifts_is_not_moved_by_rounding(share):
    """0.07 * 100 is a little more than 7, and 0.29 * 100 a little less than 29."""
    bound = round(100 * share)
    shifts = draw_shifts(share, torch.full((20_000,), 100), generator()).unique()
    assert shifts.tolist() == list(range(-bound, bound))


@given(
    observed=st.lists(st.booleans(), min_size=1, max_size=8).filter(any),
    shift=st.integers(-9, 9),
)
def test_shift_within_literally(observed, shift):
    n = len(observed)
    x = torch.arange(1.0, n + 1).view(1, n, 1)
    mask = torch.tensor([observed])
    shifted, seen = shift_within(x, torch.tensor([shift]), mask)
    first, last = observed.index(True), n - 1 - observed[::-1].index(True)
    for t in range(n):
        source = min(max(t + shift, first), last)
        assert shifted[0, t] == x[0, source]
        assert seen[0, t].item() == (first <= t <= last and observed[source])
    assert seen.any()
    if all(observed):
        assert torch.equal(shift_within(x, torch.tensor([shift]))[0], shifted)
        assert shift_within(x, torch.tensor([shift]))[1] is None


def test_a_window_padded_with_missing_steps_is_shifted_as_the_unpadded_one():
    x = torch.randn(1, 8, 1)
    mask = torch.arange(8).unsqueeze(0) < 5
    shifted, seen = shift_within(x, torch.tensor([2]), mask)
    assert torch.equal(shifted[:, :5], shift_within(x[:, :5], torch.tensor([2]))[0])
    assert torch.equal(seen, mask)


@pytest.mark.parametrize("length", [1, 4, 5, 7, 8])
def test_shifts_are_the_integers_of_the_half_open_interval(length):
    """An integer uniform in [-W/2, W/2)."""
    lengths, generator = torch.full((2000,), length), torch.Generator().manual_seed(0)
    drawn = set(draw_shifts(0.5, lengths, generator).tolist())
    assert drawn == {k for k in range(-length, length) if -length / 2 <= k < length / 2}
