"""Execution of cells: folders, data, device and threads; and what a trial is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from .._parameters import as_path, check_threads
from .._threads import limited_threads
from .._training._device import resolve_device
from ..datasets._home import default_data_home
from ._budgets import Budget
from ._methods import Method, all_methods
from ._task import Task
from ._tasks import load_once


@dataclass(frozen=True)
class Execution:
    """Settings of the execution of cells, on which results do not depend.

    Parameters
    ----------
    folder : Path
        Folder of the results and of trained encoders; it becomes an absolute path.
    data_home : str or None, default=None
        Folder of the data sets, which becomes an absolute path; None means the default folder of
        :mod:`sklearn_pulse.datasets`, as it is when the object is made.
    download : bool, default=False
        Whether missing data sets are downloaded.
    device : str, default="auto"
        Parameter `device` of the estimators.
    num_threads : int, default=1
        Number of threads of torch and of linear algebra, at most 1024.
    outside : tuple of Method, default=()
        Estimators of the user, as `compare` makes methods of them.

    Raises
    ------
    TypeError, ValueError
        If `num_threads` is out of its range, or `device` is not there.

    Examples
    --------
    >>> from pathlib import Path
    >>> from sklearn_pulse.benchmark import Execution
    >>> Execution(Path("output"), device="cpu").num_threads
    1
    """

    folder: Path
    data_home: str | None = None
    download: bool = False
    device: str = "auto"
    num_threads: int = 1
    outside: tuple[Method, ...] = ()

    def __post_init__(self) -> None:
        check_threads(self.num_threads, optional=False)
        resolve_device(self.device)
        # joblib's processes keep the working folder in which they were started.
        object.__setattr__(self, "folder", as_path("folder", self.folder).absolute())
        # Nor do they see a change of the environment, and loaded data sets are cached by folder.
        home = default_data_home() if self.data_home is None else self.data_home
        home = os.path.abspath(as_path("data_home", home, optional=True))
        object.__setattr__(self, "data_home", home)

    def load(self, load: Callable[..., Task], *arguments: Any) -> Task:
        """Load a task.

        Parameters
        ----------
        load : callable
            Function of some arguments, and of the keyword arguments `data_home` and
            `download_if_missing`, that returns a task.
        *arguments : hashable
            The arguments.

        Returns
        -------
        Task
            The task, which is cached.
        """
        return load_once(load, arguments, self.data_home, self.download)

    def method(self, name: str) -> Method:
        """Return a method of the package, or an estimator of the user as a method.

        Parameters
        ----------
        name : str
            Name of the method in cells.

        Returns
        -------
        Method
            The method.
        """
        return ({method.name: method for method in self.outside} | all_methods())[name]

    @contextmanager
    def threads(self) -> Iterator[None]:
        """Limit the threads of torch and of linear algebra inside a ``with`` block.

        Yields
        ------
        None
            Nothing.
        """
        with limited_threads(self.num_threads), threadpool_limits(self.num_threads, "openmp"):
            yield


@dataclass(frozen=True)
class Condition:
    """What a trial is asked for.

    Parameters
    ----------
    method : Method
        Method to train.
    dataset : str
        Name of the data set or transfer.
    seed : int
        Seed of the method and of its windows.
    scored : {"val", "test"}
        Part of the task that is scored.
    budget : Budget
        Limits on training.
    execution : Execution
        Folder of the results, and settings of the execution.
    """

    method: Method
    dataset: str
    seed: int
    scored: str
    budget: Budget
    execution: Execution
