"""Comparison of methods on windows of the user."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import joblib
from numpy.typing import ArrayLike

from .._extras import needs
from .._parameters import as_path, check_boolean, check_n_jobs, check_option
from .._warnings import warn_user
from ._bar import progress
from ._cells import Cell, Results
from ._estimate import estimate
from ._execution import Execution
from ._methods import all_methods
from ._outside import OutsideMethod, as_outside, title_of
from ._own import add_arrays
from ._pictures import learning_curve
from ._protocols import PROTOCOLS
from ._report import rows
from ._run import Outcome, plan, run
from ._supervised import PUBLISHED_DRAW
from ._tables import Table, tables
from ._tasks import load_once

if TYPE_CHECKING:
    import pandas as pd

    from ..plotting import LabelEfficiencyDisplay

_METHODS = ("cross-prediction", "minirocket", "statistics", "untrained", "majority")
_COLUMNS = ("protocol", "method", "control", "metric", "n_seeds", "mean", "spread")


class Comparison(NamedTuple):
    """Result of :func:`compare`: scores as a frame, and their picture.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row per protocol, method and metric.
    display : LabelEfficiencyDisplay or None
        Accuracy against the amount of labels.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_pulse.benchmark import Comparison
    >>> result = Comparison(pd.DataFrame({"method": ["majority"], "mean": [0.2]}), display=None)
    >>> frame, display = result
    >>> list(frame.columns)
    ['method', 'mean']
    """

    frame: pd.DataFrame
    display: LabelEfficiencyDisplay | None


def compare(
    X: ArrayLike,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    recording: ArrayLike | None = None,
    start: ArrayLike | None = None,
    methods: Sequence[str | tuple[str, Any]] = _METHODS,
    protocols: Sequence[str] = ("label-efficiency",),
    budget: Literal["smoke", "tiny", "small", "medium", "full", "full-bfloat16"] = "small",
    split: Literal["val", "test"] = "val",
    n_seeds: int | None = None,
    n_jobs: int = 1,
    num_threads: int = 1,
    device: str = "auto",
    out: str | os.PathLike[str] | None = None,
    verbose: bool = True,
) -> Comparison:
    """Compare methods and controls on your own windows, as the benchmark does on public data.

    Whole groups are divided into as many as five folds. Run s, of the seed s, has fold s as its
    test part, the next fold as its validation part, and learns from the others. Further runs repeat
    the folds with other seeds, and a note says so. Choose a method by
    the validation parts, which are scored by default, and look at the test parts once.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_timesteps, n_channels) or (n_samples, n_timesteps)
        Windows; missing values are NaN.
    y : array-like of shape (n_samples,)
        Class of each window, an integer or a text.
    groups : array-like of shape (n_samples,), default=None
        Person of each window; at least 3 people. Without groups, windows of one recording fall into
        several parts, and scores are too high.
    recording : array-like of shape (n_samples,), default=None
        Recording of each window, for methods that know recordings; None takes `groups`. If several
        groups use the same number, each group has a recording of its own.
    start : array-like of shape (n_samples,), default=None
        First time step of each window in its recording; None means the order of the rows. Where it
        repeats within groups, `recording` is needed.
    methods : sequence of str or (str, estimator) tuples, default=("cross-prediction", \
"minirocket", "statistics", "untrained", "majority")
        Names of methods and controls, as those of ``python -m sklearn_pulse.benchmark
        linear-probe --method``: "pulse", "ts2vec", "simclr" and so on. A pair of a new name and an
        unfitted transformer adds an estimator of your own, on which the notes say more.
    protocols : sequence of str, default=("label-efficiency",)
        What is scored: "linear-probe" (all labels), "label-efficiency" (1 %, 5 % and 100 % of the
        labels), "labelled-people" (the labels of 1, 2, 4, 8 and all people), "ablation" (PULSE
        without one of its parts), "cross-validation" (the test part of every fold) or "comparison"
        (all, few and grouped labels, each by two probes; it alone has the controls
        "multirocket-hydra" and "quant", which need aeon).
    budget : {"smoke", "tiny", "small", "medium", "full", "full-bfloat16"}, default="small"
        Limits on training, a key of `BUDGETS`. An estimator of your own trains as its parameters
        say; the budget sets only the number of its runs.
    split : {"val", "test"}, default="val"
        Part that is scored; every scoring of a test part is logged in `out`.
    n_seeds : int, default=None
        Number of runs; None takes the number of the budget, and all folds in a comparison.
        "cross-validation" runs every fold.
    n_jobs : int, default=1
        Number of processes; -1 takes one per processor.
    num_threads : int, default=1
        Number of threads of each process.
    device : str, default="auto"
        Parameter `device` of the methods that are known by name.
    out : path-like, default=None
        Folder of the results, which also holds a copy of the windows: finished runs are not
        repeated, and ``python -m sklearn_pulse.benchmark report --out`` makes tables of it. None
        keeps nothing.
    verbose : bool, default=True
        Whether to print an estimate of the time, measured on a small part of the windows, and a
        progress bar.

    Returns
    -------
    frame : pandas.DataFrame
        One row per protocol, method and metric: mean and population standard deviation over the
        runs, and over the draws of a comparison. ``n_seeds`` is the number of these scores.
        ``frame.attrs["notes"]`` holds a list of notes for each protocol: how the windows are
        divided, which classes a part lacks, and how long methods are trained.
    display : LabelEfficiencyDisplay or None
        Accuracy against the amount of labels, of the first of `protocols` that is
        "label-efficiency" or "labelled-people"; None without such a protocol.

    Raises
    ------
    ImportError
        If pandas, matplotlib or rich is missing.
    RuntimeError
        If no run succeeded; the message holds the first error.
    TypeError, ValueError
        If a parameter is unknown or out of its range, or an estimator of `methods` is no unfitted
        transformer that learns without labels.

    Notes
    -----
    An estimator of your own is any transformer of scikit-learn's kind. Each run fits a clone on the
    training windows, and embeds these and the scored windows at once. Windows have the shape
    (n_samples, n_timesteps, n_channels), also where `X` is 2-D; a pipeline of steps for tables
    begins with a step that makes rows of windows. `fit` gets no labels. It gets `groups`, the
    recording of each window, and `start` if its signature has them, or if a pipeline routes them
    with scikit-learn's metadata routing. Every parameter `random_state`, inner ones too, is the
    seed of the run; all others stay, those that name devices and threads too. `transform` must
    return a row of finite numbers per window. A run that fails is reported like the runs of other
    methods. Where `n_jobs` is not 1, the estimator is pickled. A ``FrozenEstimator`` is scored
    with what it has learnt before: from other people than those of `X`, or its scores are too high.

    A run in `out` is reused for the estimator of the same name, class and parameters, if the code
    is the same: the versions of installed packages, and the files of your modules that define the
    estimator, with those of yours that they import. A file is read when `compare` is called, so
    load a module anew after changing it. Data that the code reads are not seen. Runs of another
    estimator of the same name are kept beside these, and the report tells the rows apart by a
    digest. Classes and functions of a script or a notebook, and lambdas, cannot be recognised in
    another call: a warning says so, and their runs are repeated.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.benchmark import compare
    >>> rng = np.random.default_rng(0)
    >>> y, people = np.arange(80) % 2, np.arange(80) // 10
    >>> X = rng.normal(size=(80, 32, 1)) * (1 + 3 * y[:, None, None])
    >>> frame, _ = compare(
    ...     X, y, groups=people, methods=["statistics", "majority"], protocols=["linear-probe"],
    ...     budget="smoke", verbose=False,
    ... )
    >>> frame.query("metric == 'accuracy'")[["method", "mean"]].values.tolist()
    [['majority class', 0.5], ['channel statistics', 1.0]]

    An estimator of your own comes with a name:

    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> spread = FunctionTransformer(np.std, kw_args={"axis": 1})
    >>> frame, _ = compare(
    ...     X, y, groups=people, methods=[("spread", make_pipeline(spread, PCA()))],
    ...     protocols=["linear-probe"], budget="smoke", verbose=False,
    ... )
    >>> frame.query("metric == 'accuracy'")[["method", "mean"]].values.tolist()
    [['spread', 1.0]]
    """
    with needs("compare needs pandas and matplotlib", "benchmark"):  # before hours of runs
        import matplotlib  # noqa: F401
        import pandas  # noqa: F401
    _check(methods, protocols, verbose)
    check_n_jobs(n_jobs)
    outside = as_outside(method for method in methods if not isinstance(method, str))
    if out is not None:
        _warn_of_lost(outside)
    with _folder(out) as name:
        results = Results(Path(name))
        dataset = add_arrays(results.folder, "data", X, y, groups, recording, start)
        cells = plan(
            protocols,
            datasets=[dataset],
            methods=[*_names(methods), *(method.name for method in outside)],
            n_seeds=n_seeds,
            split=split,
            budget=budget,
        )
        absent = sorted(set(_names(methods)) - {cell.method for cell in cells})
        if absent:
            raise ValueError(
                f"methods {', '.join(absent)} are in none of the protocols {', '.join(protocols)}."
            )
        execution = Execution(
            results.folder, device=device, num_threads=num_threads, outside=tuple(outside)
        )
        if verbose:
            announce(cells, execution, n_jobs)
        with progress(len(cells)) if verbose else nullcontext(_silent) as advance:
            outcomes = _run(cells, execution, n_jobs, advance)
        _complain(outcomes)
        # The file of a run that failed now may hold its score with other settings.
        finished = dict.fromkeys(outcome.cell for outcome in outcomes if not outcome.message)
        records = filter(None, map(results.read, finished))
        return _result(list(tables(records, cells)), protocols)


def _run(cells: list[Cell], execution: Execution, n_jobs: int, report: Any) -> list[Outcome]:
    """Run the cells; raise a TypeError if an estimator cannot be sent to another process."""
    try:
        return run(cells, execution, n_jobs=n_jobs, report=report)
    except PicklingError as error:
        raise TypeError(
            f"methods: an estimator cannot be sent to another process ({error}): give it parameters"
            " that can be pickled, or pass n_jobs=1."
        ) from error


def announce(cells: list[Cell], execution: Execution, n_jobs: int) -> None:
    """Print about how long the cells take."""
    print(f"{len(cells)} run(s); measuring how long they take ...", file=sys.stderr)
    n_processes = joblib.effective_n_jobs(n_jobs)
    seconds = estimate(cells, execution, n_processes)
    if seconds is None:
        print("all are finished", file=sys.stderr)
        return
    if not seconds:
        print("none can be measured: the runs say why", file=sys.stderr)
        return
    processes = "one process" if n_processes == 1 else f"{n_processes} processes"
    print(f"about {_duration(seconds)} in {processes}", file=sys.stderr)


def _duration(seconds: float) -> str:
    """Return a duration in words, rounded as an estimate is."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def _check(methods: Any, protocols: Any, verbose: Any) -> None:
    """Raise unless all names are known."""
    check_boolean("verbose", verbose)
    for name, values in (("methods", methods), ("protocols", protocols)):
        if isinstance(values, str) or not isinstance(values, Sequence) or not values:
            raise TypeError(f"{name} must be a list of names, got {values!r}")
    for method in _names(methods):
        check_option("each of methods", method, all_methods())
    for protocol in protocols:
        check_option("each of protocols", protocol, own_protocols())


