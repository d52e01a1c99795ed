import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sklearn_pulse.functional import dropout, keep_mask, pass_errors


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9])
def test_mask_keeps_the_right_share_in_every_lane(p):
    mask = keep_mask((40_000, 4), p, generator())
    tolerance = 5 * np.sqrt(p * (1 - p) / 40_000) + 2**-17
    np.testing.assert_allclose(mask.float().mean(0), 1 - p, atol=tolerance)


def test_lanes_of_the_mask_are_independent():
    lanes = keep_mask((40_000, 4), 0.5, generator()).numpy().T
    np.testing.assert_allclose(np.corrcoef(lanes), np.eye(4), atol=0.03)


@given(shape=st.lists(st.integers(0, 5), min_size=1, max_size=3), seed=st.integers(0, 9))
def test_mask_shape_and_repeatability(shape, seed):
    first = keep_mask(tuple(shape), 0.3, generator(seed))
    assert first.shape == torch.Size(shape)
    assert torch.equal(first, keep_mask(tuple(shape), 0.3, generator(seed)))


def test_dropout_keeps_the_mean_and_passes_the_same_gradient():
    x = torch.rand(200, 500, requires_grad=True)
    y = dropout(x, 0.1, generator())
    torch.testing.assert_close(y.mean(), x.mean(), rtol=0.01, atol=0)
    y.sum().backward()
    torch.testing.assert_close(x.grad * x, y)


def test_dropout_of_zero_is_the_identity():
    x = torch.rand(3, 4)
    assert dropout(x, 0.0, generator()) is x


@pytest.mark.parametrize("reduction", ["published", "valid"])
def test_pass_errors_literally(reduction):
    torch.manual_seed(0)
    n, n_passes, batch, n_channels = 6, 3, 4, 2
    lengths = torch.randint(1, n + 1, (n_passes, batch))
    inside = torch.arange(n).view(-1, 1, 1) < lengths
    target = torch.randn(n, n_passes, batch, n_channels)
    prediction = torch.randn_like(target) * inside.unsqueeze(-1)
    actual = pass_errors(prediction, target, inside, lengths.amax(1), reduction)
    for s in range(n_passes):
        total, valid = 0.0, 0
        for i in range(batch):
            for t in range(lengths[s, i]):
                for c in range(n_channels):
                    total += (prediction[t, s, i, c] - target[t, s, i, c]).item() ** 2
                    valid += 1
        divisor = valid if reduction == "valid" else batch * lengths[s].max().item() * n_channels
        assert actual[s].item() == pytest.approx(total / divisor, rel=1e-5)
