"""REBAR."""

from __future__ import annotations

from ._cut import REBAR_EXPERIMENTS, Presets, cut

# Each row: the parameters of REBARTransformer that differ from its defaults.
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

# One anchor a recording and epoch; a learning rate that is never stepped, and so stays where one
# cycle starts, a 25th of its peak; fresh draws, and dropout, in validation.
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

# REBAR's own code and configurations, which know three of the data sets. Its ECG is not
# down-sampled, and its anchors lie anywhere in a recording: for that, cut windows at a stride of 1.
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

# The published code reads whole recordings, whatever fraction its configuration names.
WINDOWS = {
    "har": cut("random", 128, stride=128, stride_val=128, channels=6),
    "ecg": cut("random", 500, downsample=5, stride=128, stride_val=128, channels=2),
    "ppg": cut("random", 960, downsample=4, stride=128, stride_val=128, channels=1),
    "eeg": cut("random", 1000, downsample=3, stride=128, stride_val=128, channels=2),
    "synthetic": cut("random", 100, stride=128, stride_val=128, channels=3),
    "har-transfer": cut("random", 500, stride=128, stride_val=128, channels=6),
    "eeg-transfer": cut("random", 200, stride=200, stride_val=200, channels=1),
}

# The released code takes anchors and candidates from any position of a recording.
PUBLISHED_WINDOWS: Presets = {dataset: {"stride": 1, "stride_val": 1} for dataset in WINDOWS}

SEARCH_SPACE: dict[str, list[float]] = {}  # nothing was published beyond what methods share