def _names(methods: Iterable[Any]) -> list[str]:
    """Return the methods that are known by name."""
    return [method for method in methods if isinstance(method, str)]


def _warn_of_lost(outside: list[OutsideMethod]) -> None:
    """Warn of estimators whose finished runs another call will not find again."""
    for method in outside:
        if method.not_reused:
            warn_user(
                f"Finished runs of {method.title!r} are not reused in another call, which could not"
                f" tell it from an estimator that differs: {method.not_reused}."
            )


def own_protocols() -> list[str]:
    """Return the names of the protocols that take data sets of the user."""
    return [name for name, protocol in PROTOCOLS.items() if protocol.takes_own]


@contextmanager
def _folder(out: str | os.PathLike[str] | None) -> Iterator[str | os.PathLike[str]]:
    """Use a folder for the results: the given one, or one that is deleted at the end."""
    kept = None if out is None else nullcontext(as_path("out", out, optional=True))
    # Workers map files of the folder as long as they live, which some systems do not delete.
    with kept or tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        try:
            yield name
        finally:
            load_once.cache_clear()  # it holds the user's windows, maps of files in the folder


def _silent(outcome: Outcome) -> None:
    """Show nothing."""


def _complain(outcomes: list[Outcome]) -> None:
    """Warn of runs that failed; raise if all did."""
    failed = [outcome for outcome in outcomes if outcome.message]
    if not failed:
        return
    first = f"{title_of(failed[0].cell.method)}: {failed[0].message}"
    if len(failed) == len(outcomes):
        raise RuntimeError(f"No run succeeded. The first error: {first}")
    warn_user(f"{len(failed)} of {len(outcomes)} runs failed and are left out. The first: {first}")


def _measure(table: Table) -> dict[str, str]:
    """Return what the rows of a table measure, where its columns are data sets."""
    return {"metric": table.dataset} if PROTOCOLS[table.protocol].is_wide else {}


def _result(found: list[Table], protocols: Sequence[str]) -> Comparison:
    """Return the frame of some tables, and the first curve among them."""
    import pandas as pd

    lines = [row | _measure(table) for table in found for row in rows(table)]
    lines = [line for line in lines if not line["metric"].endswith(PUBLISHED_DRAW)]
    frame = pd.DataFrame(lines, columns=list(_COLUMNS)).dropna(subset="mean", ignore_index=True)
    frame.attrs["notes"] = {table.protocol: list(table.notes) for table in found}
    of_protocol = {table.protocol: table for table in found}
    curves = (learning_curve(of_protocol[name]) for name in protocols if name in of_protocol)
    return Comparison(frame, next(filter(None, curves), None))
