"""Training windows per second, ours against the literal published step, in one run.

    python -m perf.training_throughput [--repeats 7] [--batch-size 128]

Both take the same weights and crops, their losses are compared first, and their steps alternate,
so that a machine whose speed drifts slows both.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable

import torch

from perf.literal import LiteralPulse
from sklearn_pulse._cross_reconstruction import CrossReconstruction

N_CHANNELS, N_TIMESTEPS = 6, 128  # the size of the HAR windows


def make_step(module: torch.nn.Module, **batch: torch.Tensor) -> Callable[[], None]:
    """Return one step of training: loss, gradient, clipping, AdamW."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=1e-5)

    def step() -> None:
        optimizer.zero_grad()
        module(**batch).backward()
        torch.nn.utils.clip_grad_value_(module.parameters(), 5.0)
        optimizer.step()

    return step


def check_equal_losses(x: torch.Tensor, starts: torch.Tensor) -> None:
    """Raise unless both compute the same loss without dropout."""
    objective = CrossReconstruction(N_CHANNELS, dropout=0.0)
    ours, literal = objective(x=x, starts=starts), LiteralPulse(objective)(x, starts)
    torch.testing.assert_close(ours, literal, rtol=1e-5, atol=1e-6)
    print(f"loss without dropout: ours {ours:.6f}, literal {literal:.6f}")


def timed(step: Callable[[], None]) -> float:
    """Return the seconds that a step takes."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def main() -> None:
    """Time both, alternating."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--batch-size", type=int, default=128)
    args = parser.parse_args()
    torch.manual_seed(0)
    x = torch.randn(args.batch_size, N_TIMESTEPS, N_CHANNELS)
    starts = torch.randint(N_TIMESTEPS // 2, (2, args.batch_size))
    check_equal_losses(x, starts)

    objective = CrossReconstruction(N_CHANNELS)
    literal = LiteralPulse(CrossReconstruction(N_CHANNELS))
    steps = {
        "ours": make_step(objective, x=x, starts=starts),
        "literal": make_step(literal, x=x, starts=starts),
    }
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for i in range(args.repeats + 1):
        for name, step in steps.items():
            duration = timed(step)
            if i:  # the first round warms up
                seconds[name].append(duration)
    print(
        f"{platform.processor() or platform.machine()}, torch {torch.__version__},"
        f" {torch.get_num_threads()} threads, medians of {args.repeats} alternating steps"
    )
    for name, durations in seconds.items():
        print(f"{name:8s} {args.batch_size / statistics.median(durations):7.1f} windows/s")
    ratios = [b / a for a, b in zip(seconds["ours"], seconds["literal"], strict=True)]
    print(
        f"ratio    {statistics.median(ratios):7.2f} (pairwise median;"
        f" {min(ratios):.2f} to {max(ratios):.2f})"
    )


if __name__ == "__main__":
    main()
