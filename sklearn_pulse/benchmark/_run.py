"""Planning of cells, and their execution in processes that share a folder."""

from __future__ import annotations

import os
import platform
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import joblib
import numpy
import sklearn
import torch
from filelock import FileLock, Timeout
from joblib.externals.loky import get_reusable_executor
from sklearn.utils.parallel import Parallel, delayed

from .._parameters import check_integer, check_n_jobs, check_option
from .._version import __version__
from ._budgets import BUDGETS
from ._cells import Cell, Results
from ._comparison import settings as comparison_settings
from ._execution import Condition, Execution
from ._methods import Method, all_methods
from ._outside import is_outside
from ._own import is_own, title_of_dataset
from ._protocols import PROTOCOLS, dataset_names, method_names
from ._trial import Scores, Trial, encoder_identity

_WAIT = 2.0  # seconds between checks of cells that another process is running


@dataclass(frozen=True)
class Outcome:
    """Outcome of a cell.

    Parameters
    ----------
    cell : Cell
        The cell.
    state : {"finished", "there", "busy", "no data", "failed"}
        State of the cell. "finished": it was run now; "there": it had been finished before;
        "busy": another process is running it; "no data": its data set is missing; "failed": it
        raised an error.
    message : str, default=""
        The error, if one was raised.

    Examples
    --------
    >>> from sklearn_pulse.benchmark import Cell, Outcome
    >>> cell = Cell("linear-probe", "har", "pulse", seed=0, split="val", budget="small")
    >>> Outcome(cell, "finished").message
    ''
    """

    cell: Cell
    state: str
    message: str = ""


def plan(
    protocols: Iterable[str],
    *,
    datasets: Iterable[str] | None = None,
    methods: Iterable[str] | None = None,
    n_seeds: int | None = None,
    split: Literal["val", "test"] = "val",
    budget: Literal["smoke", "tiny", "small", "medium", "full", "full-bfloat16"] = "small",
    published: bool = False,
) -> list[Cell]:
    """Return the cells of a benchmark.

    Parameters
    ----------
    protocols : iterable of str
        Names of the protocols: "linear-probe", "label-efficiency", "transfer", "ablation",
        "labelled-people", "cross-validation", "synthetic" or "comparison".
    datasets : iterable of str, default=None
        Names of the data sets to run; None means all data sets of each protocol. Names of the
        user's data sets, as :func:`~sklearn_pulse.benchmark.add_files` returns them, are run by the
        protocols that take them.
    methods : iterable of str, default=None
        Names of the methods to run; None means all methods of each protocol. Those of the user's
        estimators, as :func:`~sklearn_pulse.benchmark.compare` makes them, are in every protocol.
    n_seeds : int, default=None
        Number of seeds, which are 0, 1, ...; None takes the number of the budget, or in the
        comparison all divisions of each source. A cross-validation runs all its folds.
    split : {"val", "test"}, default="val"
        Part of the data that is scored. A cross-validation always scores its test folds.
    budget : {"smoke", "tiny", "small", "medium", "full", "full-bfloat16"}, default="small"
        Name of the limits on training, a key of `BUDGETS`.
    published : bool, default=False
        Whether methods have the settings of the released code, with its errors, which the presets
        mend otherwise. Their rows are named "pulse-published" and so on. Methods of which nothing
        was released stay as they are.

    Returns
    -------
    list of Cell
        The cells. Methods that are not trained come first, since they are cheap.

    Raises
    ------
    TypeError
        If `protocols`, `datasets` or `methods` is a single name.
    ValueError
        If a name or the part or the budget is unknown, `n_seeds` is below 1, or `published` is
        asked for of a data set of the user, of which nothing was published.

    Examples
    --------
    >>> from sklearn_pulse.benchmark import plan
    >>> cells = plan(["linear-probe"], datasets=["har"], methods=["pulse", "majority"], n_seeds=1)
    >>> [str(cell) for cell in cells]
    ['linear-probe har majority seed 0', 'linear-probe har pulse seed 0']
    """
    check_option("split", split, ("val", "test"))
    check_option("budget", budget, BUDGETS)
    if n_seeds is not None:
        check_integer("n_seeds", n_seeds, 1)
    cells: list[Cell] = []
    known = all_methods()
    wanted, named = _names("datasets", datasets), _names("methods", methods)
    own = [dataset for dataset in wanted or [] if is_own(dataset)]
    _check_known(wanted or [], named or [])
    if published and own:
        raise ValueError(
            f"published=True (--published), but nothing was published for"
            f" {title_of_dataset(own[0])!r}: leave it out, or name data sets of the paper."
        )
    for name in _names("protocols", protocols) or []:
        protocol = PROTOCOLS[check_option("each of protocols", name, PROTOCOLS)]
        scored = "test" if protocol.has_folds else split
        rows = [
            _named(method, published)
            for method in protocol.methods()
            if named is None or method.name in named
        ]
        cells += [
            Cell(protocol.name, dataset, row, seed, scored, budget)
            for dataset in (*protocol.datasets, *(own if protocol.takes_own else ()))
            for row in (*rows, *filter(is_outside, named or []))
            for seed in range(protocol.n_runs(dataset, n_seeds, BUDGETS[budget]))
            if wanted is None or dataset in wanted
        ]
    # Nothing is known of the cost of an estimator of the user.
    once = dict.fromkeys(cells)  # a name may be given twice
    return sorted(once, key=lambda cell: is_outside(cell.method) or known[cell.method].is_trained)


