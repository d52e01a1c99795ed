"""What the steps hold that were not observed, which no loss reads."""

import copy
import functools

import numpy as np
import pytest
import torch

from sklearn_pulse import PulseOracleTransformer, PulseTransformer, baselines
from sklearn_pulse.objectives import (
    Classification,
    CrossReconstruction,
    REBARReconstruction,
    Source,
)
from tests.helpers import SMALL_ENCODER, accepted, make_windows, small

X, LABELS = make_windows(n=4, n_timesteps=24)
VALUES = [1e30, 3e38, np.inf, np.nan]
METHODS = [
    (PulseTransformer, {}),
    (PulseTransformer, {"crop": "fixed", "loss_reduction": "valid"}),
    (PulseOracleTransformer, {"kind": "positive"}),
    (PulseOracleTransformer, {"kind": "negative"}),
    (baselines.DSVAETransformer, {}),
    (baselines.LFADSTransformer, {}),
    (baselines.REBARTransformer, {}),
    (baselines.SimCLRTransformer, {"representation_dropout": 0.5}),
    (baselines.SimMTMTransformer, {}),
    (baselines.TS2VecTransformer, {}),
]


def head_with_a_map_of_channels():
    pretrained = CrossReconstruction(3, **SMALL_ENCODER)
    source = Source(pretrained, n_channels=3, embedding_dim=8, min_batch_size=1)
    return Classification(2, n_classes=2, source=source)


def first_stage_of_rebar():
    return REBARReconstruction(2, attention={"hidden_dim": 8, "kernel_size": 3}, mask_length=12)


def check_that_nothing_is_read(objectives, X, observed, value, **others):
    """Compare losses and gradients of two equal objectives, for zero and for another value."""
    found = []
    for objective, fill in zip(objectives, (0.0, value), strict=True):
        objective.train().zero_grad()
        x = torch.from_numpy(X).masked_fill(~observed.unsqueeze(-1), fill)
        with objective.seeded(0):
            loss = objective(x=x, observed=observed, **others)
        loss.backward()
        found.append([loss, *(w.grad for w in objective.parameters() if w.grad is not None)])
    for ours, theirs in zip(*found, strict=True):
        assert torch.equal(ours, theirs)


@functools.cache
def trained(cls, *params):
    """Return the objective of a method after an epoch, once in a process. Nobody may change it."""
    estimator = small(cls, **accepted(cls, {"max_epochs": 1}), **dict(params))
    return estimator.fit(X, LABELS).net_.module_


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(("cls", "params"), METHODS)
def test_no_loss_reads_it(cls, params, value):
    observed = torch.ones(4, 24, dtype=torch.bool)
    observed[:, 5:8] = observed[1, 15:] = False
    objectives = [copy.deepcopy(trained(cls, *params.items())) for _ in range(2)]
    check_that_nothing_is_read(objectives, X, observed, value)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("make", [head_with_a_map_of_channels, first_stage_of_rebar])
def test_no_other_objective_reads_it(make, value):
    observed = torch.ones(4, 24, dtype=torch.bool)
    observed[:, 5:8] = observed[1, 15:] = False
    torch.manual_seed(0)
    objective = make()
    others = {}
    if isinstance(objective, Classification):
        others = {"y": torch.from_numpy(LABELS), "weight": torch.ones(4)}
    check_that_nothing_is_read([objective] * 2, X, observed, value, **others)
