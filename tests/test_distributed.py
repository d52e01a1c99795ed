"""Training in several processes is training in one."""

import os
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from sklearn_pulse import PulseTransformer
from sklearn_pulse._share import Share
from sklearn_pulse._training._checkpoint import Checkpoint
from sklearn_pulse._training._iterator import BatchIterator, ResidentBatches
from sklearn_pulse.objectives import CrossReconstruction
from tests import ranks
from tests.helpers import make_windows
from tests.kills import killed
from tests.test_callbacks import fingerprint_of_many

# The processes are launched once.
pytestmark = pytest.mark.xdist_group("ranks")
ROOT = Path(__file__).parent.parent
ALONE = {"distributed": False}


class Outcome:
    """What the processes of :mod:`tests.ranks` have left."""

    def __init__(self, folder):
        self.folder = folder

    def results(self, group, job):
        files = [self.folder / f"{group}.{rank}.results" for rank in range(ranks.GROUPS[group][0])]
        return [pickle.loads(file.read_bytes())[job] for file in files]

    def codes(self, group):
        return pickle.loads((self.folder / f"{group}.codes").read_bytes())

    def printed(self, group, rank, stream="out"):
        return (self.folder / f"{group}.{rank}.{stream}").read_text()


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """Interrupt a fit of one process, and run all that one process and two do."""
    folder = tmp_path_factory.mktemp("ranks")
    with pytest.MonkeyPatch.context() as patch, killed(2, 3):
        patch.setattr(Checkpoint, "interval", 0.0)
        ranks.stored(folder / "by one", **ALONE).fit(ranks.X)
    return launched(folder, [group for group, (size, _) in ranks.GROUPS.items() if size < 3])


@pytest.fixture(scope="module")
def outcome_of_three(tmp_path_factory):
    return launched(tmp_path_factory.mktemp("three"), ["gradients of three"])


def launched(folder, groups):
    code = f"from tests.ranks import main; main({str(folder)!r}, {groups!r})"
    env = os.environ | {"PYTHONHASHSEED": "1"}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env=env)
    return Outcome(folder)


def assert_close(actual, expected, atol):
    if expected is None:
        assert actual is None
    else:
        np.testing.assert_allclose(actual, expected, rtol=0.0, atol=atol)


@pytest.mark.slow
def test_gradients_of_three_are_those_of_one_process(outcome_of_three):
    check_gradients(outcome_of_three, "gradients of three")


def test_gradients_are_those_of_one_process(outcome):
    """On the same batch, with the same draws, whatever the objective's parameters."""
    check_gradients(outcome, "fits")


def check_gradients(outcome, group):
    names = [name for name, *_ in ranks.cases()]
    for results in outcome.results(group, "gradients"):
        assert list(results) == names
        for (loss, gradients, generator), (total, shared, after) in results.values():
            assert total == pytest.approx(loss, abs=1e-6)
            np.testing.assert_array_equal(after, generator)
            largest = max(np.abs(g).max() for g in gradients.values() if g is not None)
            for name, expected in gradients.items():
                assert_close(shared[name], expected, atol=1e-6 * max(1.0, largest))


ALONG = [name for name, (params, _) in ranks.PULSE.items() if "pairing" not in params]


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("size", [2, 3])
def test_shares_of_pulse_add_up(name, size):
    """Without any exchange: each process knows what the whole batch is divided by."""
    params, missing = ranks.PULSE[name]
    objective = CrossReconstruction(2, **ranks.NETWORKS, **params)
    batch = ranks.batch(missing)
    losses = []
    for share in (Share(), *(Share(rank, size) for rank in range(size))):
        objective.share = share
        with objective.seeded(1):
            losses.append(objective(**batch))
    gradients = [torch.autograd.grad(loss, objective.encoder.parameters()) for loss in losses]
    assert sum(losses[1:]).item() == pytest.approx(losses[0].item(), abs=1e-6)
    for whole, *parts in zip(*gradients, strict=True):
        torch.testing.assert_close(sum(parts), whole, rtol=0.0, atol=1e-6)


FITS = {
    "PULSE": lambda: ranks.fitted(ranks.pulse(**ALONE)),
    "PULSE with gaps": lambda: ranks.fitted(ranks.pulse(**ALONE), ranks.GAPS),
    "PULSE that freezes": lambda: ranks.fitted(ranks.pulse(**ranks.FREEZE, **ALONE)),
    "PULSE with a score": lambda: ranks.scored(ranks.pulse(**ALONE)),
    "PULSE that computes again": lambda: ranks.fitted(ranks.again(**ALONE)),
    "SimCLR": lambda: ranks.fitted(ranks.simclr(**ALONE)),
    "SimCLR with a score": lambda: ranks.scored(ranks.simclr(**ALONE)),
    "auto": lambda: ranks.fitted(ranks.simclr(distributed="auto")),
    "resumed": lambda: ranks.fitted(ranks.pulse(**ALONE)),
}


