"""Protocols of the paper, made of splitters, estimators and scorers of the library."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..evaluation import clustering_scores, make_cluster_probe, reconstruction_scores
from ..model_selection import LabelFractionSplit
from ._budgets import Budget
from ._comparison import N_DRAWS, probes_by_amount
from ._execution import Condition
from ._methods import (
    Method,
    ablations,
    aeon_controls,
    controls,
    cross_prediction,
    oracles,
    supervised,
    trained,
)
from ._own import OwnSource, is_own, n_folds_of, on_own_fold
from ._sources import COLUMNS, SOURCES, on_division
from ._supervised import PUBLISHED_DRAW, supervised_scores
from ._synthetic import SYNTHETIC, on_system, synthetic
from ._task import N_FOLDS
from ._tasks import SCENARIOS, TASKS
from ._transfer import on_transfer, transfer
from ._trial import Scores, Trial, cross_validated

FRACTIONS = (0.01, 0.05)
FEW_LABELS = ("accuracy 1 %", "accuracy 5 %")
N_PEOPLE = (1, 2, 4, 8)
FEW_PEOPLE = ("accuracy 1 person", *(f"accuracy {number} people" for number in N_PEOPLE[1:]))
ALL_LABELS = "accuracy 100 %"
ALL_PEOPLE = "accuracy all people"
# The kind of draw in the paper's tables, and that of the published code.
_SMOOTHINGS: tuple[tuple[Literal["per_class", "published"], str], ...] = (
    ("per_class", ""),
    ("published", PUBLISHED_DRAW),
)


@dataclass(frozen=True)
class Protocol:
    """Experiment of the paper.

    Parameters
    ----------
    name : str
        Name on the command line.
    title : str
        Title of the tables.
    run : callable
        Function of a `Trial` that returns its scores.
    datasets : dict
        Data sets or transfers by name.
    methods : callable
        Function without arguments that returns the methods to compare.
    make_trial : callable
        Function of a `Condition` on one of `datasets` that returns its `Trial`.
    metrics : tuple of str
        Metrics of the tables. Pictures show the first metric.
    has_folds : bool, default=False
        Whether the seed is the number of a fold, whose test part is scored.
    is_crossed : bool, default=False
        Whether data sets are columns. Then data sets with the same title share a table, in which
        each has the column named by its `column`, and a further table holds the means over titles.
    is_wide : bool, default=False
        Whether each amount of labels and each probe has a table, whose columns are data sets. Then
        the data sets state how often they are run.
    takes_own : bool, default=False
        Whether data sets of the user can be run.
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
    is_wide: bool = False
    takes_own: bool = False

    def source(self, dataset: str) -> Any:
        """Return a data set or transfer of the protocol, or a data set of the user, by name."""
        return OwnSource(dataset) if is_own(dataset) else self.datasets[dataset]

    def trial(self, condition: Condition) -> Trial:
        """Return the trial of a condition; on a data set of the user, its fold is the seed."""
        make = on_own_fold if is_own(condition.dataset) else self.make_trial
        return make(condition)

    def n_runs(self, dataset: str, n_seeds: int | None, budget: Budget) -> int:
        """Return the number of seeds, folds or divisions of a data set."""
        if self.has_folds:
            return n_folds_of(dataset) if is_own(dataset) else N_FOLDS
        if self.is_wide:
            return min(self.source(dataset).n_runs, n_seeds or N_FOLDS)
        return n_seeds or budget.n_seeds


def _on_paper_split(condition: Condition) -> Trial:
    """Return a trial on the published division of a data set."""
    source = TASKS[condition.dataset]
    return Trial(condition, condition.execution.load(source.load), source.preset)


def _on_fold(condition: Condition) -> Trial:
    """Return a trial on the fold whose number is the seed."""
    source = TASKS[condition.dataset]
    task = condition.execution.load(source.load).fold(condition.seed)
    return Trial(condition, task, source.preset, division=f"fold {condition.seed} of {N_FOLDS}")


def linear_probe(trial: Trial) -> Scores:
    """Score a linear probe, clusters and, if the method has a decoder, the reconstruction.

    Clusters are left out where there are no more windows than classes, or all embeddings are equal.

    Sources: paper, Section 5.1 and Appendix G (the probe), and the released code (clusters and
    reconstruction, which the paper does not report).
    """
    train, scored = trial.split
    Z, y = trial.embedding, trial.y
    scores = cross_validated(trial, Z, y, [(train, scored)])
    n_clusters = len(np.unique(y))
    differ = trial.method.make is not None and bool((Z[scored] != Z[scored[:1]]).any())
    if differ and n_clusters < len(scored):
        clusterer = make_cluster_probe(n_clusters)
        scores |= clustering_scores(clusterer, Z[scored], y[scored])
    if trial.method.reconstructs and trial.task.X.shape[1] > 1:  # the first step is given
        scores |= reconstruction_scores(trial.encoder, trial.task.X[trial.rows[scored]])
    return scores


