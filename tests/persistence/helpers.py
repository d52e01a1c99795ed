"""Models on disk, and ways to spoil them."""

import hashlib
import json
from functools import partial

import torch
from safetensors.torch import load_file, save

from sklearn_pulse import PulseTransformer
from tests.helpers import make_windows, small

X = make_windows()[0]
FILES = ("config.json", "model.safetensors", "README.md")
pulse = partial(small, PulseTransformer)


def read_config(folder):
    return json.loads((folder / "config.json").read_text())


def write_config(folder, config):
    """Write a configuration with a valid checksum, as only intent can."""
    content = {name: value for name, value in config.items() if name != "checksum"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    content["checksum"] = hashlib.sha256(canonical.encode()).hexdigest()
    (folder / "config.json").write_text(json.dumps(content))


def write_weights(folder, content):
    """Write a file of weights that the configuration says is the right one."""
    (folder / "model.safetensors").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    write_config(
        folder, read_config(folder) | {"weights": {"n_bytes": len(content), "sha256": digest}}
    )


def change_weights(folder, change):
    """Apply a function to the dictionary of weights."""
    write_weights(folder, save(change(load_file(folder / "model.safetensors"))))


def same_state(first, second):
    first, second = (estimator.net_.module_.state_dict() for estimator in (first, second))
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) and first[name].dtype == second[name].dtype
        for name in first
    )
