"""Training step of our engine against the literal published step, with the same weights."""

import pytest
import torch

from perf.duel import devices, duel, has_bfloat16
from perf.flops import engine_training, literal_training
from perf.sizes import NAMES, Size
from perf.step import make_step


def check_equal_losses(size, x, starts, precision):
    """Fail unless both objectives compute the same loss without dropout."""
    ours, literal = (make(dropout=0.0).to(x.device) for make in (size.objective, size.literal))
    with torch.no_grad():
        expected = literal(x, starts)
        torch.testing.assert_close(ours(x=x, starts=starts), expected, rtol=1e-5, atol=1e-6)
        if precision == "bfloat16":
            with torch.autocast(x.device.type, dtype=torch.bfloat16):
                torch.testing.assert_close(ours(x=x, starts=starts), expected, rtol=0.01, atol=0.0)


@pytest.mark.usefixtures("whole_float32")
@pytest.mark.parametrize("theta_dropout", ["step", "sequence"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("dataset", NAMES)
@pytest.mark.parametrize("device", devices())
def test_training(benchmark, device, dataset, precision, theta_dropout):
    """Skip precisions that the device has no instructions for."""
    size, device = Size(dataset), torch.device(device)
    if precision == "bfloat16" and not has_bfloat16(device):
        pytest.skip("no instructions for bfloat16")
    x, starts = size.batch(device)
    check_equal_losses(size, x, starts, precision)
    ours = size.objective(theta_dropout=theta_dropout).to(device)
    literal = size.literal().to(device)
    flops = engine_training(size, theta_dropout)
    duel(
        benchmark,
        make_step(ours, x, starts, precision),
        make_step(literal, x, starts),
        device=device,
        precision=precision,
        n_windows=len(x),
        flops=flops,
        size=NAMES[dataset],
        task="training",
        theta_dropout=theta_dropout,
        flop_ratio=literal_training(size) / flops,
    )
