"""Parameters of chaotic systems, told apart at four noise levels (paper, Section 4, Table 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..datasets import make_system_classification
from ._budgets import Budget
from ._methods import Method
from ._tasks import Task
from ._trial import Execution, Scores, Trial, cross_validated

SYSTEMS = {"lorenz": "Lorenz", "thomas": "Thomas", "hindmarsh_rose": "Hindmarsh-Rose"}
NOISE_LEVELS = (0, 1, 3, 5)


@dataclass(frozen=True)
class SyntheticSource:
    """A system at a noise level.

    Parameters
    ----------
    system : str
        Key of `SYSTEMS`.
    noise : int
        Noise level.
    """

    system: str
    noise: int
    preset = "synthetic"

    @property
    def title(self) -> str:
        """Name in tables."""
        return SYSTEMS[self.system]

    @property
    def column(self) -> str:
        """Where its accuracy stands in the table of its system."""
        return f"noise {self.noise}"

    def load(self, seed: int) -> Callable[..., Task]:
        """Return what loads the task of a seed, which draws the parameter values."""
        return _loader(self.system, self.noise, seed)


SYNTHETIC = {
    f"{system.replace('_', '-')}-{noise}": SyntheticSource(system, noise)
    for system in SYSTEMS
    for noise in NOISE_LEVELS
}


@cache
def _loader(system: str, noise: int, seed: int) -> Callable[..., Task]:
    def load(**home: Any) -> Task:
        data = make_system_classification(system, noise=float(noise), random_state=seed)
        return Task(
            f"{system}-{noise}",
            data.X,
            data.y,
            data.groups,
            data.split,
            data.recordings,
            data.recording_split,
            np.arange(len(data.recordings)),
            group_unit="trials",
        )

    return load


def on_system(
    method: Method, dataset: str, seed: int, scored: str, budget: Budget, execution: Execution
) -> Trial:
    """Return a trial on the parameter values that the seed draws."""
    source = SYNTHETIC[dataset]
    task = execution.load(source.load(seed))
    return Trial(method, dataset, task, source.preset, seed, scored, budget, execution)


def synthetic(trial: Trial) -> Scores:
    """Score a linear probe."""
    return cross_validated(trial, trial.embedding, trial.y, [trial.split])
