"""Presets of PULSE."""

from __future__ import annotations

from ._cut import Presets, cut

# Each row holds the parameters of PulseTransformer that differ from its defaults (HAR's values).
PARAMS: Presets = {
    "har": {"min_crop_length": 64},
    "ecg": {
        "batch_size": 64,
        "init_kernel_size": 11,
        "init_dilation": 2,
        "init_hidden_dim": 128,
        "min_crop_length": 250,
        "time_varying_pool": 100,
    },
    "ppg": {
        "lr": 1e-4,
        "gru_num_layers": 4,
        "init_kernel_size": 5,
        "init_dilation": 2,
        "min_crop_length": 64,
    },
    "eeg": {
        "batch_size": 64,
        "init_dilation": 2,
        "n_crops": 1,
        "min_crop_length": 500,
        "time_varying_pool": 2,
        "time_varying_dim": 2,
    },
    "synthetic": {
        "gru_num_layers": 3,
        "gru_hidden_dim": 128,
        "init_dilation": 2,
        "init_hidden_dim": 128,
        "n_crops": 3,
        "min_crop_length": 50,
        "time_varying_pool": 50,
    },
    "har-transfer": {
        "max_epochs": 50,
        "lr": 1e-4,
        "gru_hidden_dim": 128,
        "init_dilation": 2,
        "init_hidden_dim": 128,
        "n_crops": 1,
        "min_crop_length": 64,
    },
    "eeg-transfer": {
        "max_epochs": 50,
        "lr": 1e-4,
        "batch_size": 64,
        "gru_hidden_dim": 128,
        "init_kernel_size": 5,
        "init_hidden_dim": 128,
        "n_crops": 1,
        "min_crop_length": 100,
        "time_varying_pool": 20,
    },
    # The decoder of a frozen encoder, which no publication has: docs/training.md.
    "strong": {"n_crops": 1, "theta_dropout": "sequence"},
}

# Validation uses fresh crops and dropout.
PUBLISHED: Presets = {
    dataset: {"deterministic_validation": False} for dataset in PARAMS if dataset != "strong"
}

WINDOWS = {
    "har": cut("random", 128, stride=32, stride_val=128, channels=6),
    "ecg": cut("labeled", 500, downsample=5, fraction=0.5, channels=2),
    "ppg": cut("labeled", 960, downsample=4, channels=1),
    "eeg": cut("random", 1000, downsample=3, stride=350, stride_val=1000, fraction=0.5, channels=2),
    "synthetic": cut("random", 100, stride=50, stride_val=100, channels=3),
    "har-transfer": cut("random", 128, stride=128, stride_val=128, channels=6),
    "eeg-transfer": cut("random", 200, stride=200, stride_val=200, fraction=0.1, channels=1),
}

SEARCH_SPACE = {
    "init_kernel_size": [3, 5, 11],
    "init_dilation": [1, 2],
    "init_hidden_dim": [64, 128],
    "gru_num_layers": [2, 3, 4],
    "gru_hidden_dim": [64, 128],
    "n_crops": [1, 2, 3],
}

ABLATIONS: Presets = {
    "no-time-varying": {"time_varying_dim": 0},
    "shared-encoder": {"shared_encoder": True},
    "direct-reconstruction": {"n_crops": 0},
    "random-pairs": {"pairing": "random"},
}
