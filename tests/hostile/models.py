"""Hostile folders of saved models."""

import json
import os
import shutil
import struct
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from safetensors.torch import save as to_safetensors
from sklearn.frozen import FrozenEstimator

from sklearn_pulse import CrossPredictionTransformer, FineTuneClassifier, PulseTransformer
from sklearn_pulse.baselines import (
    PatchTSTTransformer,
    SimCLRTransformer,
    SimMTMTransformer,
    TimeMAETransformer,
    TS2VecTransformer,
)
from sklearn_pulse.features import (
    AutocorrelationTransformer,
    HydraTransformer,
    IntervalQuantileTransformer,
    RandomConvolutionTransformer,
)
from tests.helpers import accepted, make_windows, small
from tests.hostile.records import Bomb
from tests.hostile.registry import attack, loader
from tests.persistence.helpers import read_config, write_config, write_weights

X, Y = make_windows(n=8)
CLASSES = {
    "pulse": PulseTransformer,
    "patchtst": PatchTSTTransformer,
    "simclr": SimCLRTransformer,
    "simmtm": SimMTMTransformer,
    "timemae": TimeMAETransformer,
    "ts2vec": TS2VecTransformer,
    "convolutions": RandomConvolutionTransformer,
    "cross-prediction": CrossPredictionTransformer,
    "hydra": HydraTransformer,
    "fine-tuned": FineTuneClassifier,
    "autocorrelation": AutocorrelationTransformer,
    "quantiles": IntervalQuantileTransformer,
}
QUICK = ("pulse", "autocorrelation", "quantiles")
_SAVED: dict[str, Path] = {}


def prepare(home, kinds):
    """Train a small model of each kind, and save it in a folder."""
    for name in kinds:
        cls = CLASSES[name]
        params, labels = {}, []
        if accepted(cls, {"pretrained": None}):
            pretrained = small(PulseTransformer, max_epochs=1).fit(X)
            params, labels = {"pretrained": FrozenEstimator(pretrained)}, [Y]
        small(cls, max_epochs=1, **params).fit(X, *labels).save_pretrained(home / name)
        _SAVED[name] = home / name


@loader("from_pretrained")
def read(path):
    cls = CLASSES[path.name.removeprefix("a-")]
    return cls.from_pretrained(path)


def copied(folder, kind="pulse"):
    return Path(shutil.copytree(_SAVED[kind], folder / f"a-{kind}"))


def configured(kind, **changes):
    """Return a writer of a model whose configuration was changed and sealed again."""

    def write(folder):
        path = copied(folder, kind)
        config = read_config(path)
        for place, value in changes.items():
            *parents, last = place.split("__")
            entries = config
            for parent in parents:
                entries = entries[parent]
            entries[last] = value
        write_config(path, config)
        return path

    return write


def works(model):
    return np.isfinite(model.transform(X)).all()


PARAMETERS = {
    "a million blocks": ("pulse", {"encoder_depth": 10**6}),
    "ten million layers": ("pulse", {"gru_num_layers": 10**7}),
    "wide layers": ("pulse", {"encoder_hidden_dim": 10**5}),
    "a wide embedding": ("pulse", {"embedding_dim": 10**6}),
    "an embedding of a number with 4000 digits": ("pulse", {"embedding_dim": 10**4000}),
    "a wide decoder": ("pulse", {"gru_hidden_dim": 10**6}),
    "a wide drive": ("pulse", {"time_varying_dim": 10**9}),
    "a wide kernel": ("pulse", {"init_kernel_size": 10**9 + 1}),
    "a wide initial condition": ("pulse", {"init_hidden_dim": 10**9}),
    "a million threads": ("pulse", {"num_threads": 10**6}),
    "a compiler": ("pulse", {"compile": True}),
    "a device": ("pulse", {"device": "cuda:7"}),
    "a folder to write to": ("pulse", {"checkpoint_dir": "/tmp/hostile"}),
    "callbacks": ("pulse", {"callbacks": ["print"]}),
    "text that takes the memory of the longest": (
        "pulse",
        {"lr": {"array": ["a" * 40_000, *[""] * 40_000], "dtype": "U"}},
    ),
    "a deep value": ("pulse", {"lr": json.loads("[" * 400 + "]" * 400)}),
    "SimMTM of a million blocks": ("simmtm", {"encoder_depth": 10**6}),
    "SimCLR of a million blocks": ("simclr", {"encoder_depth": 10**6}),
    "TS2Vec of a million blocks": ("ts2vec", {"encoder_depth": 10**6}),
    "TimeMAE of a million layers": ("timemae", {"encoder_depth": 10**6}),
    "TimeMAE of many words": ("timemae", {"vocab_size": 10**9}),
    "PatchTST of a million layers": ("patchtst", {"encoder_depth": 10**6}),
    "10^12 kernels": ("convolutions", {"num_kernels": 10**12}),
    "10^12 groups of kernels": ("hydra", {"num_groups": 10**12}),
    "10^12 kernels in a block": ("cross-prediction", {"num_kernels": 10**12}),
    "an embedding wider than its map": ("cross-prediction", {"embedding_dim": 10**9}),
}
for name, (kind, params) in PARAMETERS.items():
    changes = {f"parameters__{key}": value for key, value in params.items()}
    attack("from_pretrained", name)(configured(kind, **changes))

