"""
Raw recordings of two devices, made alike
=========================================

Two wrist devices record the same kind of pulse wave: one at 64 Hz, in millivolts; the other at
100 Hz, in raw counts of its converter. Both drift, and have gaps. Three steps make windows of one
kind from them: a filter removes the drift and the noise, a resampler brings both to 32 Hz, and a
scaler brings each recording to mean 0 and standard deviation 1. The windows carry their rate and
channel, and a model refuses windows of another rate.

The question at the end is which device recorded a window. Before the steps, plain statistics always
tell the device. After the steps they can only guess, so a model is less likely to learn the device
instead of the person's state.

::

    python examples/plot_preprocessing.py

The run takes a few seconds.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GroupKFold, cross_val_score

from sklearn_pulse import CrossPredictionTransformer
from sklearn_pulse.evaluation import make_linear_probe
from sklearn_pulse.features import StatisticsTransformer
from sklearn_pulse.preprocessing import BandpassFilter, Resampler, WindowScaler
from sklearn_pulse.windows import sliding_windows

SECONDS, COMMON_RATE = 120, 32

# %%
# Recordings as they come
# -----------------------


def pulse_wave(person, rate, gain, offset):
    """Return a recording of shape (n_timesteps, 1) with drift, noise and a gap."""
    rng = np.random.default_rng(person)
    time = np.arange(SECONDS * rate) / rate
    beats = np.cumsum((1.1 + 0.1 * np.sin(0.25 * time + rng.uniform(0, 6))) / rate)
    wave = np.sin(2 * np.pi * beats) + 0.4 * np.sin(4 * np.pi * beats + 0.8)
    drift = np.sin(2 * np.pi * 0.02 * time + rng.uniform(0, 6))
    noise = 0.0125 * np.sqrt(rate) * rng.normal(size=len(time))  # of one density
    recording = wave + 2 * drift + noise
    first = rng.integers(len(time) // 2)
    recording[first : first + 2 * rate] = np.nan  # two seconds without contact
    return (gain * recording + offset)[:, None]


devices = {
    64: [pulse_wave(person, 64, 1.0, 0.0) for person in range(10)],
    100: [pulse_wave(person, 100, 800.0, 30_000.0) for person in range(10, 20)],
}

# %%
# From recordings to windows of one kind
# --------------------------------------
# Filter and resample before windows are cut: both read time steps before and after a window.

recordings, raw, device = [], [], []
for rate, of_device in devices.items():
    filtered = BandpassFilter(low=0.4, high=8.0, sampling_rate=rate).fit_transform(of_device)
    resampled = Resampler(from_rate=rate, to_rate=COMMON_RATE).fit_transform(filtered)
    recordings += WindowScaler(per="recording").fit_transform(resampled)
    raw += of_device
    device += [rate] * len(of_device)

windows = sliding_windows(
    recordings,
    length=8 * COMMON_RATE,
    stride=8 * COMMON_RATE,
    y=device,
    lazy=True,
    sampling_rate=COMMON_RATE,
    channel_names=["PPG"],
)
print(f"{len(windows.X)} windows at {windows.X.sampling_rate:g} Hz of {windows.X.channel_names}")

# %%
# A model knows the rate it was fitted on
# ---------------------------------------

cross = CrossPredictionTransformer(num_kernels=500, embedding_dim=256, random_state=0)
cross.fit(windows.X)
try:
    cross.transform(np.zeros((1, 800, 1)), sampling_rate=100)
except ValueError as refusal:
    print(f"refused: {refusal}")

# %%
# Which device was it?
# --------------------
# A score of 1 means that a model may learn the device; a score of 0.5 is a guess.

uncut = sliding_windows(raw, length=512, stride=512, y=device)
print("\nshare of windows whose device plain statistics tell, of new people")
for name, w in {"raw": uncut, "after the steps": windows}.items():
    Z = StatisticsTransformer().fit_transform(w.X)
    scores = cross_val_score(make_linear_probe(), Z, w.y, groups=w.recording, cv=GroupKFold(5))
    print(f"  {name:16s}{scores.mean():6.2f}")

# %%
# Pictures
# --------
# Fifteen seconds of a recording of each device, around its gap.

figure, axes = plt.subplots(2, 2, figsize=(10, 5), layout="constrained", sharex="col")
for column, (rate, of_device) in enumerate(devices.items()):
    gap = np.isnan(of_device[0][:, 0]).argmax() / rate
    first = max(gap - 6.5, 0)
    shown = [
        (of_device[0], rate, "as recorded", "mV" if rate == 64 else "counts"),
        (recordings[column * 10], COMMON_RATE, "after the steps", "standard deviations"),
    ]
    for ax, (recording, hertz, what, unit) in zip(axes[:, column], shown, strict=True):
        time = np.arange(len(recording)) / hertz
        part = (time >= first) & (time <= first + 15)
        ax.plot(time[part], recording[part, 0], lw=1)
        ax.set(title=f"{hertz} Hz, {what}", ylabel=unit)
    axes[1, column].set_xlabel("time (s)")
output = Path("output/preprocessing")
output.mkdir(parents=True, exist_ok=True)
figure.savefig(output / "recordings.png", dpi=120)
print(f"\npicture: {output}/recordings.png")
