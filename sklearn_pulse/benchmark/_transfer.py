"""Transfer to another data set (paper, Section 5.3)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from .._finetune import FineTuneClassifier
from ._execution import Condition, Execution
from ._task import Task
from ._tasks import SCENARIOS, Scenario
from ._trial import Scores, Trial, cross_validated


def on_transfer(condition: Condition) -> Trial:
    """Return a trial on the source; for methods that cannot be fine-tuned, on the target."""
    scenario, execution = SCENARIOS[condition.dataset], condition.execution
    # Load the target first: if it is missing, pre-training would be wasted.
    task = _target(scenario, condition.scored, execution)
    if condition.method.is_encoder:
        # The table is of the target, and so is its note.
        task = dataclasses.replace(execution.load(scenario.source), note=task.note)
    else:
        task = dataclasses.replace(task, X=task.X[:, : scenario.n_timesteps])
    return Trial(condition, task, scenario.preset)


def transfer(trial: Trial) -> Scores:
    """Fine-tune on the target, and probe the embedding there.

    Fine-tuning sees a share of the target's training windows, and the validation windows unless
    they are scored. The probe is fitted on all training windows. For an encoder that takes windows
    of one length, missing steps follow the steps of a shorter window.
    """
    if not trial.method.is_encoder:
        return cross_validated(trial, trial.embedding, trial.y, [trial.split])
    scenario = SCENARIOS[trial.dataset]
    target = _target(scenario, trial.scored, trial.execution)
    classifier = _fine_tune(trial, scenario, target)
    train, scored = target.rows("train"), target.rows(trial.scored)
    rows = np.concatenate([train, scored])
    X, y = _filled_up(target.X[rows, : scenario.n_timesteps], trial.encoder), target.y[rows]
    split = np.arange(len(train)), np.arange(len(train), len(rows))
    scores = cross_validated(trial, classifier.transform(X), y, [split])
    return scores | {"head accuracy": classifier.score(X[split[1]], y[split[1]])}


def _target(scenario: Scenario, scored: str, execution: Execution) -> Task:
    """Return the task of fine-tuning, with a validation part if this is scored."""
    target = execution.load(scenario.target)
    return target.with_validation() if scored == "val" else target


def _fine_tune(trial: Trial, scenario: Scenario, target: Task) -> FineTuneClassifier:
    """Return the classifier, fine-tuned from the encoder of the trial."""
    chosen = np.random.RandomState(trial.seed).permutation(target.rows("train"))
    chosen = chosen[: int(scenario.train_fraction * len(chosen))]
    if trial.scored == "test":
        chosen = np.concatenate([chosen, target.rows("val")])
    classifier = FineTuneClassifier(
        FrozenEstimator(trial.encoder),
        max_epochs=trial.budget.finetune_epochs,
        batch_size=scenario.batch_size,
        random_state=trial.seed,
        **trial.options,
    )
    return classifier.fit(_filled_up(target.X[chosen], trial.encoder), target.y[chosen])


def _filled_up(X: NDArray[Any], encoder: Any) -> NDArray[Any]:
    """Append missing steps to windows, up to the length of an encoder that takes no other."""
    lacking = encoder.n_timesteps_in_ - X.shape[1]
    if encoder.__sklearn_tags__().variable_length or lacking <= 0:
        return X
    return np.pad(X, ((0, 0), (0, lacking), (0, 0)), constant_values=np.nan)