def label_efficiency(trial: Trial) -> Scores:
    """Score linear probes on a few labels, drawn several times (paper, Section 5.2).

    The published way of drawing may draw a single class, from which no probe can learn. Such draws
    are left out.
    """
    scores = _few_labels(trial)
    if not trial.method.is_classifier:
        all_labels = cross_validated(trial, trial.embedding, trial.y, [trial.split])
        scores[ALL_LABELS] = all_labels["accuracy"]
    return scores


def _few_labels(trial: Trial) -> Scores:
    """Return the scores of `label_efficiency`, except the score with all labels."""
    if trial.method.is_classifier:
        return supervised_scores(trial, dict(zip(FRACTIONS, FEW_LABELS, strict=True)))
    Z, y, split = trial.embedding, trial.y, trial.split
    scores: Scores = {}
    for fraction, metric in zip(FRACTIONS, FEW_LABELS, strict=True):
        for smoothing, suffix in _SMOOTHINGS:
            draws = LabelFractionSplit(
                fraction, smoothing=smoothing, n_draws=N_DRAWS, cv=[split], random_state=trial.seed
            )
            usable = [draw for draw in draws.split(Z, y) if len(np.unique(y[draw[0]])) > 1]
            if usable:
                scores[metric + suffix] = cross_validated(trial, Z, y, usable)["accuracy"]
    return scores


def labelled_people(trial: Trial) -> Scores:
    """Score linear probes on the labels of whole people, drawn several times.

    People are drawn until each class is shown by a number of them, as by
    :func:`~sklearn_pulse.model_selection.mask_labels`. Amounts that would label everybody are
    left out, since all people are one of the amounts.
    """
    Z, y = trial.embedding, trial.y
    train, scored = trial.split
    groups = trial.task.groups[trial.rows]
    scores: Scores = {}
    for n_people, metric in zip(N_PEOPLE, FEW_PEOPLE, strict=True):
        splitter = LabelFractionSplit(
            None, n_groups=n_people, n_draws=N_DRAWS, cv=[trial.split], random_state=trial.seed
        )
        draws = list(splitter.split(Z, y, groups))
        if all(len(drawn) < len(train) for drawn, _ in draws):
            scores[metric] = cross_validated(trial, Z, y, draws)["accuracy"]
    scores[ALL_PEOPLE] = cross_validated(trial, Z, y, [(train, scored)])["accuracy"]
    return scores


def cross_validation(trial: Trial) -> Scores:
    """Score the linear probe with all and with few labels on a fold (paper, Appendix E)."""
    few = _few_labels(trial)
    return few if trial.method.is_classifier else linear_probe(trial) | few


def _compared() -> list[Method]:
    """Return the method in closed form, all self-supervised methods and the controls."""
    return [cross_prediction(), *trained(), *controls()]


def _compared_on_all_sources() -> list[Method]:
    """Return all methods that need no labels, and all controls."""
    return [cross_prediction(), *trained(), *controls(), *aeon_controls()]


def _compared_on_few_labels() -> list[Method]:
    """Return all methods, supervised or not, and the controls."""
    return [cross_prediction(), *trained(), supervised(), *controls()]


def _compared_on_systems() -> list[Method]:
    """Return the oracles, PULSE and its ablations, the other methods and the controls."""
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
            takes_own=True,
        ),
        Protocol(
            "label-efficiency",
            "Few labels",
            label_efficiency,
            TASKS,
            _compared_on_few_labels,
            _on_paper_split,
            (*FEW_LABELS, ALL_LABELS),
            takes_own=True,
        ),
        Protocol(
            "labelled-people",
            "Few labelled people",
            labelled_people,
            TASKS,
            _compared,
            _on_paper_split,
            (*FEW_PEOPLE, ALL_PEOPLE),
            takes_own=True,
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
            takes_own=True,
        ),
        Protocol(
            "cross-validation",
            "Cross-validation",
            cross_validation,
            TASKS,
            _compared_on_few_labels,
            _on_fold,
            (*_PROBED, *FEW_LABELS),
            has_folds=True,
            takes_own=True,
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
        Protocol(
            "comparison",
            "Comparison",
            probes_by_amount,
            SOURCES,
            _compared_on_all_sources,
            on_division,
            COLUMNS,
            is_wide=True,
            takes_own=True,
        ),
    )
}


def dataset_names(protocols: Iterable[str]) -> list[str]:
    """Return the names of the data sets of some protocols, each once.

    Examples
    --------
    >>> dataset_names(["transfer"])[0]
    'har-gesture'
    """
    return list(dict.fromkeys(d for name in protocols for d in PROTOCOLS[name].datasets))


def method_names(protocols: Iterable[str]) -> list[str]:
    """Return the names of the methods of some protocols, each once.

    Examples
    --------
    >>> "pulse" in method_names(["linear-probe"])
    True
    """
    return list(dict.fromkeys(m.name for name in protocols for m in PROTOCOLS[name].methods()))
