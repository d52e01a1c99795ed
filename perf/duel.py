"""Two computations timed in turns, so that a machine whose speed drifts slows both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

_PEAK_SIZE = 1536  # of the square matrices whose product gives the machine's peak


def has_bfloat16(device: torch.device) -> bool:
    """Whether products of bfloat16 have instructions of their own."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    return torch.ops.mkldnn._is_mkldnn_bf16_supported()


def devices() -> list[str]:
    """Return the devices that there are."""
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def timed(call: Callable[[], Any], device: torch.device) -> float:
    """Return the seconds that a call takes."""
    _wait(device)
    start = time.perf_counter()
    call()
    _wait(device)
    return time.perf_counter() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak_product(device: torch.device, precision: str) -> Callable[[], Any]:
    """Return a matrix product to measure the peak by."""
    a, b = torch.randn(2, _PEAK_SIZE, _PEAK_SIZE, device=device, dtype=getattr(torch, precision))
    return lambda: a @ b


def duel(
    benchmark: Any,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    *,
    device: torch.device,
    precision: str = "float32",
    n_windows: int,
    flops: float = 0.0,
    rounds: int = 5,
    **labels: Any,
) -> None:
    """Time both in turns, a matrix product before each turn, and keep what was seen.

    Parameters
    ----------
    benchmark : fixture of pytest-benchmark
        Its statistics are of `ours`.
    ours, theirs : callable
        What is compared; both work on `n_windows` windows.
    device : torch.device
        Where.
    precision : {"float32", "bfloat16"}
        Of the product that measures the peak.
    n_windows : int
        Windows of a call.
    flops : float
        Floating-point operations of `ours`, a window; 0 where they do not matter.
    rounds : int
        Turns after the first, which warms up.
    **labels
        What names the row of the table.
    """
    product = peak_product(device, precision)
    others, peaks = [], []

    def other() -> None:
        peaks.append(2.0 * _PEAK_SIZE**3 / timed(product, device))
        others.append(timed(theirs, device))

    def own() -> None:
        ours()
        _wait(device)

    benchmark.pedantic(own, setup=other, rounds=rounds, warmup_rounds=1)
    own_seconds = benchmark.stats.stats.data
    ratios = [b / a for a, b in zip(own_seconds, others[1:], strict=True)]
    benchmark.extra_info |= labels | {
        "device": device.type,
        "precision": precision,
        "windows_per_second": n_windows / statistics.median(own_seconds),
        "literal_windows_per_second": n_windows / statistics.median(others[1:]),
        "ratio": statistics.median(ratios),
        "ratio_range": [min(ratios), max(ratios)],
        "mflop": flops / 1e6,
        "peak_gflops": statistics.median(peaks) / 1e9,
    }
