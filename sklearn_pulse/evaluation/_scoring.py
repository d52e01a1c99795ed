"""Shared parts of the scores: the last step of a pipeline, and scikit-learn's signs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.pipeline import Pipeline


def before_last_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Run every step of a fitted pipeline but the last; return their output and the last step.

    So several scores need only one pass through the encoder. An estimator that is not a pipeline
    is returned unchanged, together with `X`.
    """
    while isinstance(estimator, Pipeline):
        if len(estimator) > 1:
            X = estimator[:-1].transform(X)
        estimator = estimator[-1]
    return X, estimator


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself; nothing is run."""
    while isinstance(estimator, Pipeline):
        estimator = estimator[-1]
    return estimator


class MetricScorer:
    """Scorer of one of several scores, for scikit-learn's ``scoring``.

    Parameters
    ----------
    scores : callable
        Function of estimator, X and y that returns a dictionary of scores.
    metric : str
        Key of the score in this dictionary.
    sign : {1, -1}, default=1
        Factor of the score: -1 for a score of which lower is better.
    """

    def __init__(self, scores: Callable[..., dict[str, float]], metric: str, sign: int = 1) -> None:
        self.scores = scores
        self.metric = metric
        self.sign = sign

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """Score a fitted estimator; higher is better."""
        scores = self.scores(estimator, X, y)
        if self.metric not in scores:
            raise ValueError(
                f"{self.metric!r} needs labels, but y is None: pass y, or leave this scorer out."
            )
        return self.sign * scores[self.metric]

    def __repr__(self) -> str:
        return f"MetricScorer({self.scores.__name__}, {self.metric!r}, sign={self.sign})"
