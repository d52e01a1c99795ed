"""Time and memory of cross-prediction over many windows in a memory map.

    python -m perf.cross_prediction [--windows 1000000] [--kernels 10000]

`fit` reads recordings of 100 windows of 128 steps and 6 channels. The program fits on a tenth of
the windows, then on all, and prints the time per window, and the memory of the process that no file
backs at each tenth of the time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from perf.options import at_least
from perf.stream_memory import MIB, Watch, anonymous_memory
from sklearn_pulse import CrossPredictionTransformer

SHAPE = 128, 6
N_PER_RECORDING = 100


def write_windows(path: Path, n_windows: int) -> Any:
    """Write noise whose level differs from recording to recording; return the memory map."""
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n_windows, *SHAPE))
    rng = np.random.default_rng(0)
    for start in range(0, n_windows, 2**14):
        part = X[start : start + 2**14]
        part[:] = rng.standard_normal(part.shape, dtype=np.float32)
        level = np.arange(start, start + len(part)) // N_PER_RECORDING % 7
        part += level[:, None, None].astype(np.float32)
    X.flush()
    return np.load(path, mmap_mode="r")


def fit(X: Any, n_kernels: int) -> tuple[float, list[int]]:
    """Fit on windows; return the seconds, and the memory in bytes, second by second."""
    cross = CrossPredictionTransformer(num_kernels=n_kernels, random_state=0, verbose=1)
    watch = Watch()
    watch.start()
    start = time.perf_counter()
    cross.fit(X, groups=np.arange(len(X)) // N_PER_RECORDING)
    seconds = time.perf_counter() - start
    watch.done.set()
    watch.join()
    return seconds, watch.samples


def main() -> None:
    """Write windows, fit on them and print time and memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=at_least(20), default=1_000_000)
    parser.add_argument("--kernels", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        X = write_windows(Path(folder) / "windows.npy", options.windows)
        before = anonymous_memory()
        for n_windows in (options.windows // 10, options.windows):
            seconds, samples = fit(X[:n_windows], options.kernels)
            tenths = [
                (max(part) - before) / MIB for part in np.array_split(samples, 10) if len(part)
            ]
            print(
                f"{n_windows:,} windows, {options.kernels:,} kernels: {seconds:.0f} s,"
                f" {1e3 * seconds / n_windows:.2f} ms per window; memory beyond"
                f" {before / MIB:.0f} MiB, by tenths of the time, in MiB:",
                " ".join(f"{memory:.0f}" for memory in tenths),
            )


if __name__ == "__main__":
    main()
