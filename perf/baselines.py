"""Training step of each baseline against its published form, with the same weights and draws.

    python -m perf.baselines [--method REBAR TS2Vec ...] [--batch 16] [--rounds 3]

Both sides take turns on one thread. The time is that of the processor, so that other processes
hardly disturb it. Losses are compared first. The operations are those of products and convolutions,
as torch counts them in the step.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from perf.flops import counted
from perf.methods import NAMES, NO_DROPOUT, MethodSize
from perf.options import count, page
from perf.report import PAGE, replace_section, span, summary, table


def make_step(loss: nn.Module, batch: dict[str, Tensor]) -> Callable[[], None]:
    """Return a call that runs one training step: loss, gradient, clipping, AdamW."""
    weights = [p for p in loss.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=1e-3, weight_decay=1e-5, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        loss(**batch).backward()
        torch.nn.utils.clip_grad_value_(weights, 5.0)
        optimizer.step()

    return step


def both_losses(size: MethodSize, batch: dict[str, Tensor]) -> list[Tensor]:
    """Return our loss and the published one, without dropout, from the same draws."""
    ours = size.objective(**NO_DROPOUT).train()
    literal = size.literal(ours).train()
    if size.name == "SimMTM":  # the published masks are drawn otherwise
        batch = batch | {"masked": ours.draw_masks(batch["x"])}
    losses = []
    for loss, owner in ((ours, ours), (literal, literal.objective)):
        with owner.seeded(0):
            losses.append(loss(**batch))
    return losses


def seconds(call: Callable[[], None]) -> float:
    """Return the processor's time of a call in seconds."""
    start = time.process_time()
    call()
    return time.process_time() - start


def measure(name: str, batch_size: int, rounds: int) -> str:
    """Compare the losses of a method, time both steps in turns and return a row of the table."""
    size = MethodSize(name, batch_size)
    batch = size.batch()
    torch.testing.assert_close(*both_losses(size, batch), rtol=1e-4, atol=1e-6)
    ours = size.objective()
    calls = [make_step(loss.train(), batch) for loss in (size.literal(ours), ours)]
    mflop = [counted(call) / 1e6 / len(batch["x"]) for call in calls]  # warms up, too
    turns = [[seconds(call) for call in calls] for _ in range(rounds)]
    ratios = [theirs / own for theirs, own in turns]
    milliseconds = [
        1e3 * statistics.median(side) / len(batch["x"]) for side in zip(*turns, strict=True)
    ]
    return (
        f"| {name} | {milliseconds[1]:.1f} | {milliseconds[0]:.1f} | {span(summary(ratios))} |"
        f" {mflop[1]:,.0f} | {mflop[0]:,.0f} | {mflop[1] / milliseconds[1]:.0f} |"
    )


def main() -> None:
    """Measure the methods, print the table and fill the section of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", nargs="+", action="extend", choices=NAMES)
    parser.add_argument("--batch", type=count, default=16)
    parser.add_argument("--rounds", type=count, default=3)
    parser.add_argument("--page", type=page, default=PAGE)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for name in dict.fromkeys(options.method or NAMES):
        rows.append(measure(name, options.batch, options.rounds))
        print(rows[-1], flush=True)
    head = (
        "| method | ms per window | published form | ratio (range) | MFLOP per window |"
        " published form | GFLOP/s |"
    )
    text = options.page.read_text(encoding="utf-8")
    options.page.write_text(replace_section(text, "baselines", table(head, rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
