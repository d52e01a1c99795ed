import copy

import pytest
import torch
from torch import nn

from sklearn_pulse.networks import ConvEncoder


def literal_encoder(encoder):
    """Convolution, batch normalisation, ReLU and pooling, channels first, as published."""
    layers = []
    for i, block in enumerate(encoder.blocks):
        conv = block.conv
        size = (25, 3, 12) if i == 0 else (8, 1, 4)
        layer = nn.Conv1d(conv.in_channels, conv.out_channels, *size, bias=False)
        norm = nn.BatchNorm1d(conv.out_channels)
        layer.load_state_dict(conv.state_dict())
        norm.load_state_dict(block.norm.state_dict())
        layers += [layer, norm, nn.ReLU(), nn.MaxPool1d(2, stride=2, padding=1)]
    return nn.Sequential(*layers).train(encoder.training)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("n_timesteps", [1, 2, 3, 26, 100, 128])
def test_encoder_is_that_of_plain_layers(training, n_timesteps):
    torch.manual_seed(0)
    encoder = ConvEncoder(3, 4, 6).train(training)
    for block in encoder.blocks:
        nn.init.normal_(block.norm.bias)
    literal, x = literal_encoder(encoder), torch.randn(5, n_timesteps, 3)
    for observed in (None, torch.ones(5, n_timesteps, dtype=torch.bool)):
        steps, reached = copy.deepcopy(encoder).encode_steps(x, observed)
        expected = copy.deepcopy(literal)(x.transpose(1, 2)).transpose(1, 2)
        torch.testing.assert_close(steps, expected, rtol=1e-5, atol=1e-6)
        assert steps.shape[1] == encoder.n_steps(n_timesteps)
        assert reached is None or reached.all()
    ours = encoder.encode_steps(x)[0].square().sum()
    theirs = literal(x.transpose(1, 2)).square().sum()
    ours.backward()
    theirs.backward()
    for a, b in zip(encoder.parameters(), literal.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("length", "n_steps"), [(128, 7), (500, 23), (960, 42), (1000, 44), (100, 6)]
)
def test_published_lengths(length, n_steps):
    assert ConvEncoder(1).n_steps(length) == n_steps


def test_published_widths():
    encoder = ConvEncoder(6)
    assert [block.conv.weight.shape for block in encoder.blocks] == [
        (32, 6, 25),
        (64, 32, 8),
        (128, 64, 8),
    ]
    n_convolved = 6 * 25 * 32 + 32 * 8 * 64 + 64 * 8 * 128
    assert sum(p.numel() for p in encoder.parameters()) == n_convolved + 2 * (32 + 64 + 128)


@pytest.mark.parametrize("n_timesteps", [1, 2, 3, 7, 8, 13, 30])
@pytest.mark.parametrize("pooling", ["max", "mean"])
def test_missing_steps_at_the_end_are_no_steps(n_timesteps, pooling):
    torch.manual_seed(0)
    encoder = ConvEncoder(2, 4, 6, pooling=pooling)
    encoder(torch.randn(9, 40, 2))  # running statistics other than the initial ones
    for block in encoder.blocks:
        nn.init.normal_(block.norm.bias, mean=1.0)  # so that nothing is zero by chance
    x = torch.randn(3, 40, 2)
    observed = torch.zeros(3, 40, dtype=torch.bool)
    observed[:, :n_timesteps] = True
    for training in (False, True):
        encoder.train(training)
        short = copy.deepcopy(encoder)(x[:, :n_timesteps])
        torch.testing.assert_close(copy.deepcopy(encoder)(x, observed), short, atol=1e-6, rtol=0)


def test_of_a_single_observed_step_nothing_else_is_read():
    encoder, x = ConvEncoder(2, 4, 6).eval(), torch.randn(1, 16, 2)
    for step in range(16):
        observed = torch.zeros(1, 16, dtype=torch.bool)
        observed[:, step] = True
        embedding = encoder(x, observed)
        other = torch.where(observed.unsqueeze(-1), x, 7.0)
        assert torch.equal(encoder(other, observed), embedding)
        assert not torch.equal(encoder(x + 1.0, observed), embedding)


def test_lengths_that_wake_untrained_taps():
    """Beyond each, a tap that met padding alone meets a value: found by the gradient."""
    encoder = ConvEncoder(1, 2, 2).double().eval()
    for p in encoder.parameters():
        nn.init.uniform_(p, 0.1, 1.0)  # positive, so that no ReLU hides a tap

    def n_read(n_timesteps):
        encoder.zero_grad()
        encoder.encode_steps(torch.rand(1, n_timesteps, 1).double() + 1.0)[0].sum().backward()
        return sum(int(block.conv.weight.grad.abs().sum((0, 1)).gt(0).sum()) for block in blocks)

    blocks = encoder.blocks
    counts = [n_read(n) for n in range(1, 40)]
    woken = [n for n in range(1, 39) if counts[n] > counts[n - 1]]
    # Of two steps only the larger one has a gradient, so a tap may be found later, never sooner.
    assert set(woken) <= {*encoder.dilations, *range(max(encoder.dilations) + 1, 39)}
    assert {*range(1, 13)} <= set(encoder.dilations)