ATTRIBUTES = {
    "a billion channels": ("pulse", {"n_channels_in_": 10**9, "n_features_in_": 10**9}),
    "long windows of PatchTST": ("patchtst", {"n_timesteps_in_": 10**12}),
    "long windows of TimeMAE": ("timemae", {"n_timesteps_in_": 10**12}),
    "long windows of SimMTM": ("simmtm", {"n_timesteps_in_": 10**12}),
    "many channels of convolutions": (
        "convolutions",
        {"n_channels_in_": 10**12, "n_features_in_": 10**12},
    ),
    "long windows of Hydra": ("hydra", {"n_timesteps_in_": 10**18}),
    "longest windows that are text": ("pulse", {"n_timesteps_trained_": "many"}),
    "longest windows of no step": ("pulse", {"n_timesteps_trained_": 0}),
    "the net": ("pulse", {"net_": 1}),
    "a method": ("pulse", {"transform": 1}),
}
for name, (kind, attributes) in ATTRIBUTES.items():
    changes = {f"fitted__{key}": value for key, value in attributes.items()}
    attack("from_pretrained", name)(configured(kind, **changes))

attack("from_pretrained", "long windows of convolutions", harmless=works)(
    configured("convolutions", fitted__n_timesteps_in_=10**18)
)
attack("from_pretrained", "long windows of quantiles", harmless=lambda model: True)(
    configured("quantiles", fitted__n_timesteps_in_=10**18)
)
attack("from_pretrained", "a million intervals", harmless=lambda model: True)(
    configured("quantiles", parameters__depth=18, fitted__n_timesteps_in_=2**17)
)
attack("from_pretrained", "long windows of autocorrelations", harmless=lambda model: True)(
    configured("autocorrelation", fitted__n_timesteps_in_=10**18)
)
attack("from_pretrained", "a billion bins of autocorrelations")(
    configured("autocorrelation", parameters__max_bins=10**9, fitted__n_timesteps_in_=10**18)
)
attack("from_pretrained", "windows without end", harmless=works)(
    configured("pulse", fitted__n_timesteps_in_=10**18)
)
attack("from_pretrained", "more components than there are", harmless=works)(
    configured("cross-prediction", parameters__n_components=10**9)
)
attack("from_pretrained", "200,000 epochs", harmless=works)(
    configured("pulse", training__history=[{"train_loss": 1.0}] * 200_000)
)
attack("from_pretrained", "a history that names batches")(
    configured("pulse", training__history=[{"batches": []}])
)
attack("from_pretrained", "an epoch that is not there")(
    configured("pulse", training__selected_epoch=10**9)
)
_PARAMETERS_OF_HELD = "held__pretrained__parameters__"
attack("from_pretrained", "a million blocks in the encoder of a classifier")(
    configured("fine-tuned", **{_PARAMETERS_OF_HELD + "encoder_depth": 10**6})
)
attack("from_pretrained", "a wide embedding in the encoder of a classifier")(
    configured("fine-tuned", **{_PARAMETERS_OF_HELD + "embedding_dim": 10**9})
)
attack("from_pretrained", "a folder for an encoder")(
    configured("fine-tuned", parameters__pretrained="/etc")
)
attack("from_pretrained", "a million classes")(
    configured("fine-tuned", fitted__classes_={"array": list(range(10**6)), "dtype": "<i8"})
)


@attack("from_pretrained")
def an_encoder_of_encoders_of_encoders(folder):
    path = copied(folder, "fine-tuned")
    config = read_config(path)
    innermost = config["held"]["pretrained"]
    for _ in range(150):
        innermost = {**config, "held": {"pretrained": innermost}}
    write_config(path, innermost)
    return path


attack("from_pretrained", "a function for a class")(configured("pulse", **{"class": "os.system"}))
attack("from_pretrained", "another class")(configured("pulse", **{"class": "SimCLRTransformer"}))


