"""Presets of TimeMAE."""

from __future__ import annotations

from ._cut import Presets, cut

# By data set: time steps of a segment, epochs, batch size.
_SIZES = {
    "har": (8, 200, 128),
    "ecg": (16, 200, 64),
    "ppg": (8, 200, 64),
    "eeg": (8, 100, 64),
    "synthetic": (10, 100, 128),
    "har-transfer": (8, 200, 128),
    "eeg-transfer": (8, 100, 64),
}

PARAMS: Presets = {
    dataset: {"patch_length": length, "max_epochs": epochs, "batch_size": batch}
    for dataset, (length, epochs, batch) in _SIZES.items()
}
PARAMS["eeg-transfer"]["lr"] = 1e-4

# The released code neither copies nor updates the momentum encoder, has another number of codes
# than the method's authors, and validates with fresh masks and codes. (The default combines the
# vocabulary size of the method's authors with the widths of the comparison.)
PUBLISHED: Presets = {
    dataset: {"momentum": None, "vocab_size": 256, "deterministic_validation": False}
    for dataset in _SIZES
}

# Sizes in the code of the method's own authors.
OFFICIAL: Presets = {
    dataset: {"embedding_dim": 64, "encoder_hidden_dim": 256, "vocab_size": 192}
    for dataset in _SIZES
}

WINDOWS = {
    "har": cut("random", 128, stride=32, stride_val=128, channels=6),
    "ecg": cut(
        "random",
        500,
        downsample=5,
        stride=250,
        stride_val=250,
        fraction=0.25,
        fraction_val=0.1,
        channels=2,
    ),
    "ppg": cut("labeled", 960, downsample=4, channels=1),
    "eeg": cut("labeled", 1000, downsample=3, fraction=0.2, channels=2),
    "synthetic": cut("random", 100, stride=100, stride_val=100, channels=3),
    "har-transfer": cut("random", 500, stride=128, stride_val=128, channels=6),
    "eeg-transfer": cut("random", 200, stride=200, stride_val=200, fraction=0.1, channels=1),
}

# The paper's grid has no parameter that belongs to TimeMAE alone.
SEARCH_SPACE: dict[str, list[float]] = {}
