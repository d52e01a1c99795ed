"""Command that makes the synthetic data sets: ``python -m sklearn_pulse.datasets``.

The command simulates every parameter value and noise level of the paper's three systems into the
folder that ``make_system_classification(cache=True)`` reads. Files that exist are skipped, so a
run that was stopped can be resumed. ``--measure`` writes no file; it times a sample of the work
with both backends.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Literal

from .._parameters import check_real, check_share
from .._progress import closable_output, progress_bar
from ._integrate import integrate_torchsde
from ._simulate import (
    BACKENDS,
    BURN_IN,
    N_TIMESTEPS,
    N_TRIALS,
    check_backend,
    drift_of,
    initial_states,
    output_times,
)
from ._synthetic_cache import TrialStore, count_steps, fill, missing_batches
from ._systems import SYSTEMS, System

PAPER_SYSTEMS = ("lorenz", "thomas", "hindmarsh_rose")
PAPER_LEVELS = (0.0, 1.0, 3.0, 5.0)
_INTERRUPTED = 130  # the exit status of a shell


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, default=None
        Arguments. None takes the arguments of the command line.

    Returns
    -------
    int
        Exit status: 0 for success, 2 if the work cannot be done as asked, 130 after Ctrl-C.
    """
    parser = argparse.ArgumentParser(
        prog="python -m sklearn_pulse.datasets", description=__doc__.split("\n\n", 1)[1]
    )
    parser.add_argument(
        "--systems", nargs="+", action="extend", choices=sorted(SYSTEMS), metavar="NAME",
        help=f"any of {', '.join(sorted(SYSTEMS))} (default: the paper's three systems)",
    )  # fmt: skip
    parser.add_argument(
        "--levels", nargs="+", action="extend", type=_level, metavar="NOISE",
        help="noise levels (default: 0 1 3 5)",
    )  # fmt: skip
    parser.add_argument(
        "--data-home", metavar="FOLDER",
        help="default: the folder in SKLEARN_PULSE_DATA, else ~/sklearn_pulse_data",
    )  # fmt: skip
    parser.add_argument("--backend", choices=BACKENDS, default=BACKENDS[0])
    parser.add_argument(
        "--measure", action="store_true", help="time a sample of the work with both backends"
    )
    parser.add_argument(
        "--sample", type=_sample, default=0.05, metavar="PART",
        help="fraction of the time interval that --measure simulates (default: 0.05)",
    )  # fmt: skip
    args = parser.parse_args(argv)
    systems = [SYSTEMS[name] for name in dict.fromkeys(args.systems or PAPER_SYSTEMS)]
    levels = sorted(set(args.levels or PAPER_LEVELS))
    try:
        with closable_output():
            if args.measure:
                measure(systems, levels, args.sample)
            else:
                generate(systems, levels, args.data_home, args.backend)
    except (ValueError, ImportError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        goes_on = "" if args.measure else ": the same command goes on where it stopped"
        print(f"interrupted{goes_on}", file=sys.stderr)
        return _INTERRUPTED
    return 0


def generate(
    systems: Sequence[System],
    levels: Sequence[float],
    data_home: str | None,
    backend: Literal["midpoint", "torchsde"],
) -> None:
    """Simulate the sets of trials that the folder lacks, with a progress bar."""
    check_backend(backend)
    begin = time.perf_counter()
    for system in systems:
        store = TrialStore(data_home, system, backend)
        indices = range(len(system.sweep))
        n_existing = sum((index, level) in store for index in indices for level in levels)
        batches = missing_batches(store, indices, levels)
        if batches:
            print(f"{system.name}: {sum(map(len, batches))} sets are made, in {store.folder}")
            with progress_bar(system.name, count_steps(system, batches), "step") as progress:
                fill(store, system, indices, levels, backend=backend, progress=progress)
        n_made = sum(map(len, batches))
        print(f"{system.name}: {n_made} sets made, {n_existing} were there, in {store.folder}")
    print(f"{time.perf_counter() - begin:.1f} s")


def measure(systems: Sequence[System], levels: Sequence[float], part: float) -> None:
    """Time a part of the interval with both backends and print the time of the whole."""
    check_backend("torchsde")
    n_timesteps = max(round(part * (N_TIMESTEPS + BURN_IN)) - BURN_IN, 1)
    scale = (N_TIMESTEPS + BURN_IN) / (n_timesteps + BURN_IN)
    # Each noisy level costs the published code a run without noise as well.
    runs_per_value = sum(2 if level else 1 for level in levels)
    print(f"seconds for {N_TRIALS} trials x {N_TIMESTEPS:,} steps, {1 / scale:.1%} of it timed")
    print(f"{'system':16s}{'sets':>6s}{'midpoint, all sets':>20s}{'torchsde, one run':>20s}")
    total_own = total_torchsde = 0.0
    for system in systems:
        n_values = len(system.sweep)
        own = scale * _time_midpoint(system, levels, n_timesteps)
        run = scale * _time_torchsde(system, n_timesteps)
        total_own += own
        total_torchsde += n_values * runs_per_value * run
        print(f"{system.name:16s}{n_values * len(levels):6d}{own:20.1f}{run:20.1f}", flush=True)
    print(
        f"all: midpoint {total_own:.1f} s = {total_own / 60:.2f} min, torchsde "
        f"{total_torchsde:.0f} s = {total_torchsde / 3600:.2f} h\n(torchsde: one parameter value "
        "at a time, and a run without noise before each noisy one, as published)"
    )


def _time_midpoint(system: System, levels: Sequence[float], n_timesteps: int) -> float:
    """Return the seconds that all parameter values take at all noise levels."""
    begin = time.perf_counter()
    fill({}, system, range(len(system.sweep)), levels, n_timesteps=n_timesteps)
    return time.perf_counter() - begin


def _time_torchsde(system: System, n_timesteps: int) -> float:
    """Return the seconds that one run takes at the middle of the sweep."""
    index = len(system.sweep) // 2
    y0 = initial_states(index, N_TRIALS, len(system.channel_names))
    drift = drift_of(system, [system.sweep[index]], N_TRIALS)
    t_out = output_times(system, n_timesteps)
    begin = time.perf_counter()
    integrate_torchsde(drift, y0, t_out, diffusion=0.1, seed=index)
    return time.perf_counter() - begin


def _level(text: str) -> float:
    """Parse a noise level."""
    try:
        return check_real("noise", float(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _sample(text: str) -> float:
    """Parse a fraction in (0, 1]."""
    try:
        return check_share("sample", float(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
