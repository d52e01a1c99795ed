"""PatchTST on HAR with one setting of the released code at a time: ``python -m perf.patchtst``.

A row holds the validation loss, and the accuracy of the probe on the validation recordings with
all, 5 % and 1 % of the labels, of one seed. All rows take about 40 minutes of a core, most of them
for the rows with a patch at every step.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_pulse.benchmark import BUDGETS, Execution
from sklearn_pulse.benchmark._execution import Condition
from sklearn_pulse.benchmark._methods import all_methods
from sklearn_pulse.benchmark._protocols import ALL_LABELS, FEW_LABELS, PROTOCOLS

RELEASED = "all settings of the released code"
ROWS: dict[str, dict[str, Any]] = {
    "nothing else": {},
    "a constant rate of 4e-7": {"schedule": "constant", "lr": 1e-5 / 25, "betas": (0.95, 0.999)},
    "a patch at every step": {"patch_stride": 1},
    "the loss divided by the batch size once more": {"loss_reduction": "published"},
    "new draws at every validation": {"deterministic_validation": False},
    "a rate up to 1e-4": {"lr": 1e-4},
    "a rate up to 1e-3": {"lr": 1e-3},
    "a rate up to 1e-3, a patch at every step": {"lr": 1e-3, "patch_stride": 1},
    "a rate of 1e-12, so that nothing is learnt": {"lr": 1e-12},
    "the same, for one epoch": {"lr": 1e-12, "max_epochs": 1},
    RELEASED: {},
}


def row(name: str, budget: str, execution: Execution) -> tuple[float, list[float]]:
    """Return the validation loss, and the accuracies in percent, of PatchTST with some settings.

    Parameters
    ----------
    name : str
        One of `ROWS`.
    budget : str
        Name of the benchmark's budget.
    execution : Execution
        Folder of the trained encoders, and of the data.

    Returns
    -------
    loss : float
        Validation loss of the last epoch that has one.
    accuracies : list of float
        Accuracy with all, 5 % and 1 % of the labels.
    """
    method = dataclasses.replace(
        all_methods()["patchtst"], params=ROWS[name], published=name == RELEASED
    )
    protocol = PROTOCOLS["label-efficiency"]
    trial = protocol.trial(Condition(method, "har", 0, "val", BUDGETS[budget], execution))
    scores = protocol.run(trial)
    few, fewer = reversed(FEW_LABELS)
    return trial.record["valid_loss"], [
        100 * float(np.mean(scores[metric])) for metric in (ALL_LABELS, few, fewer)
    ]


def main() -> None:
    """Print a line of a table per row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", choices=sorted(BUDGETS), default="small")
    parser.add_argument("--out", type=Path, default=Path("output/patchtst"))
    parser.add_argument("--row", nargs="+", action="extend", choices=ROWS)
    options = parser.parse_args()
    for name in dict.fromkeys(options.row or ROWS):
        loss, accuracies = row(name, options.budget, Execution(options.out))
        print("|", name, f"| {loss:.2g} |", *(f"{a:.1f} |" for a in accuracies), flush=True)


if __name__ == "__main__":
    main()
