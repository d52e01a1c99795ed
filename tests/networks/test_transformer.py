import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.functional import layer_norm

from sklearn_pulse.functional import dropout
from sklearn_pulse.networks import _transformer
from sklearn_pulse.networks._patch_encoder import PatchEncoder
from sklearn_pulse.networks._patches import (
    patch_steps,
    sinusoidal_positions,
    standardize,
    stride_steps,
)
from sklearn_pulse.networks._segment_encoder import SegmentEncoder
from sklearn_pulse.networks._time import mask_steps
from sklearn_pulse.networks._transformer import (
    FeedForward,
    MultiHeadAttention,
    PreNormBlock,
    ScaledPostNormBlock,
    TokenBatchNorm,
)
from tests.baselines import literal_transformer as literal

DIM, HEADS = 8, 2


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def visible(*lengths, n_tokens=5):
    """The first tokens of each row."""
    return torch.arange(n_tokens).expand(len(lengths), -1) < torch.tensor(lengths).unsqueeze(1)


def torch_attention(ours):
    """torch's own attention, on our weights."""
    theirs = nn.MultiheadAttention(DIM, HEADS, batch_first=True)
    parts = [ours.query, ours.key, ours.value]
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        theirs.out_proj.weight.copy_(ours.output.weight)
        theirs.out_proj.bias.copy_(ours.output.bias)
    return theirs


# --- attention ---


@pytest.mark.parametrize("drop", [None, torch.clone])
@pytest.mark.parametrize("mask", [None, visible(5, 3, 1)])
def test_attention_equals_that_of_torch(drop, mask):
    """On both paths: the fused one, and the one that holds the weights for dropout."""
    ours = MultiHeadAttention(DIM, HEADS)
    theirs = torch_attention(ours)
    x, memory = torch.randn(3, 4, DIM), torch.randn(3, 5, DIM)
    hidden = None if mask is None else ~mask
    expected, _ = theirs(x, memory, memory, key_padding_mask=hidden)
    answer = ours(x, memory, mask, drop)
    torch.testing.assert_close(answer, expected)
    answer.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(ours.output.weight.grad, theirs.out_proj.weight.grad)
    torch.testing.assert_close(ours.query.weight.grad, theirs.in_proj_weight.grad[:DIM])


def test_attention_literally():
    attention = MultiHeadAttention(DIM, HEADS).double()
    x = torch.randn(1, 4, DIM).double()
    expected = literal.attention(attention, x[0], x[0], HEADS)
    torch.testing.assert_close(attention(x)[0], torch.stack(expected))


def test_hidden_tokens_leave_no_trace():
    attention = MultiHeadAttention(DIM, HEADS)
    x, mask = torch.randn(2, 5, DIM), visible(3, 3)
    other = x.clone()
    other[:, 3:] = 7.0
    torch.testing.assert_close(attention(x, other, mask), attention(x, x[:, :3]))


def test_dropout_acts_on_the_weights_of_the_attention():
    attention = MultiHeadAttention(DIM, HEADS)
    shapes = []

    def drop(weights):
        shapes.append(weights.shape)
        torch.testing.assert_close(weights.sum(-1), torch.ones(3, HEADS, 5))
        return weights * 0.0

    answer = attention(torch.randn(3, 5, DIM), drop=drop)
    torch.testing.assert_close(answer, attention.output.bias.expand(3, 5, -1))
    assert shapes == [(3, HEADS, 5, 5)]


# --- blocks ---


def test_pre_norm_block_literally():
    block = PreNormBlock(DIM, HEADS, 12).double()
    nn.init.normal_(block.norm1.weight)
    nn.init.normal_(block.norm2.bias)
    x = torch.randn(3, 4, DIM).double()
    tokens = list(x.flatten(0, 1))
    normed = literal.batch_norm(block.norm1, tokens)
    attended = [
        answer
        for row in range(3)
        for answer in literal.attention(
            block.attention, normed[4 * row : 4 * row + 4], normed[4 * row : 4 * row + 4], HEADS
        )
    ]
    tokens = [a + b for a, b in zip(tokens, attended, strict=True)]
    forward = literal.feed_forward(block.feed_forward, literal.batch_norm(block.norm2, tokens))
    expected = torch.stack([a + b for a, b in zip(tokens, forward, strict=True)])
    torch.testing.assert_close(block(x).flatten(0, 1), expected)


