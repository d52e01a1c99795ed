"""The objective against the published step written out literally."""

import pytest
import torch

from perf.literal import LiteralPulse
from sklearn_pulse.functional import dropout, keep_bits, keep_scale
from sklearn_pulse.networks._packing import Packing
from sklearn_pulse.objectives import CrossReconstruction

SMALL = {
    "embedding_dim": 12,
    "encoder_hidden_dim": 8,
    "encoder_depth": 4,
    "gru_hidden_dim": 8,
    "init_hidden_dim": 8,
    "dropout": 0.0,
}


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"n_crops": 3, "gru_num_layers": 3},
        {"n_crops": 0},
        {"time_varying_dim": 0},
        {"time_varying_dim": 2, "time_varying_pool": 5},
        {"observation": "linear"},
    ],
)
def test_equals_the_literal_step(params):
    torch.manual_seed(0)
    objective = CrossReconstruction(2, **SMALL | params)
    literal = LiteralPulse(objective)
    x = torch.randn(5, 24, 2)
    starts = torch.randint(12, (objective.n_crops, 5))
    loss, expected = objective(x=x, starts=starts), literal(x, starts)
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-6)


def literal_fixed_crops(objective, x, starts, length):
    """Paper's text: crops of a fixed length, scored on their own entries only."""
    theta = objective.encode(x)
    steps = objective.encoder.encode_steps(x)
    drive = objective.time_varying(steps)
    conditions = objective.initial_condition(x)
    losses = []
    for t0 in [*starts, torch.zeros(len(x), dtype=torch.int64)]:
        squared, count = 0.0, 0
        for i, start in enumerate(t0.tolist()):
            last = len(x[i]) if t0.sum() == 0 else start + 1 + length
            predicted = range(start + 1, last)
            inputs = torch.stack([torch.cat([theta[i], drive[i, t]]) for t in predicted])
            y = objective.decoder(inputs.unsqueeze(1), conditions[i, start].unsqueeze(0))
            squared += (y.squeeze(1) - x[i, start + 1 : last]).square().sum()
            count += (last - start - 1) * x.shape[2]
        losses.append(squared / count)
    return 0.5 * (torch.stack(losses[:-1]).mean() + losses[-1])


def test_fixed_crops_with_valid_reduction():
    torch.manual_seed(0)
    objective = CrossReconstruction(2, **SMALL, crop="fixed", crop_length=6, loss_reduction="valid")
    x = torch.randn(5, 24, 2)
    starts = torch.randint(1, 24 - 7, (2, 5))
    expected = literal_fixed_crops(objective, x, starts, 6)
    torch.testing.assert_close(objective(x=x, starts=starts), expected, rtol=1e-5, atol=1e-6)


def test_random_pairs_take_all_but_theta_from_the_partner():
    torch.manual_seed(0)
    objective = CrossReconstruction(2, **SMALL, pairing="random", seed=3)
    crops = CrossReconstruction(2, **SMALL)
    crops.load_state_dict(objective.state_dict())
    x = torch.randn(5, 24, 2)
    starts = torch.randint(12, (2, 5))
    partner = torch.randperm(5, generator=torch.Generator().manual_seed(3))
    assert not torch.equal(partner, torch.arange(5))
    theta = objective.encode(x)
    crops.encode_window = lambda y, observed: original(y, observed)._replace(embedding=theta)
    original = CrossReconstruction.encode_window.__get__(crops)
    expected = crops(x=x[partner], starts=starts)
    torch.testing.assert_close(objective(x=x, starts=starts), expected)


def padded_behind(x):
    """Return windows with unobserved steps behind them, and which steps are observed."""
    padded = torch.cat([x, torch.full((len(x), 9, x.shape[2]), 7.0)], dim=1)
    return padded, torch.arange(padded.shape[1]).expand(len(x), -1) < x.shape[1]


@pytest.mark.parametrize("reduction", ["published", "valid"])
def test_missing_steps_do_not_count(reduction):
    """Loss of a window padded with unobserved steps: that of the window."""
    torch.manual_seed(0)
    objective = CrossReconstruction(
        2, **SMALL, loss_reduction=reduction, time_varying_dim=0, n_crops=1
    )
    x = torch.randn(4, 24, 2)
    starts = torch.randint(23, (1, 4))
    padded, observed = padded_behind(x)
    torch.testing.assert_close(
        objective(x=padded, observed=observed, starts=starts), objective(x=x, starts=starts)
    )
    assert objective(x=padded, starts=starts) > objective(x=x, starts=starts)


