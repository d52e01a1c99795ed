"""
Signal quality: which windows of a PPG can be trusted
=====================================================

A wrist sensor records the pulse by light (PPG). Motion, a loose strap and a clipped amplifier spoil
parts of it. PULSE learns to reconstruct windows from their embedding; a window that it cannot
reconstruct as well as others is probably no pulse. Training uses no labels, and its recordings have
artefacts themselves. `score_samples` then ranks the windows of new people. There are two controls
without a network, the loudness and the roughness of a window; no row of the table wins everywhere.
Finally, `DriftDisplay` compares nights with a well-worn and with a loose sensor to other nights.
All recordings are simulated, so that nothing is downloaded and every artefact is known.

::

    python examples/plot_signal_quality.py

The run takes about a minute.
"""

# %%
# Recordings with known artefacts
# -------------------------------
# Every person has their own heart rate, shape of the pulse and amplitude; breathing moves the
# baseline and the rate. A second has 25 steps.

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from sklearn_pulse import PulseTransformer
from sklearn_pulse.plotting import DriftDisplay, EmbeddingDisplay
from sklearn_pulse.preprocessing import WindowScaler

output = Path("output/signal_quality")
output.mkdir(parents=True, exist_ok=True)
RATE = 25  # Hz
LENGTH = 4 * RATE  # steps of a window
KINDS = ("motion", "loose strap", "clipped", "dead sensor")


def clean_ppg(rng, n_windows):
    """Return the windows of one recording, of shape (n_windows, LENGTH)."""
    time = np.arange(n_windows * LENGTH) / RATE
    breath = 2 * np.pi * rng.uniform(0.2, 0.3) * time + rng.uniform(0, 6)
    rate = rng.uniform(0.9, 1.6) * (1 + 0.05 * np.sin(breath))  # beats per second
    phase = 2 * np.pi * np.cumsum(rate) / RATE
    second, lag = rng.uniform(0.2, 0.5), rng.uniform(0.8, 1.4)  # the reflected wave
    pulse = np.sin(phase) + second * np.sin(2 * phase - lag)
    signal = rng.uniform(0.7, 1.3) * (pulse + 0.2 * np.sin(breath))
    signal += 0.05 * rng.normal(size=len(time))
    return signal.reshape(n_windows, LENGTH)


def spoil(window, kind, rng):
    """Return a window with an artefact of some kind."""
    if kind == "motion":  # steps of an arm that swings, as loud as the pulse
        swing = rng.uniform(2, 4) * np.arange(LENGTH) / RATE + rng.uniform(0, 1)
        return window + 1.5 * np.sin(2 * np.pi * swing) + np.cumsum(rng.normal(0, 0.2, LENGTH))
    if kind == "loose strap":  # little pulse, much noise of the amplifier
        return 0.3 * window + rng.normal(0, 0.7, LENGTH)
    if kind == "clipped":
        return np.clip(3 * window, -1.5, 1.5)
    return np.full(LENGTH, window[0]) + rng.normal(0, 0.05, LENGTH)


def record(rng, n_recordings, share, kinds=KINDS, n_windows=20):
    """Return windows of several recordings, the artefact of each or "", and their recording."""
    X = np.concatenate([clean_ppg(rng, n_windows) for _ in range(n_recordings)])
    kind = np.where(rng.random(len(X)) < share, rng.choice(kinds, len(X)), "")
    X = np.stack([spoil(x, k, rng) if k else x for x, k in zip(X, kind, strict=True)])
    return X, kind, np.repeat(np.arange(n_recordings), n_windows)


rng = np.random.default_rng(0)
X, kind, recording = record(rng, 24, share=0.1)
X_new, kind_new, _ = record(rng, 12, share=0.3)
print(f"training: {len(X)} windows, {np.mean(kind != ''):.0%} spoilt; no label is used")

# %%
# Scores
# ------
# A two-dimensional array holds univariate windows. The scaler learns one scale for all windows, so
# that loud windows stay loud.

pulse = PulseTransformer(
    embedding_dim=32,
    encoder_hidden_dim=16,
    encoder_depth=5,
    gru_hidden_dim=32,
    n_crops=1,
    max_epochs=40,
    batch_size=32,
    lr=5e-3,
    num_threads=1,
    random_state=0,
)
model = make_pipeline(WindowScaler(), pulse)
model.fit(X, pulsetransformer__groups=recording)
score = model.score_samples(X_new)

