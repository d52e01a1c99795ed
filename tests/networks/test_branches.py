"""The initial condition and the time-varying part against torch's padded convolutions."""

import pytest
import torch
import torch.nn.functional as F

from sklearn_pulse.networks import InitialConditionEncoder, TimeVaryingBranch


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize(
    ("state_dim", "hidden_dim", "kernel_size", "dilation"),
    [(8, 8, 3, 1), (8, 4, 5, 2), (4, 8, 3, 3), (6, 4, 1, 1), (5, 7, 5, 1)],
)
def test_states_at_some_steps_are_those_of_all(state_dim, hidden_dim, kernel_size, dilation, holes):
    torch.manual_seed(0)
    encoder = InitialConditionEncoder(3, state_dim, hidden_dim, kernel_size, dilation)
    x = torch.randn(4, 12, 3)
    observed = torch.rand(4, 12) > 0.3 if holes else None
    starts = torch.tensor([[0, 1, 5, 11], [11, 2, 0, 10]])
    every = encoder(x, observed)
    expected = torch.stack([every[torch.arange(4), row] for row in starts])
    torch.testing.assert_close(encoder.at(starts, x, observed), expected)
    seed = torch.randn(2, 4, state_dim)
    ours, theirs = (
        torch.autograd.grad(states, list(encoder.parameters()), seed)
        for states in (encoder.at(starts, x, observed), expected)
    )
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("n_timesteps", [2, 3, 12])
@pytest.mark.parametrize("dim", [1, 3])
def test_time_varying_part_is_two_reflecting_convolutions(dim, n_timesteps):
    torch.manual_seed(0)
    branch, steps = TimeVaryingBranch(6, dim), torch.randn(2, n_timesteps, 6)
    hidden = steps.transpose(1, 2)
    for conv, groups, activation in ((branch.conv1, 1, torch.relu), (branch.conv2, dim, None)):
        edges = F.pad(hidden, (1, 1), mode="reflect")
        hidden = F.conv1d(edges, conv.weight, conv.bias, groups=groups)
        hidden = hidden if activation is None else activation(hidden)
    torch.testing.assert_close(branch(steps), hidden.transpose(1, 2))
