"""
Everything that needs a GPU, in order and in pieces
===================================================

This script runs, one after the other, on the first CUDA device:

1. the tests that need CUDA,
2. the timings of training and embedding, and the windows per second of every method,
3. the linear probe, and few labels, of all methods at the published budget, first with one seed,
4. the other timings, among them the search of crops and GRU sizes, and `performance.md`, a copy of
   `docs/performance.md` with all timings,
5. the same tables with more seeds, and their report.

    python examples/reproduce/gpu.py --minutes 9 --out output/gpu

A step of these methods leaves most of a large GPU idle, so `--jobs` trainings of a table run side
by side. Timings run alone.

After `--minutes` it stops what runs and exits. Started again, it goes on: a stage that ended is not
repeated, and the trainings of a table continue from their checkpoints. The other stages begin anew
and are given up after the second try, as is a stage that is killed twice. Each stage writes its
output to a log in the folder; `stages.json` says how each ended. A stage that fails does not hold
up the next; it is run again once its entry is deleted. Data sets are read from
``SKLEARN_PULSE_DATA``; missing ones are reported as such.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

GRACE = 10.0  # seconds in which a stopped stage ends by itself
LEAST = 30.0  # seconds below which no stage is begun
MAX_TRIES = 2  # of a stage that begins anew, or that is killed
ROOT = Path(__file__).parents[2]  # where the stages run, whose paths are relative to it


class Stage(NamedTuple):
    """Command with a name, the arguments of Python, and whether it goes on where it stopped."""

    name: str
    arguments: list[str]
    resumes: bool = False


def stages(out: Path, n_seeds: int, n_jobs: int) -> list[Stage]:
    """Return the stages in their order."""
    results = str(out / "results")

    def table(protocol: str, seeds: int) -> Stage:
        arguments = ["--budget", "full", "--device", "cuda", "--n-jobs", str(n_jobs)]
        arguments += ["--seeds", str(seeds)]
        command = ["-m", "sklearn_pulse.benchmark", protocol, *arguments, "--out", results]
        return Stage(f"{protocol}-{seeds}", command, resumes=True)

    timings = out / "timings"

    def timing(name: str) -> Stage:
        command = ["-m", "pytest", "-q", "-c", "perf/pytest.ini", f"perf/test_{name}.py"]
        kept = f"--benchmark-json={timings / name}.json"
        return Stage(name, [*command, "-k", "cuda", kept])

    page = ["--page", str(out / "performance.md")]
    costs = ["--device", "cuda", "--windows", "4096", "--output", str(out / "costs.md")]

    return [
        Stage("tests", ["-m", "pytest", "-q", "-m", "gpu", "tests"]),
        timing("training"),
        timing("embedding"),
        Stage("costs", ["-m", "perf.costs", *costs]),
        table("linear-probe", 1),
        table("label-efficiency", 1),
        timing("overhead"),
        timing("replay"),
        timing("linear"),
        timing("closed_form"),
        timing("search"),
        Stage("performance", ["-m", "perf.report", str(timings), *page]),
        table("linear-probe", n_seeds),
        table("label-efficiency", n_seeds),
        Stage(f"report-{n_seeds}", ["-m", "sklearn_pulse.benchmark", "report", "--out", results]),
    ]


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process, and kill it if it does not end by itself."""
    process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def run(stage: Stage, log: Path, seconds: float) -> int | None:
    """Run a stage; return its exit status, or None if its time was up."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, *stage.arguments], stdout=output, stderr=subprocess.STDOUT, cwd=ROOT
        )
        try:
            return process.wait(max(seconds, 0.0))
        except subprocess.TimeoutExpired:
            stop(process)
            return None
        except KeyboardInterrupt:
            stop(process)
            raise


def store(path: Path, known: dict[str, Any]) -> None:
    """Write how the stages ended, or leave the file as it was."""
    partial = path.with_name(f"{path.name}.partial")  # which a killed run leaves
    partial.write_text(json.dumps(known, indent=1))
    partial.replace(path)


def run_all(todo: list[Stage], out: Path, seconds: float) -> bool:
    """Run the stages that have not ended; return whether nothing is left to do."""
    (out / "timings").mkdir(parents=True, exist_ok=True)
    path = out / "stages.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    deadline = time.monotonic() + seconds
    all_ended = True
    for stage in todo:
        record = known.setdefault(stage.name, {"status": None, "tries": 0, "kills": 0})
        tries = record["kills"] if stage.resumes else record["tries"]
        if record["status"] is not None or tries >= MAX_TRIES:
            continue
        left = deadline - time.monotonic() - GRACE
        if left < LEAST:
            print(f"{stage.name}: no time is left; start the script again to go on")
            return False
        print(f"{stage.name}: python {' '.join(stage.arguments)}", flush=True)
        record["tries"] += 1
        store(path, known)  # before the run, which may end this script
        status = run(stage, out / f"{stage.name}.log", left)
        if status is None:
            print(f"{stage.name}: the time is up; start the script again to go on")
            return False
        print(f"{stage.name}: exit status {status}", flush=True)
        if status < 0:  # a signal killed it, for example for its memory
            record["kills"] += 1
            all_ended = False
        else:
            record["status"] = status
        store(path, known)
    return all_ended


def main() -> None:
    """Run what the time allows."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # which ends the stage too
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--minutes", type=float, default=9.0, help="time of this call")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of the last tables")
    parser.add_argument("--jobs", type=int, default=8, help="trainings side by side")
    parser.add_argument("--out", type=Path, default=Path("output/gpu"))
    parser.add_argument("--list", action="store_true", help="print the commands only")
    arguments = parser.parse_args()
    for name in ("seeds", "jobs"):  # else a stage fails, and is not repeated
        if (value := getattr(arguments, name)) < 1:
            parser.error(f"argument --{name}: must be at least 1, got {value}")
    out = arguments.out.resolve()
    if out.exists() and not out.is_dir():
        parser.error(f"argument --out: {out} is a file: name a folder")
    todo = stages(out, arguments.seeds, arguments.jobs)
    if arguments.list:
        for stage in todo:
            print(f"{stage.name}: python {' '.join(stage.arguments)}")
    elif run_all(todo, out, 60 * arguments.minutes):
        print("nothing is left to do")


if __name__ == "__main__":
    main()
