"""
Stress in the pulse of the wrist
================================

PULSE pretrains on a quarter of the labelled minutes of the training subjects of WESAD, denoised as
published. A linear probe then tells baseline, stress, amusement and meditation apart. PULSE and the
untrained encoder are scored on the validation subjects, who are not in the training part.

::

    python examples/plot_wesad.py [folder of the data set]

``fetch_wesad(download_if_missing=True)`` downloads the data set (2.5 GB). The run takes about a
minute and is no benchmark: a published run trains for a hundred epochs on all windows.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from sklearn_pulse import PulseTransformer, RandomEncoderTransformer, presets
from sklearn_pulse.datasets import fetch_wesad
from sklearn_pulse.evaluation import make_linear_probe

# %%
# One minute of each condition
# ----------------------------
# Windows are cut from the onset of each label. Published windows (``windows="published"``, the
# default) begin at the full minute before the onset, so the first window may hold signal of the
# previous condition.

try:
    wesad = fetch_wesad(*sys.argv[1:2], windows="onset")
except (OSError, ImportError) as missing:
    sys.exit(str(missing))

rate = wesad.sampling_rate / wesad.downsample
figure, axes = plt.subplots(4, sharex=True, figsize=(8, 6), layout="constrained")
of_subject = wesad.groups == "S2"
for label, ax in enumerate(axes):
    x = wesad.X[of_subject & (wesad.y == label)][2, : int(20 * rate), 0]
    ax.plot(np.arange(len(x)) / rate, x, lw=1)
    ax.set_title(f"{wesad.target_names[label]}: subject S2", loc="left")
    ax.set_ylabel(f"{wesad.channel_names[0]} (a.u.)")
axes[-1].set_xlabel("time (s)")
output = Path("output/wesad")
output.mkdir(parents=True, exist_ok=True)
figure.savefig(output / "pulse.png", dpi=120)

counts = {name: int((wesad.y == i).sum()) for i, name in enumerate(wesad.target_names)}
print(f"windows {wesad.X.shape}: {counts}")

# %%
# Pretraining and probe
# ---------------------

train, val = wesad.split == "train", wesad.split == "val"
pulse = PulseTransformer(
    **presets.get("pulse", "ppg") | {"max_epochs": 2}, random_state=0, verbose=1
)
pulse.fit(wesad.X[train][::4], X_val=wesad.X[val][::4])
untrained = RandomEncoderTransformer(random_state=0).fit(wesad.X[train][::4])

print(f"\naccuracy on {val.sum()} minutes of subjects {', '.join(np.unique(wesad.groups[val]))}")
for name, encoder in (("PULSE", pulse), ("untrained", untrained)):
    probe = make_linear_probe().fit(encoder.transform(wesad.X[train]), wesad.y[train])
    score = probe.score(encoder.transform(wesad.X[val]), wesad.y[val])
    print(f"{name:>10s}{score:8.3f}")
print(f"{'majority':>10s}{np.mean(wesad.y[val] == 0):8.3f}")
print(f"\npicture: {output}/pulse.png")
