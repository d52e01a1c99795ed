"""Every file of the corpus is refused by name, or harmless, in bounded memory and time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile import corpus  # noqa: F401  # registers the attacks
from tests.hostile.registry import ATTACKS, LOADERS

pytestmark = pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"), reason="memory is limited by means of Linux"
)

# What `make test` tries of each loader; they take parts of a second each.
QUICK = [
    "from_pretrained: a million blocks",
    "from_pretrained: ten million layers",
    "from_pretrained: wide layers",
    "from_pretrained: a million threads",
    "from_pretrained: text that takes the memory of the longest",
    "from_pretrained: longest windows that are text",
    "from_pretrained: longest windows of no step",
    "from_pretrained: long windows of quantiles",
    "from_pretrained: a million intervals",
    "from_pretrained: long windows of autocorrelations",
    "from_pretrained: a billion bins of autocorrelations",
    "from_pretrained: weights that overflow",
    "load_pretrained: a function for a step",
    "load_pretrained: a folder outside",
    "load_pretrained: a cache of pickles",
    "load_pretrained: a billion features",
    "load_pretrained: steps in steps in steps",
    "load_pretrained: a link for an encoder",
    "load_pretrained: a chain in a chain without end",
    "load_pretrained: arrays of another shape",
    "from_reference: tensors that repeat one number",
    "from_reference: blocks without content",
    "from_reference: weights of whole numbers",
    "from_reference: compressed zeros",
    "from_reference: a compiled module",
    "from_reference: a function that runs",
    "read_pickle: lists that share lists",
    "read_pickle: a deep tuple as a key",
    "read_pickle: a high slot of the memo",
    "read_pickle: a shape that repeats a list",
    "read_tfc: nested lists that share lists",
    "read_wfdb: more samples than bytes",
    "read_wfdb: signals of another folder",
    "read_array: more numbers than bytes",
    "read_array: an archive",
    "read_array: a header of code",
    "read_cells: half a cell",
    "read_cells: another cell",
    "read_looks: half a line",
]


def check(names):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-m", "tests.hostile.child", *names],
        capture_output=True,
        text=True,
        env=environment,
        cwd=Path(__file__).parents[2],
    )
    assert result.returncode == 0, result.stderr
    outcomes = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(outcomes) == (len(ATTACKS) if names == ["all"] else len(names))
    wrong = [outcome for outcome in outcomes if not is_right(outcome)]
    assert not wrong, json.dumps(wrong, indent=1)
    return outcomes


def is_right(outcome):
    if outcome.get("executed"):
        return False
    if outcome["outcome"] == "refused":
        expected = ATTACKS[outcome["name"]].harmless is None
        named = outcome["documented"] and outcome["names"] and not outcome["starved"]
        return expected and named
    return outcome["outcome"] == "loaded" and outcome["right"]


def test_a_part_of_the_corpus():
    pytest.importorskip("wfdb")
    check(QUICK)


@pytest.mark.slow
def test_the_whole_corpus():
    outcomes = check(["all"])
    print(f"{len(outcomes)} files, {max(o['megabytes'] for o in outcomes):.0f} MB at most")


def test_the_corpus_is_large_and_reaches_every_loader():
    pytest.importorskip("wfdb")
    assert len(ATTACKS) >= 60
    assert {attack.loader for attack in ATTACKS.values()} == LOADERS.keys()
    assert set(QUICK) <= ATTACKS.keys()
