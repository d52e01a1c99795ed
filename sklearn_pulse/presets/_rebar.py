"""Presets of REBAR."""

from __future__ import annotations

from ._cut import REBAR_EXPERIMENTS, Presets, cut

# Each row holds the parameters of REBARTransformer that differ from its defaults.
PARAMS: Presets = {
    "har": {"batch_size": 64, "mask_length": 15},
    "ecg": {
        "batch_size": 64,
        "temperature": 0.001,
        "alpha": 1.0,
        "attention_depth": 5,
        "mask_length": 300,
        "attention_epochs": 20,
    },
    "ppg": {
        "batch_size": 64,
        "alpha": 1.0,
        "attention_depth": 5,
        "mask_length": 300,
        "attention_epochs": 500,
    },
    "eeg": {
        "batch_size": 64,
        "alpha": 0.5,
        "attention_depth": 5,
        "mask_length": 300,
        "attention_epochs": 100,
    },
    "synthetic": {
        "temperature": 0.001,
        "alpha": 0.5,
        "attention_depth": 5,
        "mask_length": 25,
        "attention_epochs": 100,
    },
    "har-transfer": {"batch_size": 64, "mask_length": 15},
    "eeg-transfer": {
        "batch_size": 64,
        "lr": 1e-4,
        "alpha": 0.5,
        "attention_depth": 5,
        "mask_length": 100,
        "attention_epochs": 100,
    },
}

# The released code draws one anchor per recording and epoch. Its one-cycle schedule is never
# stepped, so the learning rate stays at the start of the cycle, a 25th of its peak. Validation uses
# fresh draws and dropout.
PUBLISHED: Presets = {
    dataset: {
        "anchors": "recordings",
        "loss_reduction": "published",
        "schedule": "constant",
        "lr": params.get("lr", 1e-3) / 25,
        "betas": (0.95, 0.999),
        "deterministic_validation": False,
    }
    for dataset, params in PARAMS.items()
}

# REBAR's own code and configurations, which cover three of the data sets. There ECG is not
# down-sampled, and anchors lie anywhere in a recording; to repeat this, cut windows at a stride of
# 1.
_CONFIGURATIONS: Presets = {
    "har": {"temperature": 0.1, "max_epochs": 1000},
    "ecg": {"temperature": 0.001, "alpha": 0.5, "batch_size": 16},
    "ppg": {"temperature": 10.0, "alpha": 0.5, "lr": 1e-4, "max_epochs": 1000, "batch_size": 16},
}
OFFICIAL: Presets = {
    dataset: {
        **REBAR_EXPERIMENTS,
        "n_candidates": 20,
        "anchors": "recordings",
        "loss_reduction": "published",
        **_CONFIGURATIONS.get(dataset, {}),
    }
    for dataset in PARAMS
}

# The published code ignores the fraction of its configuration and reads whole recordings.
WINDOWS = {
    "har": cut("random", 128, stride=128, stride_val=128, channels=6),
    "ecg": cut("random", 500, downsample=5, stride=128, stride_val=128, channels=2),
    "ppg": cut("random", 960, downsample=4, stride=128, stride_val=128, channels=1),
    "eeg": cut("random", 1000, downsample=3, stride=128, stride_val=128, channels=2),
    "synthetic": cut("random", 100, stride=128, stride_val=128, channels=3),
    "har-transfer": cut("random", 500, stride=128, stride_val=128, channels=6),
    "eeg-transfer": cut("random", 200, stride=200, stride_val=200, channels=1),
}

# The released code takes anchors from any position of a recording, and candidates from positions
# that keep half a window away from its ends. Here both come from any position.
PUBLISHED_WINDOWS: Presets = {dataset: {"stride": 1, "stride_val": 1} for dataset in WINDOWS}

SEARCH_SPACE: dict[str, list[float]] = {}  # the paper publishes only the grid of all methods
