"""The parts of the cross-attention against their formulas, written out slowly."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from sklearn_pulse.networks import CrossAttention
from sklearn_pulse.networks._instance_norm import ReversibleNorm
from sklearn_pulse.networks._partial_conv import BottleneckBlock, PartialConv, PartialConvNet
from sklearn_pulse.networks._tiled_conv import TiledConv


def normal(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def scrambled(module, seed=0):
    """Move every parameter off its initial value: an affine map of 1 and 0 would hide errors."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return module


def literal_partial_conv(x, visible, weight, bias):
    """For each step, sum what is visible under the kernel and rescale it; loops only."""
    (batch, n_timesteps, n_in), (n_out, _, width) = x.shape, weight.shape
    y = np.zeros((batch, n_timesteps, n_out))
    for b, t, o in np.ndindex(y.shape):
        total, seen = 0.0, 0
        for i in range(width):
            step = t + i - width // 2
            for c in range(n_in):
                if 0 <= step < n_timesteps and visible[b, step]:
                    total += x[b, step, c] * weight[o, c, i]
                    seen += 1
        if seen:
            y[b, t, o] = total * n_in * width / seen + bias[o]
    return y


@settings(max_examples=15, deadline=None)
@given(
    visible=st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=3),
    width=st.sampled_from([1, 3, 5, 15]),
)
def test_partial_convolution_is_the_formula(visible, width):
    conv = scrambled(PartialConv(2, 3, width))
    visible = torch.tensor(visible)
    x = normal(len(visible), 6, 2)
    expected = literal_partial_conv(
        x.numpy(), visible.numpy(), conv.weight.detach().numpy(), conv.bias.detach().numpy()
    )
    np.testing.assert_allclose(conv(x, visible).detach(), expected, atol=1e-5)


def test_padding_counts_as_hidden():
    """Keys and values have no mask, but their borders are rescaled too."""
    conv, x = scrambled(PartialConv(2, 3, 5)), normal(2, 6, 2)
    everything = torch.ones(2, 6, dtype=torch.bool)
    torch.testing.assert_close(conv(x), conv(x, everything))
    plain = F.conv1d(x.transpose(1, 2), conv.weight, conv.bias, padding=2).transpose(1, 2)
    torch.testing.assert_close(conv(x)[:, 2:-2], plain[:, 2:-2])
    assert not torch.allclose(conv(x)[:, 0], plain[:, 0])


def test_the_reversible_norm_is_the_formula():
    norm, x, other = scrambled(ReversibleNorm(3)), normal(4, 10, 3), normal(4, 7, 3, seed=1)
    with torch.no_grad():
        for b in range(4):
            for c in range(3):
                mean, variance = x[b, :, c].mean(), x[b, :, c].var(correction=0)
                std = (variance + 1e-5).sqrt()
                expected = (other[b, :, c] - mean) / std * norm.weight[c] + norm.bias[c]
                statistics = norm.statistics(x)
                torch.testing.assert_close(norm(other, *statistics)[b, :, c], expected)
                back = (other[b, :, c] - norm.bias[c]) / (norm.weight[c] + 1e-10) * std + mean
                torch.testing.assert_close(norm.restore(other, *statistics)[b, :, c], back)


def test_statistics_have_no_gradient():
    x = normal(2, 5, 1).requires_grad_()
    assert not any(part.requires_grad for part in ReversibleNorm.statistics(x))


def test_a_block_is_the_formula():
    block, x = scrambled(BottleneckBlock(8, 4, kernel_size=3, dilation=2)), normal(3, 10, 8)
    channels_first = x.transpose(1, 2)
    narrow = F.conv1d(channels_first, block.narrow.weight.unsqueeze(-1), block.narrow.bias)
    wide = F.conv1d(narrow, block.conv.weight, block.conv.bias, padding=2, dilation=2)
    expected = nn.InstanceNorm1d(8)(F.gelu(wide + channels_first)).transpose(1, 2)
    torch.testing.assert_close(block(x), expected, atol=1e-5, rtol=1e-4)


def test_dilations_double():
    net = PartialConvNet(2, 8, kernel_size=15, bottleneck_dim=4, depth=5)
    assert [block.conv.dilation for block in net.blocks] == [(1,), (2,), (4,), (8,), (16,)]
    reach = 14 * (1 + 1 + 2 + 4 + 8 + 16) // 2
    x = normal(1, 2 * reach + 9, 2).requires_grad_()
    # Instance norm sees the whole window, so look at the convolutions alone.
    y = net.conv(x)
    for block in net.blocks:
        y = block.conv(block.narrow(y).transpose(1, 2)).transpose(1, 2) + y
    y[0, reach + 4].sum().backward()
    touched = x.grad[0].abs().sum(1).nonzero().flatten()
    assert (touched[0].item(), touched[-1].item()) == (4, 2 * reach + 4)


