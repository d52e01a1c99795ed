"""Presets of SimCLR."""

from __future__ import annotations

from ._cut import REBAR_EXPERIMENTS, Presets, cut

PARAMS: Presets = {
    "har": {"batch_size": 64},
    "ecg": {"batch_size": 64, "temperature": 0.001},
    "ppg": {"batch_size": 64},
    "eeg": {"batch_size": 64},
    "synthetic": {},
    "har-transfer": {"batch_size": 64},
    "eeg-transfer": {"batch_size": 64},
}

# Validation uses fresh augmentations. (The released augmentation itself cannot run on windows.)
PUBLISHED: Presets = {dataset: {"deterministic_validation": False} for dataset in PARAMS}

# Code and configurations of REBAR's authors, from which SimCLR was taken; they cover three of the
# data sets. That code draws one anchor per recording and epoch; here every window is an anchor.
_CONFIGURATIONS: Presets = {"ecg": {"batch_size": 16}, "ppg": {"batch_size": 16, "max_epochs": 200}}
OFFICIAL: Presets = {
    dataset: {
        **REBAR_EXPERIMENTS,
        "gradient_clip_value": None,
        **_CONFIGURATIONS.get(dataset, {}),
    }
    for dataset in PARAMS
}

WINDOWS = {
    "har": cut("random", 128, stride=128, stride_val=128, channels=6),
    "ecg": cut(
        "random", 500, downsample=5, stride=250, stride_val=250, fraction_val=0.1, channels=2
    ),
    "ppg": cut("random", 960, downsample=4, stride=128, stride_val=128, channels=1),
    "eeg": cut("random", 1000, downsample=3, stride=250, stride_val=1000, channels=2),
    "synthetic": cut("random", 100, stride=100, stride_val=100, channels=3),
    "har-transfer": cut("random", 500, stride=128, stride_val=128, channels=6),
    "eeg-transfer": cut("random", 200, stride=200, stride_val=200, fraction=0.1, channels=1),
}

# The paper's own grid was never released. These are the temperatures of its configurations and of
# the experiments from which the configurations were taken.
SEARCH_SPACE = {"temperature": [0.001, 0.1, 1.0]}
