"""
Which channels does a model need?
=================================

A smartwatch records accelerometer and gyroscope while its wearer stands, walks, runs and plays
badminton (part of sktime, so nothing is downloaded). Two models learn the activity: the closed form
(`CrossPredictionTransformer`) with a linear probe, and statistics of each channel with the same
probe. `channel_importance` takes one channel at a time from another recording, and measures how far
the score on test recordings falls. Every window keeps five channels of its own, so both models stay
nearly always right; the score is therefore the log likelihood of the true activity, which falls as
soon as a model is less sure.

::

    python examples/plot_channels.py

The run takes less than a minute.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sktime.datasets import load_basic_motions

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.inspection import channel_importance
from sklearn_pulse.preprocessing import WindowScaler
from sklearn_pulse.windows import sliding_windows

output = Path("output/channels")
output.mkdir(parents=True, exist_ok=True)
CHANNELS = ["acc x", "acc y", "acc z", "gyro x", "gyro y", "gyro z"]

# %%
# Windows of recordings
# ---------------------
# The panel has its channels first, and ``input_layout="nct"`` says so.


def load(split):
    """Return windows of 50 steps of the recordings of a split."""
    X, y = load_basic_motions(split=split, return_type="numpy3D")
    return sliding_windows(X, length=50, stride=25, y=y, input_layout="nct")


train, test = load("train"), load("test")

# %%
# Importance of each channel
# --------------------------
# The channel comes from another recording, not from a neighbouring window of the same recording,
# which has the same activity. The other recordings are drawn ten times; a bar of the picture shows
# the mean, and the line on it the standard deviation.

cross = CrossPredictionTransformer(num_kernels=420, random_state=0)
models = {
    "cross-prediction": make_pipeline(WindowScaler(), cross, make_linear_probe()),
    "channel statistics": make_pipeline(
        WindowScaler(), StatisticsTransformer(), make_linear_probe()
    ),
}
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
places = np.arange(len(CHANNELS))
for shift, (name, model) in zip((-0.2, 0.2), models.items(), strict=True):
    model.fit(train.X, train.y)
    accuracy = model.score(test.X, test.y)
    fall = channel_importance(
        model,
        test.X,
        test.y,
        scoring="neg_log_loss",
        groups=test.recording,
        n_repeats=10,
        random_state=0,
    )
    print(f"{name}: accuracy {accuracy:.3f}; fall of the log likelihood without a channel")
    for channel, mean, std in zip(
        CHANNELS, fall.importances_mean, fall.importances_std, strict=True
    ):
        print(f"    {channel:8s} {mean:6.3f} ± {std:.3f}")
    label = f"{name} (accuracy {accuracy:.2f})"
    ax.bar(places + shift, fall.importances_mean, 0.4, yerr=fall.importances_std, label=label)
ax.set_xticks(places, CHANNELS)
ax.set_ylabel("fall of the log likelihood")
ax.set_title("Each channel taken from another recording (mean ± standard deviation)", fontsize=11)
ax.legend(frameon=False)
figure.savefig(output / "importance.png", dpi=120)
print(f"\npicture: {output}/importance.png")
