"""Overhead of the estimator over a bare loop of the same steps."""

import pytest
import torch

from perf.duel import devices, duel
from perf.sizes import Size
from perf.step import threads_of
from sklearn_pulse import PulseTransformer, presets

N_BATCHES = 8


@pytest.mark.parametrize("device", devices())
def test_overhead(benchmark, device):
    """Both calls start from new weights."""
    size, device = Size("har"), torch.device(device)
    params = presets.get("pulse", "har") | {"max_epochs": 1, "random_state": 0}
    n_windows = N_BATCHES * size.batch_size
    X = torch.randn(n_windows, size.n_timesteps, size.n_channels)
    resident = X.to(device)

    def bare_loop():
        objective = size.objective().to(device)
        optimizer = torch.optim.AdamW(objective.parameters(), weight_decay=1e-5, fused=True)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=N_BATCHES)
        for batch in resident.split(size.batch_size):
            with threads_of(objective):
                optimizer.zero_grad()
                objective(x=batch).backward()
                torch.nn.utils.clip_grad_value_(objective.parameters(), 5.0)
                optimizer.step()
                schedule.step()

    estimator = PulseTransformer(**params, validation_fraction=0.0, device=device.type)
    duel(
        benchmark,
        lambda: estimator.fit(X.numpy()),
        bare_loop,
        device=device,
        n_windows=n_windows,
        size="HAR",
        task="overhead",
    )
