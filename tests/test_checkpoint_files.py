"""Files of checkpoints: shared by threads, half written, damaged, foreign, on a full disk."""

import errno
import os
import random
import re
import resource
import shutil
import socket
import subprocess
import threading
import time
import warnings
import zipfile

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_pulse import PulseTransformer
from sklearn_pulse._training import _state_file
from sklearn_pulse._training._checkpoint import Checkpoint
from sklearn_pulse._training._state_file import DamagedError, read_state, store_state
from tests.helpers import SMALL_PULSE, make_windows
from tests.kills import killed

X, Y = make_windows(8)
DEAD = 2**22 + 1  # larger than any process id of Linux


def pulse(**params):
    settings = SMALL_PULSE | {"max_epochs": 3, "batch_size": 4, "validation_fraction": 0}
    return PulseTransformer(**settings | params)


@pytest.fixture(scope="module")
def expected():
    return pulse().fit_transform(X)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    pulse(checkpoint_dir=folder).fit(X)
    return folder


@pytest.fixture
def stored(tmp_path, finished):
    """Folder of a finished run, with the state before the last one beside it."""
    shutil.copytree(finished, tmp_path / "runs")
    (run,) = (tmp_path / "runs").iterdir()
    assert {path.name for path in run.iterdir()} == {"checkpoint.pt", "checkpoint.previous.pt"}
    return run


def fit(run):
    return pulse(checkpoint_dir=run.parent).fit_transform(X)


def flip(path, bit):
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


# --- damage ---


def test_no_flipped_bit_is_read(stored):
    path = stored / "checkpoint.pt"
    content = path.read_bytes()
    draw = random.Random(0)
    bits = [*range(0, 600, 7), *(draw.randrange(8 * len(content)) for _ in range(400))]
    for bit in bits:
        flip(path, bit)
        with pytest.raises(DamagedError):
            read_state(path)
        path.write_bytes(content)
    read_state(path)


def replaced_by_a_folder(path):
    path.unlink()
    path.mkdir()


def replaced_by_an_archive(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "b")


DAMAGE = {
    "bit": lambda path: flip(path, 8 * 5000),
    "short": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "empty": lambda path: path.write_bytes(b""),
    "torch": lambda path: torch.save({"a": 1}, path),
    "archive": replaced_by_an_archive,
    "folder": replaced_by_a_folder,
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damage_is_named_and_the_state_before_is_taken(stored, expected, damage):
    path = stored / "checkpoint.pt"
    damage(path)
    message = re.escape(f"{path} is no checkpoint of this training") + ".*checkpoint.previous.pt"
    with pytest.warns(UserWarning, match=message):
        embedding = fit(stored) if not path.is_dir() else None
        if embedding is None:
            with pytest.raises(OSError, match="cannot be written"):
                fit(stored)
    if embedding is not None:
        np.testing.assert_array_equal(embedding, expected)
        np.testing.assert_array_equal(fit(stored), expected)  # without a warning


def test_without_a_good_state_the_files_and_the_remedy_are_named(stored, expected):
    for name in ("checkpoint.pt", "checkpoint.previous.pt"):
        flip(stored / name, 12345)
    with pytest.raises(OSError, match=f"checkpoint.pt is no.*previous.pt is no.*delete.*{stored}"):
        fit(stored)
    shutil.rmtree(stored)
    np.testing.assert_array_equal(fit(stored), expected)


def test_a_damaged_state_never_takes_the_place_of_a_good_one(stored, expected, monkeypatch):
    monkeypatch.setattr(Checkpoint, "interval", 0.0)
    good = (stored / "checkpoint.previous.pt").read_bytes()
    flip(stored / "checkpoint.pt", 12345)
    with pytest.warns(UserWarning, match="is no checkpoint"), killed(3, 2):
        fit(stored)
    assert (stored / "checkpoint.previous.pt").read_bytes() == good
    np.testing.assert_array_equal(fit(stored), expected)


def foreign_weights(state):
    state["module"] = {"weight": torch.zeros(3)}


def foreign_shape(state):
    name = min(state["module"])
    state["module"][name] = torch.zeros(3, 3, 3, 3)


def foreign_kind(state):
    name = min(state["module"])
    state["module"][name] = state["module"][name].double()


def foreign_moments(state):
    _, pairs = state["optimizer"]
    (moments,) = (value for key, value in pairs if key == "state")
    moments[1][0][1][1][1][1] = ["tensor", torch.zeros(7, 7), "cpu"]


def foreign_callbacks(state):
    state["callbacks"]["lr_scheduler"]["policy_"] = ["value", "x"]


FOREIGN = (
    foreign_weights,
    foreign_shape,
    foreign_kind,
    foreign_moments,
    foreign_callbacks,
    lambda state: state.pop("module"),
    lambda state: state["callbacks"].update(other={}),
    lambda state: state["trained"].clear(),
    lambda state: state.update(history=[3]),
    lambda state: state.update(optimizer=["unheard of"]),
)


@pytest.mark.parametrize("change", FOREIGN)
def test_a_state_of_another_net_is_refused(stored, expected, change):
    """Also if its checksum is right."""
    state = read_state(stored / "checkpoint.pt")
    change(state)
    store_state(stored, state, None, rotate=False)
    with pytest.warns(UserWarning, match="checkpoint.pt is no checkpoint.*does not fit the net"):
        np.testing.assert_array_equal(fit(stored), expected)


# --- threads ---


def test_threads_share_a_run(tmp_path, expected, monkeypatch):
    """Each of them may read what another one has written."""
    monkeypatch.setattr(Checkpoint, "interval", 0.0)
    found, errors = [], []

    def work():
        try:
            found.append(fit(tmp_path / "run"))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for embedding in found:
        np.testing.assert_array_equal(embedding, expected)
    (run,) = tmp_path.iterdir()
    assert {path.name for path in run.iterdir()} == {"checkpoint.pt", "checkpoint.previous.pt"}
    for path in run.iterdir():
        read_state(path)


def test_a_threaded_search_over_the_probe(tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "interval", 0.0)
    model = make_pipeline(pulse(checkpoint_dir=tmp_path), LogisticRegression())
    grid = {"logisticregression__C": [0.1, 1.0, 10.0]}
    with joblib.parallel_backend("threading", n_jobs=3):
        search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, Y)
    expected = clone(search.best_estimator_).set_params(pulsetransformer__checkpoint_dir=None)
    np.testing.assert_array_equal(search.predict_proba(X), expected.fit(X, Y).predict_proba(X))
    assert not list(tmp_path.rglob("*.partial"))
    assert len(list(tmp_path.iterdir())) == 3  # two folds, and the refit


