"""
Quickstart: from recordings to a model
======================================

Forty recordings of a smartwatch (accelerometer and gyroscope, four activities) are cut into
windows. Then comes the usual case: many windows, few labels. Each method sees all training windows
without labels; a linear probe learns from 4, 8, 16, 40 or all 160 labelled windows and is scored on
forty other recordings. Two methods of this package learn from unlabelled windows, and three
controls are scored beside them. Then a grid search selects PULSE's number of crops and the size of
its GRU, and the selected model is trained for longer. The recordings are part of sktime, so nothing
is downloaded.

::

    python examples/plot_quickstart.py

The run takes a few minutes.
"""

# %%
# Recordings and windows
# ----------------------
# Windows are cut before the pipeline, since each window has a label. The group of a window is its
# recording, so that windows of one recording are never on both sides of a split.

import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
from rich.progress import track
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sktime.datasets import load_basic_motions

from sklearn_pulse import (
    CrossPredictionTransformer,
    PulseTransformer,
    RandomEncoderTransformer,
)
from sklearn_pulse.features import RandomConvolutionTransformer, StatisticsTransformer
from sklearn_pulse.plotting import (
    EmbeddingDisplay,
    LabelEfficiencyDisplay,
    ReconstructionDisplay,
)
from sklearn_pulse.preprocessing import WindowScaler
from sklearn_pulse.windows import sliding_windows

started = time.perf_counter()
output = Path("output/quickstart")
output.mkdir(parents=True, exist_ok=True)
CHANNELS = ["acc x", "acc y", "acc z", "gyro x", "gyro y", "gyro z"]


def load(split):
    """Return windows of 2.5 s, with their activity and recording."""
    X, y = load_basic_motions(split=split, return_type="numpy3D")  # 10 steps per second
    recordings = X.swapaxes(1, 2).astype(np.float32)  # (40, 100, 6)
    return sliding_windows(recordings, length=25, stride=25, y=y)


train, test = load("train"), load("test")
print(f"windows of 40 recordings {train.X.shape}, activities {np.unique(train.y)}")

# %%
# Many windows, few labels
# ------------------------
# Every method is fitted on the training windows without their labels. `groups` and `start` tell
# which windows come from one recording, and in which order.

scaler = WindowScaler().fit(train.X)
X_train, X_test = scaler.transform(train.X), scaler.transform(test.X)
BUDGET = {"max_epochs": 20, "batch_size": 32, "lr": 5e-3}  # larger steps, since windows are few
recordings = {"groups": train.groups}
order = recordings | {"start": train.start}
methods = {
    "cross-prediction": (CrossPredictionTransformer(random_state=0), order),
    "PULSE": (PulseTransformer(**BUDGET, random_state=0), recordings),
    "untrained encoder": (RandomEncoderTransformer(random_state=0), {}),
    "random convolutions": (RandomConvolutionTransformer(random_state=0), {}),
    "channel statistics": (StatisticsTransformer(), {}),
}
for method, known in track(methods.values(), "fitting without labels", transient=True):
    method.fit(X_train, **known)

X, y = np.concatenate([X_train, X_test]), np.concatenate([train.y, test.y])
groups = np.concatenate([train.groups, train.groups.max() + 1 + test.groups])
is_test = np.arange(len(X)) >= len(X_train)
curve = LabelEfficiencyDisplay.from_estimators(
    {name: method for name, (method, _) in methods.items()},
    X,
    y,
    groups=groups,
    cv=[(np.flatnonzero(~is_test), np.flatnonzero(is_test))],
    fractions=(4 / 160, 8 / 160, 16 / 160, 40 / 160, 1.0),
    n_draws=20,
)
print("\naccuracy on the test recordings, mean over 20 draws of the labels")
print(f"{'labelled windows':20s}" + "".join(f"{n:8d}" for n in (4, 8, 16, 40, 160)))
for name, scores in curve.scores.items():
    print(f"{name:20s}" + "".join(f"{score:8.3f}" for score in scores.mean(1)))

# %%
# One pipeline, one search
# ------------------------
# With ``memory``, another C of the probe does not train the encoder again. The 24 candidates need
# only 25 trainings of PULSE: 8 settings in 3 folds, and the best setting on all windows. The search
# uses the training recordings only.

pipeline = Pipeline(
    [
        ("channels", WindowScaler()),
        ("encode", PulseTransformer(**BUDGET | {"max_epochs": 10}, random_state=0)),
        ("scale", StandardScaler()),
        ("probe", LogisticRegression(max_iter=1000, class_weight="balanced")),
    ],
    memory="output/cache",
)
grid = {
    "encode__n_crops": [1, 2],
    "encode__gru_hidden_dim": [32, 64],
    "encode__gru_num_layers": [1, 2],
    "probe__C": [0.1, 1.0, 10.0],
}
print("\nsearching (a minute or two)")
search = GridSearchCV(pipeline, grid, cv=GroupKFold(3))
search.fit(train.X, train.y, groups=train.groups)
print(f"{search.best_params_}: accuracy {search.best_score_:.3f} in cross-validation")

# %%
# The selected model is trained fifteen times as long; then the test recordings are scored.

long = search.best_estimator_.set_params(encode__max_epochs=150)
long.fit(train.X, train.y, encode__groups=train.groups)
print(f"PULSE, 150 epochs, all labels: accuracy {long.score(test.X, test.y):.3f} on the test")

# %%
# Pictures
# --------

pulse = long["encode"]
first, last = pulse.history_[0], pulse.history_[-1]
print(
    f"\nvalidation loss {first['valid_loss']:.3f} -> {last['valid_loss']:.3f}"
    f" in {pulse.n_iter_} epochs"
)

curve.ax_.set_title("Activities of new recordings, from few labelled windows")
curve.ax_.set_ylim(0.7, 1.01)
below = f"majority class ({curve.majority_score:.2f}, below)"
curve.ax_.get_legend().get_texts()[-1].set_text(below)
curve.figure_.savefig(output / "few_labels.png", dpi=120, bbox_inches="tight")

scaled = long["channels"].transform(test.X)
display = EmbeddingDisplay.from_estimator(pulse, scaled, test.y)
display.ax_.set_title("PULSE embeddings of the test windows")
display.figure_.savefig(output / "embedding.png", dpi=120)

running = int(np.flatnonzero(test.y == "running")[1])
display = ReconstructionDisplay.from_estimator(
    pulse, scaled, sample=running, channel_names=CHANNELS
)
display.figure_.suptitle("A running window of the test set, reconstructed from its embedding")
display.figure_.savefig(output / "reconstruction.png", dpi=120)

print(f"pictures: {output}/few_labels.png, embedding.png, reconstruction.png")
print(f"{time.perf_counter() - started:.0f} s")
