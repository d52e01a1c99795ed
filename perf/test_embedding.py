"""Embedding by the estimator against the published encoder, with the same weights."""

import numpy as np
import pytest
import torch

from perf.duel import devices, duel, has_bfloat16
from perf.flops import encoder_flops
from perf.literal import LiteralEncoder
from perf.sizes import NAMES, Size
from sklearn_pulse import PulseTransformer, presets

N_BATCHES = 4


@pytest.mark.usefixtures("whole_float32")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("dataset", NAMES)
@pytest.mark.parametrize("device", devices())
def test_embedding(benchmark, device, dataset, precision):
    """Both calls read and return numpy arrays."""
    size, device = Size(dataset), torch.device(device)
    if precision == "bfloat16" and not has_bfloat16(device):
        pytest.skip("no instructions for bfloat16")
    X = size.batch(device)[0].repeat(N_BATCHES, 1, 1).cpu().numpy()
    settings = presets.get("pulse", dataset) | {"max_epochs": 1, "batch_size": 2}
    estimator = PulseTransformer(
        **settings, precision=precision, device=device.type, random_state=0
    ).fit(X[:4])
    literal = LiteralEncoder.of(estimator.encoder_.cpu()).to(device)
    estimator.encoder_.to(device)

    def embed():
        with torch.inference_mode():
            batches = torch.from_numpy(X).split(size.batch_size)
            return torch.cat([literal(batch.to(device)).cpu() for batch in batches]).numpy()

    atol = 1e-4 if precision == "float32" else 0.3
    np.testing.assert_allclose(estimator.transform(X), embed(), atol=atol)
    duel(
        benchmark,
        lambda: estimator.transform(X),
        embed,
        device=device,
        precision=precision,
        n_windows=len(X),
        flops=encoder_flops(size, dead_taps=False),
        rounds=11,
        size=NAMES[dataset],
        task="embedding",
        theta_dropout="",
        flop_ratio=encoder_flops(size, dead_taps=True) / encoder_flops(size, dead_taps=False),
    )
