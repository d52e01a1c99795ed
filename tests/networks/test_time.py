"""Pooling over time against torch's own."""

import pytest
import torch

from sklearn_pulse.networks import pool_steps


def expected_pool(x, how, observed):
    """Pool window by window, over the observed steps alone."""
    kept = [
        window if seen is None else window[seen] for window, seen in zip(x, observed, strict=True)
    ]
    return torch.stack([w.amax(0) if how == "max" else w.mean(0) for w in kept])


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("how", ["max", "mean"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_values_and_gradients_are_those_of_torch_where_steps_tie(dtype, how, holes):
    torch.manual_seed(0)
    x = torch.randint(-2, 3, (3, 12, 5)).to(dtype).requires_grad_()  # many steps share the maximum
    observed = torch.rand(3, 12) > 0.4 if holes else None
    pooled = pool_steps(x, how, observed)
    expected = expected_pool(x, how, [None] * 3 if observed is None else observed)
    torch.testing.assert_close(pooled, expected)
    seed = torch.randn(3, 5).to(dtype)
    ours, theirs = (torch.autograd.grad(y, x, seed)[0] for y in (pooled, expected))
    torch.testing.assert_close(ours, theirs)


def test_gradient_of_the_largest_step_lies_as_the_steps_do():
    steps = torch.randn(12, 3, 5).transpose(0, 1).requires_grad_()
    (gradient,) = torch.autograd.grad(pool_steps(steps, "max").sum(), steps)
    assert gradient.stride() == steps.stride()  # time first, so that nothing is copied


def test_a_window_without_an_observed_step():
    """As docs/extending.md says: its pooled values spoil gradients, and a mask of all does not."""
    observed = torch.tensor([[True, False, True], [False, False, False]])
    for how, pooled in (("max", -torch.inf), ("mean", torch.nan)):
        x = torch.randn(2, 3, 4)
        rows = pool_steps(x, how, observed)
        torch.testing.assert_close(rows[1], torch.full((4,), pooled), equal_nan=True)
        weight = torch.ones(4, requires_grad=True)
        (spoilt,) = torch.autograd.grad(((rows @ weight) * observed.any(1)).sum(), weight)
        assert spoilt.isnan().all()
        rows = pool_steps(x, how, observed | ~observed.any(1, keepdim=True))
        (gradient,) = torch.autograd.grad(((rows @ weight) * observed.any(1)).sum(), weight)
        torch.testing.assert_close(gradient, rows[0])
