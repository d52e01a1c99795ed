"""Scores of a reconstruction, which tell how much of a window its embedding holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

from .._inputs._recordings import as_windows
from .._pipelines import before_last_step
from ._scoring import MetricScorer, reconstructs


def reconstruction_scores(
    estimator: Any, X: ArrayLike, y: ArrayLike | None = None
) -> dict[str, float]:
    """Compare windows with their reconstruction by a fitted transformer.

    The scores pool the predicted values of all windows, time steps and channels. Values that are
    missing in `X`, and steps that are never predicted (the first step of a window), do not count.

    As ``scoring`` of :func:`~sklearn.model_selection.cross_validate`, this function scores the test
    part of each split. For a search, use :data:`RECONSTRUCTION_SCORERS`, in which higher is always
    better.

    Parameters
    ----------
    estimator : PulseTransformer or pipeline that ends with one
        A fitted estimator with a method `reconstruct`, which returns an array of the shape of its
        input.
    X : array-like of shape (n_samples, n_timesteps, n_channels)
        Windows, in the `input_layout` of the estimator.
    y : Ignored
        Not used; present because scikit-learn passes labels to every scorer.

    Returns
    -------
    dict of str to float
        "mse", the mean squared error in the squared units of `X`; "mae", the mean absolute error in
        the units of `X`; and "r2", the share of the variance around the mean of all values that
        the reconstruction explains (1 is best).

    Raises
    ------
    TypeError
        If `estimator` has no method `reconstruct`.
    ValueError
        If no step of `X` is predicted.

    Notes
    -----
    Source: the released code, which scores while the decoder drops out. Here dropout is off.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pulse import PulseTransformer
    >>> from sklearn_pulse.evaluation import reconstruction_scores
    >>> X = np.random.default_rng(0).normal(size=(20, 32, 2))
    >>> pulse = PulseTransformer(embedding_dim=8, max_epochs=1, random_state=0).fit(X)
    >>> sorted(reconstruction_scores(pulse, X))
    ['mae', 'mse', 'r2']
    """
    X, transformer = before_last_step(estimator, X)
    if not reconstructs(transformer):
        raise TypeError(
            f"{type(transformer).__name__} has no method reconstruct: pass a fitted"
            " PulseTransformer, or a pipeline that ends with one."
        )
    prediction = np.asarray(transformer.reconstruct(X), dtype=np.float64)
    layout = getattr(transformer, "input_layout", "ntc")
    target = as_windows(X, layout).astype(np.float64, copy=False)
    if layout == "nct" and target.ndim > 2:
        # Rounding depends on the order of a sum, so every layout is summed in the same order.
        prediction, target = prediction.swapaxes(-1, -2), target.swapaxes(-1, -2)
    known = np.isfinite(target) & np.isfinite(prediction)
    if not known.any():
        raise ValueError(
            "X has no step to score: a window needs two time steps that are not missing. Pass other"
            " windows."
        )
    target, prediction = target[known], prediction[known]
    return {
        "mse": float(mean_squared_error(target, prediction)),
        "mae": float(mean_absolute_error(target, prediction)),
        "r2": float(r2_score(target, prediction)),
    }


RECONSTRUCTION_SCORERS = {
    "neg_mean_squared_error": MetricScorer(reconstruction_scores, "mse", -1),
    "neg_mean_absolute_error": MetricScorer(reconstruction_scores, "mae", -1),
    "r2": MetricScorer(reconstruction_scores, "r2"),
}
"""Scorers by name, each for a score of :func:`reconstruction_scores`; higher is better."""
