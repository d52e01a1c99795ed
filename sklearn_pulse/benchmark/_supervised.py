"""Supervised method in the tables of few labels (paper, Section 5.2), without a probe."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score

from ..model_selection import LabelFractionSplit
from ._trial import Scores, Trial

PUBLISHED_DRAW = ", published draw"  # end of the names of its scores
# The kind of draw in the paper's tables, and that of the published code, which never adds labels.
_Smoothing = Literal["per_class", "none"]
_SMOOTHINGS: tuple[tuple[_Smoothing, str], ...] = (
    ("per_class", ""),
    ("none", PUBLISHED_DRAW),
)


def supervised_scores(trial: Trial, metrics: dict[float, str]) -> Scores:
    """Train the supervised classifier on few labels, and score its predictions.

    Labels are drawn once per seed. As published, all validation windows select the epoch. If the
    validation windows are scored, or none of them has a class that was drawn, a part of the few
    labels selects the epoch instead.

    Parameters
    ----------
    trial : Trial
        Trial of the supervised method.
    metrics : dict of float to str
        Name of the accuracy for each fraction of the labels.

    Returns
    -------
    dict of str to float
        Accuracies by name.
    """
    scores: Scores = {}
    for fraction, metric in metrics.items():
        for smoothing, suffix in _SMOOTHINGS:
            chosen, scored = _draw(trial, fraction, smoothing)
            if len(np.unique(trial.task.y[chosen])) > 1:
                scores[metric + suffix] = _accuracy(trial, chosen, scored)
    return scores


def _draw(
    trial: Trial, fraction: float, smoothing: _Smoothing
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the numbers of the windows for training and for scoring."""
    train, scored = (trial.rows[part] for part in trial.split)
    if smoothing == "none" and int(fraction * len(train)) == 0:
        return train[:0], scored
    draws = LabelFractionSplit(
        fraction, smoothing=smoothing, n_draws=1, cv=[trial.split], random_state=trial.seed
    )
    chosen, _ = next(draws.split(trial.rows, trial.y))
    return trial.rows[chosen], scored


def _accuracy(trial: Trial, chosen: NDArray[np.intp], scored: NDArray[np.intp]) -> float:
    """Return the accuracy after training on the chosen windows."""
    task, method = trial.task, trial.method
    classifier = method.build(method.settings(trial.preset), trial.seed, **trial.options)
    classifier.set_params(**trial.budget.supervised(classifier.get_params()))
    validation = {}
    if trial.scored == "test":
        rows = task.rows("val")
        rows = rows[np.isin(task.y[rows], task.y[chosen])]  # a draw may lack a class
        if len(rows):
            validation = {"X_val": task.X[rows], "y_val": task.y[rows]}
    classifier.fit(task.X[chosen], task.y[chosen], **validation)
    return float(accuracy_score(task.y[scored], classifier.predict(task.X[scored])))