@attack("from_pretrained")
def a_configuration_of_64_megabytes(folder):
    path = copied(folder)
    text = (path / "config.json").read_text().rstrip().removesuffix("}")
    (path / "config.json").write_text(text + ', "x": [' + "[]," * (2**26 // 3) + "[]]}")
    return path


@attack("from_pretrained")
def a_configuration_of_many_lists(folder):
    path = copied(folder)
    text = (path / "config.json").read_text().rstrip().removesuffix("}")
    (path / "config.json").write_text(text + ', "x": [' + "[]," * 2_600_000 + "[]]}")
    return path


@attack("from_pretrained")
def a_parameter_of_many_lists(folder):
    path = copied(folder)
    config = read_config(path)
    config["parameters"]["lr"] = [[]] * 1_500_000
    write_config(path, config)
    return path


CONFIGS = {
    "no configuration": b"",
    "a configuration of binary junk": bytes(range(256)) * 9,
    "a deep configuration": b"[" * 500_000,
    "a configuration of another program": b'{"model_type": "bert"}',
    "a number of many digits": b'{"format": "sklearn_pulse", "format_version": ' + b"1" * 10**6,
}
for name, content in CONFIGS.items():

    @attack("from_pretrained", name)
    def write_junk(folder, content=content):
        path = copied(folder)
        (path / "config.json").write_bytes(content)
        return path


@attack("from_pretrained")
def a_pipe_for_a_configuration(folder):
    path = copied(folder)
    (path / "config.json").unlink()
    os.mkfifo(path / "config.json")
    return path


@attack("from_pretrained")
def a_link_for_weights(folder):
    path = copied(folder)
    (path / "model.safetensors").unlink()
    (path / "model.safetensors").symlink_to("/etc/hostname")
    return path


def weighted(name, change, kind="pulse"):
    @attack("from_pretrained", name)
    def write(folder):
        path = copied(folder, kind)
        write_weights(path, to_safetensors(change(load_file(path / "model.safetensors"))))
        return path


def scaled(state, scale):
    return {
        name: value * scale if value.is_floating_point() else value for name, value in state.items()
    }


FIRST = "encoder.input.weight"
weighted("weights that overflow", lambda state: scaled(state, 1e38))
weighted(
    "weights that overflow in the map",
    lambda s: s | {name: s[name] * 1e30 for name in ("components", "map")},
    "cross-prediction",
)
weighted("weights that are no numbers", lambda s: s | {FIRST: s[FIRST] * torch.nan})
weighted("weights of half precision", lambda s: {name: w.half() for name, w in s.items()})
weighted("weights of whole numbers", lambda s: {name: w.long() for name, w in s.items()})
weighted("no weights", lambda state: {})
weighted("a weight more", lambda s: s | {"../../evil": torch.ones(1)})
weighted("a weight less", lambda s: {name: w for name, w in s.items() if name != FIRST})
weighted(
    "20,000 weights more",
    lambda s: s | {f"encoder.blocks.{i}.x": s[FIRST].clone() for i in range(20_000)},
)
weighted(
    "biases of another kernel",
    lambda s: {name: w[..., :1].contiguous() if w.ndim else w for name, w in s.items()},
    "convolutions",
)


def header(entries, data=b""):
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + data


WEIGHTS = {
    "a header beyond the end": struct.pack("<Q", 2**62) + b"{}",
    "a header of half a million weights": lambda: header(
        {f"w{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(500_000)}
    ),
    "weights that share bytes": header(
        {name: {"dtype": "F32", "shape": [8], "data_offsets": [0, 32]} for name in "ab"}, bytes(32)
    ),
    "a shape beyond the bytes": header(
        {"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 32]}}, bytes(32)
    ),
    "empty weights of any shape": header(
        {"a": {"dtype": "F32", "shape": [2**62, 0], "data_offsets": [0, 0]}}
    ),
}
for name, content in WEIGHTS.items():

    @attack("from_pretrained", name)
    def write_content(folder, content=content):
        path = copied(folder)
        write_weights(path, content() if callable(content) else content)
        return path


@attack("from_pretrained")
def a_file_of_torch_for_weights(folder):
    path = copied(folder)
    torch.save({"a": Bomb(folder / "executed")}, folder / "x")
    write_weights(path, (folder / "x").read_bytes())
    return path


@attack("from_pretrained")
def half_the_weights(folder):
    path = copied(folder)
    content = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(content[: len(content) // 2])
    return path


@attack("from_pretrained")
def another_bit(folder):
    path = copied(folder)
    content = bytearray((path / "model.safetensors").read_bytes())
    content[-3] ^= 1
    (path / "model.safetensors").write_bytes(content)
    return path
