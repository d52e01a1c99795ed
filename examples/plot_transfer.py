"""
From walking to gestures: transfer
==================================

PULSE pretrains on smartphone recordings of human activities (six channels, 128 steps) without
labels. One call of :class:`~sklearn_pulse.FineTuneClassifier` then fine-tunes the encoder on 80
hand gestures of another device (three channels, 206 steps). The controls are the same encoder
trained on the gestures from scratch, and the untrained encoder with a linear probe.

::

    python examples/plot_transfer.py [folder of the data sets]

The run takes a minute or two and is no benchmark. It pretrains on a small part of the published
training data and scores gestures of the published training part; the test part is not used.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split

from sklearn_pulse import FineTuneClassifier, PulseTransformer, RandomEncoderTransformer, presets
from sklearn_pulse.datasets import fetch_gesture, fetch_har
from sklearn_pulse.evaluation import make_linear_probe

try:
    har = fetch_har(*sys.argv[1:2])
    gesture = fetch_gesture(*sys.argv[1:2], n_timesteps=206)
except OSError as missing:
    sys.exit(str(missing))

# %%
# Pretraining on activities
# -------------------------

settings = presets.get("pulse", "har-transfer") | {"max_epochs": 4, "lr": 1e-3}
pulse = PulseTransformer(**settings, random_state=0, verbose=1)
pulse.fit(har.X[har.split == "train"][::3], X_val=har.X[har.split == "val"][::3])

# %%
# Fine-tuning on a quarter of the gestures
# ----------------------------------------

train = gesture.split == "train"
X, X_rest, y, y_rest = train_test_split(
    gesture.X[train], gesture.y[train], train_size=80, stratify=gesture.y[train], random_state=0
)
print(f"\nfine-tuning on {len(X)} gestures, accuracy on {len(X_rest)} others")
print(f"{'encoder':>28s}{'head':>8s}{'probe':>8s}")

for name, pretrained in (("pretrained on activities", FrozenEstimator(pulse)), ("new", None)):
    classifier = FineTuneClassifier(
        pretrained, batch_size=100, score_with="probe", random_state=0
    ).fit(X, y)
    probe = classifier.score(X_rest, y_rest)
    head = classifier.set_params(score_with="head").score(X_rest, y_rest)
    print(f"{name:>28s}{head:8.3f}{probe:8.3f}")
    if pretrained is not None:
        transferred = classifier

untrained = RandomEncoderTransformer(random_state=0).fit(X)
probe = make_linear_probe().fit(untrained.transform(X), y)
print(f"{'untrained':>28s}{'':>8s}{probe.score(untrained.transform(X_rest), y_rest):8.3f}")

# %%
# Confusion matrix
# ----------------

figure, ax = plt.subplots(figsize=(7, 6), layout="constrained")
ConfusionMatrixDisplay.from_estimator(
    transferred,
    X_rest,
    y_rest,
    display_labels=gesture.target_names,
    xticks_rotation="vertical",
    colorbar=False,
    ax=ax,
)
ax.set_title("Gestures by the fine-tuned head")
output = Path("output/transfer")
output.mkdir(parents=True, exist_ok=True)
figure.savefig(output / "confusion.png", dpi=120)
print(f"\npicture: {output}/confusion.png")
