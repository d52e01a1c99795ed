"""Embedding of a corpus of 20 GB in a process that the system limits to 2 GB.

    python -m perf.corpus [--gigabytes 20] [--limit 2] [--transformer statistics] [--folder DIR]

The recordings, in files of 256 MiB, hold noise of 6 channels and are deleted at the end. They are
cut into windows of 128 steps. A process embeds them under RLIMIT_AS: the system refuses it all
memory beyond the limit, the mapped files and the libraries included, which is stricter than a
limit on resident memory and needs no privilege. The process is killed halfway and started again.
The program compares windows of both halves with `transform` in memory.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

N_CHANNELS, LENGTH = 6, 128
FILE_BYTES = 2**28
GIB = 2**30


def write_recordings(folder: Path, n_bytes: int) -> None:
    """Write files of noise, whose level and order differ from file to file."""
    n_steps = FILE_BYTES // (4 * N_CHANNELS)
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((2**20, N_CHANNELS), dtype=np.float32)
    folder.mkdir()
    for number in range(max(1, n_bytes // FILE_BYTES)):
        values = np.lib.format.open_memmap(
            folder / f"{number:04d}.npy", "w+", np.float32, (n_steps, N_CHANNELS)
        )
        part = np.roll(noise, 997 * number, axis=0) + np.float32(number % 7)
        for first in range(0, n_steps, len(part)):
            values[first : first + len(part)] = part[: n_steps - first]
        del values


def transformer_of(name: str) -> Any:
    """Return a fitted transformer."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((64, LENGTH, N_CHANNELS), dtype=np.float32)
    if name == "statistics":
        from sklearn_pulse.features import StatisticsTransformer

        return StatisticsTransformer().fit(X)
    from sklearn_pulse import RandomEncoderTransformer

    return RandomEncoderTransformer(random_state=0, num_threads=1).fit(X)


def embed(folder: Path, name: str, limit: float) -> None:
    """Embed the recordings under a limit; print the peak memory as JSON."""
    resource.setrlimit(resource.RLIMIT_AS, (int(limit * GIB), int(limit * GIB)))
    from sklearn_pulse.corpus import embed_dataset

    embed_dataset(
        transformer_of(name),
        folder / "recordings",
        folder / "embedding.zarr",
        length=LENGTH,
        verbose=sys.stderr.isatty(),
    )
    status = Path("/proc/self/status").read_text().splitlines()
    peak = {line.split(":")[0]: int(line.split()[1]) for line in status if line.startswith("Vm")}
    print(json.dumps({name: peak[name] / 2**20 for name in ("VmPeak", "VmHWM")}))


@contextlib.contextmanager
def started(folder: Path, options: argparse.Namespace) -> Iterator[subprocess.Popen[str]]:
    """Run a process that embeds beside the context, which it does not outlive."""
    command = [sys.executable, "-m", "perf.corpus", "--embed", str(folder)]
    command += ["--limit", str(options.limit), "--transformer", options.transformer]
    # glibc reserves 64 MiB of addresses for each thread of zarr, which RLIMIT_AS would count.
    environment = os.environ | {"MALLOC_ARENA_MAX": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def share_done(folder: Path) -> float:
    """Return which share of the chunks is complete."""
    import zarr

    try:
        return float(np.mean(zarr.open_group(folder / "embedding.zarr", mode="r")["done"][:]))
    except (FileNotFoundError, KeyError):
        return 0.0


def run(folder: Path, options: argparse.Namespace) -> None:
    """Write, embed with a kill in between, compare and print."""
    import zarr

    began = time.perf_counter()
    write_recordings(folder / "recordings", int(options.gigabytes * 1e9))
    written = time.perf_counter()
    with started(folder, options) as process:
        while process.poll() is None and share_done(folder) < 0.5:
            time.sleep(1.0)
        if process.returncode:
            raise RuntimeError(f"the process that embeds ended with {process.returncode}")
    at_kill, killed = share_done(folder), time.perf_counter()
    with started(folder, options) as process:
        output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"the process that embeds ended with {process.returncode}")
    done = time.perf_counter()
    group = zarr.open_group(folder / "embedding.zarr", mode="r")
    check_bits(folder, group, options.transformer)
    n_bytes = sum(path.stat().st_size for path in (folder / "recordings").iterdir())
    sink = sum(
        path.stat().st_size for path in (folder / "embedding.zarr").rglob("*") if path.is_file()
    )
    seconds, shape = done - written, group["embedding"].shape
    peak = json.loads(output)
    print(
        f"{n_bytes / 1e9:.1f} GB of recordings, {shape[0]:,} windows of {LENGTH} steps and"
        f" {N_CHANNELS} channels, {shape[1]} features by {options.transformer}: {sink / 1e9:.2f} GB"
        f" in Zarr. Written in {written - began:.0f} s, embedded in {seconds:.0f} s"
        f" ({1e6 * seconds / shape[0]:.0f} us per window, {n_bytes / 1e6 / seconds:.0f} MB/s),"
        f" killed at {at_kill:.0%} after {killed - written:.0f} s and resumed. Limit"
        f" {options.limit:.1f} GiB; peak address space {peak['VmPeak']:.2f} GiB, peak resident"
        f" {peak['VmHWM']:.2f} GiB, of which files of the recordings may be dropped."
    )


def check_bits(folder: Path, group: Any, name: str) -> None:
    """Raise unless windows at random places have the bits of `transform` in memory."""
    from sklearn_pulse.windows import open_recordings, sliding_windows

    X = sliding_windows(open_recordings(folder / "recordings"), LENGTH, lazy=True).X
    rows = np.sort(np.random.default_rng(0).choice(len(X), min(1000, len(X)), replace=False))
    expected = transformer_of(name).transform(X.take(rows))
    np.testing.assert_array_equal(group["embedding"].oindex[rows], expected)
    if not group["done"][:].all():
        raise RuntimeError("a chunk is missing")


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--limit", type=float, default=2.0, help="in GiB")
    parser.add_argument("--transformer", choices=("statistics", "encoder"), default="statistics")
    parser.add_argument("--folder", help="where the files go for a while")
    parser.add_argument("--embed", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.embed:
        embed(options.embed, options.transformer, options.limit)
        return
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        if shutil.disk_usage(folder).free < 1.5e9 * options.gigabytes:
            parser.error(
                f"argument --gigabytes: {folder.parent} has less space than"
                f" {1.5 * options.gigabytes:.0f} GB: write less, or name another --folder"
            )
        run(folder, options)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
