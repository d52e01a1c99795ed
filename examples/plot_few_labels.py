"""
Few labels, much unlabelled data
================================

In the activity recordings of a smartphone (HAR), 99 % of the windows lose their label: their ``y``
is -1, scikit-learn's mark for unlabelled samples. One pipeline is enough: PULSE pretrains on all
windows, and the classifier learns from the few windows that keep their label. The same pipeline
with an untrained encoder is the control. Both are scored on the validation recordings; the test
recordings are not used.

::

    python examples/plot_few_labels.py [folder of the data set]

The run takes a minute or two and is no benchmark. The encoder is smaller than the published one and
reads 3,178 windows for a few epochs; a published run reads 19,106 windows for a hundred epochs.
"""

import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pulse import PulseTransformer, RandomEncoderTransformer
from sklearn_pulse.datasets import fetch_har
from sklearn_pulse.evaluation import LabeledSubsetClassifier
from sklearn_pulse.model_selection import LabeledTestSplit, mask_labels
from sklearn_pulse.plotting import LabelEfficiencyDisplay, TrainingCurveDisplay

started = time.perf_counter()

# %%
# Windows, of which one in a hundred has a label
# ----------------------------------------------

try:
    har = fetch_har(*sys.argv[1:2], group="recording")
except OSError as missing:
    sys.exit(str(missing))

train, val = har.split == "train", har.split == "val"
X_train, y_true, recordings = har.X[train], har.y[train], har.groups[train]
y_train = mask_labels(y_true, 0.01, random_state=0)
print(
    f"pretraining on {len(X_train)} windows of {len(np.unique(recordings))} recordings;"
    f" {(y_train != -1).sum()} of them are labelled"
)
for label, name in enumerate(har.target_names):
    print(f"  {name:20s}{(y_train == label).sum():4d} of {(y_true == label).sum()}")

# %%
# One pipeline
# ------------
# ``fit`` takes all windows and the masked labels, as in any scikit-learn pipeline.

SIZE = {"embedding_dim": 160, "encoder_hidden_dim": 32, "encoder_depth": 7}


def few_labels(encoder):
    """Return a pipeline that pretrains on all rows and classifies from the labelled rows."""
    probe = LogisticRegression(max_iter=1000, class_weight="balanced")
    return Pipeline(
        [
            ("encode", encoder),
            ("scale", StandardScaler()),
            ("probe", LabeledSubsetClassifier(probe)),
        ]
    )


pulse = PulseTransformer(**SIZE, n_crops=1, batch_size=32, lr=2e-3, max_epochs=4, random_state=0)
pipelines = {
    "PULSE": few_labels(pulse),
    "untrained encoder": few_labels(RandomEncoderTransformer(**SIZE, random_state=0)),
}
majority = np.mean(har.y[val] == np.bincount(y_true).argmax())
print(f"\naccuracy on the {val.sum()} windows of the validation recordings")
for name, pipeline in pipelines.items():
    pipeline.fit(X_train, y_train)
    print(f"  {name:20s}{pipeline.score(har.X[val], har.y[val]):6.3f}")
print(f"  {'majority class':20s}{majority:6.3f}")

# %%
# Cross-validation
# ----------------
# ``LabeledTestSplit`` keeps unlabelled windows out of the test folds, since they cannot be scored,
# and keeps the recordings whole. A fold has only a dozen labelled windows to score: the figures
# show how to cross-validate, not which method is better.

cv = LabeledTestSplit(GroupKFold(3))
short = {"PULSE": {"encode__max_epochs": 1}, "untrained encoder": {}}
print("\ncross-validated accuracy on the labelled windows of the training recordings")
for name, pipeline in pipelines.items():
    result = cross_validate(
        clone(pipeline).set_params(**short[name]),
        X_train,
        y_train,
        groups=recordings,
        cv=cv,
        return_indices=True,
    )
    sizes = [len(test) for test in result["indices"]["test"]]
    print(f"  {name:20s}", np.round(result["test_score"], 3), "windows in each fold:", sizes)

# %%
# More labels
# -----------
# The encoders are not fitted again. Labels are drawn five times for each fraction.

used = train | val
val_rows = np.flatnonzero(val[used])
train_rows = np.flatnonzero(train[used])
display = LabelEfficiencyDisplay.from_estimators(
    {name: pipeline["encode"] for name, pipeline in pipelines.items()},
    har.X[used],
    har.y[used],
    cv=[(train_rows, val_rows)],
    fractions=(0.01, 0.05, 0.2, 1.0),
)
display.ax_.set_title("Validation recordings of HAR")
print("\nmean accuracy on the validation recordings, five draws of the labels")
print(f"  {'labels':20s}" + "".join(f"{share:8.0%}" for share in display.fractions))
for name, scores in display.scores.items():
    print(f"  {name:20s}" + "".join(f"{score:8.3f}" for score in scores.mean(1)))

output = Path("output/few_labels")
output.mkdir(parents=True, exist_ok=True)
display.figure_.savefig(output / "label_efficiency.png", dpi=120)

# %%
# Few labelled people
# -------------------
# An annotator labels people, not windows. So here all windows of some people are labelled: as few
# people as show every activity once, twice, and so on. Each fold is scored on people without a
# label. These people are not new to the encoder, which has read unlabelled recordings of 29 of the
# 30. To score a model for people who are recorded later, fit it on the training people of a fold.

people = har.recording_subject[har.recording]
by_people = LabelEfficiencyDisplay.from_estimators(
    {name: pipeline["encode"] for name, pipeline in pipelines.items()},
    har.X[used],
    har.y[used],
    groups=people[used],
    cv=3,
    n_groups=(1, 2, 4, 8),
    n_draws=3,
)
by_people.ax_.set(title="People of HAR without a label", xlabel="labelled people of each class")
print("\nmean accuracy on people without a label, three draws of the labels in three folds")
print(f"  {'people':20s}" + "".join(f"{number:8d}" for number in by_people.n_groups))
for name, scores in by_people.scores.items():
    print(f"  {name:20s}" + "".join(f"{score:8.3f}" for score in scores.mean(1)))
by_people.figure_.savefig(output / "labelled_people.png", dpi=120)

# %%
# How the encoder was trained
# ---------------------------

display = TrainingCurveDisplay.from_estimator(pipelines["PULSE"]["encode"], name="PULSE")
display.figure_.savefig(output / "training_curve.png", dpi=120)
print(f"\npictures: {output}/{{label_efficiency,labelled_people,training_curve}}.png")
print(f"{time.perf_counter() - started:.0f} s")
