"""
Chaotic systems: telling parameters apart under noise
=====================================================

Three systems of stochastic differential equations are simulated at several values of one parameter.
Each value of the parameter is a class, so the classes are known exactly. Dynamical noise perturbs
the trajectories. PULSE learns from the trajectories without labels; a linear probe then tells the
values apart from windows of 100 steps. PULSE and the untrained encoder are scored on the validation
trials.

::

    python examples/plot_chaos.py

The run takes about a minute and is no benchmark. A published run reads over a million windows with
three crops each. This run reads 3,500 windows with one crop each, too few to beat the untrained
encoder.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from sklearn_pulse import PulseTransformer, RandomEncoderTransformer, presets
from sklearn_pulse.datasets import (
    make_hindmarsh_rose,
    make_lorenz,
    make_system_classification,
    make_thomas,
)
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.plotting import EmbeddingDisplay
from sklearn_pulse.windows import random_windows

output = Path("output/chaos")
output.mkdir(parents=True, exist_ok=True)

# %%
# The attractors, clean and noisy
# -------------------------------
# The pictures show the last 4,000 steps of one trajectory per system. A noise level is relative to
# the size of the clean attractor, so it means the same in all systems.

LEVELS = (0, 1, 5)
SYSTEMS = {
    "Lorenz, rho = 28": (make_lorenz, {"rho": 28.0}, 4000),
    "Thomas, b = 0.15": (make_thomas, {"b": 0.15}, 4000),
    "Hindmarsh-Rose, current = 3": (make_hindmarsh_rose, {"current": 3.0}, 6000),
}
STATES = (("x", "y", "z"), ("x", "y", "z"), ("potential", "recovery", "adaptation"))

figure, axes = plt.subplots(
    len(SYSTEMS), len(LEVELS), figsize=(10, 10), subplot_kw={"projection": "3d"}
)
for row, names, (name, system) in zip(axes, STATES, SYSTEMS.items(), strict=True):
    make, parameter, n_timesteps = system
    for ax, noise in zip(row, LEVELS, strict=True):
        X = make(**parameter, noise=noise, n_trials=1, n_timesteps=n_timesteps, random_state=0)
        ax.plot(*X[0, -4000:].T, color="#0072b2" if noise == 0 else "#e69f00", linewidth=0.4)
        level = f"noise level {noise}" if noise else "clean"
        ax.set_title(f"{name}, {level}\n({', '.join(names)})", fontsize=8)
        ax.tick_params(labelsize=6, pad=-2)
figure.tight_layout()
figure.savefig(output / "attractors.png", dpi=120)

# %%
# Five values of one parameter
# ----------------------------
# Each value has twenty trials: 14 for training, 3 for validation and 3 for testing.

data = make_system_classification("lorenz", noise=1.0, n_classes=5, random_state=0)
cut = presets.windows("pulse", "synthetic")


def windows_of(part, stride):
    """Return random windows of the trials of one part."""
    trials = [
        trial
        for trial, split in zip(data.recordings, data.recording_split, strict=True)
        if split == part
    ]
    return random_windows(trials, cut["length"], stride, random_state=0).X


X_train, X_val = windows_of("train", 1000), windows_of("val", 2000)
print(f"pretraining on {X_train.shape}, validating on {X_val.shape}")
short = {"max_epochs": 5, "n_crops": 1, "batch_size": 64}
pulse = PulseTransformer(**presets.get("pulse", "synthetic") | short, random_state=0, verbose=1)
pulse.fit(X_train, X_val=X_val)
untrained = RandomEncoderTransformer(random_state=0).fit(X_train)

# %%
# A probe on the embeddings
# -------------------------

train = np.flatnonzero(data.split == "train")[::4]
val = np.flatnonzero(data.split == "val")[::2]
print(f"\naccuracy on {len(val)} windows of the validation trials, 5 classes")
embeddings = {}
for name, encoder in {"PULSE": pulse, "untrained": untrained}.items():
    embeddings[name] = encoder.transform(data.X[train]), encoder.transform(data.X[val])
    Z_train, Z_val = embeddings[name]
    probe = make_linear_probe().fit(Z_train, data.y[train])
    print(f"{name:>10s}{probe.score(Z_val, data.y[val]):8.3f}")

# %%
# The classes in the embedding
# ----------------------------
# The directions of largest variance in the embedding tell where on the attractor a window lies. The
# two directions that separate the classes best are fitted to the training trials; the picture shows
# the validation trials.

Z_train, Z_val = embeddings["PULSE"]
discriminants = LinearDiscriminantAnalysis(n_components=2, solver="eigen", shrinkage=0.1)
discriminants.fit(Z_train, data.y[train])
display = EmbeddingDisplay(
    discriminants.transform(Z_val),
    y=data.y[val],
    axis_names=("discriminant 1", "discriminant 2"),
    target_names=data.target_names,
).plot()
display.ax_.set_title("PULSE embeddings of noisy Lorenz windows")
display.figure_.savefig(output / "embedding.png", dpi=120)
print(f"\npictures: {output}/attractors.png, {output}/embedding.png")
