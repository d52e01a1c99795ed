"""
Hand gestures from an accelerometer
===================================

The data set holds 440 gestures of eight kinds and is a small target for transfer. Here, PULSE
pretrains on the gestures themselves. A linear probe on its embeddings is scored beside a probe on
the embeddings of the untrained encoder.

::

    python examples/plot_gesture.py [folder of the data set]

The run takes about a minute and is no benchmark: the publication pretrains on HAR and then
fine-tunes.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from sklearn_pulse import PulseTransformer, RandomEncoderTransformer
from sklearn_pulse.datasets import fetch_gesture
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.plotting import EmbeddingDisplay

# %%
# The gestures
# ------------
# The publication embeds the first 206 of 315 steps.

try:
    gesture = fetch_gesture(*sys.argv[1:2], n_timesteps=206)
except OSError as missing:
    sys.exit(str(missing))

train, test = gesture.split == "train", gesture.split == "test"
print(f"{train.sum()} gestures to train on, {test.sum()} to test, {gesture.X.shape[1:]} each")

output = Path("output/gesture")
output.mkdir(parents=True, exist_ok=True)
figure, axes = plt.subplots(2, 4, sharex=True, sharey=True, figsize=(10, 4), layout="constrained")
for label, axis in enumerate(axes.flat):
    i = np.flatnonzero(gesture.y == label)[0]
    lines = axis.plot(gesture.X[i], linewidth=0.8)
    axis.set_title(f"{gesture.target_names[label]}\nrecording {gesture.recording[i]}", fontsize=9)
for axis in axes[-1]:
    axis.set_xlabel("time step")
for axis in axes[:, 0]:
    axis.set_ylabel("z-score")
figure.legend(lines, gesture.channel_names, loc="outside right upper")
figure.savefig(output / "gestures.png", dpi=120)

# %%
# Pretrain, probe, embed
# ----------------------

pulse = PulseTransformer(max_epochs=8, batch_size=64, random_state=0, verbose=1)
pulse.fit(gesture.X[train])
untrained = RandomEncoderTransformer(random_state=0).fit(gesture.X[train])

print("\naccuracy on the test gestures")
for name, encoder in (("PULSE", pulse), ("untrained", untrained)):
    probe = make_linear_probe().fit(encoder.transform(gesture.X[train]), gesture.y[train])
    score = probe.score(encoder.transform(gesture.X[test]), gesture.y[test])
    print(f"{name:>10s}{score:8.3f}")
print(f"{'majority':>10s}{np.bincount(gesture.y[test]).max() / test.sum():8.3f}")

display = EmbeddingDisplay.from_estimator(
    pulse, gesture.X[test], gesture.y[test], target_names=gesture.target_names
)
display.ax_.set_title("PULSE embeddings of the test gestures")
display.figure_.savefig(output / "embedding.png", dpi=120)
print(f"\npictures: {output}/gestures.png, {output}/embedding.png")
