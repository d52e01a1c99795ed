"""Steps of pipelines, frozen or not."""

from __future__ import annotations

from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

_DOES_NOTHING = (None, "passthrough")


def steps_of(estimator: Any) -> list[Any]:
    """Return the steps of a pipeline, frozen or not, including those of pipelines in it.

    An estimator that is no pipeline is its only step. Steps that do nothing are left out.
    """
    inner = _thawed(estimator)
    if not isinstance(inner, Pipeline):
        return [inner]
    steps = [step for _, step in inner.steps if step not in _DOES_NOTHING]
    return [part for step in steps for part in steps_of(step)]


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself; nothing is run."""
    while isinstance(pipeline := _working_steps(estimator), Pipeline):
        estimator = pipeline[-1]
    return pipeline


def before_last_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Run every step of a fitted pipeline but the last; return their output and the last step.

    So several scores need only one pass through the encoder. An estimator that is not a pipeline
    is returned unchanged, together with `X`.
    """
    while isinstance(pipeline := _working_steps(estimator), Pipeline):
        if len(pipeline) > 1:
            X = pipeline[:-1].transform(X)
        estimator = pipeline[-1]
    return X, pipeline


def _working_steps(estimator: Any) -> Any:
    """Return a pipeline, frozen or not, without the steps at its end that do nothing.

    An estimator that is not a pipeline is returned as it is.
    """
    inner = _thawed(estimator)
    if not isinstance(inner, Pipeline):
        return estimator
    n_steps = len(inner)
    while n_steps > 1 and inner.steps[n_steps - 1][1] in _DOES_NOTHING:
        n_steps -= 1
    return inner[:n_steps]


def _thawed(estimator: Any) -> Any:
    """Return what is frozen in an estimator, or the estimator."""
    while isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    return estimator
