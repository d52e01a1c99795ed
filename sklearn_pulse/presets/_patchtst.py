"""Presets of PatchTST."""

from __future__ import annotations

from ._cut import Presets, cut

# By data set: time steps of a patch, embedding width, learning rate.
_SIZES = {
    "har": (12, 64, 1e-5),
    "ecg": (12, 128, 1e-4),
    "ppg": (12, 320, 1e-4),
    "eeg": (12, 320, 1e-4),
    "synthetic": (10, 128, 1e-3),
    "har-transfer": (12, 64, 1e-5),
    "eeg-transfer": (12, 320, 1e-4),
}

PARAMS: Presets = {
    dataset: {
        "patch_length": length,
        "embedding_dim": width,
        "lr": lr,
        "batch_size": 128 if dataset == "synthetic" else 64,
    }
    for dataset, (length, width, lr) in _SIZES.items()
}

# The released code builds a one-cycle schedule and never steps it, so the first learning rate,
# lr / 25, and the first momentum remain. Its spelling of the stride makes a patch start at every
# step. The loss is divided once more by the batch size, and validation draws as training does.
PUBLISHED: Presets = {
    dataset: {
        "lr": lr / 25,
        "schedule": "constant",
        "betas": (0.95, 0.999),
        "patch_stride": 1,
        "loss_reduction": "published",
        "deterministic_validation": False,
    }
    for dataset, (_, _, lr) in _SIZES.items()
}

# Listed settings of PatchTST's own authors.
OFFICIAL: Presets = {
    dataset: {
        "patch_length": 12,
        "patch_stride": 1.0,
        "embedding_dim": 128,
        "n_heads": 16,
        "activation": "relu",
        "dropout": 0.2,
    }
    for dataset in _SIZES
}

WINDOWS = {
    "har": cut("random", 128, stride=128, stride_val=128, channels=6),
    "ecg": cut(
        "random",
        500,
        downsample=5,
        stride=128,
        stride_val=128,
        fraction=0.25,
        fraction_val=0.1,
        channels=2,
    ),
    "ppg": cut("labeled", 960, downsample=4, channels=1),
    "eeg": cut("random", 1000, downsample=3, stride=250, stride_val=1000, fraction=0.1, channels=2),
    "synthetic": cut("labeled", 100, channels=3),
    "har-transfer": cut("random", 500, stride=128, stride_val=128, channels=6),
    "eeg-transfer": cut("random", 200, stride=200, stride_val=200, fraction=0.1, channels=1),
}

# The paper's grid has no parameter that belongs to PatchTST alone.
SEARCH_SPACE: dict[str, list[float]] = {}