@pytest.mark.parametrize("job", FITS)
def test_a_fit_is_that_of_one_process(outcome, job):
    expected = FITS[job]()
    for result in outcome.results("fits", job):
        assert result["n_iter"] == expected["n_iter"]
        assert result["share"] is None
        history = (np.array(fit["history"], dtype=float) for fit in (result, expected))
        np.testing.assert_allclose(*history, atol=1e-5)
        for actual, gradient in zip(
            result["gradients"] or [], expected["gradients"] or [], strict=True
        ):
            assert_close(actual, gradient, atol=1e-5)  # of weights that have moved apart a little
        assert_close(result["embedding"], expected["embedding"], atol=1e-3)


@pytest.mark.parametrize("job", [*FITS, "PULSE that loads", "PULSE without a seed"])
def test_all_processes_end_with_the_same_bits(outcome, job):
    first, second = outcome.results("fits", job)
    assert first["history"] == second["history"]
    for name, weight in first["weights"].items():
        np.testing.assert_array_equal(second["weights"][name], weight)
    assert first["selected"] == second["selected"] == (1 if job == "PULSE that loads" else None)


def test_one_process_goes_on_where_two_were_interrupted(outcome):
    folder = outcome.folder / "by two"
    assert len(list(folder.iterdir())) == 1
    assert len(list(folder.rglob("checkpoint.pt"))) == 1
    assert not list(folder.rglob("*.partial"))
    resumed = ranks.fitted(ranks.stored(folder, **ALONE))
    expected = ranks.fitted(ranks.pulse(**ALONE))
    assert len(list(folder.iterdir())) == 1  # it was the same run
    history = (np.array(fit["history"], dtype=float) for fit in (resumed, expected))
    np.testing.assert_allclose(*history, atol=1e-5)
    assert len(resumed["gradients"]) == len(expected["gradients"])
    assert_close(resumed["embedding"], expected["embedding"], atol=1e-3)


def test_the_first_process_alone_shows_progress(outcome):
    assert "train_loss" in outcome.printed("fits", 0)
    shown = outcome.printed("fits", 1).splitlines()
    assert shown == [f"<{job}>" for job in ranks.GROUPS["fits"][1]]
    assert "%|" in outcome.printed("fits", 0, "err")
    assert "%|" not in outcome.printed("fits", 1, "err")


def test_the_first_process_alone_warns(outcome):
    first, second = outcome.results("fits", "warned")
    assert len(first) == 1 and first[0].startswith("groups holds one group only")
    assert second == []
    for rank in range(2):  # torch 2.4 warns of its own code by a FutureWarning
        assert not re.search("(?<!Future)Warning", outcome.printed("fits", rank, "err"))


def test_a_callback_that_stops_one_process_stops_all(outcome):
    assert outcome.results("fits", "stopped by one") == [1, 1]


REFUSED = {
    "other data": "differ in the data",
    "other parameters": "differ in bag_pooling, weight_decay",
    "other gradients": "differ in the weights after epoch 1: let callbacks act alike",
    "other draws": r"differ in the draws after epoch 1: .*net\.module_\.seeded\(0\)",
    "small batch": "to train on holds 1 of the windows, fewer than the 2 processes.*batch_size",
    "small validation": "to validate on holds 1 of .*validation_fraction=0",
    "in a search": "in a worker of joblib.*n_jobs=None",
    "indivisible": "TS2VecTransformer cannot train in several processes",
}


@pytest.mark.parametrize("job", REFUSED)
def test_what_cannot_be_divided_is_refused_by_all_processes(outcome, job):
    for error in outcome.results("fits", job):
        with pytest.raises(ValueError, match=REFUSED[job]):
            raise error


def test_a_seed_of_the_first_process_alone_is_that_of_all(outcome):
    for other, first in outcome.results("seeded in one", "fits"):
        assert "differ in random_state" in other
        assert first is None


def test_a_process_that_is_killed_ends_the_others(outcome):
    assert outcome.codes("killed") == [1, -signal.SIGKILL]
    error = "process 0 of 2 lost another process, .* Launch all processes again"
    with pytest.raises(RuntimeError, match=error):
        raise pickle.loads((outcome.folder / "killed.0.results").read_bytes())["fit"]


