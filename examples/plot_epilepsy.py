"""
Seizures in the EEG, and a split that leaks
===========================================

The Epilepsy task of the transfer benchmark cuts 500 EEG segments into 11,500 windows and splits the
windows at random, so that windows of one segment are in both the training and the test part. This
example scores the same probe on random splits and on splits that keep segments whole, with
embeddings of PULSE and of the untrained encoder.

::

    python examples/plot_epilepsy.py [folder of the data set]

Only the text files of the University of Bonn tell which segment a window belongs to. The run takes
about a minute and is no benchmark.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GroupKFold, KFold, cross_val_score

from sklearn_pulse import PulseTransformer, RandomEncoderTransformer
from sklearn_pulse.datasets import fetch_epilepsy
from sklearn_pulse.evaluation import make_linear_probe

# %%
# The windows
# -----------
# As published, each time step is scaled to [0, 1] with its own minimum and maximum over all
# windows. This imprints one pattern on all windows. The pattern dominates the windows without a
# seizure, and is the reason why they look alike.

try:
    epilepsy = fetch_epilepsy(*sys.argv[1:2], split="segment")
except (OSError, ValueError) as missing:
    sys.exit(str(missing))

output = Path("output/epilepsy")
output.mkdir(parents=True, exist_ok=True)
figure, axes = plt.subplots(2, 1, sharex=True, sharey=True, layout="constrained")
seconds = np.arange(epilepsy.X.shape[1]) / epilepsy.sampling_rate
for label, axis in enumerate(axes):
    rows = np.flatnonzero(epilepsy.y == label)[::50][:5]
    names = epilepsy.recording_name[epilepsy.recording[rows]]
    axis.plot(seconds, epilepsy.X[rows, :, 0].T, linewidth=0.8)
    axis.set_title(f"{epilepsy.target_names[label]}: segments {', '.join(names)}")
    axis.set_ylabel(f"{epilepsy.channel_names[0]} (0 to 1)")
axes[-1].set_xlabel("time (s)")
figure.savefig(output / "windows.png", dpi=120)

# %%
# Pretrain on the training segments
# ---------------------------------

rng = np.random.default_rng(0)
train, val, test = (
    rng.permutation(np.flatnonzero(epilepsy.split == part)) for part in ("train", "val", "test")
)
pulse = PulseTransformer(max_epochs=2, batch_size=64, random_state=0, verbose=1)
pulse.fit(epilepsy.X[train[:1000]], X_val=epilepsy.X[val[:200]])
untrained = RandomEncoderTransformer(random_state=0).fit(epilepsy.X[train[:1000]])

# %%
# The same probe on random splits and on splits by segment
# --------------------------------------------------------

y, groups = epilepsy.y[test], epilepsy.groups[test]
folds = (
    list(KFold(5, shuffle=True, random_state=0).split(test)),
    list(GroupKFold(5).split(test, groups=groups)),
)
print(f"\naverage precision for seizures, 5 folds of {len(test)} windows")
print(f"{'':>10s}{'at random':>12s}{'segments whole':>16s}")
for name, encoder in (("PULSE", pulse), ("untrained", untrained)):
    Z = encoder.transform(epilepsy.X[test])
    scores = [
        cross_val_score(make_linear_probe(), Z, y == 0, cv=cv, scoring="average_precision").mean()
        for cv in folds
    ]
    print(f"{name:>10s}{scores[0]:12.3f}{scores[1]:16.3f}")
print(f"{'chance':>10s}{np.mean(y == 0):12.3f}{np.mean(y == 0):16.3f}")
print(f"\npicture: {output}/windows.png")
