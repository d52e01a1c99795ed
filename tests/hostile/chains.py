"""Hostile folders of saved chains."""

import json
import shutil
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from safetensors.torch import save as to_safetensors
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pulse import RandomEncoderTransformer, load_pretrained, save_pretrained
from sklearn_pulse.preprocessing import BandpassFilter
from tests.helpers import SMALL_ENCODER, make_windows
from tests.hostile.registry import attack, loader
from tests.persistence.helpers import read_config, write_config, write_weights

X, y = make_windows(n=8)
FILTER, ENCODER, SCALER, PROBE = range(4)  # places of the steps
_SAVED: list[Path] = []


def prepare(home):
    """Fit and save a small chain in a folder."""
    chain = make_pipeline(
        BandpassFilter(None, 10, sampling_rate=64),
        RandomEncoderTransformer(**SMALL_ENCODER, random_state=0),
        StandardScaler(),
        LogisticRegression(),
    )
    save_pretrained(chain.fit(X, y), home / "chain")
    _SAVED.append(home / "chain")


loader("load_pretrained")(lambda path: load_pretrained(path, device="cpu"))


def changed(name, change, harmless=None):
    """Register an attack that changes the nodes of the steps, in place or by a returned chain."""

    @attack("load_pretrained", name, harmless=harmless)
    def write(folder):
        path = Path(shutil.copytree(_SAVED[-1], folder / "a-chain"))
        config = read_config(path)
        result = change([node for _, node in config["chain"]["steps"]])
        config["chain"] = config["chain"] if result is None else result
        write_config(path, config)
        return path


def weighted(name, change):
    """Register an attack that changes the arrays."""

    @attack("load_pretrained", name)
    def write(folder):
        path = Path(shutil.copytree(_SAVED[-1], folder / "a-chain"))
        write_weights(path, to_safetensors(change(load_file(path / "model.safetensors"))))
        return path


def works(model):
    return np.isfinite(model.predict_proba(X)).all()


PASSING = {"class": "sklearn.pipeline.Pipeline", "parameters": {}, "steps": [["a", "passthrough"]]}


def nested(depth):
    node = PASSING
    for _ in range(depth):
        node = node | {"steps": [["a", node]]}
    return node


changed("a function for a step", lambda s: s[PROBE].update({"class": "os.system"}))
changed("a class that is not listed", lambda s: s[PROBE].update({"class": "sklearn.svm.SVC"}))
changed(
    "a base of listed classes", lambda s: s[PROBE].update({"class": "sklearn.base.BaseEstimator"})
)
changed("a folder outside", lambda s: s[ENCODER].update(folder="../chain"))
changed("a folder of any name", lambda s: s[ENCODER].update(folder="/etc"))
changed("a cache of pickles", lambda s: PASSING | {"parameters": {"memory": "/tmp/hostile"}})
changed("a million jobs", lambda s: s[PROBE]["parameters"].update(n_jobs=10**6))
changed("a solver that is none", lambda s: s[PROBE]["parameters"].update(solver="os.system"))
changed("a method for a fact", lambda s: s[PROBE]["facts"].update(predict=1))
changed("a billion features", lambda s: s[PROBE]["facts"].update(n_features_in_=10**9))
changed(
    "more classes than rows",
    lambda s: s[PROBE]["facts"].update(classes_={"array": [*range(1000)], "dtype": "<i8"}),
)
changed(
    "a class twice", lambda s: s[PROBE]["facts"].update(classes_={"array": [1, 1], "dtype": "<i8"})
)
changed("a filter of any order", lambda s: s[FILTER]["parameters"].update(order=10**9))
changed("a filter of no rate", lambda s: s[FILTER]["parameters"].update(rate={"float": "nan"}))
changed("another array for none", lambda s: s[SCALER]["none"].append("coef_"), harmless=works)
changed("a number for reversed arrays", lambda s: s[PROBE].update(rows_reversed=5))
changed("a scalar in reverse", lambda s: s[SCALER].update(rows_reversed=["n_samples_seen_"]))
changed(
    "a part of no rows",
    lambda s: s[PROBE].update(columns_first=["coef_"], first_rows={"coef_": 0}),
)
changed(
    "a part that is none",
    lambda s: s[PROBE].update(columns_first=["coef_"], first_rows={"coef_": "all"}),
)
changed("steps in steps in steps", lambda s: nested(300))
changed(
    "a thousand steps",
    lambda s: PASSING | {"steps": [[f"a{i}", "passthrough"] for i in range(1000)]},
)
changed("a step twice", lambda s: PASSING | {"steps": [["a", "passthrough"], ["a", "passthrough"]]})
changed("a number for a step", lambda s: PASSING | {"steps": [["a", 1]]})
changed("no steps", lambda s: {})
changed("a container that is none", lambda s: s[SCALER].update(output="os.system"))
weighted("arrays that are no numbers", lambda t: {name: w * torch.nan for name, w in t.items()})
weighted(
    "arrays of another shape",
    lambda t: {name: w.repeat(2) if w.ndim == 1 else w for name, w in t.items()},
)
weighted("arrays of whole numbers", lambda t: {name: w.long() for name, w in t.items()})
weighted("an array more", lambda t: t | {"../../evil": torch.ones(1)})
weighted("no arrays", lambda t: {})


@attack("load_pretrained")
def a_link_for_an_encoder(folder):
    path = Path(shutil.copytree(_SAVED[-1], folder / "a-chain"))
    shutil.rmtree(path / "step0")
    (path / "step0").symlink_to(_SAVED[-1] / "step0")
    return path


@attack("load_pretrained")
def a_chain_in_a_chain_without_end(folder):
    path = Path(shutil.copytree(_SAVED[-1], folder / "a-chain"))
    shutil.rmtree(path / "step0")
    shutil.copytree(_SAVED[-1], path / "step0")
    return path


@attack("load_pretrained")
def a_config_that_nobody_sealed(folder):
    path = Path(shutil.copytree(_SAVED[-1], folder / "a-chain"))
    config = read_config(path)
    config["chain"] = PASSING
    (path / "config.json").write_text(json.dumps(config))
    return path
