"""What the steps hold that were not observed, which no loss reads."""

import numpy as np
import pytest
import torch

from sklearn_pulse import baselines
from tests.helpers import accepted, make_windows, small

X, _ = make_windows(n=4, n_timesteps=24)
METHODS = [
    (baselines.DSVAETransformer, {}),
    (baselines.LFADSTransformer, {}),
    (baselines.SimCLRTransformer, {"representation_dropout": 0.5}),
    (baselines.TS2VecTransformer, {}),
]


@pytest.mark.parametrize("value", [1e30, 3e38, np.nan])
@pytest.mark.parametrize(("cls", "params"), METHODS)
def test_no_loss_reads_it(cls, params, value):
    observed = torch.ones(4, 24, dtype=torch.bool)
    observed[:, 5:8] = observed[1, 15:] = False
    found = []
    for fill in (0.0, value):
        fitted = small(cls, **accepted(cls, {"max_epochs": 1}), **params).fit(X)
        objective = fitted.net_.module_.train()
        objective.zero_grad()
        x = torch.from_numpy(X).masked_fill(~observed.unsqueeze(-1), fill)
        with objective.seeded(0):
            loss = objective(x=x, observed=observed)
        loss.backward()
        found.append([loss, *(w.grad for w in objective.parameters() if w.grad is not None)])
    for ours, theirs in zip(*found, strict=True):
        assert torch.equal(ours, theirs)
