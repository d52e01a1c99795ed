"""Classification of the parameters of chaotic systems, with noise (paper, Section 4, Table 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..datasets import make_system_classification
from ._execution import Condition
from ._task import Task
from ._trial import Scores, Trial, cross_validated

SYSTEMS = {"lorenz": "Lorenz", "thomas": "Thomas", "hindmarsh_rose": "Hindmarsh-Rose"}
NOISE_LEVELS = (0, 1, 3, 5)


@dataclass(frozen=True)
class SyntheticSource:
    """System at a noise level.

    Parameters
    ----------
    system : str
        Name of the system, a key of `SYSTEMS`.
    noise : int
        Noise level, one of `NOISE_LEVELS`.
    """

    system: str
    noise: int
    preset = "synthetic"

    @property
    def title(self) -> str:
        """Name of the system in tables."""
        return SYSTEMS[self.system]

    @property
    def column(self) -> str:
        """Column of the accuracy in the table of the system."""
        return f"noise {self.noise}"

    def load(self, seed: int, **home: Any) -> Task:
        """Return the task of a seed, which draws the parameter values."""
        data: Any = make_system_classification(
            self.system, noise=float(self.noise), random_state=seed
        )
        return Task(
            f"{self.system}-{self.noise}",
            data.X,
            data.y,
            data.groups,
            data.split,
            data.recordings,
            data.recording_split,
            np.arange(len(data.recordings)),
            group_unit="trials",
            recording=data.get("recording"),
            start=data.get("start"),
        )


SYNTHETIC = {
    f"{system.replace('_', '-')}-{noise}": SyntheticSource(system, noise)
    for system in SYSTEMS
    for noise in NOISE_LEVELS
}


def on_system(condition: Condition) -> Trial:
    """Return a trial on the task whose parameter values the seed draws."""
    source = SYNTHETIC[condition.dataset]
    task = condition.execution.load(source.load, condition.seed)
    return Trial(condition, task, source.preset)


def synthetic(trial: Trial) -> Scores:
    """Score a linear probe."""
    return cross_validated(trial, trial.embedding, trial.y, [trial.split])