# --- half-written files ---


def partial(run, host, process, token="0" * 32):
    path = run / f"checkpoint-{host}-{process}-{token}.partial"
    path.write_bytes(b"half")
    return path


def test_what_a_killed_writer_left_is_removed(stored):
    here = socket.gethostname()
    old = time.time() - 7200
    dead = partial(stored, here, DEAD)
    former = partial(stored, here, os.getpid())  # of a process that had the same number
    abandoned = partial(stored, "elsewhere", 1)
    os.utime(abandoned, (old, old))
    child = subprocess.Popen(["sleep", "60"])
    try:
        alive = partial(stored, here, child.pid)
        os.utime(alive, (old, old))
        remote = partial(stored, "elsewhere", 2)
        mine = partial(stored, here, os.getpid(), "1" * 32)
        _state_file._WRITING.add(mine.name)
        fit(stored)
    finally:
        child.kill()
        child.wait()
        _state_file._WRITING.clear()
    assert not any(path.exists() for path in (dead, former, abandoned))
    assert all(path.exists() for path in (alive, remote, mine))


def test_a_partial_file_that_another_process_removed_is_written_again(tmp_path, monkeypatch):
    replace, lost = os.replace, []

    def steals(source, target):
        if not lost and str(source).endswith(".partial"):
            lost.append(source)
            os.remove(source)
        return replace(source, target)

    monkeypatch.setattr(_state_file.os, "replace", steals)
    fit(tmp_path / "run")
    assert lost
    (run,) = tmp_path.iterdir()
    assert len(read_state(run / "checkpoint.pt")["history"]) == 3


# --- disks ---


def test_a_full_disk_is_named_and_loses_nothing(tmp_path, expected, monkeypatch):
    write = _state_file._write

    def full(path, content):
        write(path, content[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    with killed(2):
        fit(tmp_path / "run")
    (run,) = tmp_path.iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(_state_file, "_write", full)
        with pytest.raises(OSError, match="No space left.*checkpoint_dir.*") as caught:
            fit(run)
    assert caught.value.errno == errno.ENOSPC
    assert str(run) in str(caught.value)
    assert [path.name for path in run.iterdir()] == ["checkpoint.pt"]
    np.testing.assert_array_equal(fit(run), expected)


def test_what_lies_in_the_place_of_a_state_is_named(tmp_path):
    """More space would help nobody."""
    with killed(2):
        fit(tmp_path / "run")
    (run,) = tmp_path.iterdir()
    (run / "checkpoint.previous.pt").mkdir()
    (run / "checkpoint.previous.pt" / "notes").touch()
    with pytest.raises(OSError, match=r"written \([^:]*\): set checkpoint_dir .*previous.pt"):
        fit(run)


def test_a_limit_of_the_system_is_named(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="the checkpoint cannot be written") as caught:
            fit(tmp_path / "run")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.errno == errno.EFBIG
    (run,) = tmp_path.iterdir()
    assert not list(run.iterdir())


def test_a_disk_that_returns_other_bytes_keeps_the_older_state(stored, monkeypatch):
    write = _state_file._write
    kept = (stored / "checkpoint.previous.pt").read_bytes()
    (stored / "checkpoint.previous.pt").replace(stored / "checkpoint.pt")
    monkeypatch.setattr(_state_file, "_write", lambda path, content: write(path, content[:-1]))
    with pytest.raises(OSError, match="cannot be written.*reads otherwise"):
        fit(stored)
    assert [path.name for path in stored.iterdir()] == ["checkpoint.pt"]
    assert (stored / "checkpoint.pt").read_bytes() == kept


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="checkpoint_dir='.*file' cannot hold a folder.*another"):
        pulse(checkpoint_dir=str(tmp_path / "file")).fit(X)


def test_nothing_is_warned_about_a_run_between_two_files(stored, expected):
    """A kill may come after the older state was moved, and before the newer one is there."""
    (stored / "checkpoint.pt").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(fit(stored), expected)
