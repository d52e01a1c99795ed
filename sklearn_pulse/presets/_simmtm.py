"""Presets of SimMTM."""

from __future__ import annotations

from ._cut import Presets, cut

# The paper's code has no SimMTM. These are the batch sizes that it uses for other methods.
PARAMS: Presets = {
    "har": {"batch_size": 64},
    "ecg": {"batch_size": 64},
    "ppg": {"batch_size": 64},
    "eeg": {"batch_size": 64},
    "synthetic": {},
    "har-transfer": {"batch_size": 64},
    "eeg-transfer": {"batch_size": 64},
}

PUBLISHED: Presets = {dataset: {} for dataset in PARAMS}

# Classification code of the method's own authors, which uses Adam without weight decay.
OFFICIAL: Presets = {
    dataset: {
        "batch_size": 32,
        "max_epochs": 10,
        "lr": 1e-4,
        "weight_decay": 0.0,
        "schedule": "cosine",
        "betas": (0.9, 0.99),
        "gradient_clip_value": None,
        "mask_chain": "batch",
        "reconstruct": "inputs",
        "validation_fraction": 0.0,
        "select": "last",
    }
    for dataset in PARAMS
}

# The windows of PULSE, to compare both methods. Those of har-transfer are of the other baselines.
WINDOWS = {
    "har": cut("random", 128, stride=32, stride_val=128, channels=6),
    "ecg": cut("labeled", 500, downsample=5, fraction=0.5, channels=2),
    "ppg": cut("labeled", 960, downsample=4, channels=1),
    "eeg": cut("random", 1000, downsample=3, stride=350, stride_val=1000, fraction=0.5, channels=2),
    "synthetic": cut("random", 100, stride=50, stride_val=100, channels=3),
    "har-transfer": cut("random", 500, stride=128, stride_val=128, channels=6),
    "eeg-transfer": cut("random", 200, stride=200, stride_val=200, fraction=0.1, channels=1),
}

# The paper's grid has no parameter that belongs to SimMTM alone.
SEARCH_SPACE: dict[str, list[float]] = {}
