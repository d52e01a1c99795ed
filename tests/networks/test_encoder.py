import numpy as np
import pytest
import torch
from torch import nn

from perf.literal import LiteralEncoder, copy_weights
from sklearn_pulse.networks import SystemEncoder

DEPTH = 10


def pair(n_channels=3, hidden_dim=8, embedding_dim=12, seed=0):
    torch.manual_seed(seed)
    ours = SystemEncoder(n_channels, hidden_dim, embedding_dim, DEPTH)
    literal = LiteralEncoder(n_channels, hidden_dim, embedding_dim, DEPTH)
    copy_weights(ours, literal)
    return ours, literal


def assert_close(actual, expected, scale=None, rtol=2e-5):
    actual, expected = actual.detach().numpy(), expected.detach().numpy()
    scale = max(np.abs(expected).max(), 1e-3)
    assert np.abs(actual.reshape(expected.shape) - expected).max() <= rtol * scale


@pytest.mark.parametrize("n_timesteps", [1, 2, 64, 100, 128, 500, 1000])
def test_equals_plain_convolutions(n_timesteps):
    """Output, every gradient (of dead taps too), and the weights after three steps of AdamW."""
    ours, literal = pair()
    x = torch.randn(4, n_timesteps, 3)
    assert_close(ours(x), literal(x))

    optimizers = [
        torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=0.1)
        for module in (ours, literal)
    ]
    for step in range(3):
        for module, optimizer in zip((ours, literal), optimizers, strict=True):
            optimizer.zero_grad()
            module(x).square().mean().backward()
            if step == 0:
                assert all(p.grad is not None for p in module.parameters())
        if step == 0:
            for (name, mine), theirs in zip(
                ours.named_parameters(), literal.parameters(), strict=True
            ):
                assert mine.grad.shape.numel() == theirs.grad.numel(), name
                assert_close(mine.grad, theirs.grad, rtol=1e-4)
        for optimizer in optimizers:
            optimizer.step()
    for mine, theirs in zip(ours.parameters(), literal.parameters(), strict=True):
        # AdamW divides by the gradient's size, so rounding of tiny gradients shows at lr's scale.
        assert (mine - theirs.reshape(mine.shape)).abs().max() < 1e-4


def test_dead_taps_have_a_gradient_of_zero_and_decay():
    ours, _ = pair()
    dead = ours.blocks[-1].conv2.weight
    before = dead.detach().clone()
    optimizer = torch.optim.AdamW(ours.parameters(), lr=1e-2, weight_decay=0.5)
    ours(torch.randn(4, 64, 3)).sum().backward()
    assert torch.equal(dead.grad[:, :, [0, 2]], torch.zeros_like(dead[:, :, [0, 2]]))
    assert dead.grad[:, :, 1].any()
    optimizer.step()
    np.testing.assert_allclose(
        dead[:, :, 0].detach(), before[:, :, 0] * (1 - 1e-2 * 0.5), rtol=1e-6
    )


def test_missing_steps_leave_no_trace():
    """A window padded with unobserved steps embeds as the unpadded one, at every pooling."""
    for pooling in ("max", "mean"):
        torch.manual_seed(0)
        encoder = SystemEncoder(3, 8, 12, depth=6, pooling=pooling)
        nn.init.constant_(encoder.input.bias, 3.0)
        x = torch.randn(4, 50, 3)
        padded = torch.cat([x, torch.randn(4, 30, 3)], dim=1)
        observed = torch.arange(80).expand(4, 80) < 50
        torch.testing.assert_close(encoder(padded, observed), encoder(x), rtol=0, atol=1e-6)


def test_published_number_of_parameters():
    counts = {1: 637_888, 2: 637_952, 3: 638_016, 6: 638_208}
    for n_channels, expected in counts.items():
        assert sum(p.numel() for p in SystemEncoder(n_channels).parameters()) == expected