# %%
# Does the score find the artefacts?
# ----------------------------------
# The area under the ROC curve (AUC) is the chance that a spoilt window scores lower than a clean
# one: 0.5 is guessing. A dead sensor is the exception: a flat line is the easiest window of all to
# reconstruct, so its score is high. So the second row of the table ranks windows by the distance of
# their score from the median score of the training windows, to either side.

usual = np.median(np.log(-model.score_samples(X)))
controls = {
    "PULSE, score_samples": -score,
    "PULSE, unusual score": np.abs(np.log(-score) - usual),
    "loudness (standard deviation)": X_new.std(1),
    "roughness (of the differences)": np.diff(X_new).std(1) / X_new.std(1),
}
spoilt = kind_new != ""
print(f"\nAUC on {len(X_new)} windows of new people")
print(f"{'':32s}{'all':>8s}" + "".join(f"{name:>14s}" for name in KINDS))
for name, badness in controls.items():
    cells = [roc_auc_score(spoilt, badness)]
    for one in KINDS:
        rows = ~spoilt | (kind_new == one)
        cells.append(roc_auc_score(spoilt[rows], badness[rows]))
    print(f"{name:32s}{cells[0]:8.3f}" + "".join(f"{cell:14.3f}" for cell in cells[1:]))

# %%
# A window of each kind
# ---------------------
# The decoder has learnt to draw pulses. The picture shows the window with the median score of each
# kind.

figure, axes = plt.subplots(1, 5, figsize=(12, 2.8), sharex=True, sharey=True, layout="constrained")
signal = model[0].transform(X_new)
rebuilt = model[-1].reconstruct(signal)
for ax, one in zip(axes, ("", *KINDS), strict=True):
    rows = np.flatnonzero(kind_new == one)
    i = rows[np.argsort(score[rows])[len(rows) // 2]]
    time = np.arange(LENGTH) / RATE
    ax.plot(time, signal[i], color="0.6", label="signal")
    ax.plot(time, rebuilt[i], color="C0", lw=1.2, label="reconstruction")
    ax.set_title(f"{one or 'clean'}, score {score[i]:.3f}", fontsize="medium")
    ax.set_xlabel("seconds")
axes[0].set_ylabel("PPG (scaled)")
axes[0].legend(fontsize="small", frameon=False, loc="lower left")
figure.savefig(output / "windows.png", dpi=120)

# %%
# Where the badly reconstructed windows lie
# -----------------------------------------
# A continuous value colours the embeddings, on a logarithmic scale here.

display = EmbeddingDisplay.from_estimator(
    model, X_new, np.log10(-score), y_name="log10 of minus the score", name="windows of new people"
)
display.figure_.savefig(output / "embedding.png", dpi=120)

# %%
# Whole nights: has the sensor moved?
# -----------------------------------
# Every night has spoilt windows. A night has drifted only if it differs from other nights by more
# than these differ among themselves. So whole recordings are compared: `groups_reference` and
# `groups_new`. The share of windows outside the range has no such test: windows of one night are
# alike, and for the well-worn sensor too about a fifth lies outside, where 6 % are expected.

X_reference, _, nights = record(rng, 12, share=0.1)
figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
for row, (name, share) in zip(axes, {"well worn": 0.1, "loose": 0.8}.items(), strict=True):
    X_night, _, new_nights = record(rng, 4, share, kinds=("motion", "loose strap"))
    display = DriftDisplay.from_estimator(
        model,
        X_reference,
        X_night,
        groups_reference=nights,
        groups_new=100 + new_nights,
        channel_names=["PPG"],
        name=f"four new nights, sensor {name}",
        ax=row,
        random_state=0,
    )
    print(
        f"sensor {name}: distance {display.embedding.distance:.3f}"
        f" (p = {display.embedding.p_value:.3f}), {display.scores.share_outside[0]:.0%} of the"
        f" windows outside the reference's range ({display.scores.expected:.0%} expected)"
    )
figure.savefig(output / "drift.png", dpi=120)
print(f"\npictures: {output}/windows.png, {output}/embedding.png, {output}/drift.png")
