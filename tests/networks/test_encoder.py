import copy

import numpy as np
import pytest
import torch
from torch import nn

from perf.literal import LiteralEncoder, copy_weights
from sklearn_pulse.networks import SystemEncoder
from sklearn_pulse.networks._dilated_conv import DilatedConv
from sklearn_pulse.networks._encoder import ResidualBlock

DEPTH = 10


def pair(n_channels=3, hidden_dim=8, embedding_dim=12, seed=0):
    torch.manual_seed(seed)
    ours = SystemEncoder(n_channels, hidden_dim, embedding_dim, DEPTH)
    literal = LiteralEncoder(n_channels, hidden_dim, embedding_dim, DEPTH)
    copy_weights(ours, literal)
    return ours, literal


def assert_close(actual, expected, rtol=2e-5):
    actual, expected = actual.detach().numpy(), expected.detach().numpy()
    scale = max(np.abs(expected).max(), 1e-3)
    assert np.abs(actual.reshape(expected.shape) - expected).max() <= rtol * scale


LENGTHS = [1, 2, 64, 100, 128, 500, 1000]


@pytest.mark.parametrize("n_timesteps", LENGTHS)
def test_output_and_gradients_equal_those_of_plain_convolutions(n_timesteps):
    ours, literal = pair()
    x, target = torch.randn(4, n_timesteps, 3), torch.randn(4, 12)
    assert_close(ours(x), literal(x))
    with torch.inference_mode():  # convolutions instead of products
        assert_close(ours(x), literal(x))
    for module in (ours, literal):
        (module(x) - target).square().sum().backward()
    for (name, mine), theirs in zip(ours.named_parameters(), literal.parameters(), strict=True):
        assert mine.grad is not None, name
        assert_close(mine.grad, theirs.grad, rtol=1e-4)


@pytest.mark.parametrize("n_timesteps", LENGTHS)
def test_weights_after_three_steps_equal_those_of_plain_convolutions(n_timesteps):
    """In float64: AdamW divides by a gradient's size, so float32 rounding grows to that of lr."""
    ours, literal = (module.double() for module in pair())
    x, target = torch.randn(4, n_timesteps, 3).double(), torch.randn(4, 12).double()
    before = [p.detach().clone() for p in ours.parameters()]
    for module in (ours, literal):
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (module(x) - target).square().sum().backward()
            optimizer.step()
    for old, mine, theirs in zip(before, ours.parameters(), literal.parameters(), strict=True):
        assert not torch.equal(old, mine)
        torch.testing.assert_close(mine, theirs.reshape(mine.shape), rtol=0, atol=1e-8)


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


@pytest.mark.parametrize("holes", [False, True])
def test_bfloat16_agrees_with_float32_where_no_gradient_is_recorded(holes):
    torch.manual_seed(0)
    encoder, x = SystemEncoder(3, 32, 48, depth=4), torch.randn(5, 100, 3)
    observed = torch.rand(5, 100) > 0.3 if holes else None
    with torch.inference_mode():
        expected = encoder(x, observed)
        with torch.autocast("cpu", torch.bfloat16):
            torch.testing.assert_close(encoder(x, observed).float(), expected, rtol=0, atol=0.1)


def test_published_number_of_parameters():
    counts = {1: 637_888, 2: 637_952, 3: 638_016, 6: 638_208}
    for n_channels, expected in counts.items():
        assert sum(p.numel() for p in SystemEncoder(n_channels).parameters()) == expected


@pytest.mark.parametrize("holes", [False, True])
def test_windows_that_take_turns_give_the_same_gradient(holes, monkeypatch):
    ours, _ = (module.double() for module in pair())
    x = torch.randn(5, 20, 3).double()
    observed = torch.rand(5, 20) > 0.3 if holes else None
    results = []
    for n_steps in (2**30, 40, 1):
        monkeypatch.setattr("sklearn_pulse.networks._encoder._CHUNK_STEPS", n_steps)
        embedding = ours(x, observed)
        gradient = torch.autograd.grad(embedding.square().sum(), list(ours.parameters()))
        results.append([embedding.detach(), *gradient])
    for other in results[1:]:
        torch.testing.assert_close(results[0], other)


