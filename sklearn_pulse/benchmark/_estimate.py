"""Estimate of the time that cells take, from a small run of each method."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._budgets import Budget
from ._cells import Cell, Results
from ._execution import Execution
from ._protocols import PROTOCOLS
from ._run import condition_of, identity, trial_key
from ._task import Task
from ._trial import Trial

_N_SMALL = 96  # windows of each part in a small run
_SMALL = Budget(None, 1, 1, 1, 1)  # one epoch


def estimate(cells: Iterable[Cell], execution: Execution, n_processes: int = 1) -> float | None:
    """Return about how many seconds the unfinished cells take.

    Each method is run once on a small part of the windows, for one epoch, and its time is scaled by
    the numbers of windows and epochs. So costs that do not grow with these are overestimated. A
    method that fails counts as zero seconds; its run reports the error. Cells that share an encoder
    run one after the other, however many processes there are.

    Parameters
    ----------
    cells : iterable of Cell
        The cells.
    execution : Execution
        Folder of the results, and settings of the execution.
    n_processes : int, default=1
        Number of processes.

    Returns
    -------
    float or None
        Seconds; None if all cells are finished.
    """
    results = Results(execution.folder)
    waiting = [cell for cell in cells if not results.has(cell, identity(cell, execution))]
    if not waiting:
        return None
    measured: dict[tuple[str, str, str], tuple[float, float]] = {}
    of_trial: dict[Any, float] = {}
    for cell in waiting:
        key = cell.protocol, cell.dataset, cell.method
        if key not in measured:
            try:
                measured[key] = _measure(cell, execution)
            except Exception:  # must not stop the other methods; the run reports it
                measured[key] = 0.0, 0.0
        fit, rest = measured[key]
        shared = trial_key(cell)
        of_trial[shared] = of_trial.get(shared, fit) + rest
    return max(sum(of_trial.values()) / n_processes, *of_trial.values())


def _measure(cell: Cell, execution: Execution) -> tuple[float, float]:
    """Return the estimated seconds of the fit of a cell, and those of the rest."""
    protocol, condition = PROTOCOLS[cell.protocol], condition_of(cell, execution)
    with tempfile.TemporaryDirectory() as folder, execution.threads():
        whole = protocol.trial(condition)
        elsewhere = dataclasses.replace(execution, folder=Path(folder))
        quick = dataclasses.replace(condition, budget=_SMALL, execution=elsewhere)
        small = Trial(quick, _thinned(whole.task, cell.seed), whole.preset)
        start = time.perf_counter()
        protocol.run(small)
        total = time.perf_counter() - start
    fit = total if condition.method.is_classifier else small.record.get("fit_seconds", 0.0)
    rows = len(whole.rows) / len(small.rows)
    return fit * _n_window_epochs(whole) / _n_window_epochs(small), (total - fit) * rows


def _n_window_epochs(trial: Trial) -> float:
    """Return how many windows a fit reads, those of each epoch counted anew."""
    n_train = len(trial.task.rows("train"))
    if not (trial.method.is_trained or trial.method.is_classifier):
        return n_train
    n_windows = trial.budget.n_windows(trial.task.X.shape[1], "train")
    read = n_train if n_windows is None else min(n_train, n_windows)
    return read * _n_epochs(trial)


def _n_epochs(trial: Trial) -> int:
    """Return the number of epochs of the method, over all its stages."""
    method = trial.method
    params = method.build(method.settings(trial.preset), trial.seed).get_params()
    if method.is_classifier:
        return trial.budget.supervised(params)["max_epochs"]
    return sum(trial.budget.epochs(params).values())


def _thinned(task: Task, seed: int) -> Task:
    """Return the task with a few windows of each part, of every class that the part holds."""
    rng = np.random.RandomState(seed)
    parts = (task.rows(part) for part in ("train", "val", "test"))
    rows = np.concatenate([_few(task.y, rng.permutation(of_part)) for of_part in parts])
    names = ("X", "y", "groups", "split", "recording", "start")
    known = {name: getattr(task, name) for name in names}
    kept = {name: values[rows] for name, values in known.items() if values is not None}
    return dataclasses.replace(task, **kept)


def _few(y: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the first rows, and the first two of each class, in ascending order."""
    of_class = [rows[y[rows] == label][:2] for label in np.unique(y[rows])]
    return np.unique(np.concatenate([rows[:_N_SMALL], *of_class]))
