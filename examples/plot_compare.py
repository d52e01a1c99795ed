"""
Which method for my recordings?
===============================

The benchmark compares methods on your own windows: pass windows, labels and people, and read a
frame and a picture. The windows here are every eighth of the activity recordings of a smartphone
(HAR). The question is how many people must be labelled. People are divided into folds; the
validation people are scored, and the test people stay unseen until the method is chosen.

::

    python examples/plot_compare.py [folder of the data set]

The run takes about a minute and is no benchmark: one run, few windows, no trained network. Add
"pulse" or "ts2vec" to the methods for trained ones.
"""

import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from sklearn_pulse.benchmark import compare
from sklearn_pulse.datasets import fetch_har

started = time.perf_counter()

# %%
# Windows, labels and people
# --------------------------

try:
    har = fetch_har(*sys.argv[1:2], group="subject")
except OSError as missing:
    sys.exit(str(missing))

few = slice(None, None, 8)
X, y, people = har.X[few], har.y[few], har.groups[few]
print(f"{len(X)} windows of {len(set(people.tolist()))} people")

# %%
# The comparison
# --------------
# With ``out``, finished runs are kept, and a second call adds methods to them.

frame, display = compare(
    X,
    y,
    groups=people,
    recording=har.recording[few],
    start=har.start[few],
    methods=["cross-prediction", "statistics", "untrained", "majority"],
    protocols=["labelled-people"],
    n_seeds=1,
    device="cpu",
)
table = frame.pivot(index="method", columns="metric", values="mean")
print(table[list(frame["metric"].unique())].round(3).to_string())

output = Path("output/compare")
output.mkdir(parents=True, exist_ok=True)
display.ax_.set_title("Validation people of HAR", loc="left")
display.figure_.savefig(output / "labelled_people.png", dpi=120)
print(f"\npicture: {output}/labelled_people.png")
print(f"{time.perf_counter() - started:.0f} s")
