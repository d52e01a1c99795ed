"""Fixtures of the tests of the benchmark."""

import pytest


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
