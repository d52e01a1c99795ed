"""Kills at any moment of a fit, and flipped bits of what a fit has written."""

import random
import signal
import warnings

import pytest

from tests.deep.runs import RUNS, kills, outcome

pytestmark = pytest.mark.slow
N_KILLS = 30
N_FLIPS = 100


@pytest.mark.parametrize("name", RUNS)
def test_a_fit_killed_at_any_moment_resumes_to_the_same_bits(name, tmp_path):
    expected = outcome(RUNS[name](None))
    codes = []
    for folder, code in kills(name, tmp_path, N_KILLS):
        codes.append(code)
        assert outcome(RUNS[name](folder)) == expected
        assert not list(folder.rglob("*.partial"))
    assert codes.count(-signal.SIGKILL) > N_KILLS // 2  # the others had just ended
    print(f"{name}: {codes.count(-signal.SIGKILL)} of {N_KILLS} fits killed")


@pytest.mark.parametrize("name", ["pulse", "rebar", "fine_tune"])
def test_a_flipped_bit_never_changes_the_result_silently(name, tmp_path):
    run = RUNS[name]
    expected = outcome(run(tmp_path))
    files = sorted(tmp_path.rglob("*.pt"))
    contents = {path: path.read_bytes() for path in files}
    draw = random.Random(0)
    noticed = 0
    for _ in range(N_FLIPS):
        path = draw.choice(files)
        changed = bytearray(contents[path])
        bit = draw.randrange(8 * len(changed))
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert outcome(run(tmp_path)) == expected
        is_named = any(f"{path} is no checkpoint" in str(warning.message) for warning in caught)
        # A previous state is read only where the last one cannot be.
        assert is_named == (path.name == "checkpoint.pt")
        noticed += is_named
        for file, content in contents.items():
            file.write_bytes(content)
    print(f"{name}: {noticed} of {N_FLIPS} flipped bits named, the others never read")
