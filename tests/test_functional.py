import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from sklearn_pulse.functional import (
    ar1_log_density,
    dropout,
    gaussian_kl,
    gaussian_nll,
    hierarchical_contrast,
    keep_bits,
    keep_mask,
    keep_scale,
    pass_errors,
)


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


def test_a_probability_just_below_one_keeps_something():
    kept = dropout(torch.ones(1_000_000), 1 - 1e-9, generator())
    assert kept.unique().tolist() == [0.0, 2.0**16]


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


def test_gaussian_kl_is_the_divergence():
    torch.manual_seed(0)
    mean, logvar, prior_mean, prior_logvar = torch.randn(4, 50, dtype=torch.float64)
    expected = kl_divergence(
        Normal(mean, (0.5 * logvar).exp()), Normal(prior_mean, (0.5 * prior_logvar).exp())
    )
    torch.testing.assert_close(gaussian_kl(mean, logvar, prior_mean, prior_logvar), expected)
    assert (gaussian_kl(mean, logvar, mean, logvar) == 0).all()


@pytest.mark.parametrize("floor", [0.0, 1e-6, 0.5])
def test_gaussian_nll_and_its_gradient_under_a_floor(floor):
    torch.manual_seed(0)
    x, mean, logvar = torch.randn(3, 50, dtype=torch.float64)
    logvar[:5] -= 30.0 * (floor > 0)
    logvar.requires_grad_()
    expected = torch.nn.functional.gaussian_nll_loss(
        mean, x, logvar.exp(), eps=max(floor, 1e-300), reduction="none"
    )
    actual = gaussian_nll(x, mean, logvar, floor)
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(
        *(torch.autograd.grad(value.sum(), logvar)[0] for value in (actual, expected))
    )


@pytest.mark.parametrize("n_timesteps", [1, 2, 6])
def test_ar1_density_is_that_of_the_stationary_process(n_timesteps):
    """Its joint distribution: covariance ``variance * alpha^|i - j| / (1 - alpha^2)``."""
    torch.manual_seed(0)
    x = torch.randn(n_timesteps, 4, 3, dtype=torch.float64)
    log_tau, log_variance = torch.randn(2, 3, dtype=torch.float64)
    actual = ar1_log_density(x, log_tau, log_variance)
    assert actual.shape == x.shape
    lags = (torch.arange(n_timesteps).unsqueeze(0) - torch.arange(n_timesteps).unsqueeze(1)).abs()
    for d in range(3):
        alpha = torch.exp(-1 / log_tau[d].exp())
        covariance = log_variance[d].exp() * alpha**lags / (1 - alpha**2)
        joint = MultivariateNormal(torch.zeros(n_timesteps, dtype=torch.float64), covariance)
        torch.testing.assert_close(actual[:, :, d].sum(0), joint.log_prob(x[:, :, d].t()))


def test_views_without_a_step_or_a_window_are_refused():
    """They cannot be halved until one step is left."""
    with pytest.raises(ValueError, match="hold no time step: pass one step at least"):
        hierarchical_contrast(torch.ones(2, 0, 3), torch.ones(2, 0, 3))
    with pytest.raises(ValueError, match="hold no window: pass one window at least"):
        hierarchical_contrast(torch.ones(0, 2, 3), torch.ones(0, 2, 3))


@pytest.mark.parametrize("p", [-0.1, 1.0, float("nan")])
def test_probabilities_beyond_their_range_are_refused(p):
    calls = [
        lambda: keep_bits((2, 3), p, generator()),
        lambda: keep_mask((2, 3), p, generator()),
        lambda: keep_scale(p),
        lambda: dropout(torch.ones(2, 3), p, generator()),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"p must be a probability in \[0, 1\)"):
            call()


def test_an_unknown_reduction_is_refused():
    x, scored = torch.ones(2, 1, 1, 1), torch.ones(2, 1, 1, dtype=torch.bool)
    with pytest.raises(ValueError, match="reduction must be one of 'published', 'valid', got 'm"):
        pass_errors(x, x, scored, torch.tensor([2]), "mean")
