"""Linear probe: a simple classifier of embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler


def make_linear_probe(C: float = 1.0, max_iter: int = 1000) -> Pipeline:
    """Make the linear probe: scaling, then logistic regression with balanced classes.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the L2 penalty; larger values penalise less.
    max_iter : int, default=1000
        Maximum number of iterations of the solver (lbfgs).

    Returns
    -------
    :class:`~sklearn.pipeline.Pipeline`
        Unfitted pipeline with the steps "scale" and "probe", for input of shape
        (n_samples, embedding_dim).

    Notes
    -----
    Source: paper, Section 5.1. The publication used cuML's quasi-Newton solver, which minimises
    the same objective.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse.evaluation import make_linear_probe
    >>> embeddings = np.array([[0.0, 1.0], [0.1, 1.1], [2.0, 0.0], [2.1, 0.1]])
    >>> make_linear_probe().fit(embeddings, [0, 0, 1, 1]).predict([[2.0, 0.2]])
    array([1])
    """
    return Pipeline(
        [
            ("scale", StandardScaler()),
            ("probe", LogisticRegression(C=C, max_iter=max_iter, class_weight="balanced")),
        ]
    )


def probe_arrays(probe: Pipeline) -> dict[str, NDArray[np.float64]]:
    """Return the arrays of a fitted probe: scaling, coefficients and intercepts."""
    scaler, classifier = (step for _, step in probe.steps)
    arrays = (scaler.mean_, scaler.scale_, classifier.coef_, classifier.intercept_)
    names = ("mean", "scale", "coef", "intercept")
    return {
        name: np.array(array, np.float64, order="C")
        for name, array in zip(names, arrays, strict=True)
    }


def restore_probe(arrays: Mapping[str, NDArray[np.float64]], classes: NDArray[Any]) -> Pipeline:
    """Return a probe that predicts by these arrays; raise if a scale is not positive."""
    if not (arrays["scale"] > 0).all():
        raise ValueError("the probe divides by a scale that is not positive: save the model again.")
    probe = make_linear_probe()
    scaler, classifier = (step for _, step in probe.steps)
    scaler.mean_, scaler.scale_ = arrays["mean"], arrays["scale"]
    scaler.var_ = arrays["scale"] ** 2
    classifier.coef_, classifier.intercept_ = arrays["coef"], arrays["intercept"]
    classifier.classes_ = classes
    scaler.n_features_in_ = classifier.n_features_in_ = len(arrays["mean"])
    return probe
