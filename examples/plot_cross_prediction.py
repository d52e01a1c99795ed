"""
What predicts the next window, in closed form
=============================================

`CrossPredictionTransformer` keeps those features of a window that predict the next window of the
recording, and removes a share `alpha` of what stays constant through the recording. The constant
part is *who* was recorded if a recording visits several states (smartphone activities, HAR), and
*what* happens if each recording is a single state (EEG segments of the Bonn data). This script
shows both, and scores the features under one linear probe. The scores are those of validation
recordings; test recordings are never read.

::

    python examples/plot_cross_prediction.py

The data sets are read from the folder that the environment variable SKLEARN_PULSE_DATA names. HAR
is downloaded if it is missing. Only the text files of Bonn tell which segment a window belongs to,
and they are not downloaded.
"""

# %%
# Two sources
# -----------
# A window comes with its recording and its start. In HAR a recording is of a person who sits,
# stands and walks; most people have two, and the published division by recordings, which is used
# here, lets the parts share people. In Bonn a recording is a segment of 24 seconds of one of five
# kinds of EEG. With half of HAR and a quarter of Bonn the run takes two to three minutes.

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse.datasets import fetch_epilepsy, fetch_har
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.features import RandomConvolutionTransformer, StatisticsTransformer
from sklearn_pulse.model_selection import mask_labels
from sklearn_pulse.plotting import PredictabilityDisplay

try:
    har = fetch_har(group="recording")
    bonn = fetch_epilepsy(split="segment")
except (OSError, ValueError) as missing:
    sys.exit(str(missing))

output = Path("output/cross_prediction")
output.mkdir(parents=True, exist_ok=True)
kind = np.array([name[0] for name in bonn.recording_name])[bonn.recording]  # Z, O, N, F or S


def parts(data, y, rows):
    """Return windows, labels, recordings and starts of the training and validation rows."""
    return {
        part: (data.X[mask], y[mask], data.recording[mask], data.start[mask])
        for part in ("train", "val")
        for mask in [rows & (data.split == part)]
    }


SOURCES = {
    "HAR (activities)": parts(har, har.y, har.recording % 2 == 0),
    "Bonn (kinds of EEG)": parts(bonn, kind, bonn.recording % 4 == 0),
}

# %%
# Features and their probe
# ------------------------


def fit(method, source):
    """Fit a method on the training windows, without labels."""
    X, _, recording, start = source["train"]
    if isinstance(method, CrossPredictionTransformer):
        return method.fit(X, groups=recording, start=start)
    return method.fit(X)


def accuracies(method, source, fractions):
    """Return the accuracy in percent on validation recordings, the mean over five draws."""
    train, val = (method.transform(source[part][0]) for part in ("train", "val"))
    names, codes = np.unique(source["train"][1], return_inverse=True)
    truth = np.searchsorted(names, source["val"][1])
    scores = []
    for fraction in fractions:
        drawn = [mask_labels(codes, fraction, random_state=i) for i in range(5)]
        probes = [make_linear_probe().fit(train[y != -1], y[y != -1]) for y in drawn]
        scores.append(100 * np.mean([probe.score(val, truth) for probe in probes]))
    return scores


def constant(source):
    """Return the accuracy in percent of the best answer that is the same for all windows."""
    counts = np.unique(source["val"][1], return_counts=True)[1]
    return 100 * counts.max() / counts.sum()


print("accuracy in percent on validation recordings, with 1 % and 5 % of the labels")
METHODS = {
    "cross-prediction": CrossPredictionTransformer(
        num_kernels=1000, embedding_dim=512, random_state=0
    ),
    "random convolutions": RandomConvolutionTransformer(num_kernels=1000, random_state=0),
    "statistics": StatisticsTransformer(),
}
for source_name, source in SOURCES.items():
    for name, method in METHODS.items():
        few, some = accuracies(fit(method, source), source, (0.01, 0.05))
        print(f"{source_name:20s} {name:20s} {few:5.1f} {some:5.1f}", flush=True)
    chance = constant(source)
    print(f"{source_name:20s} {'one answer for all':20s} {chance:5.1f} {chance:5.1f}")

# %%
# How much of the constant part to remove
# ---------------------------------------
# If the constant part is *who* was recorded, removing it helps; if it is *what* happens, removal
# destroys the class. `alpha="auto"` follows `kappa_`: it removes little where the windows of a
# recording have only the constant in common, and half where adjacent windows share more.

figure, ax = plt.subplots(layout="constrained")
shares = np.linspace(0, 1, 5)
fitted = {}
for (source_name, source), color in zip(SOURCES.items(), ("C0", "C1"), strict=True):
    settings = {"num_kernels": 1000, "embedding_dim": 512, "random_state": 0}
    cross = fitted[source_name] = fit(CrossPredictionTransformer(**settings), source)
    print(f"{source_name}: kappa {cross.kappa_:.2f}, alpha {cross.alpha_:.2f}")
    curve = [
        accuracies(fit(CrossPredictionTransformer(alpha, **settings), source), source, (0.01,))[0]
        for alpha in shares
    ]
    ax.plot(shares, curve, "o-", color=color, label=source_name)
    ax.axvline(cross.alpha_, color=color, linestyle=":")
    ax.axhline(constant(source), color=color, linestyle="--", linewidth=1)
ax.set_xlabel("alpha (dotted: what auto takes; dashed: one answer for all)")
ax.set_ylabel("accuracy in percent, 1 % of the labels")
ax.legend()
figure.savefig(output / "alpha.png", dpi=120)

# %%
# What the next window predicts
# -----------------------------
# The R2 of each block of features, and of the leading directions of the embedding, on recordings
# that were held out.

display = PredictabilityDisplay.from_estimator(
    fitted["HAR (activities)"], name="HAR: what the next window predicts"
)
display.figure_.savefig(output / "predictability.png", dpi=120)
print(f"\npictures: {output}/alpha.png, {output}/predictability.png")