def _names(parameter: str, values: Iterable[str] | None) -> list[str] | None:
    """Return names as a list; None for None."""
    if isinstance(values, str):
        raise TypeError(f"{parameter} must be a list of names, got {values!r}: pass [{values!r}].")
    return None if values is None else list(values)


def _check_known(datasets: list[str], methods: list[str]) -> None:
    """Raise for a name that no protocol has: its cells would be missing without a word."""
    of_datasets, of_methods = dataset_names(PROTOCOLS), method_names(PROTOCOLS)
    for dataset in datasets:
        if not is_own(dataset):
            check_option("each of datasets", dataset, of_datasets)
    for method in methods:
        if not is_outside(method):
            check_option("each of methods", method, of_methods)


def _named(method: Method, published: bool) -> str:
    """Return the name of the row of a method."""
    return method.as_published().name if published else method.name


def identity(cell: Cell, execution: Execution) -> dict[str, Any]:
    """Return the settings on which the result of a cell depends, beside data and machine."""
    method = execution.method(cell.method)
    protocol = PROTOCOLS[cell.protocol]
    budget = BUDGETS[cell.budget]
    settings = encoder_identity(method, protocol.source(cell.dataset).preset, cell.seed, budget)
    if protocol.is_wide:
        settings["comparison"] = comparison_settings()
    if cell.protocol == "transfer":
        settings["finetune_epochs"] = budget.finetune_epochs
    if method.is_classifier:
        settings["supervised_epochs"] = budget.supervised_epochs
    return settings


