"""
Pretraining in several processes
================================

This script pretrains PULSE on windows in a file of NumPy, of shape (n_windows, n_timesteps,
n_channels), and saves the encoder. The file is memory-mapped. `torchrun` starts several processes,
each of which computes a share of every batch; on CUDA, each has a device of its own.

    python examples/reproduce/pretrain.py windows.npy --output encoder
    torchrun --standalone --nproc-per-node 2 examples/reproduce/pretrain.py windows.npy \
        --output encoder --checkpoints runs

A run that was interrupted, or lost a process, resumes when it is started again with the same
`--checkpoints`, by any number of processes.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np

from sklearn_pulse import PulseTransformer, presets


def fault_of(output: Path) -> str | None:
    """Return why the encoder cannot be saved there, if so."""
    if output.is_dir():
        others = any(output.iterdir()) and not (output / "config.json").is_file()
        return "holds something else than an encoder" if others else None
    return "is a file" if output.exists() else None


def main() -> None:
    """Pretrain and save."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("windows", help="file of NumPy, (n_windows, n_timesteps, n_channels)")
    parser.add_argument("--output", required=True, help="folder of the encoder")
    parser.add_argument("--checkpoints", help="folder of the checkpoints, to resume from")
    parser.add_argument("--preset", default="har", help="data set whose settings are used")
    parser.add_argument("--epochs", type=int, default=100, help="passes through the windows")
    parser.add_argument("--batch-size", type=int, default=128, help="windows per training step")
    parser.add_argument("--threads", type=int, help="threads per process")
    parser.add_argument("--seed", type=int, default=0, help="seed of all that is drawn")
    args = parser.parse_args()
    if (fault := fault_of(Path(args.output))) is not None:  # before hours of training
        parser.error(f"argument --output: {args.output} {fault}: name a new folder")

    try:
        windows = np.load(args.windows, mmap_mode="r")
    except (EOFError, OSError, ValueError) as error:
        parser.error(f"argument windows: {args.windows} is no file of numpy.save ({error})")

    settings = presets.get("pulse", args.preset) | {
        "max_epochs": args.epochs,
        "batch_size": args.batch_size,
        "checkpoint_dir": args.checkpoints,
        "num_threads": args.threads,
        "distributed": "auto",
        "random_state": args.seed,
        "verbose": 1,
    }
    pulse = PulseTransformer(**settings).fit(windows)
    if os.environ.get("RANK", "0") == "0":  # all processes hold the same encoder
        pulse.save_pretrained(args.output)
        epoch = pulse.selected_epoch_ or pulse.n_iter_
        print(f"{args.output} holds the encoder of epoch {epoch}", flush=True)


if __name__ == "__main__":
    from _command import exit_status

    sys.exit(exit_status(main))