def test_batch_norm_counts_visible_tokens_only():
    norm, plain = TokenBatchNorm(DIM), nn.BatchNorm1d(DIM)
    x, mask = torch.randn(3, 5, DIM), visible(5, 2, 1)
    garbage = torch.where(mask.unsqueeze(-1), x, 9.0)
    normed = norm(garbage, mask)
    torch.testing.assert_close(normed[mask], plain(x[mask]))
    assert not normed[~mask].any()
    torch.testing.assert_close(norm.running_mean, plain.running_mean)
    torch.testing.assert_close(norm.running_var, plain.running_var)


def test_batch_norm_uses_running_statistics_at_evaluation():
    norm = TokenBatchNorm(DIM).eval()
    x = torch.randn(3, 5, DIM)
    torch.testing.assert_close(norm(x), x / math.sqrt(1 + 1e-5))
    torch.testing.assert_close(norm(x, visible(5, 2, 1)), norm(x))


def test_scaled_block_starts_as_a_normalisation():
    block, x = ScaledPostNormBlock(DIM, HEADS, 12), torch.randn(3, 5, DIM)
    twice = layer_norm(layer_norm(x, [DIM]), [DIM])
    torch.testing.assert_close(block(x), twice, atol=1e-6, rtol=0)


def test_scaled_block_at_one_equals_the_encoder_layer_of_torch():
    block = ScaledPostNormBlock(DIM, HEADS, 12)
    theirs = nn.TransformerEncoderLayer(
        DIM, HEADS, 12, dropout=0.0, activation="gelu", batch_first=True
    )
    with torch.no_grad():
        block.scale1.fill_(1.0)
        block.scale2.fill_(1.0)
    theirs.self_attn = torch_attention(block.attention)
    theirs.linear1, theirs.linear2 = block.feed_forward.input, block.feed_forward.output
    x = torch.randn(3, 5, DIM)
    torch.testing.assert_close(block(x), theirs(x))
    mask = visible(5, 2, 1)
    expected = theirs(x, src_key_padding_mask=~mask)
    torch.testing.assert_close(block(x, visible=mask), expected)


def test_where_the_scaled_block_drops_out():
    """Attention weights, both scaled branches, and what the feed-forward layer returns."""
    block, calls = ScaledPostNormBlock(DIM, HEADS, 12), []

    def drop(x):
        calls.append((tuple(x.shape), x.abs().max().item() < 1e-6))
        return x

    block(torch.randn(3, 4, DIM), torch.randn(3, 5, DIM), drop=drop)
    branch = (3, 4, DIM)
    assert calls == [((3, HEADS, 4, 5), False), (branch, True), (branch, False), (branch, True)]


def test_where_the_pre_norm_block_drops_out():
    block, calls = PreNormBlock(DIM, HEADS, 12), []
    block(torch.randn(3, 5, DIM), drop=lambda x: calls.append(tuple(x.shape)) or x)
    assert calls == [(3, 5, DIM)] * 2
    torch.testing.assert_close(block(x := torch.randn(3, 5, DIM), drop=torch.zeros_like), x)


@pytest.mark.parametrize("mask", [None, visible(5, 3, 1)])
def test_computing_twice_changes_no_bit(mask, monkeypatch):
    """Neither the loss nor a gradient nor the running statistics, with dropout too."""
    results = []
    for size in (2**40, 0):
        monkeypatch.setattr(_transformer, "_RECOMPUTED_SIZE", size)
        torch.manual_seed(1)
        block, x = PreNormBlock(DIM, HEADS, 12), torch.randn(3, 5, DIM, requires_grad=True)
        drop = partial(dropout, p=0.3, generator=torch.Generator().manual_seed(0))
        loss = block(x, mask, drop).square().sum()
        loss.backward()
        assert block.norm1.num_batches_tracked == 1
        state = [*block.state_dict().values(), *(p.grad for p in block.parameters())]
        results.append([loss, x.grad, *state])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_large_batches_are_computed_twice(monkeypatch):
    seen = []

    def spy(module, *args, **kwargs):
        seen.append(type(module).__name__)
        return module(*args)

    monkeypatch.setattr(_transformer, "checkpoint", spy)
    monkeypatch.setattr(_transformer, "_RECOMPUTED_SIZE", 3 * 5 * DIM - 1)
    block, x = PreNormBlock(DIM, HEADS, 12), torch.randn(3, 5, DIM)
    with torch.no_grad():
        block(x)
    block(x[:2])
    assert seen == []
    block(x)
    assert seen == ["MultiHeadAttention", "FeedForward"]


