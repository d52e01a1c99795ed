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


@pytest.mark.parametrize("part", [*((TimeVaryingBranch, pool) for pool in (1, 2, 3, 5, 20)), None])
@pytest.mark.parametrize(("first", "stop"), [(0, 9), (4, 20), (3, 16), (7, 8), (5, 7), (0, 20)])
def test_missing_steps_at_the_ends_are_as_if_they_were_not_there(part, first, stop):
    """The same for all rows of a batch, whether they miss steps or not."""
    torch.manual_seed(0)
    network = InitialConditionEncoder(6, 4) if part is None else part[0](6, 2, part[1])
    x, observed = torch.randn(3, 20, 6), torch.zeros(3, 20, dtype=torch.bool)
    observed[0, first:stop] = observed[1] = observed[2, first:stop] = True
    observed[2, first + 2 : stop - 1] = False  # a gap
    padded = network(x, observed)
    for row, steps in ((0, slice(first, stop)), (1, slice(None)), (2, slice(first, stop))):
        gap = None if row < 2 else observed[row : row + 1, steps]
        alone = network(x[row : row + 1, steps], gap)
        torch.testing.assert_close(padded[row : row + 1, steps], alone)
        ours, theirs = (
            torch.autograd.grad(result.sum(), list(network.parameters()), retain_graph=True)
            for result in (padded[row, steps], alone)
        )
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a, b)
    if part is not None:
        assert not padded[0, stop:].any() and not padded[0, :first].any()


@pytest.mark.parametrize("n_timesteps", range(1, 120, 7))
@pytest.mark.parametrize("pool", [2, 3, 10, 50])
def test_a_mask_of_observed_steps_changes_no_bins(n_timesteps, pool):
    """PyTorch rounds where it expands bins to steps."""
    torch.manual_seed(0)
    branch, steps = TimeVaryingBranch(4, 1, pool), torch.randn(2, n_timesteps, 4)
    everywhere = torch.ones(2, n_timesteps, dtype=torch.bool)
    torch.testing.assert_close(branch(steps, everywhere), branch(steps), rtol=0, atol=0)
