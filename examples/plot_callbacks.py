"""
Stopping early, and writing losses into a file
==============================================

``callbacks`` takes skorch's callbacks: here ``EarlyStopping``, and a writer of losses. A search
clones every estimator, and an open file or a TensorBoard writer cannot be cloned. So pass a
function that makes the callback: it is called once per fit. ``EarlyStopping`` sees only the epochs
whose validation loss was measured, so ``patience`` counts validations.

::

    python examples/plot_callbacks.py

The run takes about 20 seconds. The threshold asks for gains of 5 %, so most fits stop early, which
costs some accuracy here. With the default threshold they train to the end.
"""

import csv
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from skorch.callbacks import Callback, EarlyStopping

from sklearn_pulse import PulseTransformer
from sklearn_pulse.plotting import TrainingCurveDisplay

OUTPUT = Path("output/callbacks")
OUTPUT.mkdir(parents=True, exist_ok=True)

# %%
# A writer that no search can clone
# ---------------------------------


class Writer(Callback):
    """Write the losses of each epoch into a file that is open during the training."""

    def __init__(self, file):
        self.file, self.lines = file, csv.writer(file)

    def on_epoch_end(self, net, **kwargs):
        """Write a line."""
        last = net.history[-1]
        is_new = "valid_batch_count" in last  # an epoch without validation repeats the last loss
        valid_loss = last["valid_loss"] if is_new else ""
        self.lines.writerow([last["epoch"], last["train_loss"], valid_loss])

    def on_train_end(self, net, **kwargs):
        """Close the file."""
        self.file.close()


def make_writer():
    """Return a writer with a file of its own."""
    number = len(list(OUTPUT.glob("losses*.csv")))
    return Writer(open(OUTPUT / f"losses{number}.csv", "w", buffering=1, newline=""))


for old in OUTPUT.glob("losses*.csv"):
    old.unlink()

# %%
# Two noisy oscillators
# ---------------------

rng = np.random.default_rng(0)
y, people = np.arange(160) % 2, np.arange(160) // 10
phase = rng.uniform(0, 6, size=(160, 1))
X = np.sin((0.3 + 0.25 * y[:, None]) * np.arange(48) + phase) + 0.3 * rng.normal(size=(160, 48))

pulse = PulseTransformer(
    embedding_dim=16,
    encoder_hidden_dim=16,
    encoder_depth=4,
    gru_hidden_dim=16,
    max_epochs=40,
    lr=5e-3,
    batch_size=32,
    validation_every=2,
    select="min_val",
    callbacks=[("stop", EarlyStopping(patience=3, threshold=0.05)), ("write", make_writer)],
    random_state=0,
)

# %%
# In a search
# -----------

search = GridSearchCV(
    make_pipeline(pulse, LogisticRegression(max_iter=1000)),
    {"pulsetransformer__n_crops": [1, 2]},
    cv=GroupKFold(2),
)
search.fit(X[..., None], y, groups=people)
best = search.best_estimator_[0]
files = sorted(OUTPUT.glob("losses*.csv"))
print(f"accuracy in cross-validation: {search.best_score_:.3f}")
n_epochs = [len(file.read_text().splitlines()) for file in files]
print(f"{len(files)} fits ended after {n_epochs} of {best.max_epochs} epochs")

display = TrainingCurveDisplay.from_estimator(best)
display.figure_.savefig(OUTPUT / "training_curve.png", dpi=120)
print(f"picture: {OUTPUT}/training_curve.png")