def literal_cross_attention(net, x, visible, other):
    """The reconstruction, one window after another, with torch's plain layers."""
    rows = []
    for b in range(len(x)):
        mean, std = x[b].mean(0), (x[b].var(0, correction=0) + 1e-5).sqrt()
        features = []
        for part, source, mask in (
            (net.query, x[b], visible[b]),
            (net.key, other[b], torch.ones(len(other[b]), dtype=torch.bool)),
            (net.value, other[b], torch.ones(len(other[b]), dtype=torch.bool)),
        ):
            source = (source - mean) / std * net.norm.weight + net.norm.bias
            h = torch.from_numpy(
                literal_partial_conv(
                    source.unsqueeze(0).numpy(),
                    mask.unsqueeze(0).numpy(),
                    part.conv.weight.numpy(),
                    part.conv.bias.numpy(),
                )
            ).to(x.dtype)
            h = nn.InstanceNorm1d(h.shape[-1])(F.gelu(h).transpose(1, 2)).transpose(1, 2)
            for block in part.blocks:
                h = block(h)
            features.append(h[0])
        queries, keys, values = features
        steps = []
        for query in queries:
            scores = torch.stack([query @ key for key in keys]) / math.sqrt(len(query))
            weights = torch.exp(scores) / torch.exp(scores).sum()
            steps.append(net.output((weights.unsqueeze(1) * values).sum(0)))
        rows.append((torch.stack(steps) - net.norm.bias) / (net.norm.weight + 1e-10) * std + mean)
    return torch.stack(rows)


def small_net(n_channels=2, depth=2):
    return scrambled(
        CrossAttention(n_channels, hidden_dim=8, kernel_size=5, bottleneck_dim=4, depth=depth)
    )


@torch.no_grad()
@pytest.mark.parametrize("n_timesteps", [2, 9])
def test_cross_attention_is_the_formula(n_timesteps):
    net, double = small_net().double(), torch.float64
    x, other = (normal(3, n_timesteps, 2, seed=seed, dtype=double) for seed in (0, 1))
    visible = normal(3, n_timesteps, seed=2) > 0
    expected = literal_cross_attention(net, x, visible, other)
    torch.testing.assert_close(net(x, visible, other), expected, atol=1e-6, rtol=1e-6)


def test_weights_of_the_dropout_path_are_those_of_the_fused_one():
    net, x, other = small_net(), normal(3, 9, 2), normal(3, 12, 2, seed=1)
    visible, observed = normal(3, 9, seed=2) > 0, normal(3, 12, seed=3) > -1
    shapes = []

    def keep(weights):
        shapes.append(tuple(weights.shape))
        return weights

    for masks in ((None, None), (None, observed)):
        fused = net(x, visible, other, *masks)
        torch.testing.assert_close(net(x, visible, other, *masks, dropout=keep), fused)
    assert shapes == [(3, 9, 12)] * 2
    assert not torch.allclose(net(x, visible, other, dropout=lambda w: 0.5 * w), fused)


@pytest.mark.parametrize("masked", [False, True])
def test_some_steps_alone(masked):
    """The same reconstruction of them, with weights for no other step."""
    net, x, other = small_net(), normal(3, 9, 2), normal(3, 12, 2, seed=1)
    visible, steps = normal(3, 9, seed=2) > 0, torch.tensor([[0, 8], [3, 2], [4, 5]])
    observed = normal(3, 9, seed=4) > -1.5 if masked else None
    whole = net(x, visible, other, observed)
    expected = torch.stack([row[i] for row, i in zip(whole, steps, strict=True)])
    torch.testing.assert_close(net(x, visible, other, observed, steps=steps), expected)
    shapes = []

    def keep(weights):
        shapes.append(tuple(weights.shape))
        return weights

    some = net(x, visible, other, observed, dropout=keep, steps=steps)
    torch.testing.assert_close(some, expected)
    assert shapes == [(3, 2, 12)]


