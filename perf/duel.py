"""Timing of two computations in turns, so that changes in the machine's speed affect both."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from perf.report import summary
from sklearn_pulse._products import multiply

_PEAK_SIZE = 1536  # rows of the square matrices whose product measures the peak


def has_bfloat16(device: torch.device) -> bool:
    """Return whether the device has instructions for products of bfloat16."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    return torch.ops.mkldnn._is_mkldnn_bf16_supported()


def devices() -> list[str]:
    """Return the names of the available devices."""
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def machine(device: torch.device) -> str:
    """Describe the machine."""
    gpu = f", {torch.cuda.get_device_name(device)}" if device.type == "cuda" else ""
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads{gpu},"
        f" torch {torch.__version__}, Python {platform.python_version()}"
    )


def timed(call: Callable[[], Any], device: torch.device) -> float:
    """Return the duration of a call in seconds."""
    _wait(device)
    start = time.perf_counter()
    call()
    _wait(device)
    return time.perf_counter() - start


def _wait(device: torch.device) -> None:
    """Wait until the device has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak_product(device: torch.device, precision: str) -> Callable[[], Any]:
    """Return a matrix product that measures the device's peak."""
    a, b = torch.randn(2, _PEAK_SIZE, _PEAK_SIZE, device=device, dtype=getattr(torch, precision))
    return lambda: multiply(a, b)  # by the library that our steps take


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
    """Time two calls in turns, with a matrix product before each turn, and store the results.

    Parameters
    ----------
    benchmark : fixture of pytest-benchmark
        Benchmark that receives the timings of `ours` and, as `extra_info`, the comparison.
    ours : callable
        Call to measure, on `n_windows` windows.
    theirs : callable
        Call to compare with, on `n_windows` windows.
    device : torch.device
        Device that both calls use.
    precision : {"float32", "bfloat16"}, default="float32"
        Data type of the matrix product that measures the peak.
    n_windows : int
        Number of windows per call.
    flops : float, default=0.0
        Floating-point operations of `ours` per window; 0 if they are not reported.
    rounds : int, default=5
        Number of timed turns, after one turn that warms up.
    **labels : dict
        Labels of the row in the table.
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
        "machine": machine(device),
        "precision": precision,
        "windows_per_second": n_windows / statistics.median(own_seconds),
        "literal_windows_per_second": n_windows / statistics.median(others[1:]),
        **summary(ratios),
        "mflop": flops / 1e6,
        "peak_gflops": statistics.median(peaks) / 1e9,
    }
