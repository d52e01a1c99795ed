"""The protocols of the paper: splitters, estimators and scorers of the library, put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..evaluation import clustering_scores, make_cluster_probe, reconstruction_scores
from ..model_selection import LabelFractionSplit
from ._budgets import Budget
from ._methods import Method, ablations, controls, oracles, supervised, trained
from ._supervised import supervised_scores
from ._synthetic import SYNTHETIC, on_system, synthetic
from ._tasks import N_FOLDS, SCENARIOS, TASKS
from ._transfer import on_transfer, transfer
from ._trial import Execution, Scores, Trial, cross_validated

FRACTIONS = (0.01, 0.05)
FEW_LABELS = ("accuracy 1 %", "accuracy 5 %")
N_DRAWS = 5


@dataclass(frozen=True)
class Protocol:
    """An experiment of the paper.

    Parameters
    ----------
    name : str
        As on the command line.
    title : str
        Of its tables.
    run : callable
        From a `Trial` to its scores.
    datasets : dict
        Its data sets or transfers by name.
    methods : callable
        Returns the methods that are compared.
    make_trial : callable
        From method, data set, seed, scored part, budget and execution to a `Trial`.
    metrics : tuple of str
        What its tables show, the first for pictures.
    has_folds : bool
        Whether a seed is the number of a fold, whose test part is scored.
    is_crossed : bool
        Whether data sets are columns: those with the same title make one table, whose columns are
        their `column`, and a further table has the means over titles.
    """

    name: str
    title: str
    run: Callable[[Trial], Scores]
    datasets: dict[str, Any]
    methods: Callable[[], list[Method]]
    make_trial: Callable[..., Trial]
    metrics: tuple[str, ...]
    has_folds: bool = False
    is_crossed: bool = False


def _on_paper_split(
    method: Method, dataset: str, seed: int, scored: str, budget: Budget, execution: Execution
) -> Trial:
    source = TASKS[dataset]
    task = execution.load(source.load)
    return Trial(method, dataset, task, source.preset, seed, scored, budget, execution)


def _on_fold(
    method: Method, dataset: str, seed: int, scored: str, budget: Budget, execution: Execution
) -> Trial:
    source = TASKS[dataset]
    task = execution.load(source.load).fold(seed)
    fold = f"fold {seed} of {N_FOLDS}"
    return Trial(
        method, dataset, task, source.preset, seed, scored, budget, execution, division=fold
    )


def linear_probe(trial: Trial) -> Scores:
    """Score a linear probe, clusters and, where there is one, the reconstruction.

    Sources: paper, Section 5.1 and Appendix F.
    """
    train, scored = trial.split
    Z, y = trial.embedding, trial.y
    scores = cross_validated(trial, Z, y, [(train, scored)])
    if trial.method.make is not None:
        clusterer = make_cluster_probe(len(np.unique(y)))
        scores |= clustering_scores(clusterer, Z[scored], y[scored])
    if hasattr(trial.method.make, "reconstruct"):
        scores |= reconstruction_scores(trial.encoder, trial.task.X[trial.rows[scored]])
    return scores


def label_efficiency(trial: Trial) -> Scores:
    """Score linear probes on a few labels, drawn several times (paper, Section 5.2).

    The published way of drawing may find one class only, which no probe can learn from; such
    draws are left out.
    """
    if trial.method.is_classifier:
        return supervised_scores(trial, dict(zip(FRACTIONS, FEW_LABELS, strict=True)))
    Z, y, split = trial.embedding, trial.y, trial.split
    scores: Scores = {}
    for fraction, metric in zip(FRACTIONS, FEW_LABELS, strict=True):
        for smoothing, suffix in (("per_class", ""), ("published", ", published draw")):
            draws = LabelFractionSplit(
                fraction, smoothing=smoothing, n_draws=N_DRAWS, cv=[split], random_state=trial.seed
            )
            usable = [draw for draw in draws.split(Z, y) if len(np.unique(y[draw[0]])) > 1]
            if usable:
                scores[metric + suffix] = cross_validated(trial, Z, y, usable)["accuracy"]
    scores["accuracy 100 %"] = cross_validated(trial, Z, y, [split])["accuracy"]
    return scores


def cross_validation(trial: Trial) -> Scores:
    """Score the linear probe with all and with few labels on a fold (paper, Appendix E)."""
    few = {name: value for name, value in label_efficiency(trial).items() if "100" not in name}
    return few if trial.method.is_classifier else linear_probe(trial) | few


def _compared() -> list[Method]:
    return [*trained(), *controls()]


def _compared_on_few_labels() -> list[Method]:
    return [*trained(), supervised(), *controls()]


def _compared_on_systems() -> list[Method]:
    return [*oracles(), *ablations(), *trained()[1:], *controls()]


_PROBED = ("accuracy", "auroc", "auprc")

PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol(
            "linear-probe",
            "Linear probe",
            linear_probe,
            TASKS,
            _compared,
            _on_paper_split,
            _PROBED,
        ),
        Protocol(
            "label-efficiency",
            "Few labels",
            label_efficiency,
            TASKS,
            _compared_on_few_labels,
            _on_paper_split,
            (*FEW_LABELS, "accuracy 100 %"),
        ),
        Protocol(
            "transfer",
            "Transfer",
            transfer,
            SCENARIOS,
            _compared,
            on_transfer,
            _PROBED,
        ),
        Protocol(
            "ablation",
            "Ablation of PULSE",
            linear_probe,
            TASKS,
            ablations,
            _on_paper_split,
            ("accuracy",),
        ),
        Protocol(
            "cross-validation",
            f"{N_FOLDS}-fold cross-validation over recordings",
            cross_validation,
            TASKS,
            _compared_on_few_labels,
            _on_fold,
            (*_PROBED, *FEW_LABELS),
            has_folds=True,
        ),
        Protocol(
            "synthetic",
            "Parameters of chaotic systems",
            synthetic,
            SYNTHETIC,
            _compared_on_systems,
            on_system,
            tuple(dict.fromkeys(source.column for source in SYNTHETIC.values())),
            is_crossed=True,
        ),
    )
}
