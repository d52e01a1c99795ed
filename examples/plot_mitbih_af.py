"""
Atrial fibrillation in the ECG
==============================

PULSE pretrains on ten-second windows of two-lead ECG from PhysioNet, filtered and cut as published.
A linear probe then tells atrial fibrillation from normal rhythm in records that were not used for
training. The untrained encoder is scored with the same probe.

::

    python examples/plot_mitbih_af.py [folder of the data set]

The folder may also hold records of the MIT-BIH Arrhythmia Database. The run takes a minute or two
and is no benchmark.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from sklearn_pulse import PulseTransformer, RandomEncoderTransformer, presets
from sklearn_pulse.datasets import fetch_mitbih_af
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.plotting import EmbeddingDisplay

# %%
# Records and windows
# -------------------

try:
    ecg = fetch_mitbih_af(*sys.argv[1:2])
except (OSError, ImportError) as missing:
    sys.exit(str(missing))

for part in ("train", "val", "test"):
    n_afib, n_normal = np.bincount(ecg.y[ecg.split == part], minlength=2)
    n_subjects = len(set(ecg.groups[ecg.split == part]))
    print(f"{part:>6s}: {n_subjects:2d} subjects, {n_afib} windows AFIB, {n_normal} normal")

output = Path("output/mitbih_af")
output.mkdir(parents=True, exist_ok=True)
figure, axes = plt.subplots(2, 1, sharex=True, sharey=True, layout="constrained")
seconds = np.arange(ecg.X.shape[1]) * ecg.downsample / ecg.sampling_rate
for label, axis in enumerate(axes):
    i = np.flatnonzero(ecg.y == label)[0]
    axis.plot(seconds, ecg.X[i, :, 0], linewidth=0.8)
    record, lead = ecg.recording_name[ecg.recording[i]], ecg.channel_names[0]
    axis.set(title=f"{ecg.target_names[label]}: record {record}, {lead}", ylabel="ECG (z-score)")
axes[-1].set_xlabel("time (s)")
figure.savefig(output / "windows.png", dpi=120)

# %%
# Pretrain without labels, then probe
# -----------------------------------

rng = np.random.default_rng(0)
train, val = (
    rng.permutation(np.flatnonzero(ecg.split == part))[:n]
    for part, n in (("train", 500), ("val", 100))
)
pulse = PulseTransformer(
    **presets.get("pulse", "ecg") | {"max_epochs": 2}, random_state=0, verbose=1
)
pulse.fit(ecg.X[train], X_val=ecg.X[val])
untrained = RandomEncoderTransformer(random_state=0).fit(ecg.X[train])

held_out = ecg.split == "test"  # windows to validate have chosen the weights
print(f"\nbalanced accuracy on {held_out.sum()} windows of the test records")
for name, encoder in (("PULSE", pulse), ("untrained", untrained)):
    probe = make_linear_probe().fit(encoder.transform(ecg.X[train]), ecg.y[train])
    correct = probe.predict(encoder.transform(ecg.X[held_out])) == ecg.y[held_out]
    recall = [correct[ecg.y[held_out] == label].mean() for label in (0, 1)]
    print(f"{name:>10s}{np.mean(recall):8.3f}")

# %%
# The embedding
# -------------

display = EmbeddingDisplay.from_estimator(
    pulse, ecg.X[held_out], ecg.y[held_out], target_names=ecg.target_names
)
display.ax_.set_title("PULSE embeddings of the test windows")
display.figure_.savefig(output / "embedding.png", dpi=120)
print(f"\npictures: {output}/windows.png, {output}/embedding.png")
