"""Memory of embedding 10 million windows through a memory map.

    python -m perf.stream_memory [--windows 10000000]

The encoder is tiny, so that streaming takes most of the time. The program prints the memory of the
process that no file backs, at each tenth of the windows. The embeddings, which `transform` returns
in one array, are subtracted.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from perf.options import count
from sklearn_pulse.baselines import RandomEncoderTransformer

N_TIMESTEPS, EMBEDDING_DIM = 8, 2
MIB = 2**20


def anonymous_memory() -> int:
    """Return the bytes of this process that no file backs (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("RssAnon"))
    return 1024 * int(line.split()[1])


class Watch(threading.Thread):
    """Thread that reads the memory every second until `done` is set, and then once more."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.done = threading.Event()
        self.samples: list[int] = []

    def run(self) -> None:
        """Collect samples."""
        while not self.done.wait(1.0):
            self.samples.append(anonymous_memory())
        self.samples.append(anonymous_memory())


def main() -> None:
    """Write windows, embed them and print the memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=count, default=10_000_000)
    n_windows = parser.parse_args().windows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "windows.npy"
        shape = n_windows, N_TIMESTEPS, 1
        X = np.lib.format.open_memmap(path, "w+", np.float32, shape)
        rng = np.random.default_rng(0)
        for start in range(0, n_windows, 2**16):
            X[start : start + 2**16] = rng.normal(size=X[start : start + 2**16].shape)
        X.flush()
        X = np.load(path, mmap_mode="r")
        encoder = RandomEncoderTransformer(
            embedding_dim=EMBEDDING_DIM, encoder_hidden_dim=2, encoder_depth=1, random_state=0
        ).fit(X[:1000])
        encoder.transform(X[:1000])
        before, watch = anonymous_memory(), Watch()
        watch.start()
        start = time.perf_counter()
        Z = encoder.transform(X)
        seconds = time.perf_counter() - start
        watch.done.set()
        watch.join()
    # The result fills its pages as it is written, so its share of the memory grows with time.
    progress = np.arange(1, len(watch.samples) + 1) / len(watch.samples)
    added = np.array(watch.samples) - before - progress * Z.nbytes
    print(
        f"{n_windows:,} windows of {N_TIMESTEPS} steps ({X.nbytes / MIB:.0f} MiB in the file),"
        f" {seconds:.0f} s; before: {before / MIB:.0f} MiB; result: {Z.nbytes / MIB:.0f} MiB"
    )
    tenths = [part.max() / MIB for part in np.array_split(added, 10) if len(part)]
    print("beyond both, in MiB, by tenths of the time:", " ".join(f"{m:.0f}" for m in tenths))


if __name__ == "__main__":
    main()