def test_hidden_steps_are_not_read():
    """Apart from the statistics, which are those of the whole window."""
    net, other = small_net(), normal(2, 9, 2, seed=1)
    x = normal(2, 9, 2)
    visible = torch.arange(9).expand(2, -1) < 6
    swapped = x.clone()
    swapped[:, 6:] = x[:, 6:].flip(1)  # same mean and variance
    torch.testing.assert_close(net(x, visible, other), net(swapped, visible, other))
    assert not torch.allclose(net(x, ~visible, other), net(swapped, ~visible, other))


@pytest.mark.parametrize("depth", [0, 2])
def test_padding_with_missing_steps_changes_nothing(depth):
    net = small_net(depth=depth)
    x, other = normal(3, 9, 2), normal(3, 7, 2, seed=1)
    visible = normal(3, 9, seed=2) > 0
    expected = net(x, visible, other)
    observed, other_observed = (
        torch.arange(length + 6).expand(3, -1) < length for length in (9, 7)
    )
    padded = F.pad(x, (0, 0, 0, 6), value=9.0)
    other_padded = F.pad(other, (0, 0, 0, 6), value=-9.0)
    rebuilt = net(
        padded, F.pad(visible, (0, 6), value=True), other_padded, observed, other_observed
    )
    torch.testing.assert_close(rebuilt[:, :9], expected, atol=1e-5, rtol=1e-5)


def test_of_one_step_the_instance_norm_leaves_the_biases_alone():
    net, x = small_net(), normal(2, 1, 2)
    expected = x + (net.output.bias - net.norm.bias) / net.norm.weight * math.sqrt(1e-5)
    for visible in (True, False):
        torch.testing.assert_close(net(x, torch.full((2, 1), visible), x), expected)


@torch.no_grad()
def test_weights_of_long_windows_are_never_held_at_once(monkeypatch):
    """The kernel that streams them takes the input; it would raise otherwise."""
    monkeypatch.setattr("sklearn_pulse.networks._cross_attention._MAX_WEIGHTS", 3 * 9 * 12 - 1)
    net, x, other = small_net(), normal(3, 9, 2), normal(3, 12, 2, seed=1)
    observed = normal(3, 12, seed=3) > -1
    visible = torch.ones(3, 9, dtype=torch.bool)
    for mask in (None, observed):
        expected = net(x, visible, other, None, mask, dropout=lambda weights: weights)
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):
            streamed = net(x, visible, other, None, mask)
        torch.testing.assert_close(streamed, expected)
        assert not torch.equal(streamed, expected)  # computed in another way


@pytest.mark.parametrize("dilation", [1, 3, 64])
@pytest.mark.parametrize(("n_taps", "n_timesteps"), [(15, 1), (15, 20), (15, 100), (9, 33)])
def test_a_tiled_convolution_is_the_direct_one(n_taps, n_timesteps, dilation):
    """Values and gradients."""
    torch.manual_seed(0)
    conv = nn.Conv1d(
        3, 5, n_taps, dilation=dilation, padding=n_taps // 2 * dilation, bias=False
    ).double()
    results = []
    for tiled in (False, True):
        x = normal(3, 2, n_timesteps, dtype=torch.float64).requires_grad_()
        if tiled:
            y = TiledConv.of(conv, n_timesteps)(x)
        else:
            y = conv(x.transpose(0, 1)).transpose(0, 1)
        results.append((y, *torch.autograd.grad(y.sin().sum(), (x, conv.weight))))
    torch.testing.assert_close(*results, rtol=1e-12, atol=1e-12)


def test_the_published_widths_use_the_tiled_convolution(monkeypatch):
    """With the reconstruction and the gradients of the direct one, and not in half precision."""
    torch.manual_seed(0)
    net, x, other = CrossAttention(2, depth=2), normal(3, 40, 2), normal(3, 40, 2, seed=1)
    visible, results, tiled = normal(3, 40, seed=2) > 0, [], []
    convolve = TiledConv.__call__

    def record(self, x):
        tiled.append(len(x))
        return convolve(self, x)

    monkeypatch.setattr(TiledConv, "__call__", record)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        net(x, visible, other)
    assert not tiled
    results = []
    for gain in (2.0, torch.inf):
        monkeypatch.setattr("sklearn_pulse.networks._tiled_conv._LEAST_GAIN", gain)
        rebuilt = net(x, visible, other)
        loss = (rebuilt - x).square().mean()
        results.append((rebuilt, *torch.autograd.grad(loss, tuple(net.parameters()))))
    assert tiled == [32] * 6
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-6)
