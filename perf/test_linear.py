"""Scaling with the number of windows: four times as many should take four times as long."""

import pytest
import torch

from perf.duel import devices, duel
from perf.sizes import Size
from sklearn_pulse import PulseTransformer, presets

FACTOR = 4


@pytest.mark.parametrize("task", ["fit", "transform"])
@pytest.mark.parametrize("device", devices())
def test_linear(benchmark, device, task):
    """The first call has few windows, the second four times as many."""
    size, device = Size("har"), torch.device(device)
    params = presets.get("pulse", "har") | {"max_epochs": 1, "validation_fraction": 0.0}
    estimator = PulseTransformer(**params, device=device.type, random_state=0)
    shape = FACTOR * 2 * size.batch_size, size.n_timesteps, size.n_channels
    many = torch.randn(shape).numpy()
    few = many[::FACTOR].copy()
    call = getattr(estimator.fit(few[: size.batch_size]), task)
    duel(
        benchmark,
        lambda: call(few),
        lambda: call(many),
        device=device,
        n_windows=len(few),
        size=task,
        task="linear",
    )
