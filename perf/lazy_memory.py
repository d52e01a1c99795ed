"""Peak memory of training and embedding on lazy windows, for two numbers of windows (1 : 20).

    python -m perf.lazy_memory

Each run is a separate process on the same memory-mapped recording.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

STRIDES = (640, 32)  # 20 times as many windows from the same recording
N_TIMESTEPS = 4_000_000


def measure(path: str, stride: int) -> None:
    """Train for one epoch, embed, and print the number and size of windows and the peak memory."""
    from sklearn_pulse import PulseTransformer
    from sklearn_pulse.windows import sliding_windows

    X = sliding_windows([np.load(path, mmap_mode="r")], 128, stride, lazy=True).X
    pulse = PulseTransformer(
        embedding_dim=8,
        encoder_hidden_dim=4,
        encoder_depth=2,
        gru_hidden_dim=4,
        init_hidden_dim=4,
        max_epochs=1,
        validation_fraction=0,
        random_state=0,
    )
    pulse.fit(X).transform(X)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(X):8d} windows of {X.nbytes / 2**20:6.0f} MiB together: peak {peak:6.0f} MiB")


def main() -> None:
    """Write a recording and measure both strides."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "recording.npy")
        np.save(path, np.random.default_rng(0).normal(size=(N_TIMESTEPS, 3)).astype(np.float32))
        for stride in STRIDES:
            command = [sys.executable, "-m", "perf.lazy_memory", str(path), str(stride)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        measure(sys.argv[1], int(sys.argv[2]))
    else:
        main()
