"""
Sleep stages in the EEG
=======================

PULSE pretrains on random windows of whole nights of two-channel EEG (Sleep-EDF), cut as published.
A linear probe then stages 30-second epochs of other nights. The untrained encoder is scored with
the same probe.

::

    python examples/plot_sleep_edf.py [folder of the data set]

The data set is about 2 GB (8.1 GB to download, by ``fetch_sleep_edf(download_if_missing=True)``).
The run takes a few minutes and is no benchmark.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from sklearn_pulse import PulseTransformer, RandomEncoderTransformer, presets
from sklearn_pulse.datasets import fetch_sleep_edf
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.plotting import EmbeddingDisplay
from sklearn_pulse.windows import random_windows

# %%
# A night
# -------
# Stages 3 and 4 are merged, and REM is a class. ``stages="published"`` gives the classes of the
# publication, which omit REM.

try:
    sleep = fetch_sleep_edf(*sys.argv[1:2])
except (OSError, ImportError) as missing:
    sys.exit(str(missing))

output = Path("output/sleep_edf")
output.mkdir(parents=True, exist_ok=True)
night = sleep.recording == 0
figure, axis = plt.subplots(figsize=(8, 2.5), layout="constrained")
axis.step(sleep.start[night] / sleep.sampling_rate / 3600, sleep.y[night], where="post")
axis.set_yticks(range(5), sleep.target_names)
axis.invert_yaxis()
title = f"Scored stages: subject {sleep.recording_subject[0]}, night {sleep.recording_night[0]}"
axis.set(xlabel="time (h)", title=title)
figure.savefig(output / "hypnogram.png", dpi=120)

# %%
# Pretrain on whole nights, then probe epochs of other nights
# -----------------------------------------------------------

cut = presets.windows("pulse", "eeg")


def windows_of(part, fraction):
    """Return random windows of the nights of one part."""
    nights = [
        recording
        for recording, split in zip(sleep.recordings, sleep.recording_split, strict=True)
        if split == part
    ]
    return random_windows(
        nights,
        cut["length"],
        cut["stride"],
        fraction,
        random_state=0,
        downsample=cut["downsample"],
    ).X


X_train, X_val = windows_of("train", 0.01), windows_of("val", 0.01)
print(f"pretraining on {X_train.shape}, validating on {X_val.shape}")
pulse = PulseTransformer(
    **presets.get("pulse", "eeg") | {"max_epochs": 3}, random_state=0, verbose=1
)
pulse.fit(X_train, X_val=X_val)
untrained = RandomEncoderTransformer(random_state=0).fit(X_train)

rng = np.random.default_rng(0)
train, val = (
    rng.permutation(np.flatnonzero(sleep.split == part))[:n]
    for part, n in (("train", 2000), ("val", 1000))
)
print(f"\naccuracy on {len(val)} epochs of the validation nights")
for name, encoder in (("PULSE", pulse), ("untrained", untrained)):
    probe = make_linear_probe().fit(encoder.transform(sleep.X[train]), sleep.y[train])
    score = probe.score(encoder.transform(sleep.X[val]), sleep.y[val])
    print(f"{name:>10s}{score:8.3f}")
print(f"{'majority':>10s}{np.bincount(sleep.y[val]).max() / len(val):8.3f}")

# %%
# The embedding
# -------------

display = EmbeddingDisplay.from_estimator(
    pulse, sleep.X[val], sleep.y[val], target_names=sleep.target_names
)
display.ax_.set_title("PULSE embeddings of validation epochs")
display.figure_.savefig(output / "embedding.png", dpi=120)
print(f"\npictures: {output}/hypnogram.png, {output}/embedding.png")