def run(
    cells: Iterable[Cell],
    execution: Execution,
    *,
    n_jobs: int = 1,
    report: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Run the cells that are not finished yet.

    Parameters
    ----------
    cells : iterable of Cell
        The cells to run.
    execution : Execution
        Folder of the results, and settings of the execution.
    n_jobs : int, default=1
        Number of processes.
    report : callable, optional
        Function that is called with the outcome of each cell as soon as it is known.

    Returns
    -------
    list of Outcome
        One outcome per cell.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn_pulse.benchmark import Execution, plan, run
    >>> cells = plan(["synthetic"], datasets=["lorenz-0"], methods=["majority"], budget="smoke")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     outcomes = run(cells, Execution(Path(folder)))
    >>> [outcome.state for outcome in outcomes]
    ['finished']
    """
    check_n_jobs(n_jobs)
    cells = list(cells)
    Results(execution.folder).note_asked(cells)
    waiting = _groups(cells)
    outcomes: list[Outcome] = []
    if joblib.effective_n_jobs(n_jobs) != 1 and any(is_outside(cell.method) for cell in cells):
        # joblib's processes live on, and keep the user's modules as they were first loaded.
        get_reusable_executor().shutdown()
    # scikit-learn's Parallel passes its configuration, such as routing, to the processes.
    with Parallel(n_jobs=n_jobs, return_as="generator_unordered") as parallel:
        while waiting:
            busy = []
            jobs = (delayed(_run_group)(group, execution) for group in waiting)
            for group in parallel(jobs):
                for outcome in group:
                    if outcome.state == "busy":
                        busy.append(outcome.cell)
                    else:
                        outcomes.append(outcome)
                        report(outcome)
            waiting = _groups(busy)
            if waiting:
                time.sleep(_WAIT)
    return outcomes


def _groups(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Group the cells that share a trained encoder."""
    groups: dict[Any, list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[trial_key(cell)].append(cell)
    return list(groups.values())


def trial_key(cell: Cell) -> tuple[Any, ...]:
    """Return a key that is equal for cells with the same encoder."""
    protocol = PROTOCOLS[cell.protocol]
    return protocol.make_trial, cell.dataset, cell.method, cell.seed, cell.split, cell.budget


def condition_of(cell: Cell, execution: Execution) -> Condition:
    """Return what the trial of a cell is asked for."""
    method, budget = execution.method(cell.method), BUDGETS[cell.budget]
    return Condition(method, cell.dataset, cell.seed, cell.split, budget, execution)


def _run_group(cells: list[Cell], execution: Execution) -> list[Outcome]:
    """Run cells that share a trained encoder, unless another process is running them."""
    results = Results(execution.folder)
    there = [cell for cell in cells if results.has(cell, identity(cell, execution))]
    wanted = [cell for cell in cells if cell not in there]
    outcomes = [Outcome(cell, "there") for cell in there]
    if not wanted:
        return outcomes
    first = wanted[0]
    kind = PROTOCOLS[first.protocol].make_trial.__name__
    name = f"{kind}-{first.dataset}-{first.method}-{first.seed}-{first.split}-{first.budget}"
    locks = execution.folder / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    try:
        # The operating system releases the lock when the process dies.
        with FileLock(locks / f"{name.strip('_')}.lock", timeout=0):
            return outcomes + _run_locked(wanted, execution, results)
    except Timeout:
        return outcomes + [Outcome(cell, "busy") for cell in wanted]


def _run_locked(cells: list[Cell], execution: Execution, results: Results) -> list[Outcome]:
    """Run the unfinished cells of a group, and store their results."""
    outcomes, trial = [], None
    for cell in cells:
        if results.has(cell, identity(cell, execution)):  # finished while this process waited
            outcomes.append(Outcome(cell, "there"))
            continue
        results.set_aside(cell)
        protocol = PROTOCOLS[cell.protocol]
        try:
            with execution.threads():
                if trial is None:
                    trial = protocol.trial(condition_of(cell, execution))
                if cell.split == "test":
                    results.log_look(cell)
                start = time.perf_counter()
                scores = protocol.run(trial)
            content = _content(trial, scores, start)
            results.write(cell, identity(cell, execution), content)
        except Exception as error:  # must not stop the other cells; the caller reports it
            state = (
                "no data"
                if trial is None and isinstance(error, OSError | ImportError)
                else "failed"
            )
            outcomes.append(Outcome(cell, state, f"{type(error).__name__}: {error}"))
            continue
        outcomes.append(Outcome(cell, "finished"))
    return outcomes


def _content(trial: Trial, scores: Scores, start: float) -> dict[str, Any]:
    """Return the entries of a finished cell that was begun at the time `start`."""
    return {
        "scores": scores,
        "parts": {part: len(trial.task.rows(part)) for part in ("train", "val", "test")},
        "note": trial.task.note,
        "training": trial.record,
        "seconds": time.perf_counter() - start,
        "execution": trial.options,
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Return the versions of the libraries and the kind of processor."""
    return {
        "sklearn_pulse": __version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scikit-learn": sklearn.__version__,
        "torch": torch.__version__,
        "processor": f"{platform.machine()}, {os.cpu_count()} cores",
    }
