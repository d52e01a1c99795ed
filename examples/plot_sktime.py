"""
A panel workflow in sktime
==========================

BasicMotions (accelerometer and gyroscope, four activities) and JapaneseVowels (nine speakers,
utterances of 7 to 29 steps) come with sktime as panels. They are neither reshaped nor padded by
hand. PULSE is a step of an sktime pipeline. The controls are the untrained encoder, the summary
statistics of sktime, and the majority class.

::

    python examples/plot_sktime.py

The run takes less than a minute and is no benchmark: a published run reads two million windows,
this run reads a few hundred windows 25 times. Both panels are easy, and the controls score as well
as PULSE. No parameter was selected by a score.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

try:
    from sktime.datasets import load_basic_motions, load_japanese_vowels
    from sktime.transformations.summarize import SummaryTransformer
except ImportError as missing:
    raise SystemExit(f"{missing}: pip install sklearn-pulse[sktime]") from missing

from sklearn_pulse import RandomEncoderTransformer
from sklearn_pulse.panel import PulsePanelTransformer, as_panel_transformer
from sklearn_pulse.plotting import EmbeddingDisplay

# %%
# Panels as they come
# -------------------
# A cell of a nested frame holds a series. The series of JapaneseVowels differ in length; the
# missing end of shorter series is masked.

panels = {"BasicMotions": load_basic_motions, "JapaneseVowels": load_japanese_vowels}
loaded = {}
for name, load in panels.items():
    train, test = (load(split=split, return_type="nested_univ") for split in ("train", "test"))
    loaded[name] = *train, *test
    lengths = [len(series) for part in (train, test) for series in part[0].iloc[:, 0]]
    print(
        f"{name}: {len(train[0])} instances to train on, {len(test[0])} to test,"
        f" {train[0].shape[1]} channels, {min(lengths)} to {max(lengths)} steps"
    )

# %%
# Pipelines by ``*``
# ------------------

size = {"embedding_dim": 64, "encoder_hidden_dim": 32, "encoder_depth": 5, "random_state": 0}
pulse = PulsePanelTransformer(**size, max_epochs=25, batch_size=16)
untrained = as_panel_transformer(RandomEncoderTransformer(**size))
encoders = {"PULSE": pulse, "untrained": untrained, "statistics": SummaryTransformer()}

print(f"\naccuracy on the test part\n{'':16s}", end="")
print("".join(f"{name:>12s}" for name in [*encoders, "majority"]))
fitted = {}
for panel, (X, y, X_test, y_test) in loaded.items():
    print(f"{panel:16s}", end="")
    for name, encoder in encoders.items():
        classifier = encoder * StandardScaler() * LogisticRegression(max_iter=1000)
        if name == "statistics":  # warns of unequal lengths, which do not affect it
            classifier.set_config(warnings="off")
        classifier.fit(X, y)
        fitted[panel, name] = classifier
        print(f"{np.mean(classifier.predict(X_test) == y_test):12.3f}", end="", flush=True)
    majority = DummyClassifier().fit(np.zeros((len(y), 1)), y)
    print(f"{majority.score(np.zeros((len(y_test), 1)), y_test):12.3f}")

# %%
# The training history and the embedding
# --------------------------------------
# ``estimator_`` is the fitted PULSE transformer, with its history and all other attributes. The
# pipeline passes a DataFrame with named columns to the classifier. Look at the losses: in 25 epochs
# the loss on JapaneseVowels falls, and the loss on the 40 recordings of BasicMotions does not.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
for ax, (panel, (_, _, X_test, y_test)) in zip(axes, loaded.items(), strict=True):
    encoder = fitted[panel, "PULSE"].transformers_.steps_[0][1]
    embedding = encoder.transform(X_test)
    losses = [epoch["train_loss"] for epoch in encoder.estimator_.history_]
    print(
        f"\n{panel}: columns {embedding.columns[0]} to {embedding.columns[-1]},"
        f" loss {losses[0]:.3f} in the first epoch and {losses[-1]:.3f} in the last"
    )
    EmbeddingDisplay.from_embedding(embedding.to_numpy(), y_test, ax=ax)
    title = {"BasicMotions": "activity", "JapaneseVowels": "speaker"}[panel]
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, title=title)
    ax.set_title(f"{panel}: PULSE embeddings of the test part")
output = Path("output/sktime")
output.mkdir(parents=True, exist_ok=True)
figure.savefig(output / "embedding.png", dpi=120)
print(f"\npicture: {output}/embedding.png")