def test_a_fit_that_nobody_launched_says_how():
    with pytest.raises(ValueError, match="distributed=True.*'torchrun --nproc-per-node 2"):
        ranks.pulse().fit(ranks.X)


@pytest.mark.parametrize(
    ("value", "kind"), [("ddp", ValueError), (2, TypeError), (None, TypeError)]
)
def test_other_values_are_refused(value, kind):
    with pytest.raises(kind, match="distributed must be True, False or 'auto', got"):
        ranks.pulse(distributed=value).fit(ranks.X)


@pytest.mark.parametrize("n", range(1, 9))
@pytest.mark.parametrize("size", range(1, 5))
def test_shares_are_even(n, size):
    rows = [range(n)[Share(rank, size).rows(n)] for rank in range(size)]
    assert [row for share in rows for row in share] == list(range(n))
    assert max(map(len, rows)) - min(map(len, rows)) <= 1


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("n", range(1, 10))
def test_the_smallest_batch_is_known_beforehand(n, least, drop_last):
    data = ResidentBatches(x=torch.arange(n))
    batches = BatchIterator(data, 3, min_batch_size=least, drop_last=drop_last)
    assert batches.smallest == min(len(batch["x"]) for batch in batches)


def test_the_group_is_gone_before_the_process_ends(outcome):
    """Its threads would run on while the interpreter ends, which may abort the process."""
    assert outcome.codes("ends") == [0]
    assert outcome.printed("ends", 0) == "<fit>\ngroup is gone\n"


def test_callbacks_are_known_in_every_process(outcome):
    """Whatever the seed of the hashes of a process is."""
    assert outcome.results("callbacks", "fingerprint") == [fingerprint_of_many()]


def torchrun(windows, output, *arguments, environment=None):
    """Run the example in two processes; return its exit code and what it printed."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    script = str(ROOT / "examples" / "reproduce" / "pretrain.py")
    command = [sys.executable, *launcher, script, str(windows), "--output", str(output), *arguments]
    paths = {"PYTHONPATH": os.pathsep.join([str(windows.parent), str(ROOT)])}
    env = os.environ | paths | (environment or {})
    run = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    return run.returncode, run.stdout + run.stderr


@pytest.fixture
def windows(tmp_path):
    np.save(tmp_path / "windows.npy", LONG)
    return tmp_path / "windows.npy"


LONG = make_windows(n_timesteps=70)[0]
# With seed 0 two steps of a window are nearly the largest, and rounding says which of them is.
SETTINGS = ("--epochs", "2", "--batch-size", "5", "--threads", "1", "--seed", "1")


@pytest.mark.slow
def test_torchrun_loses_a_process_and_resumes(tmp_path, windows):
    """A process that is killed ends the launch; launched again, it ends as one process does."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os\n"
        "if os.environ.get('KILLED') == os.environ.get('RANK', 'none'):\n"
        "    import signal\n"
        "    from sklearn_pulse._training._net import SSLNet\n"
        "    step, steps = SSLNet.train_step, []\n"
        "    def train_step(net, *args, **kwargs):\n"
        "        steps.append(1)\n"
        "        if len(steps) == 6:  # in the second epoch\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return step(net, *args, **kwargs)\n"
        "    SSLNet.train_step = train_step\n"
    )
    stored = (*SETTINGS, "--checkpoints", str(tmp_path / "runs"))
    code, printed = torchrun(windows, tmp_path / "two", *stored, environment={"KILLED": "1"})
    assert code != 0, printed
    assert "SIGKILL" in printed and "rank      : 1" in printed
    assert not (tmp_path / "two").exists()

    code, printed = torchrun(windows, tmp_path / "two", *stored)
    assert code == 0, printed
    assert printed.count("holds the encoder of epoch 2") == 1
    command = [sys.executable, ROOT / "examples" / "reproduce" / "pretrain.py", windows]
    command += ["--output", tmp_path / "one", *SETTINGS]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    alone, together = (
        PulseTransformer.from_pretrained(tmp_path / name, device="cpu") for name in ("one", "two")
    )
    np.testing.assert_allclose(
        [epoch["train_loss"] for epoch in together.history_],
        [epoch["train_loss"] for epoch in alone.history_],
        atol=1e-5,
    )
    assert_close(together.transform(LONG), alone.transform(LONG), atol=1e-3)
