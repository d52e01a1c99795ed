"""Read hostile files, each in a forked process of its own under limits; report as JSON lines.

Usage: ``python -m tests.hostile.child NAME ...`` with names of attacks, or ``all``.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.hostile import corpus
from tests.hostile.registry import ATTACKS, LOADERS

HEADROOM = 2**30  # bytes of address space beyond what the imports take
SECONDS = 120  # until a reader that hangs is ended; the readers take parts of a second


def main(names):
    with tempfile.TemporaryDirectory(prefix="hostile-") as home:
        corpus.prepare(Path(home), whole=names == ["all"])
        for name in ATTACKS if names == ["all"] else names:
            print(json.dumps(outcome(ATTACKS[name])), flush=True)


def outcome(attack):
    """Return what became of one file."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as home:
        folder = Path(home, "files")
        folder.mkdir()
        report = Path(home, "report")
        child = os.fork()
        if child == 0:
            try:
                report.write_text(json.dumps(read(attack, folder)))
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        if not report.exists():
            return {"name": attack.name, "outcome": f"died of {status}"}
        executed = (folder / "executed").exists()
        return {"name": attack.name, "executed": executed} | json.loads(report.read_text())


def read(attack, folder):
    """Write and read the file in this process, which has no other task."""
    path = attack.write(folder)
    os.chdir(folder)  # where code in a file would leave what it writes
    in_use = resource.getpagesize() * int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    resource.setrlimit(resource.RLIMIT_AS, (in_use + HEADROOM,) * 2)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(SECONDS)
    start = time.perf_counter()
    result = {"outcome": "loaded"}
    try:
        loaded = LOADERS[attack.loader](path)
        result["right"] = attack.harmless is not None and bool(attack.harmless(loaded))
    except Exception as error:
        result = {
            "outcome": "refused",
            "type": type(error).__name__,
            "documented": type(error) in (ValueError, FileNotFoundError),
            "message": str(error)[:400],
            "names": path.name in str(error),
            "starved": starved(error),
            "trace": "".join(traceback.format_exception(error))[-1500:],
        }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return result | {"seconds": time.perf_counter() - start, "megabytes": peak / 1024}


def starved(error):
    """Whether only the limit stopped the reader: an error of memory is among the causes."""
    while error is not None:
        if isinstance(error, MemoryError) or "allocate" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


if __name__ == "__main__":
    main(sys.argv[1:])
