"""Fixtures shared by the whole suite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

# How long an example takes says nothing on a machine that others use too: neither the time to run
# it nor the time to draw it fails a test.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


def pytest_configure(config):
    """Hide CUDA devices, but from a run that selects the tests of them.

    The other tests compare with results of the CPU, also where an estimator chooses its device.
    Processes that they start see none either.
    """
    if "gpu" not in config.option.markexpr.replace("not gpu", ""):
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


@pytest.fixture(scope="session")
def data_home() -> Path:
    """Folder with the real recordings; the test is skipped where there is none."""
    named = os.environ.get("SKLEARN_PULSE_DATA")
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    home = Path(named).expanduser() if named else beside
    if not home.is_dir():
        pytest.skip(f"no recordings in {home}; name their folder in SKLEARN_PULSE_DATA")
    return home


@pytest.fixture
def whole_float32(monkeypatch):
    """Convolutions of torch round to TF32 on CUDA, by default, and not on the CPU."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


@pytest.fixture(autouse=True)
def threads_are_left_as_they_were():
    """The number of torch threads, which decides on bits, is the same after every test."""
    before = torch.get_num_threads()
    yield
    after = torch.get_num_threads()
    torch.set_num_threads(before)
    assert after == before


@pytest.fixture
def few_penalties(monkeypatch):
    """A comparison whose probes try 3 penalties on 2 folds: the search takes most of its time."""
    for module in ("_probes", "_comparison"):
        monkeypatch.setattr(f"sklearn_pulse.benchmark.{module}.CS", (1e-2, 1.0, 100.0))
    monkeypatch.setattr("sklearn_pulse.benchmark._probes._N_FOLDS", 2)


@pytest.fixture
def no_pictures(monkeypatch):
    """A report of text alone: a picture of each table takes longer than all the rest."""
    monkeypatch.setattr("sklearn_pulse.benchmark._report.draw", lambda table, path: None)


def pytest_collection_modifyitems(items):
    """Run everything that compiles MiniRocket in one process."""
    for item in items:
        if "minirocket" in item.nodeid.lower():
            item.add_marker(pytest.mark.xdist_group("minirocket"))