@pytest.mark.parametrize("dilation", [1, 3, 11, 12, 64])
def test_convolution_with_missing_steps(dilation):
    """Values and gradients against torch's convolution of the masked activations."""
    torch.manual_seed(0)
    conv = DilatedConv(3, 5, dilation).double()
    x = torch.randn(12, 2, 3).double().requires_grad_()
    seen = (torch.rand(12, 2, 1) > 0.3).double()
    active = (nn.functional.gelu(x) * seen).permute(1, 2, 0)
    padding = {"padding": dilation, "dilation": dilation}
    plain = nn.functional.conv1d(active, conv.weight, conv.bias, **padding).permute(2, 0, 1)
    results = [conv(x, seen), plain]
    torch.testing.assert_close(*results)
    seed, leaves = torch.randn(12, 2, 5).double(), [x, conv.weight, conv.bias]
    ours, theirs = (torch.autograd.grad(result, leaves, seed) for result in results)
    torch.testing.assert_close(list(ours), list(theirs))


@pytest.mark.parametrize("fuses", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("widths", [(16, 32), (3, 5)])  # of (3, 5) the products are filled up
@pytest.mark.parametrize("dilation", [1, 11, 12])  # from 12 on two taps read nothing
def test_block_without_gradient(dilation, widths, dtype, fuses, monkeypatch):
    """conv2(GELU(conv1(GELU(x)))) + skip(x), with and without missing steps, in either order."""
    if not fuses:
        monkeypatch.setattr("sklearn_pulse.networks._fused_conv._FUSES", False)
    torch.manual_seed(0)
    block = ResidualBlock(*widths, dilation, project=True)
    literal = copy.deepcopy(block).double()
    x = torch.randn(12, 4, widths[0]).to(dtype)
    for seen in (None, (torch.rand(12, 4, 1) > 0.3).to(dtype)):
        y = x.double()
        for conv in (literal.conv1, literal.conv2):
            active = nn.functional.gelu(y) * (1.0 if seen is None else seen)
            padding = {"padding": dilation, "dilation": dilation}
            y = nn.functional.conv1d(active.permute(1, 2, 0), conv.weight, conv.bias, **padding)
            y = y.permute(2, 0, 1)
        y = (y + literal.skip(x.double())).detach()
        autocast = torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16)
        with torch.inference_mode(), autocast:
            ours = block(x, seen)
            turned = block(x.transpose(0, 1).contiguous().transpose(0, 1), seen)
            moved = block(x.roll(1, 1), None if seen is None else seen.roll(1, 1))
        assert ours.dtype == dtype
        tolerance = 1e-5 if dtype == torch.float32 else 0.03
        torch.testing.assert_close(ours.double(), y, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(turned.double(), y, rtol=tolerance, atol=tolerance)
        assert torch.equal(moved, ours.roll(1, 1))  # the bits of a window in any place


@pytest.mark.parametrize("pooling", ["max", "mean"])
@pytest.mark.parametrize("value", [1e30, 3e38, np.inf, np.nan])
def test_what_unobserved_steps_hold_changes_no_bit(value, pooling):
    torch.manual_seed(0)
    encoder = SystemEncoder(2, 8, 8, 3, pooling)
    observed = torch.ones(3, 20, dtype=torch.bool)
    observed[:, 5:8] = observed[1, 15:] = False
    x = torch.randn(3, 20, 2)
    filled = [x.masked_fill(~observed.unsqueeze(-1), fill) for fill in (0.0, value)]
    gradients = []
    for windows in filled:
        encoder.zero_grad()
        encoder(windows, observed).square().sum().backward()
        gradients.append([weight.grad for weight in encoder.parameters()])
    for ours, theirs in zip(*gradients, strict=True):
        assert torch.equal(ours, theirs)
    with torch.inference_mode():
        assert torch.equal(*(encoder(windows, observed) for windows in filled))
