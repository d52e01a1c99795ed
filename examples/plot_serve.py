"""
Save a whole pipeline, and serve it without Python
==================================================

A model in use is more than an encoder: scaling comes before the encoder, a probe after it. Here a
pipeline is trained on two states of a chaotic system, saved in a folder that holds no code, and
loaded again. Then it is written as one graph, which onnxruntime (or torch, if onnxruntime is not
installed) runs on windows of other lengths and with missing steps. Nothing is downloaded.

::

    python examples/plot_serve.py

The run takes less than half a minute.
"""

# %%
# Train
# -----
# The encoder knows the sampling rate and the channels, and refuses windows of others.

import importlib.util
import json
import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sklearn_pulse
from sklearn_pulse import PulseTransformer
from sklearn_pulse.datasets import make_lorenz
from sklearn_pulse.preprocessing import WindowScaler
from sklearn_pulse.windows import sliding_windows

recordings = [
    *make_lorenz(rho=28.0, n_trials=6, n_timesteps=256, random_state=0),
    *make_lorenz(rho=96.0, n_trials=6, n_timesteps=256, random_state=1),
]
facts = {"sampling_rate": 64, "channel_names": ["x", "y", "z"]}
w = sliding_windows(recordings, 64, y=["calm"] * 6 + ["driven"] * 6, lazy=True, **facts)
pipeline = make_pipeline(
    WindowScaler(),
    PulseTransformer(embedding_dim=32, encoder_depth=6, max_epochs=5, random_state=0),
    StandardScaler(),
    LogisticRegression(max_iter=1000),
)
train, test = w.recording % 3 > 0, w.recording % 3 == 0
pipeline.fit(w.X[train], w.y[train])
print(f"accuracy on other recordings: {pipeline.score(w.X[test], w.y[test]):.2f}")

try:
    pipeline.predict(sliding_windows(recordings, 64, lazy=True, sampling_rate=100).X)
except ValueError as error:
    print(f"windows of another rate: {error}")

# %%
# Save and load
# -------------
# The folder holds JSON, numbers and a model card. The loaded pipeline predicts to the bit.

home = Path("output/serve")
home.mkdir(parents=True, exist_ok=True)
sklearn_pulse.save_pretrained(pipeline, home / "lorenz")
print(sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()))
loaded = sklearn_pulse.load_pretrained(home / "lorenz")
windows = np.asarray(w.X[test])
same = np.array_equal(loaded.predict_proba(windows), pipeline.predict_proba(windows))
print(f"the same bits: {same}")
assert same

# %%
# One graph
# ---------
# The graph takes windows of shape (batch, time, channels), with NaN for missing values. Its
# signature, which is a part of the file, states the shape, the channels and the classes.

if all(importlib.util.find_spec(name) for name in ("onnx", "onnxruntime", "onnxscript")):
    import onnxruntime

    signature = sklearn_pulse.export(loaded, home / "lorenz.onnx", units=["mV", "mV", "mV"])
    session = onnxruntime.InferenceSession(home / "lorenz.onnx")

    def run(x):
        """Return what the graph computes."""
        return session.run(None, {"windows": x})[0]

else:
    signature = sklearn_pulse.export(loaded, home / "lorenz.pt2", format="torch")
    program = torch.export.load(home / "lorenz.pt2").module()

    def run(x):
        """Return what the graph computes."""
        return program(torch.from_numpy(x)).detach().numpy()


print(json.dumps(signature, indent=2))

# %%
# The same numbers
# ----------------
# One window or many, shorter or longer than those of training, whole or with gaps.

warnings.filterwarnings("ignore", message="X has windows of 100 time steps")
for n, length in [(1, 64), (7, 64), (4, 40), (3, 100)]:
    x = np.stack([recordings[i][:length] for i in range(n)]).astype(np.float32)
    x[0, 5:12] = np.nan
    difference = np.abs(run(x) - loaded.predict_proba(x)).max()
    print(f"{n} window(s) of {length} steps: largest difference {difference:.1e}")
    assert difference < 1e-5
