"""Benchmarks that are quick."""

import pytest

N_DRAWS = 2


@pytest.fixture
def five_draws():
    """Draw few labels as often as users do."""


@pytest.fixture(autouse=True)
def few_draws(request, monkeypatch):
    """Draw few labels twice: probes take most of the time of a small benchmark.

    Processes of joblib draw five times, and so do tests that ask for `five_draws`.
    """
    if "five_draws" in request.fixturenames:
        return
    for module in ("_comparison", "_protocols"):
        monkeypatch.setattr(f"sklearn_pulse.benchmark.{module}.N_DRAWS", N_DRAWS)
