"""Experiments of the paper, run by one command: ``python -m sklearn_pulse.benchmark``.

A cell (protocol x data set x method x seed) is run once and stored as one file. So a killed run
continues where it stopped, and processes may share a folder. Every table but the ablation's
contains the controls: the majority class, statistics of each channel, MiniRocket, and the untrained
encoder.
"""

from .._extras import needs

with needs("sklearn_pulse.benchmark needs filelock", "benchmark"):
    import filelock  # noqa: F401

from ._budgets import BUDGETS, Budget
from ._cells import Cell, Results
from ._compare import Comparison, compare
from ._execution import Execution
from ._own import add_files
from ._report import report
from ._run import Outcome, plan, run

__all__ = [
    "BUDGETS",
    "Budget",
    "Cell",
    "Comparison",
    "Execution",
    "Outcome",
    "Results",
    "add_files",
    "compare",
    "plan",
    "report",
    "run",
]
