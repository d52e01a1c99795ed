"""
What predicts the next window, in closed form
=============================================

`CrossPredictionTransformer` keeps those features of a window that predict the next window of the
recording. This script compares it with MiniRocket, channel statistics and an untrained encoder on
smartphone activities (HAR), under the same linear probe with all, 5 % and 1 % of the labels.
The scores are those of the validation recordings; the test recordings are never read. The data
set is downloaded, or read from the folder that the environment variable SKLEARN_PULSE_DATA names.
"""

# %%
# Windows of training and validation recordings
# ---------------------------------------------

import os
import time

import numpy as np
from sklearn.metrics import accuracy_score

from sklearn_pulse import CrossPredictionTransformer, RandomEncoderTransformer
from sklearn_pulse.datasets import fetch_har
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.features import RandomConvolutionTransformer, StatisticsTransformer
from sklearn_pulse.model_selection import mask_labels

data = fetch_har(os.environ.get("SKLEARN_PULSE_DATA"), group="recording")
train, val = data.split == "train", data.split == "val"
X, y = data.X[train], data.y[train]

# %%
# Features of every method, fitted without labels
# -----------------------------------------------

methods = {
    "cross-prediction": CrossPredictionTransformer(random_state=0),
    "MiniRocket": RandomConvolutionTransformer(random_state=0),
    "statistics": StatisticsTransformer(),
    "untrained encoder": RandomEncoderTransformer(random_state=0),
}
embeddings = {}
for name, method in methods.items():
    started = time.perf_counter()
    if name == "cross-prediction":
        method.fit(X, groups=data.recording[train], start=data.start[train])
    else:
        method.fit(X)
    embeddings[name] = method.transform(X), method.transform(data.X[val])
    print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)

# %%
# What was kept: `alpha_` is the share of the recording's constant part that was removed, and
# `predictability_` says how much of each block the next window predicts.

cross = methods["cross-prediction"]
print(f"kappa {cross.kappa_:.2f}, alpha {cross.alpha_:.2f}, pairs {cross.n_pairs_}")
for name, share in cross.predictability_["blocks"].items():
    print(f"R2 of {name}: {share:.2f}")
print("R2 of the leading directions:", cross.predictability_["directions"][:5].round(2))

# %%
# The probe, with all labels and five draws of few labels
# -------------------------------------------------------


def accuracies(embedding, fraction, n_draws):
    """Return the accuracy in percent of each draw of labels."""
    scores = []
    for draw in range(n_draws):
        labels = mask_labels(y, fraction, random_state=draw) if fraction < 1 else y
        known = labels != -1
        probe = make_linear_probe().fit(embedding[0][known], y[known])
        scores.append(100 * accuracy_score(data.y[val], probe.predict(embedding[1])))
    return scores


print("accuracy in percent (mean and spread over draws)")
for name, embedding in embeddings.items():
    row = [accuracies(embedding, fraction, n) for fraction, n in ((0.01, 5), (0.05, 5), (1, 1))]
    cells = [f"{np.mean(scores):.1f} ({np.std(scores):.1f})" for scores in row]
    print(f"{name:18s} 1 %: {cells[0]}   5 %: {cells[1]}   all: {cells[2]}", flush=True)
