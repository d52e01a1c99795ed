"""
Human activity recognition with few labels
==========================================

PULSE pretrains on random windows of the training recordings of the UCI data set "Smartphone-Based
Recognition of Human Activities and Postural Transitions", cut as published. A linear probe then
learns from a fraction of the labelled windows. PULSE and the untrained encoder are scored on the
validation recordings.

::

    python examples/plot_har.py [folder of the data set]

The run takes about a minute and is no benchmark: a published run reads two million windows, this
run about five thousand. ``examples/reproduce/har.py`` takes the budget as an argument.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np

from sklearn_pulse import PulseTransformer, RandomEncoderTransformer, presets
from sklearn_pulse.datasets import fetch_har
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.model_selection import mask_labels
from sklearn_pulse.plotting import EmbeddingDisplay
from sklearn_pulse.windows import random_windows

# %%
# Recordings, and windows to pretrain on
# --------------------------------------
# The encoder needs no labels, so its windows may lie anywhere in a recording, also in transitions
# between activities.

try:
    har = fetch_har(*sys.argv[1:2])
except OSError as missing:
    sys.exit(str(missing))

cut = presets.windows("pulse", "har")


def windows_of(part, stride, fraction):
    """Return random windows of the recordings of one part."""
    recordings = [
        recording
        for recording, split in zip(har.recordings, har.recording_split, strict=True)
        if split == part
    ]
    return random_windows(recordings, cut["length"], stride, fraction, random_state=0).X


X_train = windows_of("train", cut["stride"], 0.05)
X_val = windows_of("val", cut["stride_val"], 0.2)
print(f"pretraining on {X_train.shape}, validating on {X_val.shape}")

pulse = PulseTransformer(
    **presets.get("pulse", "har") | {"max_epochs": 6}, random_state=0, verbose=1
)
pulse.fit(X_train, X_val=X_val)
untrained = RandomEncoderTransformer(random_state=0).fit(X_train)

# %%
# A probe on 1 %, 5 % and all of the labels
# -----------------------------------------

train, val = har.split == "train", har.split == "val"
print(f"\naccuracy on {val.sum()} windows of the validation recordings")
print(f"{'labels':>8s}{'PULSE':>10s}{'untrained':>12s}")
for fraction in (0.01, 0.05, 1.0):
    y = mask_labels(har.y[train], fraction, random_state=0)
    scores = []
    for encoder in (pulse, untrained):
        Z = encoder.transform(har.X[train][y != -1])
        probe = make_linear_probe().fit(Z, y[y != -1])
        scores.append(probe.score(encoder.transform(har.X[val]), har.y[val]))
    print(f"{fraction:8.0%}{scores[0]:10.3f}{scores[1]:12.3f}")
print(f"one answer for all windows: {np.bincount(har.y[val]).max() / val.sum():.3f}")

# %%
# The embedding
# -------------

display = EmbeddingDisplay.from_estimator(
    pulse, har.X[val], har.y[val], target_names=har.target_names
)
display.ax_.set_title("PULSE embeddings of the validation windows")
output = Path("output/har")
output.mkdir(parents=True, exist_ok=True)
display.figure_.savefig(output / "embedding.png", dpi=120)
print(f"\npicture: {output}/embedding.png")
