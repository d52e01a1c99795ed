"""Accuracy of a probe whose scaler sees few windows, or all: ``python -m perf.scaler``.

HAR, validation recordings. Each row is the mean of 20 draws of classes and of labelled windows;
"few" fits the scaler on these, "all" on all training windows of the classes. It takes about four
minutes of a core.
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pulse import CrossPredictionTransformer, RandomEncoderTransformer
from sklearn_pulse.datasets import fetch_har
from sklearn_pulse.evaluation import LabeledSubsetClassifier
from sklearn_pulse.features import RandomConvolutionTransformer, StatisticsTransformer

N_DRAWS = 20
METHODS = {
    "cross-prediction": CrossPredictionTransformer(random_state=0),
    "random convolutions": RandomConvolutionTransformer(random_state=0),
    "channel statistics": StatisticsTransformer(),
    "untrained encoder": RandomEncoderTransformer(random_state=0),
}


def embeddings(data: Any) -> tuple[dict[str, NDArray[Any]], NDArray[np.intp], NDArray[np.intp]]:
    """Return the embedding of every window by each method, and the training and scored windows."""
    train, val = (np.flatnonzero(data.split == part)[::2] for part in ("train", "val"))
    found = {}
    for name, method in METHODS.items():
        known = {"groups": data.recording[train]} if name == "cross-prediction" else {}
        found[name] = method.fit(data.X[train], **known).transform(data.X)
    return found, train, val


def accuracies(
    Z: NDArray[Any],
    y: NDArray[Any],
    labelled: NDArray[np.intp],
    train: NDArray[np.intp],
    scored: NDArray[np.intp],
) -> list[float]:
    """Return the accuracy with a scaler of the labelled windows, and with one of all of `train`."""
    known = np.where(np.isin(np.arange(len(y)), labelled), y, -1)
    return [
        make_pipeline(StandardScaler(), LabeledSubsetClassifier())
        .fit(Z[rows], known[rows])
        .score(Z[scored], y[scored])
        for rows in (labelled, train)
    ]


def main() -> None:
    """Print a table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    data = fetch_har()
    found, train, val = embeddings(data)
    print("| classes, windows of each |", *(f"{name}: few | all |" for name in found))
    for n_classes, n_each in itertools.product((2, 6), (1, 2, 5)):
        rng = np.random.default_rng(0)
        chosen = list(itertools.combinations(np.unique(data.y), n_classes))
        scores: dict[str, list[list[float]]] = {name: [] for name in found}
        for draw in range(N_DRAWS):
            classes = chosen[draw % len(chosen)]
            labelled = np.concatenate(
                [rng.permutation(train[data.y[train] == label])[:n_each] for label in classes]
            )
            parts = [rows[np.isin(data.y[rows], classes)] for rows in (train, val)]
            for name, Z in found.items():
                scores[name].append(accuracies(Z, data.y, labelled, *parts))
        means = np.concatenate([100 * np.mean(draws, axis=0) for draws in scores.values()])
        print(f"| {n_classes}, {n_each} |", *(f"{mean:.1f} |" for mean in means), flush=True)


if __name__ == "__main__":
    main()
