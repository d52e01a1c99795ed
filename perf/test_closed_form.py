"""Cross-prediction and its convolutions on a GPU, against the processor beside it."""

import numpy as np
import pytest
import torch

from perf.duel import duel
from perf.sizes import Size
from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse.features import HydraTransformer, RandomConvolutionTransformer

N_WINDOWS = 2048
TRANSFORMERS = {
    "cross-prediction": CrossPredictionTransformer,
    "random convolutions": RandomConvolutionTransformer,
    "Hydra": HydraTransformer,
}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="a GPU is compared with a CPU")
@pytest.mark.parametrize(
    ("name", "task"), [(name, "transform") for name in TRANSFORMERS] + [("cross-prediction", "fit")]
)
def test_closed_form(benchmark, name, task):
    """On all threads of torch."""
    size = Size("har")
    shape = N_WINDOWS, size.n_timesteps, size.n_channels
    X = np.random.default_rng(0).normal(size=shape).astype(np.float32).cumsum(1)
    groups = {"groups": np.arange(N_WINDOWS) // 64} if name == "cross-prediction" else {}
    there, here = (
        TRANSFORMERS[name](random_state=0, device=device).fit(X, **groups)
        for device in ("cuda", "cpu")
    )
    arguments = groups if task == "fit" else {}
    duel(
        benchmark,
        lambda: getattr(there, task)(X, **arguments),
        lambda: getattr(here, task)(X, **arguments),
        device=torch.device("cuda"),
        n_windows=N_WINDOWS,
        rounds=2,
        size=f"{name}, {task}",
        task="closed form",
    )
