"""
Quickstart: from recordings to a model
======================================

Forty recordings of a smartwatch (accelerometer and gyroscope, four activities) are cut into
windows, and a pipeline scales them. PULSE pretrains on the windows without labels, a linear probe
classifies the embeddings, and a grid search selects the number of crops and the size of the GRU.
The selected model is then trained for longer. There are two controls: the untrained encoder, and
statistics of each channel. The recordings are part of sktime, so nothing is downloaded.
"""

# %%
# Recordings and windows
# ----------------------
# Windows are cut before the pipeline, since each window carries a label. Their group is the
# recording, so that windows of one recording are never on both sides of a split.

import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sktime.datasets import load_basic_motions

from sklearn_pulse import PulseTransformer, RandomEncoderTransformer
from sklearn_pulse.plotting import EmbeddingDisplay, ReconstructionDisplay
from sklearn_pulse.preprocessing import WindowScaler
from sklearn_pulse.windows import sliding_windows

started = time.perf_counter()
output = Path("output/quickstart")
output.mkdir(parents=True, exist_ok=True)
CHANNELS = ["acc x", "acc y", "acc z", "gyro x", "gyro y", "gyro z"]


def load(split):
    """Return recordings of shape (n, 100, 6), and one activity per recording."""
    X, y = load_basic_motions(split=split, return_type="numpy3D")
    return X.swapaxes(1, 2).astype(np.float32), y


recordings, activities = load("train")
train = sliding_windows(recordings, length=50, stride=25, y=activities)
print(f"{len(recordings)} recordings -> windows {train.X.shape}, {np.unique(train.y)}")

# %%
# One pipeline, one search
# ------------------------
# With ``memory``, another C of the probe does not train the encoder again. The 72 combinations of
# candidates and folds need 25 trainings of PULSE: 8 settings in 3 folds, and the best setting on
# all windows.


def probe_on(transformer):
    """Return a pipeline of a scaler, a transformer and a linear probe."""
    return Pipeline(
        [
            ("channels", WindowScaler()),
            ("encode", transformer),
            ("scale", StandardScaler()),
            ("probe", LogisticRegression(max_iter=1000, class_weight="balanced")),
        ],
        memory="output/cache",
    )


def statistics(X):
    """Return the mean, standard deviation, minimum and maximum of each channel."""
    return np.concatenate([X.mean(1), X.std(1), X.min(1), X.max(1)], axis=1)


SHORT = {"max_epochs": 10, "batch_size": 32, "lr": 5e-3}  # larger steps, since 120 windows are few
sizes = {
    "encode__n_crops": [1, 2],
    "encode__gru_hidden_dim": [32, 64],
    "encode__gru_num_layers": [1, 2],
}
models = {
    "PULSE": (PulseTransformer(**SHORT, random_state=0), sizes),
    "untrained encoder": (RandomEncoderTransformer(random_state=0), {}),
    "channel statistics": (FunctionTransformer(statistics), {}),
}
searches = {}
print("searching (a minute or two)")
for name, (transformer, grid) in models.items():
    search = GridSearchCV(
        probe_on(transformer), grid | {"probe__C": [0.1, 1.0, 10.0]}, cv=GroupKFold(3)
    )
    searches[name] = search.fit(train.X, train.y, groups=train.groups)
    print(f"{name}: {search.best_params_}")

# %%
# Accuracy
# --------
# The search uses the training recordings only. The selected model is trained fifteen times as long
# on all of them; then the test recordings are scored, once.

long = searches["PULSE"].best_estimator_.set_params(encode__max_epochs=150)
long.fit(train.X, train.y, encode__groups=train.groups)

test_recordings, test_activities = load("test")
test = sliding_windows(test_recordings, length=50, stride=25, y=test_activities)
print(f"\n{'':20s}{'cross-validation':>18s}{'test recordings':>18s}")
for name, search in searches.items():
    print(f"{name:20s}{search.best_score_:18.3f}{search.score(test.X, test.y):18.3f}")
print(f"{'PULSE, 150 epochs':20s}{'-':>18s}{long.score(test.X, test.y):18.3f}")

# %%
# Pictures
# --------

pulse = long["encode"]
first, last = pulse.history_[0], pulse.history_[-1]
print(
    f"\nvalidation loss {first['valid_loss']:.3f} -> {last['valid_loss']:.3f}"
    f" in {pulse.n_iter_} epochs"
)

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

print(f"pictures: {output}/embedding.png, {output}/reconstruction.png")
print(f"{time.perf_counter() - started:.0f} s")
