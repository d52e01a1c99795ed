"""Command line of the benchmark, ``python -m sklearn_pulse.benchmark``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from .._parameters import as_path, check_threads
from .._progress import closable_output
from . import BUDGETS, Execution, Outcome, Results, plan, report, run
from ._bar import in_words, progress
from ._compare import announce, own_protocols
from ._comparison import SCORES
from ._methods import all_methods
from ._own import add_files, is_own
from ._protocols import PROTOCOLS, dataset_names, method_names

_INTERRUPTED = 130  # the exit status of a shell
_DESCRIPTION = "Experiments of the paper, with controls."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run protocols, or report the finished cells.

    Parameters
    ----------
    arguments : sequence of str, default=None
        Arguments of the command line; None takes those of the process.

    Returns
    -------
    int
        Exit status: 0 for success, 1 if a cell failed, 2 for wrong arguments,
        130 after Ctrl-C.
    """
    options = _parser().parse_args(arguments)
    try:
        return _report(options) if options.command == "report" else _run(options)
    except (ValueError, ImportError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: the same command goes on where it stopped", file=sys.stderr)
        return _INTERRUPTED


def _run(options: argparse.Namespace) -> int:
    """Run the cells of the chosen protocols."""
    names = list(PROTOCOLS) if options.command == "all" else [options.command]
    results = Results(options.out)
    execution = Execution(
        results.folder, options.data_home, options.download, options.device, options.threads
    )
    cells = plan(
        names,
        datasets=_add_own(options.dataset, names, results),
        methods=options.method,
        n_seeds=options.seeds,
        split=options.split,
        budget=options.budget,
        published=options.published,
    )
    if not cells:
        raise ValueError(
            f"there is no cell to run: {options.command} has the data sets"
            f" {', '.join(dataset_names(names))} and the methods {', '.join(method_names(names))}."
            " Pass --dataset and --method from these."
        )
    if any(cell.split == "test" for cell in cells):
        print(f"test parts have been scored {len(results.looks())} times so far", file=sys.stderr)
    own = [cell for cell in cells if is_own(cell.dataset)]
    if own:
        announce(own, execution, options.n_jobs)
    with progress(len(cells)) as advance:
        outcomes = run(cells, execution, n_jobs=options.n_jobs, report=advance)
    return _summarise(outcomes)


def _add_own(datasets: list[str] | None, names: list[str], results: Results) -> list[str] | None:
    """Return the names of the data sets; those that are folders or files are added first."""
    if datasets is None:
        return None
    known = dataset_names(names)
    found = []
    for dataset in datasets:
        if dataset not in known and not as_path("--dataset", dataset).exists():
            raise ValueError(
                f"argument --dataset: {dataset!r} is neither one of {', '.join(known)} nor a folder"
                " or file of windows."
            )
        if dataset in known and Path(dataset).is_dir():
            print(
                f"{dataset} is the public data set; for your folder of this name write ./{dataset}",
                file=sys.stderr,
            )
        found.append(dataset if dataset in known else str(add_files(dataset, results.folder)))
    if any(map(is_own, found)) and not set(names) & set(own_protocols()):
        raise ValueError(
            f"{', '.join(names)} takes no windows of your own: run one of"
            f" {', '.join(own_protocols())}."
        )
    return found


def _summarise(outcomes: list[Outcome]) -> int:
    """Print the number of cells by state, and the errors."""
    counts = dict.fromkeys(("finished", "there", "no data", "failed"), 0)
    for outcome in outcomes:
        counts[outcome.state] += 1
    print(", ".join(f"{number} {state}" for state, number in counts.items()), file=sys.stderr)
    absent = {
        outcome.cell.dataset: outcome.message for outcome in outcomes if outcome.state == "no data"
    }
    for dataset, message in absent.items():
        print(f"no data: {dataset}: {message}", file=sys.stderr)
    if absent:
        print("pass --download, or --data-home and the folder that has the data", file=sys.stderr)
    for outcome in outcomes:
        if outcome.state == "failed":
            print(f"failed: {in_words(outcome.cell)}: {outcome.message}", file=sys.stderr)
    nothing = not counts["finished"] and not counts["there"]
    return 1 if counts["failed"] or nothing else 0


def _report(options: argparse.Namespace) -> int:
    """Print the tables of the finished cells, and write them with their pictures."""
    results = Results(options.out)
    folder = results.folder / "tables"
    text = report(results, folder, score=options.score)
    encoding = sys.stdout.encoding or "utf-8"  # which may lack letters; the files have them
    with closable_output():
        print(text.encode(encoding, "replace").decode(encoding))
    print(f"files: {folder}", file=sys.stderr)
    return 0


class _Parser(argparse.ArgumentParser):
    """Parser whose error messages are one line."""

    def error(self, message: str) -> NoReturn:
        """Print the message and exit."""
        print(f"error: {message}", file=sys.stderr)
        sys.exit(2)


def _parser() -> argparse.ArgumentParser:
    """Return the parser, with one command per protocol, "all" and "report"."""
    parser = _Parser(prog="python -m sklearn_pulse.benchmark", description=_DESCRIPTION)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    for name in (*PROTOCOLS, "all"):
        title = "every protocol" if name == "all" else PROTOCOLS[name].title
        command = commands.add_parser(name, help=title, description=title)
        names = list(PROTOCOLS) if name == "all" else [name]
        _add_arguments(command, names)
    command = commands.add_parser("report", help="tables and pictures of the finished cells")
    command.add_argument(
        "--score",
        choices=list(SCORES),
        default="accuracy",
        help="score of a comparison; default: accuracy",
    )
    _add_out(command)
    return parser


def _add_arguments(command: argparse.ArgumentParser, names: list[str]) -> None:
    """Add the arguments of a command that runs the named protocols."""
    of_protocols = method_names(names)
    methods = [name for name in all_methods() if name in of_protocols]
    taking = f"one of {', '.join(dataset_names(names))}"
    if set(names) & set(own_protocols()):
        taking += (
            ", or a folder of your windows: X.npy, y.npy, groups.npy, recording.npy, start.npy,"
            " or .npz or .parquet files"
        )
    several: dict[str, Any] = {"nargs": "+", "action": "extend"}  # an option given twice adds up
    command.add_argument("--dataset", **several, metavar="NAME", help=f"{taking}; default: all")
    command.add_argument("--method", **several, choices=methods, help="default: all")
    command.add_argument(
        "--seeds",
        type=_positive,
        help="number of seeds, from 0 on; default: by budget (a cross-validation runs all folds, a"
        " comparison all divisions)",
    )
    command.add_argument("--budget", choices=list(BUDGETS), default="small", help=_budgets())
    command.add_argument(
        "--split",
        choices=["val", "test"],
        default="val",
        help="part to score (a cross-validation scores test folds); looks at test parts are logged",
    )
    command.add_argument(
        "--published",
        action="store_true",
        help="settings of the released code, whose errors are mended otherwise",
    )
    command.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:1")
    command.add_argument("--n-jobs", type=_positive, default=1, help="number of processes")
    command.add_argument("--threads", type=_threads, default=1, help="threads per process")
    command.add_argument("--data-home", help="folder of the data sets")
    command.add_argument("--download", action="store_true", help="download missing data sets")
    _add_out(command)


def _add_out(command: argparse.ArgumentParser) -> None:
    command.add_argument("--out", default="output/benchmark", type=_folder, help="results folder")


def _budgets() -> str:
    """Describe the budgets."""
    return "; ".join(f"{name}: {budget}" for name, budget in BUDGETS.items())


def _positive(text: str) -> int:
    """Return a positive integer; raise in argparse's way for any other text."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {text!r}")
    return int(text)


def _folder(text: str) -> Path:
    """Return a folder; raise in argparse's way for an empty name, which would be this one."""
    try:
        return as_path("out", text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _threads(text: str) -> int:
    """Return a number of threads; raise in argparse's way for any other text."""
    number = _positive(text)
    try:
        check_threads(number)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return number


if __name__ == "__main__":
    sys.exit(main())