# --- patches ---


@given(
    length=st.integers(1, 40) | st.floats(0.01, 0.99),
    stride=st.integers(1, 40) | st.floats(0.01, 1.0),
    n_timesteps=st.integers(1, 60),
)
def test_patches_fit_any_window(length, stride, n_timesteps):
    steps = patch_steps(length, n_timesteps)
    step = stride_steps(stride, steps)
    assert 1 <= step <= steps <= max(1, n_timesteps // 2)
    n_patches = (n_timesteps - steps) // step + 1
    assert n_patches >= min(2, n_timesteps)


@pytest.mark.parametrize("kind", [float, np.float16, np.float32, Fraction])
def test_fractions_of_any_type(kind):
    assert patch_steps(kind(0.25), 128) == 32
    assert patch_steps(kind(0.25), 400_001) == 100_000  # beyond what float16 holds
    assert stride_steps(kind(0.5), 32) == 16
    assert (patch_steps(np.int64(12), 128), stride_steps(np.int64(12), 32)) == (12, 12)


def test_fractions_that_give_an_integer_give_no_step_less():
    """0.29 * 100 is 28.999999999999996 in floating point."""
    assert (patch_steps(0.29, 100), stride_steps(0.29, 100)) == (29, 29)


def test_patches_are_the_last_steps():
    encoder = PatchEncoder(2, 11, DIM, patch_length=4, patch_stride=3)
    x = torch.arange(22.0).view(1, 11, 2)
    patches = encoder.cut(x)
    assert patches.shape == (1, 2, 3, 4)
    for i, start in enumerate((1, 4, 7)):
        torch.testing.assert_close(patches[0, :, i], x[0, start : start + 4].T)


def test_standardize_literally():
    x, observed = torch.randn(3, 9, 2) * 5 + 2, torch.rand(3, 9) > 0.3
    result = standardize(x, observed)
    for i in range(3):
        for c in range(2):
            values = [x[i, t, c].item() for t in range(9) if observed[i, t]]
            mean = sum(values) / len(values)
            variance = sum((v - mean) ** 2 for v in values) / len(values)
            for t in range(9):
                expected = (x[i, t, c].item() - mean) / math.sqrt(variance + 1e-5)
                expected = expected if observed[i, t] else 0.0
                assert result[i, t, c].item() == pytest.approx(expected, abs=1e-5)
    torch.testing.assert_close(standardize(x), standardize(x, torch.ones(3, 9, dtype=torch.bool)))


@pytest.mark.parametrize("dim", [1, 5, 8])
def test_positions_literally(dim):
    rows = [
        [
            (math.sin if j % 2 == 0 else math.cos)(i / 10_000 ** ((j - j % 2) / dim))
            for j in range(dim)
        ]
        for i in range(7)
    ]
    entries = [value for row in rows for value in row]
    mean = sum(entries) / len(entries)
    std = math.sqrt(sum((value - mean) ** 2 for value in entries) / (len(entries) - 1))
    expected = torch.tensor([[(value - mean) / (10 * std) for value in row] for row in rows])
    torch.testing.assert_close(sinusoidal_positions(7, dim), expected, atol=1e-6, rtol=1e-5)


ENCODERS = {
    "patches": lambda pooling: PatchEncoder(
        2, 16, DIM, 12, 2, HEADS, patch_length=4, patch_stride=4, pooling=pooling
    ),
    "segments": lambda pooling: SegmentEncoder(
        2, 16, DIM, 12, 2, HEADS, patch_length=4, pooling=pooling
    ),
}


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_a_patch_without_an_observed_step_leaves_no_trace(name, pooling):
    encoder = ENCODERS[name](pooling).eval()
    for p in encoder.parameters():
        nn.init.normal_(p, std=0.5)
    x = torch.randn(3, 16, 2)
    observed = torch.ones(3, 16, dtype=torch.bool)
    observed[:, 4:8] = False
    other = torch.where(observed.unsqueeze(-1), x, 5.0)
    expected = encoder(x, observed)
    assert torch.equal(encoder(other, observed), expected)
    if name == "patches":
        encoder.positions[2] += 3.0  # the CLS token has position 0
    else:
        encoder.positions.data[1] += 3.0
    assert torch.equal(encoder(other, observed), expected)
    assert not torch.allclose(encoder(x), expected)


@pytest.mark.parametrize("name", ENCODERS)
def test_every_window_has_its_own_mask(name):
    encoder = ENCODERS[name]("mean").eval()
    for p in encoder.parameters():
        nn.init.normal_(p, std=0.5)
    x, observed = torch.randn(3, 16, 2), torch.ones(3, 16, dtype=torch.bool)
    observed[0, 4:8] = observed[1, :4] = observed[2, 8:] = False
    for i, row in enumerate(encoder(x, observed)):
        alone = encoder(x[i : i + 1], observed[i : i + 1])[0]
        torch.testing.assert_close(row, alone, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ENCODERS)
def test_windows_without_any_observed_patch_stay_finite(name):
    encoder = ENCODERS[name]("mean").eval()
    assert encoder(torch.zeros(2, 16, 2), torch.zeros(2, 16, dtype=torch.bool)).isfinite().all()


@pytest.mark.parametrize("n_rows", [1, 8, 19])
def test_many_tokens_through_the_feed_forward_layers(monkeypatch, n_rows):
    """The same values and gradients, and no hidden value kept for the gradient."""
    monkeypatch.setattr("sklearn_pulse.networks._rows._PART_ROWS", 8)
    layers, kept = FeedForward(4, 64), []
    x = torch.randn(1, n_rows, 4, requires_grad=True)
    results = []
    for least in (10**6, 1):
        monkeypatch.setattr(_transformer, "_MIN_ROWS", least)
        kept.append(0)

        def keep(tensor):
            kept[-1] += tensor.numel() * (tensor.shape[-1] == 64 and tensor.ndim == 3)
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            y = layers(x)
        grads = torch.autograd.grad(y.square().sum(), (x, *layers.parameters()))
        results.append((y, *grads))
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-6)
    assert kept[0] >= 64 * n_rows
    assert kept[1] == 0


