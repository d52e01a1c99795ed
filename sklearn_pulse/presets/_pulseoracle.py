"""Presets of PULSE's oracles."""

from __future__ import annotations

from ._cut import Presets, cut
from ._pulse import PARAMS as PULSE
from ._pulse import SEARCH_SPACE as PULSE_SEARCH_SPACE
from ._pulse import WINDOWS as PULSE_WINDOWS

# Settings were published for synthetic data only. Elsewhere these are PULSE's settings without the
# number of crops, since an oracle makes a single pass.
PARAMS: Presets = {
    dataset: {name: value for name, value in params.items() if name != "n_crops"}
    for dataset, params in PULSE.items()
    if dataset != "strong"  # which embeds by fixed features
} | {
    "synthetic": {
        "max_epochs": 200,
        "gru_num_layers": 3,
        "gru_hidden_dim": 128,
        "init_dilation": 2,
        "init_hidden_dim": 128,
        "min_crop_length": 25,
    }
}

# The initial state is that of the anchor, or with a shared encoder that of the partner; validation
# uses fresh pairs and crops. Whether the tables were made with or without random starts is unknown:
# both configurations are published.
PUBLISHED: Presets = {
    dataset: {"init_source": "published", "deterministic_validation": False} for dataset in PARAMS
}

# Pairs need labels, so all windows carry labels.
WINDOWS: Presets = {
    dataset: row | {"mode": "labeled", "stride": None, "stride_val": None}
    for dataset, row in PULSE_WINDOWS.items()
} | {"synthetic": cut("labeled", 100, channels=3)}

SEARCH_SPACE = {name: values for name, values in PULSE_SEARCH_SPACE.items() if name != "n_crops"}
