"""Presets of LFADS."""

from __future__ import annotations

from ._cut import Presets, cut

PARAMS: Presets = {
    "har": {"max_epochs": 10},
    "ecg": {"max_epochs": 10},
    "ppg": {"max_epochs": 10, "batch_size": 64},
    "eeg": {"max_epochs": 10},
    "synthetic": {},
    "har-transfer": {"batch_size": 32},  # the published file lacks the model's settings
    "eeg-transfer": {"lr": 1e-4},
}

# The learning rate follows the loss of each batch; validation draws from the posteriors afresh.
PUBLISHED: Presets = {
    dataset: {"schedule": "plateau", "deterministic_validation": False} for dataset in PARAMS
}

# In the code of LFADS's own authors, the learning rate follows the smoothed reconstruction error of
# the validation of each epoch.
OFFICIAL: Presets = {
    dataset: {"schedule": "validation_plateau", "validation_every": 1} for dataset in PARAMS
}

WINDOWS = {
    "har": cut("labeled", 128, fraction_val=0.5, channels=6),
    "ecg": cut("labeled", 500, downsample=5, fraction=0.25, fraction_val=0.1, channels=2),
    "ppg": cut("labeled", 960, downsample=4, channels=1),
    "eeg": cut("labeled", 1000, downsample=3, fraction=0.1, channels=2),
    "synthetic": cut("labeled", 100, channels=3),
    "har-transfer": cut("random", 500, stride=128, stride_val=128, channels=6),
    "eeg-transfer": cut("random", 200, stride=200, stride_val=200, fraction=0.1, channels=1),
}

SEARCH_SPACE: dict[str, list[float]] = {}  # the paper publishes only the grid of all methods
