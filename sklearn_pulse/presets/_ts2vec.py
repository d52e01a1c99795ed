"""Presets of TS2Vec."""

from __future__ import annotations

from ._cut import Presets, cut

_LR = {
    "har": 1e-5,
    "ecg": 1e-5,
    "ppg": 1e-3,
    "eeg": 1e-5,
    "synthetic": 1e-4,
    "har-transfer": 1e-5,
    "eeg-transfer": 1e-3,
}

PARAMS: Presets = {
    dataset: {"lr": lr} if dataset == "synthetic" else {"lr": lr, "batch_size": 64}
    for dataset, lr in _LR.items()
}

# The released code builds a one-cycle schedule and never steps it, so the first learning rate,
# lr / 25, and the first momentum remain. It hides the last two windows of a batch instead of time
# steps, and divides the loss once more by the batch size.
PUBLISHED: Presets = {
    dataset: {
        "lr": lr / 25,
        "schedule": "constant",
        "betas": (0.95, 0.999),
        "mask_mode": "last_samples",
        "loss_reduction": "published",
        "deterministic_validation": False,
    }
    for dataset, lr in _LR.items()
}

# TS2Vec's own code, which sets a number of updates, not of epochs, from the size of the data.
OFFICIAL: Presets = {
    dataset: {
        "lr": 1e-3,
        "weight_decay": 1e-2,
        "batch_size": 16,
        "drop_last": True,
        "max_updates": "auto",
        "schedule": "constant",
        "layer_norm": "none",
        "representation_dropout": 0.1,
        "select": "average",
        "validation_fraction": 0.0,
    }
    for dataset in PARAMS
}

WINDOWS = {
    "har": cut("random", 128, stride=128, stride_val=128, channels=6),
    "ecg": cut(
        "random", 500, downsample=5, stride=128, stride_val=128, fraction_val=0.1, channels=2
    ),
    "ppg": cut("random", 960, downsample=4, stride=128, stride_val=128, channels=1),
    "eeg": cut("random", 1000, downsample=3, stride=250, stride_val=1000, fraction=0.2, channels=2),
    "synthetic": cut("labeled", 100, channels=3),
    "har-transfer": cut("random", 500, stride=128, stride_val=128, channels=6),
    "eeg-transfer": cut("random", 200, stride=200, stride_val=200, fraction=0.1, channels=1),
}

# The released code applies the training fraction a second time, to both parts.
PUBLISHED_WINDOWS = {
    dataset: {
        "fraction": round(row["fraction"] ** 2, 6),
        "fraction_val": round(row["fraction_val"] * row["fraction"], 6),
    }
    for dataset, row in WINDOWS.items()
}

SEARCH_SPACE: dict[str, list[float]] = {}  # the paper publishes only the grid of all methods
