"""Progress bar over cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .._extras import needs
from ._cells import Cell
from ._outside import title_of
from ._own import title_of_dataset
from ._run import Outcome


@contextmanager
def progress(n_cells: int) -> Iterator[Callable[[Outcome], None]]:
    """Show a progress bar with an estimate of the remaining time inside a ``with`` block.

    Parameters
    ----------
    n_cells : int
        Number of cells.

    Yields
    ------
    callable
        Function that is called with the outcome of each cell.

    Raises
    ------
    ImportError
        If rich is missing.
    """
    with needs("sklearn_pulse.benchmark needs rich", "benchmark"):
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("remaining"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=3600) as bars:
        bar = bars.add_task("cells", total=n_cells)

        def advance(outcome: Outcome) -> None:
            bars.update(bar, advance=1, description=in_words(outcome.cell))

        yield advance


def in_words(cell: Cell) -> str:
    """Return a cell in words, with the names that the user gave to data sets and estimators.

    Examples
    --------
    >>> from sklearn_pulse.benchmark import Cell
    >>> in_words(Cell("linear-probe", "own-walks-0123456789ab", "pulse", 0, "val", "small"))
    'linear-probe walks pulse seed 0'
    """
    dataset, method = title_of_dataset(cell.dataset), title_of(cell.method)
    return f"{cell.protocol} {dataset} {method} seed {cell.seed}"