@pytest.mark.parametrize("reduction", ["published", "valid"])
def test_fixed_crops_of_padded_windows_are_those_of_the_windows(reduction):
    """A fraction of the steps between the ends of what was observed, window by window."""
    torch.manual_seed(0)
    params = SMALL | {"loss_reduction": reduction, "time_varying_dim": 0, "n_crops": 2}
    objective = CrossReconstruction(2, **params, crop="fixed", crop_length=0.25)
    x = torch.randn(4, 24, 2)
    starts = torch.randint(10, (2, 4))
    padded, observed = padded_behind(x)
    for own in (starts, starts // 5 + 20):  # crops that the end of the window cuts off, too
        torch.testing.assert_close(
            objective(x=padded, observed=observed, starts=own), objective(x=x, starts=own)
        )
    observed = observed & (torch.arange(33) < torch.tensor([[24], [12], [8], [2]]))
    passes = objective.reconstruct(padded, observed, starts=torch.zeros_like(starts))
    assert passes.scored[:, 0].sum(0).tolist() == [6, 3, 2, 1]
    first = torch.tensor([0, 6, 12, 20])
    observed = (observed.sum(1) + first).unsqueeze(1) > torch.arange(33)
    observed &= torch.arange(33) >= first.unsqueeze(1)
    passes = objective.reconstruct(padded, observed, starts=first.expand(2, -1))
    assert passes.scored[:, 0].sum(0).tolist() == [6, 3, 2, 1]


def test_the_full_window_starts_at_its_first_observed_step():
    objective = CrossReconstruction(2, **SMALL)
    observed = torch.ones(3, 24, dtype=torch.bool)
    observed[1, :5] = False
    passes = objective.reconstruct(torch.randn(3, 24, 2), observed)
    assert passes.starts[-1].tolist() == [0, 5, 0]
    assert (passes.starts[:, 1] >= 5).all()


def test_stretches_without_an_observed_step_leave_no_trace_in_loss_and_gradient():
    """Also where they fill a whole bin of the time-varying part."""
    objective = CrossReconstruction(2, **SMALL, time_varying_pool=4)
    x, observed = torch.randn(3, 24, 2), torch.ones(3, 24, dtype=torch.bool)
    observed[1, 4:13] = False
    results = []
    for windows in (x, torch.where(observed.unsqueeze(-1), x, 7.0)):
        with objective.seeded(0):
            loss = objective(x=windows, observed=observed)
        results.append((loss, *torch.autograd.grad(loss, list(objective.parameters()))))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("theta_dropout", ["step", "sequence"])
def test_dropout_before_the_decoder(theta_dropout):
    """Each step's own mask, or one for all steps of a crop's embedding; both on the drive."""
    torch.manual_seed(0)
    params = SMALL | {"dropout": 0.4, "time_varying_dim": 2, "theta_dropout": theta_dropout}
    objective = CrossReconstruction(2, **params)
    x, starts = torch.randn(3, 16, 2), torch.tensor([[0, 4, 7], [2, 2, 0]])
    with objective.seeded(5):
        passes = objective.reconstruct(x, starts=starts)

    theta, drive, _ = objective.encode_window(x)
    rows = [(i, int(t0)) for starts_of_pass in passes.starts for i, t0 in enumerate(starts_of_pass)]
    lengths = torch.tensor([15 - t0 for _, t0 in rows])
    generator = torch.Generator().manual_seed(5)
    if theta_dropout == "step":
        packing = Packing.of(lengths, 15)
        bits = keep_bits((int(lengths.sum()), 14), 0.4, generator)
        keep = packing.pad(bits.float(), 15) * keep_scale(0.4)
    else:
        fixed = dropout(torch.ones(len(rows), 12), 0.4, generator).expand(15, -1, -1)
        keep = torch.cat([fixed, dropout(torch.ones(15, len(rows), 2), 0.4, generator)], dim=2)
    for j, ((i, t0), condition) in enumerate(
        zip(rows, passes.condition.flatten(0, 1), strict=True)
    ):
        inputs = torch.cat([theta[i].expand(15 - t0, -1), drive[i, t0 + 1 :]], dim=1)
        inputs = (inputs * keep[: 15 - t0, j]).unsqueeze(1)
        expected = objective.decoder(inputs, condition.unsqueeze(0)).squeeze(1)
        torch.testing.assert_close(passes.prediction[: 15 - t0, j // 3, j % 3], expected)


def small_objective(**params):
    sizes = {"embedding_dim": 8, "encoder_hidden_dim": 4, "encoder_depth": 2, "gru_hidden_dim": 6}
    return CrossReconstruction(2, **sizes, dropout=0.0, **params)


def test_missing_steps_of_another_window_are_not_scored():
    torch.manual_seed(0)
    objective = small_objective(pairing="random", seed=3)
    x, observed = torch.randn(5, 24, 2), torch.rand(5, 24) > 0.3
    observed[:, [0, -1]] = True
    starts, losses = torch.randint(12, (2, 5)), []
    for fill in (0.0, 1000.0):
        objective._generator = None  # the same partners
        filled = x.masked_fill(~observed.unsqueeze(-1), fill)
        losses.append(objective(x=filled, observed=observed, starts=starts))
    torch.testing.assert_close(*losses)


def test_crops_of_fixed_length_start_where_they_fit():
    objective = small_objective(n_crops=200, crop="fixed", crop_length=20, min_crop_length=4)
    starts = objective.reconstruct(torch.randn(3, 24, 2)).starts[:-1]
    assert starts.max() == 3  # the last start of 20 steps of which one more is left to predict


def test_the_published_reduction_divides_by_steps_within_gaps_too():
    torch.manual_seed(0)
    published, valid = (
        small_objective(n_crops=0, loss_reduction=reduction) for reduction in ("published", "valid")
    )
    valid.load_state_dict(published.state_dict())
    x, observed = torch.randn(1, 25, 2), torch.ones(1, 25, dtype=torch.bool)
    observed[0, 5:17] = False
    losses = (objective(x=x, observed=observed) for objective in (published, valid))
    torch.testing.assert_close(next(losses) * 24, next(losses) * 12)