@pytest.mark.parametrize("mask", [False, True])
def test_a_block_returns_the_tokens_that_are_needed(mask):
    """Its second branch reads no others."""
    block, x = PreNormBlock(4, n_heads=2, hidden_dim=8), torch.randn(3, 5, 4)
    needed = torch.tensor([[0, 4], [3, 1], [2, 0]])
    shown = visible(5, 4, 5) if mask else None
    rows = []
    block.feed_forward.register_forward_pre_hook(lambda _, args: rows.append(args[0].shape[1]))
    whole, some = block(x, shown), block(x, shown, needed=needed)
    expected = torch.stack([row[i] for row, i in zip(whole, needed, strict=True)])
    torch.testing.assert_close(some, expected)
    assert rows == [5, 2]


@pytest.mark.parametrize("value", [1 / 3, 1e4 / 3, -1e6 * math.pi, 1e8 / 3])
@pytest.mark.parametrize("n_timesteps", [30, 37, 200])
def test_of_a_constant_no_rounding_is_left(value, n_timesteps):
    x = torch.full((2, n_timesteps, 1), value)
    observed = torch.ones(2, n_timesteps, dtype=torch.bool)
    observed[0, 3:9] = False
    for seen in (None, observed):
        assert standardize(mask_steps(x, seen), seen).abs().max() < 1e-6
