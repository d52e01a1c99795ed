"""Presets of the supervised classifier."""

from __future__ import annotations

from ._cut import Presets, cut

PARAMS: Presets = {
    "har": {},
    "ecg": {},
    "ppg": {},
    "eeg": {},
    "synthetic": {"batch_size": 128},
    "har-transfer": {},
    "eeg-transfer": {},
}

# The released optimiser updates only the encoder, so the head stays as it was initialised.
PUBLISHED: Presets = {dataset: {"train_head": False} for dataset in PARAMS}

# All windows that carry labels, except for the validation of ECG, which uses a tenth. Nothing was
# released for the transfers: their rows are the labelled windows of the source data sets.
WINDOWS = {
    "har": cut("labeled", 128, channels=6),
    "ecg": cut("labeled", 500, downsample=5, fraction_val=0.1, channels=2),
    "ppg": cut("labeled", 960, downsample=4, channels=1),
    "eeg": cut("labeled", 1000, downsample=3, channels=2),
    "synthetic": cut("labeled", 100, channels=3),
    "har-transfer": cut("labeled", 128, channels=6),
    "eeg-transfer": cut("labeled", 1000, downsample=3, channels=1),
}

# The released configurations read only Fpz-Cz; those of the other methods read both channels.
PUBLISHED_WINDOWS = {"eeg": {"n_channels": 1}}

# The paper's grid has no parameter that belongs to this classifier alone.
SEARCH_SPACE: dict[str, list[float]] = {}
