"""Training step of each baseline against its published form, with the same weights and draws."""

import pytest
import torch

from perf.duel import duel
from perf.methods import NAMES, NO_DROPOUT, MethodSize


def make_step(loss, batch):
    """Return a call that runs one training step: loss, gradient, clipping, AdamW."""
    weights = [p for p in loss.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=1e-3, weight_decay=1e-5, fused=True)

    def step():
        optimizer.zero_grad()
        loss(**batch).backward()
        torch.nn.utils.clip_grad_value_(weights, 5.0)
        optimizer.step()

    return step


def both_losses(size, batch):
    """Return our loss and the published one, without dropout, from the same draws."""
    ours = size.objective(**NO_DROPOUT).train()
    literal = size.literal(ours).train()
    batch = dict(batch)
    if size.name == "SimMTM":  # the published masks are drawn otherwise
        batch["masked"] = ours.draw_masks(batch["x"])
    losses = []
    for loss, owner in ((ours, ours), (literal, literal.objective)):
        with owner.seeded(0):
            losses.append(loss(**batch))
    return losses


@pytest.mark.parametrize("name", NAMES)
def test_baseline(benchmark, name):
    """One thread: the published recurrences would make two threads wait for each other."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        size, device = MethodSize(name), torch.device("cpu")
        batch = size.batch()
        torch.testing.assert_close(*both_losses(size, batch), rtol=1e-4, atol=1e-6)
        ours = size.objective()
        duel(
            benchmark,
            make_step(ours.train(), batch),
            make_step(size.literal(ours).train(), batch),
            device=device,
            n_windows=len(batch["x"]),
            rounds=3,
            size=name,
            task="baseline",
        )
    finally:
        torch.set_num_threads(n_threads)
