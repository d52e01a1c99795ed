"""Sizes of the benchmarks: windows and networks of the paper's data sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from perf.literal import LiteralPulse
from sklearn_pulse import PulseTransformer, presets
from sklearn_pulse.objectives import CrossReconstruction

NAMES = {"har": "HAR", "ecg": "ECG", "ppg": "PPG", "eeg": "EEG", "synthetic": "synthetic"}

_MAX_BATCH_STEPS = 2**16  # time steps per batch: the literal training step then takes seconds


@dataclass(frozen=True)
class Size:
    """Windows of a data set, and the networks that its preset builds.

    Parameters
    ----------
    dataset : str
        Key of `NAMES`.
    """

    dataset: str

    @property
    def params(self) -> dict[str, Any]:
        """Parameters of the estimator."""
        return PulseTransformer(**presets.get("pulse", self.dataset)).get_params()

    @property
    def n_timesteps(self) -> int:
        """Steps of a window."""
        return presets.windows("pulse", self.dataset)["length"]

    @property
    def n_channels(self) -> int:
        """Channels of a window."""
        return presets.windows("pulse", self.dataset)["n_channels"]

    @property
    def batch_size(self) -> int:
        """Windows per batch: the preset's number, or fewer if the windows are long."""
        return min(self.params["batch_size"], _MAX_BATCH_STEPS // self.n_timesteps)

    def objective(self, **changed: Any) -> CrossReconstruction:
        """Return an objective with weights drawn from a fixed seed."""
        torch.manual_seed(0)
        params = PulseTransformer(**presets.get("pulse", self.dataset), **changed)
        return CrossReconstruction(self.n_channels, **params._objective_params())

    def literal(self, **changed: Any) -> LiteralPulse:
        """Return the literal loss with the same weights as `objective`."""
        return LiteralPulse(self.objective(**changed))

    def batch(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return a batch of windows and the starts of their crops, drawn as in training."""
        params, generator = self.params, torch.Generator().manual_seed(0)
        x = torch.randn(self.batch_size, self.n_timesteps, self.n_channels, generator=generator)
        n_starts = self.n_timesteps - params["min_crop_length"]
        starts = torch.randint(n_starts, (params["n_crops"], len(x)), generator=generator)
        return x.to(device), starts.to(device)
